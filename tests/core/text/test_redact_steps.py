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

HOSTILE = {
    "names": "token=",
    "colons": "token:",
    "calls": "token=f(",
    "quotes": 'password:"a b ',
    "escaped quotes": 'password:\\"a ',
    "jwt starts": "eyJ-",
    "jwt dots": "eyJaaaaaaaaa.",
    "key starts": "sk-a-",
    "pem starts": "-----BEGIN PRIVATE KEY-----\n",
    "pem ends": "a\n-----END PRIVATE KEY-----",
    "base64 lines": "private key aaaaaaaa\n",
    "urls": "redis://a:",
    "logins": "https://a:b",
    "cookies": "cookie: a",
    "flags": "--password ",
    "letters": "a",
    "digits": "1",
    "spaces": "token ",
    "backslashes": "token\\",
    "marks": "[redacted:a:12345678]",
    "angles": "<token",
    "neighbours": "AKIA" + "A" * 15 + "1",
}


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


@pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value)[:12])
def test_redaction_takes_linear_steps_on_a_repeated_name_and_value(counted, value):
    assert not grows_too_fast(redact, texts_of(("", "token:" + value, "")))


def test_redaction_takes_linear_steps_on_random_names_and_values(counted):
    dice = random.Random(30)
    for _ in range(30):
        pair = "".join(dice.choice(part) for part in (NAMES, JOINTS, VALUES, VALUES))
        shape = (dice.choice(VALUES), pair, dice.choice(VALUES))
        assert not grows_too_fast(redact, texts_of(shape)), shape


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_redaction_takes_linear_steps_on_repeated_hostile_text(counted, piece):
    assert not grows_too_fast(redact, texts_of(("", piece, "")))


def test_redaction_takes_linear_steps_on_ever_deeper_quotes(counted):
    texts = [
        "".join("token:" + "\\" * depth + '"a b ' for depth in range(most))
        for most in (80, 113, 160)  # each text is twice as long as the one before it
    ]
    assert not grows_too_fast(redact, texts)


def test_redaction_takes_linear_steps_on_long_runs_of_backslashes(counted):
    texts = ["token:" + "\\" * size + '"' + "\\" * size for size in (1000, 2000, 4000)]
    assert not grows_too_fast(redact, texts)
