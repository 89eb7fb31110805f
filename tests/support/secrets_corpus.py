"""Fake secrets, put together at run time so that no line of this file looks like a leaked one."""

import random

DIGITS = "0123456789"
HEX = DIGITS + "abcdef"
LOWER = "abcdefghijklmnopqrstuvwxyz" + DIGITS
UPPER = LOWER.upper()
WORD = LOWER + UPPER[:26]
URLSAFE = WORD + "_-"
BASE64 = WORD + "+/"

_dice = random.Random(20)


def some(count, alphabet=WORD):
    """Return this many characters, the first ones with a letter and a digit, like a real token."""
    drawn = "".join(_dice.choice(alphabet) for _ in range(count - 2))
    letters = [c for c in alphabet if c.isalpha()]
    return f"{_dice.choice(letters or alphabet)}{_dice.choice(DIGITS)}{drawn}"


def token(prefix, count, alphabet=WORD):
    return prefix + some(count, alphabet)


def jwt():
    return f"eyJ{some(30, URLSAFE)}.eyJ{some(60, URLSAFE)}.{some(43, URLSAFE)}"


_UUID = "-".join(some(n, HEX) for n in (8, 4, 4, 4, 12))

# (name, secret): recognised anywhere.
SHAPES = (
    ("anthropic key", token("sk-" + "ant-api03-", 95, URLSAFE)),
    ("anthropic oauth", token("sk-" + "ant-oat01-", 80, URLSAFE)),
    ("anthropic key in pieces", "sk-" + "ant-" + "-".join(some(7) for _ in range(9))),
    ("openai key in pieces", "sk-" + "proj-" + "_".join(some(7) for _ in range(9))),
    ("openai key", token("sk-", 48)),
    ("openai project key", token("sk-" + "proj-", 120, URLSAFE)),
    ("openai service key", token("sk-" + "svcacct-", 60, URLSAFE)),
    ("openrouter key", token("sk-" + "or-v1-", 64, HEX)),
    ("deepseek key", token("sk-", 32, HEX)),
    *((f"github {kind}", token(f"gh{kind}_", 36)) for kind in "pousr"),
    ("github fine-grained", f"github_{'pat'}_{some(22)}_{some(59)}"),
    *((f"gitlab {kind}", token(f"gl{kind}-", 20, URLSAFE)) for kind in ("pat", "dt", "rt", "ptt")),
    ("gitlab runner", token("GR" + "1348941", 20, URLSAFE)),
    *(
        (f"slack {kind}", f"xox{kind}-{some(11, DIGITS)}-{some(12, DIGITS)}-{some(24)}")
        for kind in "abprs"
    ),
    ("slack app", f"xapp-1-A{some(10, UPPER)}-{some(13, DIGITS)}-{some(64, HEX)}"),
    ("stripe live", token("sk_" + "live_", 24)),
    ("stripe test", token("sk_" + "test_", 24)),
    ("stripe restricted", token("rk_" + "live_", 24)),
    ("webhook signing", token("wh" + "sec_", 32)),
    ("aws id", token("AK" + "IA", 16, UPPER)),
    ("aws session id", token("AS" + "IA", 16, UPPER)),
    ("google key", token("AI" + "za", 35, URLSAFE)),
    ("google access", token("ya29" + ".", 60, URLSAFE)),
    ("google client", token("GOC" + "SPX-", 28, URLSAFE)),
    ("google refresh", token("1/" + "/0", 60, URLSAFE)),
    ("npm", token("npm" + "_", 36)),
    ("pypi", token("pypi-" + "AgEIcHlwaS5vcmc", 100, URLSAFE)),
    ("rubygems", token("rubygems" + "_", 48, HEX)),
    ("crates", token("ci" + "o", 32)),
    ("nuget", token("oy" + "2", 43, LOWER)),
    ("docker", token("dckr_" + "pat_", 27, URLSAFE)),
    ("hugging face", token("hf" + "_", 34)),
    ("groq", token("gs" + "k_", 52)),
    ("xai", token("xa" + "i-", 80)),
    ("replicate", token("r" + "8_", 37)),
    ("perplexity", token("pp" + "lx-", 48)),
    ("langsmith", f"lsv2_{'pt'}_{some(32, HEX)}_{some(10, HEX)}"),
    ("digitalocean", token("dop" + "_v1_", 64, HEX)),
    ("digitalocean oauth", token("doo" + "_v1_", 64, HEX)),
    ("sendgrid", f"S{'G.'}{some(22, URLSAFE)}.{some(43, URLSAFE)}"),
    ("brevo", f"xkey{'sib'}-{some(64, HEX)}-{some(16)}"),
    ("twilio key", token("S" + "K", 32, HEX)),
    ("twilio account", token("A" + "C", 32, HEX)),
    ("mailgun", token("key" + "-", 32, HEX)),
    ("mailgun private", f"{some(32, HEX)}-{some(8, HEX)}-{some(8, HEX)}"),
    ("mailchimp", f"{some(32, HEX)}-us12"),
    ("telegram", f"123456789:A{'A'}{some(33, URLSAFE)}"),
    ("discord bot", f"M{some(23)}.{some(6)}.{some(30)}"),
    ("azure client", f"abC8{'Q~'}{some(34)}"),
    ("databricks", token("da" + "pi", 32, HEX)),
    ("shopify", token("shp" + "at_", 32, HEX)),
    ("shopify shared", token("shp" + "ss_", 32, HEX)),
    ("square", token("sq0" + "atp-", 22, URLSAFE)),
    ("square access", token("EA" + "AA", 60)),
    ("linear", token("lin" + "_api_", 40)),
    ("notion", token("sec" + "ret_", 43)),
    ("notion new", token("nt" + "n_", 46)),
    ("doppler", token("dp." + "pt.", 43)),
    ("doppler service", token("dp." + "st.", 43)),
    ("vault", token("hv" + "s.", 90, URLSAFE)),
    ("vault batch", token("hv" + "b.", 90, URLSAFE)),
    ("terraform", f"{some(14)}.atlas{'v1'}.{some(67, URLSAFE)}"),
    ("pulumi", token("pu" + "l-", 40, HEX)),
    ("cloudflare origin", f"v1.{'0-'}{some(24, HEX)}-{some(146, HEX)}"),
    ("cloudflare token", token("cf" + "ut_", 48)),
    ("heroku", token("HR" + "KU-", 60, URLSAFE)),
    ("age", token("AGE-SECRET-" + "KEY-1", 58, UPPER)),
    ("sentry org", token("snt" + "rys_", 80)),
    ("sentry user", token("snt" + "ryu_", 64, HEX)),
    ("grafana", f"gl{'sa'}_{some(32)}_{some(8, HEX)}"),
    ("new relic", token("NR" + "AK-", 27, UPPER)),
    ("dynatrace", f"dt0{'c01'}.{some(24, UPPER)}.{some(64, UPPER)}"),
    ("atlassian", token("ATA" + "TT3", 180, URLSAFE)),
    ("bitbucket", token("AT" + "BB", 32)),
    ("postman", f"PM{'AK'}-{some(24, HEX)}-{some(34, HEX)}"),
    ("planetscale", token("pscale" + "_tkn_", 43, URLSAFE)),
    ("supabase", token("sb" + "p_", 40, HEX)),
    ("airtable", f"pa{'t'}{some(14)}.{some(64, HEX)}"),
    ("hubspot", f"pat-{'na1'}-{_UUID}"),
    ("figma", token("fi" + "gd_", 40, URLSAFE)),
    ("tailscale", f"ts{'key'}-auth-{some(12)}-{some(24)}"),
    ("fly", token("fo" + "1_", 43, URLSAFE)),
    ("netlify", token("nf" + "p_", 36)),
    ("buildkite", token("bk" + "ua_", 40, LOWER)),
    ("circleci", token("CCI" + "PAT_", 40)),
    ("contentful", token("CF" + "PAT-", 43, URLSAFE)),
    ("artifactory", token("AK" + "Cp", 69)),
    ("1password", token("ops" + "_eyJ", 80)),
    ("alibaba", token("LT" + "AI", 20)),
    ("jwt", jwt()),
    ("pem in base64", token("LS0tLS1C" + "RUdJTiB", 120, BASE64)),
    ("mapbox", f"s{'k.'}eyJ{some(40)}.{some(22)}"),
    ("openssh body", token("b3BlbnNzaC1r" + "ZXktdjE", 120, BASE64)),
)

_PEM_BODY = "\n".join(some(64, BASE64) for _ in range(6))
_DASHES = "-----"


def pem(name, body=_PEM_BODY, end=True):
    last = f"\n{_DASHES}END {name} KEY{_DASHES}" if end else ""
    return f"{_DASHES}BEGIN {name} KEY{_DASHES}\n{body}{last}"


_B64 = some(40, BASE64)
_S = some(24)
_HEX = some(32, HEX)

# (name, text, secret): recognised by the text around it.
NAMED = (
    *((f"pem {n}", pem(f"{n}PRIVATE"), _PEM_BODY) for n in ("", "RSA ", "EC ", "OPENSSH ")),
    ("pem without an end", pem("RSA PRIVATE", end=False), _PEM_BODY),
    ("pem without a beginning", f"{_PEM_BODY}\n{_DASHES}END PRIVATE KEY{_DASHES}", _PEM_BODY),
    ("pem quoted by pytest", pem("EC PRIVATE").replace("\n", "\nE     "), _PEM_BODY[-64:]),
    ("putty", f"Private-Lines: 6\n{_PEM_BODY}\n", _PEM_BODY),
    ("bearer", f"Authorization: Bearer {_S}", _S),
    ("bearer alone", f"sent Bearer {_S} to the server", _S),
    ("basic", f"Authorization: Basic {_B64}==", _B64),
    ("basic alone", f"sent Basic {_B64}== to the server", _B64),
    ("digest", f'Authorization: Digest username="me", response="{_HEX}"', _HEX),
    ("aws signature", f"X-Amz-Date=1&X-Amz-Signature={'c3' * 32}", "c3" * 32),
    ("token header", f"authorization: token {_S}", _S),
    ("raw authorization", f"Authorization: {_S}", _S),
    ("cookie", f"Cookie: sid={_S}; theme=dark", _S),
    ("set-cookie", f"Set-Cookie: sid={_S}; Path=/; HttpOnly", _S),
    ("x-api-key", f"X-Api-Key: {_S}", _S),
    ("x-auth-token", f"x-auth-token: {_S}", _S),
    ("vault header", f"X-Vault-Token: {_S}", _S),
    ("url password", "https://me:hunter2@example.org/x", "hunter2"),
    ("url password with an at", "postgres://me:hun@ter2@db:5432/x", "hun@ter2"),
    ("url password with a slash", "postgres://me:hun/ter2@db/x", "hun/ter2"),
    ("url without a user", "redis://:hunter2@cache:6379/0", "hunter2"),
    ("url token", f"https://{_S}@example.org/x.git", _S),
    ("sentry dsn", f"https://{'a1' * 16}@o1.ingest.sentry.io/42", "a1" * 16),
    ("slack webhook", f"https://hooks.slack.com/services/T0ABC/B0ABC/{_S}", _S),
    ("discord webhook", f"https://discord.com/api/webhooks/123456/{_S * 2}", _S),
    ("azure account", f"AccountName=x;AccountKey={_B64}==;EndpointSuffix=y", _B64),
    ("azure signature", f"https://x.blob.core.windows.net/c?sv=1&sig={some(44)}%3D", "%3D"),
    ("aws secret", f"aws_secret_access_key = {_B64}", _B64),
    ("aws prompt", f"AWS Secret Access Key [None]: {_B64}", _B64),
    ("aws session", f"AWS_SESSION_TOKEN={_B64 * 3}", _B64),
    ("heroku", f"HEROKU_API_KEY={_UUID}", _UUID),
    ("cloudflare", f"CLOUDFLARE_API_TOKEN={_S}", _S),
    ("env", "DB_PASSWORD=swordfish", "swordfish"),
    ("env with separators", "DB_PASSWORD=ab,cd;ef&gh99", "gh99"),
    ("exported env", 'export MY_SECRET="swordfish"', "swordfish"),
    ("passphrase", 'KEY_PASSPHRASE="correct horse battery"', "correct horse battery"),
    ("generic key", f"STRIPE_KEY={_S}", _S),
    ("credentials", f"GOOGLE_CREDENTIALS={_B64}", _B64),
    ("passwd", "MYSQL_PASSWD=swordfish", "swordfish"),
    ("numbered", "PASSWORD2=swordfish", "swordfish"),
    ("yaml", "  password: swordfish\n", "swordfish"),
    ("yaml quoted", "  password: 'sword fish'\n  client_secret: \"swordfish\"", "swordfish"),
    ("yaml token", f"token: {_S}\n", _S),
    ("yaml pair", "- name: DB_PASSWORD\n  value: swordfish", "swordfish"),
    ("ini", "password = hunter2", "hunter2"),
    ("toml", f'api_key = "{_S}"', _S),
    ("json", '{"user":"me","password":"swordfish"}', "swordfish"),
    ("json token", f'{{"access_token": "{_S}", "expires_in": 3600}}', _S),
    ("json in json", '{"body":"{\\"password\\":\\"hunter2\\"}"}', "hunter2"),
    ("escaped quote", '{"password": "hunt\\"er2tail"}', "er2tail"),
    ("dict", "{'user': 'me', 'password': 'hunter2'}", "hunter2"),
    ("ruby", ':password=>"hunter2"', "hunter2"),
    ("keyword argument", "connect(password='hunter2', port=5)", "hunter2"),
    ("typed constant", f'API_KEY: str = "{_S}"', _S),
    ("go", f'apiKey := "{_S}"', _S),
    ("flag", "--password swordfish --host x", "swordfish"),
    ("flag with equals", f"--token={_S} --host x", _S),
    ("flag in a list", "['mysql', '--password', 'hunter2']", "hunter2"),
    ("query", f"https://example.org/cb?access_token={_S}&x=1", _S),
    ("encoded query", f"https://example.org/?next=%3Ftoken%3D{_S}", _S),
    ("connection string", "Server=x;User Id=sa;Password=swordfish;", "swordfish"),
    ("connection string pwd", "Server=x;Uid=sa;pwd=swordfish;", "swordfish"),
    ("npmrc", f"//registry.npmjs.org/:_authToken={_S}", _S),
    ("npmrc auth", f"_auth={_B64}", _B64),
    ("docker config", f'{{"auths":{{"x":{{"auth":"{_B64}"}}}}}}', _B64),
    ("netrc", "machine x.org login me password hunter2", "hunter2"),
    ("xml", "<password>hunter2</password>", "hunter2"),
    ("xml pair", '<add key="DbPassword" value="hunter2" />', "hunter2"),
    ("sql", "ALTER USER me WITH PASSWORD 'hunter2'", "hunter2"),
    ("mysql", "CREATE USER me IDENTIFIED BY 'hunter2'", "hunter2"),
    ("curl user", "curl -u me:hunter2 https://example.org", "hunter2"),
    ("coloured", "\x1b[36mpassword\x1b[0m: hunter2", "hunter2"),
)
