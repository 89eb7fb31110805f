"""Secrets leave a text before the text enters an append-only journal.

Known shapes come first, because they need no name beside them; named values (`password=…`) come
second, because there the value may look like anything and its surroundings have to decide.
"""

from __future__ import annotations

# Escapes (`\n`, `%3D`, `\u003d`) and colour codes end in a letter or digit, yet a token may start
# right behind them.
_EDGE = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtfvb])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})"
    r"|(?<=[\[;]m)|(?<=[\[;][0-9]m)|(?<=[\[;][0-9]{2}m))"
)
_PEM_NAME = r"(?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"

# (kind, lower-case text that every match contains, regex). Group 1, where there is one, is the
# secret; EDGE stands for _EDGE. Time stays linear because a failing attempt reads a bounded
# stretch, or a stretch in which no other attempt can begin. No kind is a word of _NAMED below:
# a mark must not look like a named value.
PATTERNS = (
    ("pem", "private key", rf"-----BEGIN {_PEM_NAME}[^-]*(?:-(?!----)[^-]*)*-----END {_PEM_NAME}"),
    # cut off: the base64 lines that follow, then one shorter line
    (
        "pem",
        "private key",
        rf"-----BEGIN {_PEM_NAME}((?:(?:\\[nr]|[\s\"'+|>#,])*(?:(?:Proc-Type|DEK-Info): [\w,-]+"
        r"|[A-Za-z0-9+/]{40,}={0,2}))*(?:(?:\\[nr]|[\s\"'+|>#,]){1,40}[A-Za-z0-9+/]{4,}={0,2}"
        r"(?=\s*$|[ \t]*[\r\n\"'.…]|\\[nr]))?)",
    ),
    # cut off at the other end
    (
        "pem",
        "private key",
        rf"(?<![A-Za-z0-9+/=\r\n\\])([A-Za-z0-9+/=\r\n\\]{{16,}})-----END {_PEM_NAME}",
    ),
    ("putty", "private-lines", r"Private-Lines: \d+((?:\r?\n[A-Za-z0-9+/=]+)+)"),
    ("openssh", "b3blbnnzac1rzxktdje", r"EDGEb3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=]+"),
    ("pem", "ls0tls1crudjtib", r"EDGELS0tLS1CRUdJTiB(?!DRVJU)[A-Za-z0-9+/=]{40,}"),
    ("age", "age-secret-key-", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Za-z0-9]{20,}"),
    ("mapbox", "sk.eyj", r"EDGEsk\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    (
        "jwt",
        "eyj",
        r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=[\[;][0-9]{2}m))"
        r"eyJ[A-Za-z0-9_-]{8,}\.(?:eyJ[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]*)?"
        r"|[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]{8,}){1,3})",
    ),
    ("anthropic", "sk-ant-", r"EDGEsk-ant-[\w-]{12,}"),
    ("openai", "sk-", r"EDGEsk-(?:proj|svcacct|admin|None|or-v1)-[\w-]{16,}"),
    ("openai", "sk-", r"EDGEsk-(?:[A-Za-z0-9]{1,15}[_-]){0,4}[A-Za-z0-9]{16,}[\w-]*"),
    ("github", "gh", r"EDGEgh[pousr]_[A-Za-z0-9]{20,}"),
    ("github", "github_pat_", r"EDGEgithub_pat_\w{20,}"),
    (
        "gitlab",
        "gl",
        r"EDGEgl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-[\w-]{16,}(?:\.[\w-]+)*",
    ),
    ("gitlab", "gr1348941", r"EDGEGR1348941[\w-]{16,}"),
    ("slack", "xox", r"EDGE(?:xoxe\.)?xox[a-z]-[A-Za-z0-9-]{10,}"),
    ("slack", "xapp-", r"EDGExapp-[A-Za-z0-9-]{10,}"),
    ("slack", "hooks.slack", r"hooks\.slack(?:-gov)?\.com/(?:[a-z]+)/(T[\w/-]{16,})"),
    ("stripe", "k_", r"EDGE[sr]k_(?:live|test)_[A-Za-z0-9]{10,}"),
    ("webhook", "whsec_", r"EDGEwhsec_[A-Za-z0-9+/=_-]{16,}"),
    ("aws", "", r"EDGE(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    (
        "aws",
        "secret",
        r"(?i:secret[ _-]?(?:access[ _-]?)?key)[^A-Za-z0-9/+\n]{1,12}(?:None\]: )?"
        r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    ),
    ("aws", "signature=", r"(?i:\bsignature=)([0-9a-f]{64})"),
    ("google", "aiza", r"EDGEAIza[\w-]{30,}"),
    ("google", "ya29.", r"EDGEya29\.[\w.-]{16,}"),
    ("google", "gocspx-", r"EDGEGOCSPX-[\w-]{16,}"),
    ("google", "1//0", r"EDGE1//0[\w-]{30,}"),
    ("npm", "npm_", r"EDGEnpm_[A-Za-z0-9]{30,}"),
    ("pypi", "pypi-age", r"EDGEpypi-AgE[\w-]{16,}"),
    ("rubygems", "rubygems_", r"EDGErubygems_[0-9a-f]{40,}"),
    ("crates", "cio", r"EDGEcio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("nuget", "oy2", r"EDGEoy2[a-z0-9]{43}(?![A-Za-z0-9])"),
    ("clojars", "clojars_", r"EDGECLOJARS_[a-z0-9]{50,}"),
    ("docker", "dckr_", r"EDGEdckr_[po]at_[\w-]{16,}"),
    ("huggingface", "hf_", r"EDGEhf_[A-Za-z0-9]{30,}"),
    ("ai", "", r"EDGE(?:gsk_|xai-|r8_|pplx-|nvapi-|tgp_v1_|csk-|fw_)[A-Za-z0-9_-]{24,}"),
    ("langsmith", "lsv2_", r"EDGElsv2_[a-z]{2}_\w{30,}"),
    ("digitalocean", "_v1_", r"EDGEdo[opr]_v1_[0-9a-f]{40,}"),
    ("sendgrid", "sg.", r"EDGESG\.[\w-]{16,}\.[\w-]{16,}"),
    ("brevo", "xkeysib-", r"EDGExkeysib-[A-Za-z0-9-]{40,}"),
    ("twilio", "", r"EDGE(?:SK|AC)[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("mailgun", "key-", r"(?<![\w-])key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("mailgun", "-", r"(?<![\w-])[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![\w-])"),
    ("mailchimp", "-us", r"(?<![\w-])[0-9a-f]{32}-us[0-9]{1,2}\b"),
    ("telegram", ":aa", r"(?<!\d)\d{8,10}:AA[\w-]{32,}"),
    ("discord", ".", r"EDGE(?<!\.)[MNO][\w-]{23,27}\.(?=[\w-]{0,5}\d)[\w-]{6}\.[\w-]{27,}"),
    ("discord", "/webhooks/", r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/([\w-]{20,})"),
    ("azure", "sig=", r"(?i:(?:[?&;]|EDGE)sig=)([A-Za-z0-9%+/=_-]{20,})"),
    ("azure", "8q~", r"[\w~.-]{3}8Q~[\w~.-]{30,}"),
    ("databricks", "dapi", r"EDGEdapi[0-9a-f]{32}(?:-\d)?"),
    ("shopify", "shp", r"EDGEshp(?:at|ca|pa|ss)_[0-9A-Fa-f]{30,}"),
    ("square", "sq0", r"EDGEsq0[a-z]{3}-[\w-]{20,}"),
    ("square", "eaa", r"EDGEEAAA(?!AAA)[\w-]{56,}"),
    ("linear", "lin_", r"EDGElin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    ("notion", "secret_", r"EDGEsecret_[A-Za-z0-9]{43}(?![A-Za-z0-9])"),
    ("notion", "ntn_", r"EDGEntn_[A-Za-z0-9]{40,}"),
    ("doppler", "dp.", r"EDGEdp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{20,}"),
    ("vault", "hv", r"EDGEhv[sbr]\.[\w-]{20,}"),
    ("terraform", ".atlasv1.", r"EDGE[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}"),
    ("pulumi", "pul-", r"EDGEpul-[0-9a-f]{40}"),
    ("cloudflare", "v1.0-", r"EDGEv1\.0-[0-9a-f]{24}-[0-9a-f]{100,}"),
    ("cloudflare", "cf", r"EDGEcf(?:k|ut|at)_[A-Za-z0-9]{40,}"),
    ("heroku", "hrku-", r"EDGEHRKU-[\w-]{30,}"),
    ("sentry", "sntry", r"EDGEsntry[su]_[\w+/=-]{20,}"),
    ("grafana", "gl", r"EDGEgl(?:sa_|c_)[\w+/=]{30,}"),
    ("newrelic", "nr", r"EDGENR(?:AK|JS|II|AA)-[A-Za-z0-9_-]{20,}"),
    ("dynatrace", "dt0", r"EDGEdt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("atlassian", "at", r"EDGEAT(?:ATT3|CTT3|BB)[\w=-]{28,}"),
    ("postman", "pmak-", r"EDGEPMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("planetscale", "pscale_", r"EDGEpscale_(?:tkn|pw|oauth)_[\w.=-]{20,}"),
    ("supabase", "sb", r"EDGE(?:sbp_|sb_secret_)\w{20,}"),
    ("airtable", "pat", r"EDGEpat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("hubspot", "pat-", r"EDGEpat-(?:na|eu|ap)\d-[0-9a-f-]{36}"),
    ("figma", "figd_", r"EDGEfigd_[\w-]{20,}"),
    ("tailscale", "tskey-", r"EDGEtskey-[a-z]+-[A-Za-z0-9-]{12,}"),
    ("fly", "", r"EDGE(?:fm[12]_[A-Za-z0-9+/=_,-]{40,}|fo1_[\w-]{40,})"),
    ("netlify", "nfp_", r"EDGEnfp_[A-Za-z0-9]{30,}"),
    ("buildkite", "bk", r"EDGEbk(?:ua|at|ct)_[A-Za-z0-9]{36,}"),
    ("circleci", "ccip", r"EDGECCIP(?:AT|RJ)_\w{30,}"),
    ("contentful", "cfpat-", r"EDGECFPAT-[\w-]{40,}"),
    ("sourcegraph", "sgp_", r"EDGEsgp_\w{40,}"),
    ("artifactory", "akcp", r"EDGEAKCp[A-Za-z0-9]{60,}"),
    ("onepassword", "ops_eyj", r"EDGEops_eyJ[\w=-]{40,}"),
    ("alibaba", "ltai", r"EDGELTAI[A-Za-z0-9]{16,20}(?![A-Za-z0-9])"),
    (
        "header",
        "authorization",
        r"(?i:authorization[\\\"'`]*\s{0,4}[:=,]\s{0,4}[\\\"'`]*(?:bearer|basic|token|apikey|api-key"
        r"|negotiate|ssws|splunk|key)[ \t]+)([^\s\"'`\\,;<>\x1b]+)",
    ),
    (
        "header",
        "bearer",
        r"(?i:EDGEbearer[ \t]+|bearer%20)(?=[A-Za-z._~+/=-]{0,60}\d)([\w.~+/=-]{16,})",
    ),
    ("header", "basic", r"(?i:EDGEbasic[ \t]+)(?=[A-Za-z+/]{0,40}[\d=])([\w+/]{12,}={0,2})"),
    ("digest", "response=", r"response=\\?\"([0-9a-f]{32,64})"),
    (
        "cookie",
        "set-cookie",
        r"(?i:set-cookie[\\\"']*\s{0,4}[:,]\s{0,4}[\\\"']*)"
        r"[^\s\"'=;:\[\]\\]{1,99}=([^\s;\"',\\]+)",
    ),
    (
        "cookie",
        "cookie",
        r"(?i:(?<![\w-])cookie[\\\"']*\s{0,4}[:,]\s{0,4}[\\\"']*)"
        r"([^\s\"'=;:\[\]\\]{1,99}=[^\r\n\"'\\]+)",
    ),
    ("url", "://", r"(?<=[A-Za-z0-9])://[^\s/:@\"'<>`]*:([^\s/\"'<>`]+)@(?!sha256:)"),
    (
        "url",
        "://",
        r"(?i:postgres|postgresql|mysql|mongodb|mongodb\+srv|rediss?|amqps?|mssql)://"
        r"[^\s/:@\"'<>`]{0,99}:(?!\d+/)([^\s\"'<>`]{1,200})@",
    ),
    ("url", "://", r"(?<=[A-Za-z0-9])://((?=[A-Za-z_-]{0,40}\d)[\w-]{20,})(?::[\w-]*)?@"),
    ("xml", "</", r"(?i:<[\w.:-]*(?:passw(?:or)?d|passphrase|secret|token|api-?key)>)([^<\s]+)</"),
    ("sql", "identified", r"(?i:identified\s{1,9}by\s{1,9})'([^'\n]+)'"),
    ("sql", "password", r"(?i:with\s{1,9}(?:encrypted\s{1,9})?password\s{1,9})'([^'\n]+)'"),
    (
        "netrc",
        "machine",
        r"\bmachine\s{1,9}\S{1,99}\s{1,9}login\s{1,9}\S{1,99}\s{1,9}password\s{1,9}(\S+)",
    ),
    ("curl", "curl", r"(?<=\s)(?:-u|--user)[ =][\"']?[^\s:\"'/]{1,99}:(?!\d+\b)([^\s\"']+)"),
)

# What a name ends in, by how sure it makes us: a password may be any word, a token never is one,
# and a mere `_key` is a secret only if its value looks random.
_NAMED = (
    ("password", r"passw(?:or)?d|passphrase|pwd|(?<=[_-])pass|secret|mnemonic"),
    ("token", r"token|credentials?|client-key-data|authorization"),
    (
        "token",
        r"(?:api|access|account|auth|secret|private|signing|encryption|master|shared"
        r"|license|session|service|webhook|application)[_-]?key",
    ),
    ("key", r"(?<=[_-])(?:key|auth|pat|dsn)|(?<=[\"'])auth"),
)
_COLOUR = r"(?:\x1b\[[\d;]*m){0,4}"
_BETWEEN = (
    rf"{_COLOUR}(?:\\*[\"'`])?\]?{_COLOUR}(?:"
    r"(?P<pair>(?:\s*,\s*|\s+)(?:\\*[\"'])?value(?:\\*[\"'])?[ \t]*[:=][ \t]*)"
    r"|(?P<typed>:[ \t]*&?[\w.\[\]<>|]{1,40}[ \t]+=[ \t]+(?=\S))"
    r"|(?P<equals>[ \t]*(?:=>|:=|=(?!=)|%3[Dd])[ \t]*)"
    r"|(?P<colon>[ \t]*(?::(?![:/=])|%3[Aa])[ \t]*(?:%20)*)"
    rf"|(?P<gap>[ \t]+|,\s*)){_COLOUR}"
)
_QUOTED = (
    r"[burfBURF]{0,2}(?P<quote>\\*[\"'`])"
    r"(?P<inside>(?:[^\\\"'`\n]+|(?!(?P=quote))(?:\\.|[^\\\n]))*)"
)
_BARE = r"(?:[^\s\"'`;,&<>\x1b\\]+|\\(?![nrtu\"'\\]))+"
_BARE_LINE = r"(?:[^\s\"'\x1b\\]+|\\(?![nrtu\"'\\]))+"  # in an env file `,` `;` and `&` are value
_MARK = r"\[redacted:[\w.-]{1,40}:[0-9a-f]{8}\]"
_PLACEHOLDER = (
    rf"{_MARK}|\$\w*|\$[{{(\[].*|%\w+%|%[-\w(){{}}]*|[{{<(\[].*|[*•●x._…-]+|X+|[|>][-+]?\d?"
    r"|(?:your|insert|enter|change|replace)(?:[-_ ][a-z]+)+|sha\d+[:-].*"
)
_CODE = (
    r"[&*!]?[A-Za-z_][\w.:$]*\??[(\[{<]|[A-Za-z_]+(?:(?:\.|::|->|\?\.)[A-Za-z_]+)+(?![\w.:$-])"
    r"|&'?[a-z]+|\$\{[^}\s]*\}|[{<(\[]"
)
_PATH = r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@-]*)+"
_HARMLESS_PREFIX = (
    r"(?:next|prev|previous|last|first|current|page|continuation|pad|eos|bos|unk|mask|sep|cls|stop"
    r"|special|primary|foreign|public|sort|partition|row|cache|map|dict|group|object|hash|index"
    r"|storage|idempotency|translation|lookup|registry|host|unique|missing|duplicate|unknown|s3"
    r"|project|issue|event|query|routing|hot|config|setting|column|composite)[_.-]?"
)
_WORDS = frozenset(
    "none null nil undefined true false yes no on off ok str string bytes int number bool boolean"
    " any object text char varchar secretstr bytearray unknown optional required missing invalid"
    " incorrect expired unset empty hidden masked redacted filtered default prompt not is are was"
    " has have must cannot can should will may and or to for from with in of as at by if when the"
    " a an new await lambda self this function async value flag option options does do did failed"
    " passed error found authentication auth scheme header field type parameter argument input"
    " example changeme placeholder dummy via file env stdin only but that which instead".split()
)
_DECLARES = frozenset(
    "export set setx const let var final val static private public env arg readonly local declare"
    " string str auto my our define default and".split()
)
_NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_ROUNDS = 4  # a mark may uncover a neighbour; more rounds only serve a text made to need them


class _Redactor:
    """The compiled patterns, made once, on first use."""

    def __init__(self) -> None:
        import re
        from hashlib import sha256

        self.sha256 = sha256
        self.shapes = [
            (kind, hint, re.compile(regex.replace("EDGE", _EDGE))) for kind, hint, regex in PATTERNS
        ]
        names = "|".join(f"(?P<{sure}{i}>{regex})" for i, (sure, regex) in enumerate(_NAMED))
        numbered = r"(?:[_-]?\d{1,2}|[_-]?confirm(?:ation)?)?"
        self.named = re.compile(f"{_MARK}|(?:{names}){numbered}{_BETWEEN}", re.IGNORECASE)
        self.quoted = re.compile(_QUOTED)
        self.bare = re.compile(_BARE)
        self.bare_line = re.compile(_BARE_LINE)
        self.placeholder = re.compile(_PLACEHOLDER)
        self.mark_or_code = re.compile(f"{_MARK}|{_CODE}")
        self.path = re.compile(_PATH)
        self.harmless_prefix = re.compile(f"(?:.*[^A-Za-z])?{_HARMLESS_PREFIX}", re.IGNORECASE)
        self.ends_here = re.compile(r"[ \t]*(?:$|[\r\n,;})\]\"'`#]|\\[nr\"'])")
        self.last_word = re.compile(r"([A-Za-z]+),? $")

    def mark(self, kind: str, secret: str) -> str:
        return f"[redacted:{kind}:{self.sha256(secret.encode('utf-8', 'replace')).hexdigest()[:8]}]"

    def harmless(self, value: str) -> bool:
        return value.lower() in _WORDS or self.placeholder.fullmatch(value) is not None

    def hide_shapes(self, text: str) -> str:
        lowered = text.lower()
        for kind, hint, pattern in self.shapes:
            if hint not in lowered:
                continue
            kept, done = [], 0
            for found in pattern.finditer(text):
                start, stop = found.span(found.lastindex or 0)
                if start < stop and not self.harmless(text[start:stop]):
                    kept += [text[done:start], self.mark(kind, text[start:stop])]
                    done = stop
            text = "".join([*kept, text[done:]])
        return text

    def hide_named(self, text: str) -> str:
        kept, done, at = [], 0, 0
        while True:
            found = self.named.search(text, at)
            if found is None:
                return "".join([*kept, text[done:]])
            at = found.end()
            for number, (sure, _) in enumerate(_NAMED):
                name = found.group(f"{sure}{number}")
                how = found.lastgroup
                if name and how:
                    name_at = found.start(f"{sure}{number}")
                    joint = how + (
                        "" if found.group(how).strip() == found.group(how) else " spaced"
                    )
                    start, stop, secret = self.weigh(text, sure, name, name_at, joint, at)
                    if secret:
                        kept += [text[done:start], self.mark("assigned", text[start:stop])]
                        done = stop
                    at = max(at, stop)

    def weigh(
        self, text: str, sure: str, name: str, name_at: int, joint: str, at: int
    ) -> tuple[int, int, bool]:
        """Say where the value of a name lies and whether it is a secret; else, where to go on."""
        head = text[max(0, name_at - 64) : name_at]
        before = head.rstrip(_NAME_CHARACTERS)
        prefix = head[len(before) :]
        flag = prefix.startswith("--")
        if joint.startswith("gap") and not flag:
            return at, at, False
        if sure != "password" and self.harmless_prefix.fullmatch(prefix):
            return at, at, False
        word = self.last_word.search(before[-24:])
        prose = word is not None and word.group(1).lower() not in _DECLARES
        own_names = (name.lower(), (prefix + name).lower())
        quoted = self.quoted.match(text, at)
        if quoted:
            value = quoted.group("inside")
            known = not value or value.lower() in own_names or self.harmless(value)
            secret = not known and self.quoted_is_secret(sure, own_names, joint, value, prose)
            start, stop = quoted.span("inside")
            return (start, stop, True) if secret else (at, at, False)
        code = self.mark_or_code.match(text, at)
        if code:
            return at, code.end(), False
        certain = joint.startswith("pair") or (
            joint == "equals" and (name.isupper() or flag or before[-1:] in ("?", "&", ";"))
        )
        whole_line = (
            certain and name.isupper() and (not before or before.endswith(("\n", "export ")))
        )
        bare = (self.bare_line if whole_line else self.bare).match(text, at)
        value = bare.group().rstrip(".,:;)]}") if bare else ""
        stop = at + len(value)
        if len(value) < 3 or value.lower() in own_names or self.harmless(value):
            return at, at, False
        # A rejected value is read again, so that it may hold a name itself: it has to be short.
        if len(value) > 256 or self.bare_is_secret(
            sure, name, joint, value, certain, prose, text[stop : stop + 80]
        ):
            return at, stop, True
        return at, at, False

    def random(self, value: str, length: int) -> bool:
        return len(value) >= length and not value.isalpha() and any(map(str.isdigit, value))

    def quoted_is_secret(
        self, sure: str, names: tuple[str, str], joint: str, value: str, prose: bool
    ) -> bool:
        if any(map(str.isspace, value)):
            phrase = names[0] in ("passphrase", "mnemonic")
            return sure == "password" and (phrase or not joint.startswith("colon"))
        if sure == "key":
            return self.random(value, 16) and not self.path.fullmatch(value)
        plain = value.replace("_", "").replace("-", "").isalpha()
        if sure == "token":
            bare_token = names[0] == names[1] == "token"
            long_enough = len(value) >= 6 and not self.path.fullmatch(value)
            return long_enough and not (plain and (prose or bare_token) and len(value) < 24)
        return not (plain and prose)

    def bare_is_secret(
        self, sure: str, name: str, joint: str, value: str, certain: bool, prose: bool, after: str
    ) -> bool:
        if self.path.fullmatch(value):
            return False
        if sure == "key":
            return self.random(value, 16)
        if sure == "token" and (len(value) < 6 or (value.isdigit() and len(value) < 12)):
            return False
        if certain:
            return True
        plain = value.replace("_", "").isalpha()
        if name.lower() in value.lower() and value.isidentifier():
            return False
        if joint.startswith("gap"):
            metavariable = value.startswith("-") or (plain and value.isupper())
            return not metavariable and (sure == "password" or not plain or len(value) >= 20)
        if joint.startswith("colon") and not self.ends_here.match(after):
            return self.random(value, 8) and not value[0].isdigit()
        if plain and sure == "password":
            called = joint == "equals" and after[:1] in (")", ",")
            return not (called or prose or "spaced" in joint.replace("colon spaced", ""))
        return sure == "password" or self.random(value, 8)


_READY: list[_Redactor] = []


def redact(text: str) -> str:
    """Replace every recognised secret by `[redacted:KIND:first 8 digits of its sha256]`.

    Running it again changes nothing, and equal secrets get equal marks.
    """
    if not _READY:
        _READY.append(_Redactor())
    redactor = _READY[0]
    for _ in range(_ROUNDS):
        cleaned = redactor.hide_named(redactor.hide_shapes(text))
        if cleaned == text:
            break
        text = cleaned
    return text
