"""Classify an error text as transient, blocking or logic, by a table of patterns."""

from __future__ import annotations

import re

# (class, regex, description). The first match decides, so the order matters:
#   1. failed assertions and test timeouts are logic, whatever the test is about;
#   2. money, licences and full disks are blocking, even with status 429;
#   3. errors that may go away are transient, even with status 403 or a missing package: the
#      network comes before packages that could not be fetched;
#   4. anything that the user has to provide is blocking;
#   5. everything else is logic.
# A local module, a relative path and a dotted submodule are code, not a missing dependency.
PATTERNS = (
    (
        "logic",
        r"\bAssertion(?:Failed)?Error\b|\bassertion\b.{0,80}\bfailed\b|^E\s+assert\b|DID NOT RAISE",
        "an assertion that does not hold",
    ),
    (
        "logic",
        (
            r"\bexpect\([^)\n]{0,60}\)\."
            r"|^[ \t]*(?:Expected|Received)\b.{0,40}:|\bleft: .{0,80}\n\s*right: "
        ),
        "an expectation that is not met",
    ),
    (
        "logic",
        (
            r"Exceeded timeout of [\d.,]+ ?ms for a (?:test|hook)|For async tests and hooks"
            r"|\bTest (?:timed out|timeout of)|Failed: Timeout [>(]|\btest timed out after"
        ),
        "the time limit of a single test",
    ),
    (
        "logic",
        r"unexpected keyword argument|got multiple values for|SyntaxError\b|IndentationError\b",
        "source code that is wrong, whatever its names say",
    ),
    (
        "blocking",
        (
            r"insufficient_quota|\bbilling\b|payment required|credit balance|usage limit"
            r"|(?:monthly|spending|current) (?:quota|limit)|quota (?:has been )?exhausted"
        ),
        "an account without money or quota",
    ),
    (
        "blocking",
        (
            r"licen[cs]e (?:key |file |server )?(?:has |is |was )?(?:expired|invalid|missing"
            r"|required"
            r"|not found)|(?:no valid|invalid|missing|expired) licen[cs]e"
        ),
        "a licence that is missing",
    ),
    (
        "blocking",
        (
            r"no space left on device|\bENOSPC\b|disk (?:is )?full|disk quota exceeded|\bEDQUOT\b"
            r"|not enough (?:disk )?space"
        ),
        "a full disk",
    ),
    (
        "transient",
        (
            r"rate[ _-]?limit(?:ed|ing|s)?\b(?: (?:was |has been )?(?:exceeded|reached|hit))?"
            r"|too many requests|RESOURCE_EXHAUSTED|quota exceeded|throttl(?:ed|ing)"
        ),
        "a rate limit",
    ),
    (
        "transient",
        (
            r"(?:\bHTTP(?:/[\d.]+)?|\bstatus(?:[ _]?code)?|returned error|responded with"
            r"|\bAPI error"
            r"|\bresponse)[\"'\s:=(]{1,4}(?:code |of )?(?:408|429|502|503|504|529)\b"
            r"|\b(?:429|502|503|504|529)\b[\s:,-]{1,3}"
            r"(?:Too Many|Bad Gateway|Service Un|Gateway|Overload)"
        ),
        "a response from a busy or unavailable server",
    ),
    (
        "transient",
        (
            r"overloaded_error|\b(?:server|model|api|service|currently"
            r"|temporarily) (?:is )?overloaded"
            r"|^[^\w\n]*overloaded[^\w\n]*$|[\"']overloaded[\"']|bad gateway|service unavailable"
            r"|gateway time-?out|temporarily unavailable|try again later|\bEAGAIN\b"
        ),
        "an overloaded or temporarily unavailable service",
    ),
    (
        "transient",
        (
            r"\btimed[ -]out\b|\bTimeout(?:Error|Exception|Expired)\b|\bE(?:SOCKET)?TIMEDOUT\b"
            r"|\b\w*(?:Connect|Read|Write|Pool)Timeout\b|deadline[ _]exceeded"
            r"|\btimeout (?:exceeded|expired|reached|after|while|waiting|awaiting)\b"
            r"|\b(?:connect(?:ion)?|read|request|socket|network|i/o|handshake|operation|lock wait"
            r"|statement|query) timeout\b"
        ),
        "something that took too long",
    ),
    (
        "transient",
        (
            r"\bECONN(?:RESET|REFUSED|ABORTED)\b|\bE(?:PIPE|HOSTUNREACH|NETUNREACH|NETDOWN)\b"
            r"|connection (?:was |has been )?(?:reset|refused|aborted|closed|lost|dropped)"
            r"|Connection(?:Reset|Refused|Aborted)?Error\b|RemoteDisconnected|IncompleteRead"
            r"|(?:network|host) (?:is )?(?:unreachable|down)|no route to host|network (?:error"
            r"|failure)"
            r"|socket hang ?up|broken pipe|remote end (?:hung up|closed)|unexpected disconnect"
            r"|early EOF|TLS handshake|fetch failed|failed to connect to|could not connect to"
        ),
        "a dropped network connection",
    ),
    (
        "transient",
        (
            r"\bENOTFOUND\b|\bEAI_AGAIN\b|getaddrinfo|could not resolve (?:host|proxy)|no such host"
            r"|name (?:resolution|or service not known)|nodename nor servname"
        ),
        "a name that does not resolve",
    ),
    (
        "transient",
        (
            r"deadlock (?:detected|found)|database (?:table )?is locked|could not (?:obtain"
            r"|get) lock"
            r"|lock (?:timeout|timed out)|index\.lock'?: File exists|waiting for file lock"
            r"|could not serialize access|\bETXTBSY\b|\bEBUSY\b"
        ),
        "a lock that someone else holds",
    ),
    (
        "blocking",
        (
            r"permission denied|\bPermissionError\b|\bEACCES\b|\bEPERM\b|operation not permitted"
            r"|access (?:is |was )?denied|read-only file system|\bEROFS\b"
        ),
        "a missing permission",
    ),
    (
        "blocking",
        (
            r"(?:\bHTTP(?:/[\d.]+)?|\bstatus(?:[ _]?code)?|returned error|responded with"
            r"|\bAPI error"
            r"|\bresponse)[\"'\s:=(]{1,4}(?:code |of )?(?:401|403|407)\b|\bcode E40[13]\b"
            r"|\b(?:401|403|407)\b[\s:,-]{1,3}(?:Unauthorized|Forbidden|Proxy)"
        ),
        "a server that requires authentication",
    ),
    (
        "blocking",
        (
            r"\bauthentication(?:_error| error| failed| required|Error\b)|\bunauthorized\b"
            r"|not logged in"
            r"|login required|not authenticated|could not read Username|terminal prompts disabled"
            r"|host key verification failed|\bgh auth login\b"
        ),
        "a login that is missing or refused",
    ),
    (
        "blocking",
        (
            r"(?:invalid|missing|expired|incorrect|bad|no|locate|find|load)(?: \w+)?[ _-](?:x-)?"
            r"(?:api[ _-]?key|credentials?|access[ _]token|auth\w{0,40}[ _]token)\b"
            r"|\b\w*(?:API_KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)\b[^\n]{0,30}"
            r"\b(?:not set|missing|not found|required|unset|must be set)\b"
        ),
        "credentials that are missing or wrong",
    ),
    (
        "blocking",
        (
            r"command not found|: not found$|is not recognized as an internal or external command"
            r"|executable file not found|executable \S+ (?:doesn't exist|not found)|bad interpreter"
            r"|\bspawn [\w.-]+ ENOENT|(?:program|binary|executable|compiler) [^\n]{0,40}not found"
            r"|No such file or directory: ['\"][\w+-]+['\"]"
            r"|env: ['\"‘]?[\w.-]+['\"’]?: No such file"
        ),
        "a program that is not installed",
    ),
    (
        "blocking",
        (
            r"No module named ['\"]?(?!(?:src|tests?|app|lib|utils?|conftest|config|main"
            r"|__main__)\b)"
            r"\w+['\"]?(?![\w.])|Cannot find (?:module|package) ['\"](?![./~#]|@/|src/|[A-Za-z]:)"
            r"|can't resolve ['\"](?![./~#]|@/|src/)|cannot load such file -- (?![./])"
            r"|no matching package named"
            r"|no required module provides package|package .{1,60} is not in std"
        ),
        "a third-party package that is not installed",
    ),
    (
        "blocking",
        (
            r"No matching distribution found|Could not find a version that satisfies|\bERESOLVE\b"
            r"|unable to locate package|cannot open shared object file"
            r"|fatal error: [\w/.-]+\.h: No such|cannot find -l\w+|certificate_verify_failed"
            r"|self[- ]signed certificate"
        ),
        "a dependency or certificate the machine lacks",
    ),
)
_COMPILED = tuple(
    (kind, re.compile(regex, re.IGNORECASE | re.MULTILINE)) for kind, regex, _ in PATTERNS
)

# Remove titles, quoted source, test ids and file names: their words are not the error.
IGNORED_TEXT = re.compile(
    r"^[ \t]*(?:[✓✔✕✗✘×●√]|(?:not )?ok \d+ -|\d+\) |--- (?:FAIL|PASS):|test \S+ \.\.\. ).*$"
    r"|^>\s.*$|(?<=, in )\S+\n\s+.*$"
    r"|(?<!\S)\S+::\S+|\btest_\w+|\bTest[A-Z]\w*"
    r"|(?<![\w./\\@-])[\w./\\@-]+\.(?:py|pyi|[cm]?[jt]sx?|go|rs|rb|java|kt|c|cc|cpp|sh)\b(?!['\"])",
    re.MULTILINE,
)


def classify(error: str) -> str:
    """Return the class of the first pattern that matches: "transient", "blocking" or "logic"."""
    reported = IGNORED_TEXT.sub(" ", error)
    return next((kind for kind, pattern in _COMPILED if pattern.search(reported)), "logic")
