"""Fake secrets, put together at run time so that no line of this file looks like a leaked one."""

import random
import re

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


_UUID = "-".join(some(n, HEX) for n in (8, 4, 4, 4, 12))

# Secrets that are recognised anywhere: {u95} are 95 characters of the alphabet u.
_ALPHABETS = {"w": WORD, "u": URLSAFE, "x": HEX, "U": UPPER, "l": LOWER, "b": BASE64, "d": DIGITS}
_TEMPLATES = """
    sk-ant-api03-{u95} sk-ant-oat01-{u80} sk-proj-{u120} sk-svcacct-{u60} GR1348941{u20} AIza{u35}
    ya29.{u60} GOCSPX-{u28} 1//0{u60} pypi-AgEIcHlwaS5vcmc{u100} dckr_pat_{u27} sq0atp-{u22}
    hvs.{u90} hvb.{u90} HRKU-{u60} ATATT3{u180} pscale_tkn_{u43} figd_{u40} fo1_{u43} CFPAT-{u43}
    sk-{w48} sk_live_{w24} sk_test_{w24} rk_live_{w24} whsec_{w32} npm_{w36} cio{w32} hf_{w34}
    gsk_{w52} xai-{w80} r8_{w37} pplx-{w48} EAAA{w60} lin_api_{w40} secret_{w43} ntn_{w46}
    dp.pt.{w43} dp.st.{w43} cfut_{w48} sntrys_{w80} ATBB{w32} nfp_{w36} CCIPAT_{w40} AKCp{w69}
    ops_eyJ{w80} LTAI{w20} sk-or-v1-{x64} sk-{x32} rubygems_{x48} dop_v1_{x64} doo_v1_{x64}
    SK{x32} AC{x32} key-{x32} dapi{x32} shpat_{x32} shpss_{x32} pul-{x40} sntryu_{x64} sbp_{x40}
    AKIA{U16} ASIA{U16} AGE-SECRET-KEY-1{U58} NRAK-{U27} oy2{l43} bkua_{l40} LS0tLS1CRUdJTiB{b120}
    b3BlbnNzaC1rZXktdjE{b120} ghp_{w36} gho_{w36} ghu_{w36} ghs_{w36} ghr_{w36} glpat-{u20}
    gldt-{u20} glrt-{u20} glptt-{u20} xoxa-{d11}-{d12}-{w24} xoxb-{d11}-{d12}-{w24}
    xoxp-{d11}-{d12}-{w24} xoxr-{d11}-{d12}-{w24} xoxs-{d11}-{d12}-{w24} github_pat_{w22}_{w59}
    xapp-1-A{U10}-{d13}-{x64} lsv2_pt_{x32}_{x10} SG.{u22}.{u43} xkeysib-{x64}-{w16}
    {x32}-{x8}-{x8} {x32}-us12 123456789:AA{u33} M{w23}.{w6}.{w30} abC8Q~{w34} {w14}.atlasv1.{u67}
    v1.0-{x24}-{x146} glsa_{w32}_{x8} dt0c01.{U24}.{U64} PMAK-{x24}-{x34} pat{w14}.{x64}
    pat-na1-{x8}-{x4}-{x4}-{x4}-{x12} tskey-auth-{w12}-{w24} sk.eyJ{w40}.{w22}
    eyJ{u30}.eyJ{u60}.{u43} sk-ant-{w7}-{w7}-{w7}-{w7}-{w7}-{w7}-{w7}-{w7}-{w7}
    sk-proj-{w7}_{w7}_{w7}_{w7}_{w7}_{w7}_{w7}_{w7}_{w7}
"""


def _filled(template):
    return re.sub(r"{(\w)(\d+)}", lambda m: some(int(m[2]), _ALPHABETS[m[1]]), template)


# Pairs of name and secret.
SHAPES = [(template, _filled(template)) for template in _TEMPLATES.split()]

_PEM_BODY = "\n".join(some(64, BASE64) for _ in range(6))
_DASHES = "-----"


def pem(name, body=_PEM_BODY, end=True):
    last = f"\n{_DASHES}END {name} KEY{_DASHES}" if end else ""
    return f"{_DASHES}BEGIN {name} KEY{_DASHES}\n{body}{last}"


_B64 = some(40, BASE64)
_S = some(24)
_HEX = some(32, HEX)

# Texts by the secret in them, which is recognised by the words around it.
_TEXTS = {
    "hunter2": (
        "https://me:hunter2@example.org/x", "redis://:hunter2@cache:6379/0", "password = hunter2",
        '{"body":"{\\"password\\":\\"hunter2\\"}"}', "{'user': 'me', 'password': 'hunter2'}",
        ':password=>"hunter2"', "connect(password='hunter2', port=5)",
        "['mysql', '--password', 'hunter2']", "machine x.org login me password hunter2",
        "<password>hunter2</password>", '<add key="DbPassword" value="hunter2" />',
        "ALTER USER me WITH PASSWORD 'hunter2'", "CREATE USER me IDENTIFIED BY 'hunter2'",
        "curl -u me:hunter2 https://example.org", "\x1b[36mpassword\x1b[0m: hunter2",
    ),
    "swordfish": (
        "DB_PASSWORD=swordfish", 'export MY_SECRET="swordfish"', "MYSQL_PASSWD=swordfish",
        "PASSWORD2=swordfish", "  password: swordfish\n", "- name: DB_PASSWORD\n  value: swordfish",
        "  password: 'sword fish'\n  client_secret: \"swordfish\"", "--password swordfish --host x",
        '{"user":"me","password":"swordfish"}', "Server=x;User Id=sa;Password=swordfish;",
        "Server=x;Uid=sa;pwd=swordfish;",
    ),
    _S: (
        f"Authorization: Bearer {_S}", f"sent Bearer {_S} to the server", f"Authorization: {_S}",
        f"authorization: token {_S}", f"Cookie: sid={_S}; theme=dark", f"X-Api-Key: {_S}",
        f"Set-Cookie: sid={_S}; Path=/; HttpOnly", f"https://{_S}@example.org/x.git",
        f"https://hooks.slack.com/services/T0ABC/B0ABC/{_S}", f"STRIPE_KEY={_S}", f"token: {_S}\n",
        f"https://discord.com/api/webhooks/123456/{_S * 2}", f'api_key = "{_S}"',
        f'{{"access_token": "{_S}", "expires_in": 3600}}', f'API_KEY: str = "{_S}"',
        f'apiKey := "{_S}"', f"--token={_S} --host x", f"https://example.org/?next=%3Ftoken%3D{_S}",
        f"https://example.org/cb?access_token={_S}&x=1", f"//registry.npmjs.org/:_authToken={_S}",
    ),
    _B64: (
        f"Authorization: Basic {_B64}==", f"sent Basic {_B64}== to the server", f"_auth={_B64}",
        f"AccountName=x;AccountKey={_B64}==;EndpointSuffix=y", f"aws_secret_access_key = {_B64}",
        f"AWS Secret Access Key [None]: {_B64}", f"AWS_SESSION_TOKEN={_B64 * 3}",
        f"GOOGLE_CREDENTIALS={_B64}", f'{{"auths":{{"x":{{"auth":"{_B64}"}}}}}}',
    ),
}  # fmt: skip
# Each is a name, a text and the secret in it.
NAMED = (
    *((f"pem {n}", pem(f"{n}PRIVATE"), _PEM_BODY) for n in ("", "RSA ", "EC ", "OPENSSH ")),
    ("pem without an end", pem("RSA PRIVATE", end=False), _PEM_BODY),
    ("pem without a beginning", f"{_PEM_BODY}\n{_DASHES}END PRIVATE KEY{_DASHES}", _PEM_BODY),
    ("pem quoted by pytest", pem("EC PRIVATE").replace("\n", "\nE     "), _PEM_BODY[-64:]),
    ("putty", f"Private-Lines: 6\n{_PEM_BODY}\n", _PEM_BODY),
    ("digest", f'Authorization: Digest username="me", response="{_HEX}"', _HEX),
    ("aws signature", f"X-Amz-Date=1&X-Amz-Signature={'c3' * 32}", "c3" * 32),
    ("url password with an at", "postgres://me:hun@ter2@db:5432/x", "hun@ter2"),
    ("url password with a slash", "postgres://me:hun/ter2@db/x", "hun/ter2"),
    ("sentry dsn", f"https://{'a1' * 16}@o1.ingest.sentry.io/42", "a1" * 16),
    ("azure signature", f"https://x.blob.core.windows.net/c?sv=1&sig={some(44)}%3D", "%3D"),
    ("heroku", f"HEROKU_API_KEY={_UUID}", _UUID),
    ("env with separators", "DB_PASSWORD=ab,cd;ef&gh99", "gh99"),
    ("passphrase", 'KEY_PASSPHRASE="correct horse battery"', "correct horse battery"),
    ("escaped quote", '{"password": "hunt\\"er2tail"}', "er2tail"),
    *((text, text, secret) for secret, texts in _TEXTS.items() for text in texts),
)
