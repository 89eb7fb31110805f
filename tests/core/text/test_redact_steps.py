"""Redaction takes steps in proportion to the text: twice the text, twice the steps."""

import random
import re

import pytest

from gsd_fsm.core.text import redact as module
from gsd_fsm.core.text.redact import redact
from tests.support.regex_steps import Counted, grows_too_fast, texts_of

ROWS = module._Redactor().shapes
PATTERNS = [*(pattern for _, _, pattern in ROWS), module._Redactor().named]
NAMES = ("token", "DB_PASSWORD", "--secret", "api_key", '"auth', "x_pass", "pwd", "--token")
JOINTS = (":", "=", ": ", " = ", "%3D", ",value=", "\\nvalue: ", ":str = ", "\x1b[1m=", '":', " ")
VALUES = (
    *("$(", "${", "$[", "$", "{", "<", "(", "[", "}", ")", "]", "[redacted:a:12345678]"),
    *('"', "'", "`", '\\"', '\\\\\\"', '"a b ', "'a b ", '\\"a b ', 'b"', '"$(', '"your ', '"/'),
    *("sha1:", "sha12345678901-", "%", "%a%", "xx", "X", "**", "your-", "secret, ", "Bearer "),
    *("f(", "a.b", "a::b", "a->", "&a", "!a", "this.", "this.a:", "a:", "a", "a1", "1", "true"),
    *("/", "~/", "../", "C:\\", "\\", "\\\\", "\\n", "\n", "\t", " ", ",", ";", "&", "|", ">"),
    *("a" * 250, "a1:" * 83, "x" * 250, "://", "AKIA" + "A" * 15 + "1", "eyJ", "é", "…"),
)

PIECES = (
    *(f"token:{value}" for value in VALUES),
    *("token=", "token:", "token=f(", 'password:"a b ', 'password:\\"a ', "eyJ-", "eyJaaaaaaaaa."),
    *("sk-a-", "-----BEGIN PRIVATE KEY-----\n", "a\n-----END PRIVATE KEY-----", "redis://a:"),
    *("private key aaaaaaaa\n", "https://a:b", "cookie: a", "--password ", "a", "1", "token "),
    *("token\\", "[redacted:a:12345678]", "<token", "AKIA" + "A" * 15 + "1"),
)


@pytest.fixture(scope="module")
def counted():
    """Let redaction count the steps of all its patterns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(re, "compile", Counted)
        redactor = module._Redactor()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_READY", [redactor])
        yield


@pytest.mark.parametrize(
    ("regex", "quadratic"),
    [("a*b", True), ("<[^>]*>", True), (r"^\W*x", True), ("xa*a*$", True), ("x[^x]*y", False)],
)
def test_step_counter_detects_quadratic_search(regex, quadratic):
    pattern = Counted(regex, re.MULTILINE)
    shapes = pattern.hard_shapes(random.Random(regex))
    assert any(grows_too_fast(pattern.all_in, texts_of(shape)) for shape in shapes) == quadratic


@pytest.mark.parametrize("real", PATTERNS, ids=[*(kind for kind, _, _ in ROWS), "named"])
def test_pattern_takes_linear_steps_on_every_generated_shape(real):
    pattern = Counted(real.pattern, real.flags)
    shapes = pattern.hard_shapes(random.Random(real.pattern))
    assert [shape for shape in shapes if grows_too_fast(pattern.all_in, texts_of(shape))] == []


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: ascii(piece)[:20])
def test_redaction_takes_linear_steps_on_a_repeated_piece(counted, piece):
    assert not grows_too_fast(redact, texts_of(("", piece, "")))


def test_redaction_takes_linear_steps_on_random_names_and_values(counted):
    dice = random.Random(30)
    for _ in range(30):
        pair = "".join(dice.choice(part) for part in (NAMES, JOINTS, VALUES, VALUES))
        shape = (dice.choice(VALUES), pair, dice.choice(VALUES))
        assert not grows_too_fast(redact, texts_of(shape)), shape


def test_redaction_takes_linear_steps_on_ever_deeper_quotes_and_long_runs_of_backslashes(counted):
    deeper = [
        "".join("token:" + "\\" * depth + '"a b ' for depth in range(most))
        for most in (80, 113, 160)  # each text is twice as long as the one before it
    ]
    assert not grows_too_fast(redact, deeper)
    longer = ["token:" + "\\" * size + '"' + "\\" * size for size in (1000, 2000, 4000)]
    assert not grows_too_fast(redact, longer)
