import random
import re

import pytest

from gsd_fsm.evidence.classify import _COMPILED, IGNORED_TEXT, PATTERNS, classify
from tests.support.regex_steps import Counted, grows_too_fast, texts_of

TRANSIENT = (
    "curl: (6) Could not resolve host: example.org",
    "npm ERR! network request to https://registry.npmjs.org/x failed, reason: connect ETIMEDOUT",
    "Error: read ECONNRESET\n    at TLSWrap.onStreamRead (node:internal/stream:217:20)",
    "API Error: 529 Overloaded",
    "the request failed:\n\n  ** Overloaded! **\n\n",
    "anthropic.RateLimitError: Error code: 429 - rate_limit_error: too many requests",
    "HTTP 403: API rate limit exceeded for 1.2.3.4 (https://api.github.com/repos)",
    "fatal: unable to access 'https://github.com/x/y/': The requested URL returned error: 502",
    "ssh: connect to host github.com port 22: Connection timed out",
    "fatal: the remote end hung up unexpectedly",
    "sqlite3.OperationalError: database is locked",
    "ERROR: deadlock detected",
    "fork: retry: Resource temporarily unavailable",
    "fatal: Unable to create '/r/.git/index.lock': File exists.",
    "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (apt)",
    "rpc error: code = DeadlineExceeded desc = context deadline exceeded",
    "dial tcp: lookup proxy.golang.org: no such host",
    "Temporary failure in name resolution\nERROR: No matching distribution found for flask",
    "FAILED tests/test_api.py::test_get - ConnectionResetError: [Errno 104] reset",
)
BLOCKING = (
    "bash: cargo: command not found",
    "/bin/sh: 1: jq: not found",
    "'make' is not recognized as an internal or external command,\noperable program or batch file.",
    "Error: spawn docker ENOENT",
    "/usr/bin/env: ‘node’: No such file or directory",
    "FileNotFoundError: [Errno 2] No such file or directory: 'ffmpeg'",
    "/usr/bin/python3: No module named pytest",
    "Error: Cannot find module 'express'",
    "error TS2307: Cannot find module '@scope/pkg' or its corresponding type declarations.",
    "Module not found: Error: Can't resolve 'react'",
    "main.go:4:2: no required module provides package github.com/x/y; to add it: go get",
    "error while loading shared libraries: libssl.so.3: cannot open shared object file",
    "fatal error: openssl/ssl.h: No such file or directory",
    "npm ERR! code EACCES",
    "rm: cannot remove 'x': Operation not permitted",
    "git@github.com: Permission denied (publickey).",
    "remote: HTTP Basic: Access denied",
    "npm ERR! code E401",
    "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
    "ANTHROPIC_API_KEY environment variable is not set",
    "OSError: [Errno 28] No space left on device",
    "write error: Disk quota exceeded",
    "openai.RateLimitError: Error code: 429 - insufficient_quota: check your billing",
    "Your credit balance is too low to access the API",
    "Error: license has expired",
    "To get started with GitHub CLI, please run:  gh auth login",
    'psycopg2.OperationalError: FATAL: password authentication failed for user "app"',
)
LOGIC = (
    "", "FAILED tests/test_timeout.py::test_x - AssertionError",
    "FAILED tests/test_net.py::test_connection_reset - assert 1 == 2\nE   assert 1 == 2",
    "FAILED tests/test_api.py::test_429_too_many_requests - ValueError: bad header",
    "E       AssertionError: expected status 503 Service Unavailable, got 200",
    "E   assert 'Permission denied' in ''",
    "● retry › stops after the connection timed out\n\n    expect(received).toBe(expected)",
    "  ✕ reports a rate limit exceeded error (12 ms)",
    "--- FAIL: TestConnectionRefused (0.00s)\n    net_test.go:12: got 1, want 2",
    "test net::connection_refused ... FAILED\n\ntest result: FAILED. 3 passed; 1 failed",
    "not ok 3 - handles ECONNRESET", 'thrown: "Exceeded timeout of 5000 ms for a test.',
    'Error: Timeout of 2000ms exceeded. For async tests and hooks, ensure "done()" is called',
    "TypeError: connect() got an unexpected keyword argument 'timeout'",
    'src/timeout.py:503: error: Incompatible return value type (got "int")  [return-value]',
    "src/a.py:1:1: E401 Multiple imports on one line",
    "Found 429 errors in 12 files (checked 503 source files)",
    "error: no matching function for call to overloaded 'f(int)'",
    "error: Overloaded function signatures 1 and 2 overlap  [overload-overlap]",
    "fatal error: all goroutines are asleep - deadlock!", "SyntaxError: Unexpected token '}'",
    "SyntaxError: invalid token", "Error: Cannot find module './routes/users'",
    "Module not found: Error: Can't resolve '@/components/Button'",
    "ModuleNotFoundError: No module named 'src'",
    "ModuleNotFoundError: No module named 'mypkg.helpers'",
    "ModuleNotFoundError: No module named 'foo.bar'; 'foo' is not a package",
    "FileNotFoundError: [Errno 2] No such file or directory: 'data/input.json'",
    "bash: ./run.sh: No such file or directory", "KeyError: 'timeout'",
    "ValueError: timeout must be positive",
    "ruff: F401 `socket.timeout` imported but unused",
)  # fmt: skip
ERRORS = {"transient": TRANSIENT, "blocking": BLOCKING, "logic": LOGIC}


@pytest.mark.parametrize("kind", ERRORS)
def test_classify_errors_by_their_text(kind):
    assert [error for error in ERRORS[kind] if classify(error) != kind] == []


def test_classify_needs_every_pattern():
    examples = "\n\n".join((*TRANSIENT, *BLOCKING, *LOGIC))
    flags = re.IGNORECASE | re.MULTILINE
    assert [what for _, regex, what in PATTERNS if not re.search(regex, examples, flags)] == []
    assert {kind for kind, _, _ in PATTERNS} == set(ERRORS)


@pytest.mark.parametrize("real", [*(pattern for _, pattern in _COMPILED), IGNORED_TEXT])
def test_pattern_takes_linear_steps_on_every_generated_shape(real):
    pattern = Counted(real.pattern, real.flags)
    shapes = pattern.hard_shapes(random.Random(real.pattern))
    assert [shape for shape in shapes if grows_too_fast(pattern.all_in, texts_of(shape))] == []
