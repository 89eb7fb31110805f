"""What reaches a terminal, and what Unicode can hold."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.text.sanitize import clean, display

HOSTILE = {
    "escape": "\x1b[31mred\x1b[0m",
    "clipboard": "\x1b]52;c;aGk=\x07",
    "C1 escape": "\x9b31m",
    "carriage return": "good\rbad",
    "backspace": "a\b\b",
    "NUL": "a\0b",
    "bidi override": "\u202eevil\u202c",
    "bidi isolate": "\u2066x\u2069",
    "zero width": "a\u200bb\u200c\u200d\ufeff",
    "line separator": "a\u2028b\u2029",
    "next line": "a\x85b",
    "tag": "\U000e0041",
    "variation selector": "a\ufe0f\U000e0100",
    "soft hyphen": "a\u00adb",
    "lone surrogate": "\ud800",
    "filler": "\u3164\u115f\uffa0",
    "delete": "\x7f",
}
# Format characters, controls, surrogates, separators of lines: nothing of these may be shown.
FORBIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("lines", [False, True])
def test_nothing_a_terminal_would_obey_is_left(what: str, lines: bool) -> None:
    shown = display(HOSTILE[what], lines)
    assert not {unicodedata.category(c) for c in shown} & FORBIDDEN
    assert "\\u{" in shown


def test_every_character_of_unicode_is_shown_or_made_visible() -> None:
    for start in range(0, sys.maxunicode + 1, 4096):
        text = "".join(map(chr, range(start, min(start + 4096, sys.maxunicode + 1))))
        found = {unicodedata.category(c) for c in set(display(text))}
        assert not found & FORBIDDEN, hex(start)


@pytest.mark.parametrize("text", ["", "plain", "Ünïcödé", "日本語", "→ …", "👍", "e\u0301", "a b"])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert display(text) == text


def test_newlines_and_tabs_are_kept_only_where_lines_are_meant() -> None:
    assert display("a\n\tb", lines=True) == "a\n\tb"
    assert display("a\n\tb") == "a\\u{a}\\u{9}b"


@given(st.text(st.characters(exclude_categories=())), st.booleans())
def test_showing_twice_shows_the_same(text: str, lines: bool) -> None:
    once = display(text, lines)
    assert display(once, lines) == once
    once.encode("utf-8")


@given(st.text(st.characters(exclude_categories=())))
def test_a_cleaned_text_can_be_encoded_and_is_cleaned_once(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert clean(cleaned) == cleaned
    if not any(0xD800 <= ord(c) < 0xE000 for c in text):
        assert cleaned == text


def test_a_lone_surrogate_is_replaced() -> None:
    assert "\ufffd" in clean("a\ud800b")
    assert clean("a\ud800b").startswith("a")
    assert clean("a\ud800b").endswith("b")
