"""Redaction: no part of a secret survives, nothing else is altered, and steps grow with the text."""

import hashlib
import json
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsd_fsm.core.text import redact as module
from gsd_fsm.core.text.redact import redact
from tests.support.regex_steps import Counted, grows_too_fast, texts_of
from tests.support.secrets_corpus import NAMED, SHAPES

INNOCENT = (
    Path(__file__).parents[2].joinpath("support/innocent_lines.txt").read_text("utf-8").splitlines()
)
MARK = re.compile(r"\[redacted:[\w.-]+:[0-9a-f]{8}\]")

AROUND_SHAPES = (
    "{}", "value '{}' was sent", '{{"log": "first\\n{}", "n": 1}}', "\x1b[31m{}\x1b[0m",
    "2026-01-02 03:04:05 ERROR refused {}\nnext line", "https://example.org/cb?x=1&value={}&y=2",
    "https://example.org/cb?next=%2Fa%3Fv%3D{}",
)  # fmt: skip
AROUND_NAMED = ("{}", "first line\n{}\nlast line\n", "stderr:\n    {}\n", "{0}\n{0}\n")


def parts_of(secret):
    """Return the secret and parts of a long one: a part is a leak too."""
    long = len(secret) >= 24
    parts = {secret, secret[-8:], secret[len(secret) // 2 :][:12]} if long else {secret}
    return {part for part in parts if "\n" not in part} or {secret[-8:]}


def leaks(secret, texts):
    """Return the redacted texts in which a part survives, or which a second run changes."""
    found = []
    for cleaned in map(redact, texts):
        survives = any(part in cleaned for part in parts_of(secret))
        if survives or not MARK.search(cleaned) or redact(cleaned) != cleaned:
            found.append(cleaned)
    return found


def test_redact_removes_every_part_of_a_known_shape():
    assert len(SHAPES) + len(NAMED) >= 120
    for name, secret in SHAPES:
        assert leaks(secret, [around.format(secret) for around in AROUND_SHAPES]) == [], name


def test_redact_removes_every_part_of_a_named_secret():
    for name, text, secret in NAMED:
        texts = [around.format(text) for around in AROUND_NAMED]
        texts.append(json.dumps({"log": f"first\n{text}\nlast", "n": 1}))
        assert leaks(secret, texts) == [], name


# The bound on false positives: of the listed lines of tool output, none is altered.
def test_redact_keeps_innocent_lines():
    assert len(set(INNOCENT)) >= 150
    assert [line for line in INNOCENT if redact(line) != line] == []
    for text in ("\n".join(INNOCENT), json.dumps(INNOCENT)):
        assert redact(text) == text


@pytest.mark.parametrize(
    ("before", "kind", "secret", "after"),
    [
        ("https://me:", "url", "hunter2", "@example.org/x"),
        ("Set-Cookie: sid=", "cookie", "abc", "; Path=/"),
        ("DB_PASSWORD=", "assigned", "swordfish", ""),
        ("password: '", "assigned", "swordfish", "'"),
        ("PASSWORD=", "assigned", "abc\ud800def", ""),
        ("a token of thanks\n" * 10_000 + "PASSWORD=", "assigned", "swordfish", ""),
    ],
)
def test_redact_replaces_only_a_secret_with_its_kind_and_digest(before, kind, secret, after):
    digest = hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()[:8]
    assert redact(before + secret + after) == f"{before}[redacted:{kind}:{digest}]{after}"


def test_redact_keeps_marks_of_this_and_other_versions():
    kinds = [row.split()[0] for row in module.PATTERNS.strip().splitlines() if row[:1] != " "]
    for kind in (*kinds, "password", "token", "api_key", "cookie", "authorization"):
        mark = f"[redacted:{kind}:12345678]"
        for text in (mark, f"x {mark} y", f"password={mark}", f'"{mark}" {mark}={mark}'):
            assert redact(text) == text


FRAGMENTS = st.sampled_from(
    [text for _, text, _ in NAMED]
    + [secret for _, secret in SHAPES]
    + ["password=", "token: ", '"', "'", "\\", "\\n", "\n", " ", "=", ":", ";", "&", "]", "[", "--"]
    + ["[redacted:url:12345678]", "Cookie: a=", "://", "@", "eyJ", "%3D", "\x1b[0m", "value", ","]
)


@settings(max_examples=200)
@given(st.lists(st.one_of(FRAGMENTS, st.text(max_size=8)), max_size=10))
def test_redact_is_idempotent(pieces):
    once = redact("".join(pieces))
    assert redact(once) == once


@pytest.mark.parametrize("text", ["secret=alpha ", "pwd: secret, ", "password: swordfish, "])
def test_redact_hides_every_value_of_a_long_row_at_once(text):
    cleaned = redact(text * 40)
    assert len(MARK.findall(cleaned)) == 40
    assert redact(cleaned) == cleaned


# steps: twice the text, twice the steps

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
