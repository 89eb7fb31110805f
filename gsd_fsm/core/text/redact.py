"""Redact secrets from text before it is appended to the journal.

Known shapes come first, because they need no name beside them; named values (`password=…`) come
second: there the value may look like anything, and its surroundings decide.
"""

from __future__ import annotations

from gsd_fsm.core.codec import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Match

# One row each: kind, lower-case texts of which every match contains one (`-`: none), regex, which
# goes on in indented lines; its group 1, if any, is the secret. Time stays linear because a failing
# attempt reads a bounded stretch, or one in which no other attempt can begin. No kind ends like a
# name in _NAMED: a mark must not look like a named value.
PATTERNS = r"""
pem          private        -----BEGIN PEMNAME[^-]*(?:-(?!----)[^-]*)*-----END PEMNAME
pem          private        -----BEGIN PEMNAME((?:(?:\\[nr]|[\s"'+|>#,])*
                            (?:(?:Proc-Type|DEK-Info): [\w,-]+|[A-Za-z0-9+/]{40,}={0,2}))*
                            (?:(?:\\[nr]|[\s"'+|>#,]){1,40}[A-Za-z0-9+/]{4,}={0,2}
                            (?=\s*$|[ \t]*[\r\n"'.…]|\\[nr]))?)
pem          private        (?<![A-Za-z0-9+/=\r\n\\])([A-Za-z0-9+/=\r\n\\]{16,})-----END PEMNAME
putty        private-lines  Private-Lines: \d+((?:(?:\r?\n|(?:\\r)?\\n)[A-Za-z0-9+/=]+)+)
openssh      b3blbnnzac1rzxktdje EDGEb3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=]+
pem          ls0tls1crudjtib EDGELS0tLS1CRUdJTiB(?!DRVJU)[A-Za-z0-9+/=]{40,}
age          age-secret-key- AGE-SECRET-KEY-(?:PQ-)?1[A-Za-z0-9]{20,}
jwt          eyj            (?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|
                            (?<=[\[;][0-9]{2}m))eyJ[A-Za-z0-9_-]{8,}\.(?:eyJ[A-Za-z0-9_-]*
                            (?:\.[A-Za-z0-9_-]*)?|[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]{8,}){1,3})
anthropic    sk-ant-        EDGEsk-ant-[\w-]{12,}
openai       sk-            EDGEsk-(?:proj|svcacct|admin|None|or-v1)-[\w-]{16,}
openai       sk-            EDGEsk-(?:[A-Za-z0-9]{1,15}[_-]){0,4}[A-Za-z0-9]{16,}[\w-]*
github       gh,github_pat_ EDGE(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})
gitlab       gl,gr1348941   EDGE(?:gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-
                            |GR1348941)[\w-]{16,}(?:\.[\w-]+)*
slack        xox,xapp-      EDGE(?:xoxe\.)?(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}
slack        hooks.slack    hooks\.slack(?:-gov)?\.com/(?:[a-z]+)/(T[\w/-]{16,})
stripe       k_             EDGE[sr]k_(?:live|test)_[A-Za-z0-9]{10,}
webhook      whsec_         EDGEwhsec_[A-Za-z0-9+/=_-]{16,}
aws          akia,asia,abia,acca EDGEA(?:KI|SI|BI|CC)A[A-Z0-9]{16}(?![A-Za-z0-9])
aws          secret         (?i:secret[ _-]?(?:access[ _-]?)?key)[^A-Za-z0-9/+\n]{1,12}
                            (?:None\]: )?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])
aws          signature=     (?i:\bsignature=)([0-9a-f]{64})
google       aiza,ya29.,gocspx-,1//0 EDGE(?:AIza[\w-]{30}|ya29\.[\w-]{9}|GOCSPX-[\w-]{9}
                            |1//0[\w-]{30})[\w-]*(?:\.[\w-]+)*
pypi         pypi-age       EDGEpypi-AgE[\w-]{16,}
vendor       oy2,cio,rubygems_,clojars_,npm_,hf_,gsk_,xai-,r8_,pplx-,csk-,fw_,ltai EDGE
                            (?:oy2|cio|rubygems_|CLOJARS_|npm_|hf_|gsk_|xai-|r8_|pplx-|csk-|fw_|LTAI)
                            [A-Za-z0-9]{20,}
sendgrid     sg.            EDGESG\.[\w-]{16,}\.[\w-]{16,}
twilio       -              EDGE(?:SK|AC)[0-9a-f]{32}(?![A-Za-z0-9])
mailgun      key-           EDGE(?<![_-])key-[0-9a-f]{32}(?![A-Za-z0-9])
mailer       -              EDGE(?<![_-])[0-9a-f]{32}-(?:us\d{1,2}|[0-9a-f]{8}-[0-9a-f]{8})(?![\w-])
telegram     :aa            (?<!\d)\d{8,10}:AA[\w-]{32,}
discord      .              EDGE(?<!\.)[MNO][\w-]{23,27}\.(?=[\w-]{0,5}\d)[\w-]{6}\.[\w-]{27,}
discord      /webhooks/     discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/([\w-]{20,})
azure        sig=           (?i:(?:[?&;]|EDGE)sig=)([A-Za-z0-9%+/=_-]{20,})
azure        8q~            [\w~.-]{3}8Q~[\w~.-]{30,}
databricks   dapi           EDGEdapi[0-9a-f]{32}(?:-\d)?
shopify      shp            EDGEshp(?:at|ca|pa|ss)_[0-9A-Fa-f]{30,}
square       sq0,eaaa       EDGE(?:sq0[a-z]{3}-[\w-]{20,}|EAAA(?!AAA)[\w-]{56,})
notion       secret_        EDGEsecret_[A-Za-z0-9]{43}(?![A-Za-z0-9])
terraform    .atlasv1.      EDGE[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}
cloudflare   v1.0-          EDGEv1\.0-[0-9a-f]{24}-[0-9a-f]{100,}
cloudflare   cf             EDGEcf(?:k|ut|at)_[A-Za-z0-9]{40,}
sentry       sntry          EDGEsntry[su]_[\w+/=-]{20,}
grafana      gl             EDGEgl(?:sa_|c_)[\w+/=]{30,}
dynatrace    dt0            EDGEdt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}
fly          fm1_,fm2_,fo1_ EDGEf(?:m[12]|o1)_[\w+/=,-]{40,}
vendor       -              EDGE(?:lsv2_[a-z]{2}_|xkeysib-|nfp_|bk(?:ua|at|ct)_|CCIP(?:AT|RJ)_
                            |CFPAT-|sgp_|nvapi-|PMAK-|pul-|figd_|tskey-[a-z]{2,12}-|pscale_(?:tkn|pw|oauth)_
                            |sbp_|sb_secret_|pat-(?:na|eu|ap)\d-|NR(?:AK|JS|II|AA)-|HRKU-|ntn_|ops_eyJ
                            |lin_(?:api|oauth)_|dckr_[po]at_|AKCp|do[opr]_v1_|sk\.eyJ
                            |pat[A-Za-z0-9]{14}\.|hv[sbr]\.|dp\.[a-z]{2,5}\.|AT(?:ATT3|CTT3|BB))[\w.=-]{20,}
header       authorization  (?i:authorization[\\"'`]*\s{0,4}[:=,]\s{0,4}[\\"'`]*(?:bearer|basic
                            |token|apikey|api-key|negotiate|ssws|splunk|key)[ \t]+)
                            ([^\s"'`\\,;<>\x1b]+)
header       bearer         (?i:EDGEbearer[ \t]+|bearer%20)(?=[A-Za-z._~+/=-]{0,60}\d)
                            ([\w.~+/=-]{16,})
header       basic          (?i:EDGEbasic[ \t]+)(?=[A-Za-z+/]{0,40}[\d=])([\w+/]{12,}={0,2})
digest       response=      response=\\?"([0-9a-f]{32,64})
cookie       set-cookie     (?i:set-cookie[\\"']*\s{0,4}[:,]\s{0,4}[\\"']*)
                            [^\s"'=;:\[\]\\]{1,99}=([^\s;"',\\]+)
cookie       cookie         (?i:(?:(?<![\w-])|(?<=\\[nrt]))cookie[\\"']*\s{0,4}[:,]\s{0,4}[\\"']*)
                            ([^\s"'=;:\[\]\\]{1,99}=[^\r\n"'\\]+)
url          ://            (?<=[A-Za-z0-9])://[^\s/:@"'<>`]*:([^\s/"'<>`]+)@(?!sha256:)
url          ://            (?i:postgres|postgresql|mysql|mongodb|mongodb\+srv|rediss?|amqps?
                            |mssql)://[^\s/:@"'<>`]{0,99}:(?!\d+/)([^\s"'<>`]{1,200})@
url          ://            (?<=[A-Za-z0-9])://((?=[A-Za-z_-]{0,40}\d)[\w-]{20,})(?::[\w-]*)?@
xml          </             (?i:<[\w.:-]*(?:passw(?:or)?d|passphrase|secret|token|api-?key)>)
                            ([^<\s]+)</
sql          identified,password (?i:identified\s{1,9}by|with\s{1,9}(?:encrypted\s{1,9})?password)
                            \s{1,9}'([^'\n]+)'
netrc        machine        EDGEmachine\s{1,9}\S{1,99}\s{1,9}login\s{1,9}\S{1,99}\s{1,9}
                            password\s{1,9}([^\s"'\\]+)
curl         curl           (?<=\s)(?:-u|--user)[ =]["']?[^\s:"'/]{1,99}:(?!\d+\b)([^\s"']+)
"""
_PEM_NAME = r"(?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
# Escapes (`\n`, `%3D`, `\u003d`) and colour codes end in a letter or digit, yet a token may start
# right behind them.
_EDGE = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtfvb])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})"
    r"|(?<=[\[;]m)|(?<=[\[;][0-9]m)|(?<=[\[;][0-9]{2}m))"
)
# What a name ends in, by how sure it makes us: a password may be any word, a token never is one,
# and a mere `_key` is a secret only if its value looks random.
_NAMED = {
    "password": r"passw(?:or)?d|passphrase|pwd|(?<=[_-])pass|secret|seed[_-]?phrase",
    "token": r"token|credentials?|client-key-data|authorization|(?:api|access|account|auth|secret"
    r"|private|signing|encryption|master|shared|license|session|service|webhook|app)[_-]?key",
    "key": r"(?<=[_-])(?:key|auth|pat|dsn)|(?<=[\"'])auth",
}
_COLOUR = r"(?:(?:\x1b|\\u001b|\\x1b|\\033)\[[\d;]*m){0,4}"
_JOINT = (
    rf"(?:[_-]?\d{{1,2}}|[_-]?confirm(?:ation)?)?{_COLOUR}(?:\\*[\"'`])?\]?{_COLOUR}(?:"
    r"(?P<pair>(?:\s*,\s*|(?:\\[nrt]|\s)+)(?:\\*[\"'])?value(?:\\*[\"'])?[ \t]*[:=][ \t]*)"
    r"|(?P<typed>:[ \t]*&?[\w.\[\]<>|]{1,40}[ \t]+=[ \t]+(?=\S))"
    r"|(?P<equals>(?:=>|:=|=(?!=)|%3[Dd])(?![ \t]))"
    r"|(?P<spaced>[ \t]*(?:=>|:=|=(?!=))[ \t]*)"
    r"|(?P<colon>[ \t]*(?::(?![:/=])|%3[Aa])[ \t]*(?:%20)*)"
    rf"|(?P<gap>[ \t]+|,\s*)){_COLOUR}"
)
_MARK = r"\[redacted:[\w.-]{1,40}:[0-9a-f]{8}\]"
# The next quote of the same kind ends a value, so values of one kind do not overlap; a limit on
# backslashes makes it 48 kinds, which bounds how often a text is read.
_QUOTED = (
    r"[burfBURF]{0,2}(?P<quote>\\{0,15}[\"'`])"
    r"(?P<inside>(?:[^\\\"'`\n]+|(?!(?P=quote))(?:\\{3}[\"'`]|\\.|[^\\\n]))*)"
)
_BARE = r"(?:[^\s\"'`;,&<>\x1b\\]+|\\(?![nrtu\"'\\]))+"
_BARE_LINE = r"(?:[^\s\"'\x1b\\]+|\\(?![nrtu\"'\\]))+"  # in an env file `,` `;` and `&` are value
_PLACEHOLDER = (
    rf"{_MARK}|\$\w*|\$[{{(\[].*|%\w+%|%[-\w(){{}}]*|[{{<(\[].*|[*•●x._…-]+|X+|[|>][-+]?\d?"
    r"|(?:your|insert|enter|change|replace)(?:[-_ ][a-z]+)+|sha\d+[:-].*"
)
# Code is not a value; the search for names continues behind it. An attempt that fails reads at most
# 256 characters, or characters without a separator between a name and a value.
_CODE = (
    r"[&*!]?[A-Za-z_][\w.:$]{0,256}\??[(\[{<]|[A-Za-z_]+(?:(?:\.|::|->|\?\.)[A-Za-z_]+)+(?![\w.:$-])"
    r"|(?:exports|module|self|this|process|settings|config|os)\.[\w.]+|&'?[a-z]+"
    r"|\$\{[^}\s]{0,256}\}|\$[{(\[]|[{<(\[]|sha\d+[:-]"
)
_PATH = r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@-]*)+"
_HARMLESS_PREFIX = (
    r"(?:next|prev|previous|last|first|current|page|continuation|pad|eos|bos|unk|mask|sep|cls|stop"
    r"|special|primary|foreign|public|sort|partition|row|cache|map|dict|group|object|hash|index"
    r"|storage|idempotency|translation|lookup|registry|host|unique|missing|duplicate|unknown|s3"
    r"|project|issue|event|query|routing|hot|config|setting|column|composite)[_.-]?"
)
_WORDS = """
none null nil undefined true false yes no on off ok str string bytes int number bool boolean any
object text char varchar secretstr bytearray unknown optional required missing invalid incorrect
expired unset empty hidden masked redacted filtered default prompt not is are was has have must
cannot can should will may and or to for from with in of as at by if when the a an new await lambda
self this function async value flag option options does do did failed passed error found auth
authentication scheme header field type parameter argument input example changeme placeholder dummy
via file env stdin only but that which instead
"""
_DECLARING = """
export set setx const let var final val static private public env arg readonly local declare string
str auto my our define default and
"""
_NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_ROUNDS = 16  # a mark may uncover a neighbour; more rounds only serve a text made to need them


class _Redactor:
    """The compiled patterns, made once, on first use."""

    def __init__(self) -> None:
        import re

        rows = re.sub(r"\n +", "", PATTERNS).replace("EDGE", _EDGE).replace("PEMNAME", _PEM_NAME)
        cells = [row.split(None, 2) for row in rows.strip().splitlines()]
        self.shapes = [(kind, hints.split(","), re.compile(regex)) for kind, hints, regex in cells]
        names = "|".join(f"(?P<{sure}>{regex})" for sure, regex in _NAMED.items())
        self.named = re.compile(f"{_MARK}|(?:{names}){_JOINT}", re.IGNORECASE)
        self.quoted, self.bare = re.compile(_QUOTED), re.compile(_BARE)
        self.bare_line, self.path = re.compile(_BARE_LINE), re.compile(_PATH)
        self.placeholder = re.compile(_PLACEHOLDER)
        self.mark_or_code = re.compile(f"{_MARK}|{_CODE}")
        self.harmless_prefix = re.compile(f"(?:.*[^A-Za-z])?{_HARMLESS_PREFIX}", re.IGNORECASE)
        self.ends_here = re.compile(r"[ \t]*(?:$|[\r\n,;})\]\"'`#]|\\[nr\"'])")
        self.last_word = re.compile(r"(?:\\[nrt])?([A-Za-z]+),? $")
        self.words, self.declaring = set(_WORDS.split()), set(_DECLARING.split())

    def mark(self, kind: str, secret: str) -> str:
        return f"[redacted:{kind}:{sha256(secret.encode('utf-8', 'replace')).hexdigest()[:8]}]"

    def harmless(self, value: str) -> bool:
        return value.lower() in self.words or self.placeholder.fullmatch(value) is not None

    def hide_shapes(self, text: str) -> str:
        lowered = text.lower()
        for kind, hints, pattern in self.shapes:
            if not any(hint == "-" or hint in lowered for hint in hints):
                continue
            kept, done = [""], 0
            for found in pattern.finditer(text):
                start, stop = found.span(found.lastindex or 0)
                if start < stop and not self.harmless(text[start:stop]):
                    kept += [text[done:start], self.mark(kind, text[start:stop])]
                    done = stop
            text = "".join([*kept, text[done:]])
        return text

    def hide_named(self, text: str) -> str:
        kept, done, at = [""], 0, 0
        while True:
            found = self.named.search(text, at)
            if found is None:
                return "".join([*kept, text[done:]])
            at = found.end()
            sure = next((sure for sure in _NAMED if found.group(sure)), "")
            if sure:
                # Look at the marks, not at the words they replaced, as the next run would.
                since = text[max(done, found.start() - 64) : found.start()]
                head = (kept[-1] + since)[-64:]
                start, stop, secret = self.weigh(text, head, sure, found)
                if secret:
                    kept += [text[done:start], self.mark("assigned", text[start:stop])]
                    done = stop
                at = stop

    def weigh(self, text: str, head: str, sure: str, found: Match[str]) -> tuple[int, int, bool]:
        """Return start and end of a name's value, and if it is secret; continue at the end."""
        at, span, joint = found.end(), found.span(sure), str(found.lastgroup)
        nothing = (at, at, False)
        name = text[span[0] : span[1]]
        before = head.rstrip(_NAME_CHARACTERS)
        prefix = head[len(before) :]
        if before.endswith("\\") and prefix[:1] in ("n", "r", "t"):
            before, prefix = before[:-1] + "\n", prefix[1:]
        flag = prefix.startswith("--")
        if joint == "gap" and not flag:
            return nothing
        if sure != "password" and self.harmless_prefix.fullmatch(prefix):
            return nothing
        word = self.last_word.search(before[-24:])
        prose = word is not None and word.group(1).lower() not in self.declaring
        certain = joint == "pair" or (
            joint == "equals" and (name.isupper() or flag or before[-1:] in ("?", "&", ";"))
        )
        quoted = self.quoted.match(text, at)
        if quoted:
            start, stop = quoted.span("inside")
            outside = prose and text[start : start + 1] in (")", ",", ";")
            # in `getpass("Password: ")` and `ask("Your password: ")` the quote closes
            if text[span[1] : at] == ": " and (outside or before.endswith(quoted["quote"])):
                return nothing
        else:
            code = self.mark_or_code.match(text, at)
            if code:
                return at, code.end(), False
            lead = before.rstrip(" \t")
            line = certain and name.isupper() and (not lead or lead.endswith(("\n", "export")))
            bare = (self.bare_line if line else self.bare).match(text, at)
            start, stop = at, at + len(bare.group().rstrip(".,:;)]}") if bare else "")
        value = text[start:stop]
        plain = value.replace("_", "").replace("-", "").isalpha()
        random = not plain and any(map(str.isdigit, value)) and any(map(str.isalpha, value))
        echo = name.lower() in value.lower() and value.isidentifier()  # password=raw_password
        own_names = ("", name.lower(), (prefix + name).lower())
        phrase = name.lower().endswith("phrase")
        just_token = sure == "token" and not prefix and name.lower() == "token"
        argument = joint == "equals" and text[stop : stop + 1] in (")", ",")
        rules = (
            (value.lower() in own_names or self.harmless(value), False),
            # a rejected word is searched for names again, so it has to be short
            (not quoted and len(value) > 256, True),
            (any(map(str.isspace, value)), sure == "password" and (phrase or joint != "colon")),
            (self.path.fullmatch(value), False),
            (sure == "key", random and len(value) >= 16),
            (sure == "token" and len(value) < (12 if value.isdigit() else 6), False),
            (echo and not certain and not (quoted and sure == "password"), False),
            (quoted, not (plain and len(value) < 24 and (prose or just_token))),
            (len(value) < 3, False),
            (certain, True),
            (joint == "gap" and (value[:1] == "-" or (plain and value.isupper())), False),
            (joint == "gap", sure == "password" or random),
            (joint == "colon" and not self.ends_here.match(text, stop), random and len(value) > 7),
            (plain and sure == "password", not (argument or prose or joint in ("spaced", "typed"))),
            (True, sure == "password" or (random and len(value) > 7)),
        )
        secret = next(verdict for applies, verdict in rules if applies)
        return (start, stop, True) if secret else nothing


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
