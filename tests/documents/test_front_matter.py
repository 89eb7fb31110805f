"""Front matter and YAML."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.documents.front_matter import (
    FrontMatter,
    block_lines,
    front_matter_lines,
    line_value,
    load_yaml,
    split_front_matter,
)
from gsd_fsm.documents.read import Malformed


def test_split_front_matter_returns_text_and_body_with_its_line() -> None:
    text = "--- \na: [1\nb: 2\n...\nbody\n---\n"
    found = split_front_matter(text)
    assert found == FrontMatter("a: [1\nb: 2", "body\n---\n", 5)
    assert found.keys() == ["a", "b"]
    assert front_matter_lines(text.split("\n")) == range(1, 3)
    assert split_front_matter("# a\n---\nb: 1\n---\n") is None
    assert front_matter_lines([]) is None


def test_split_front_matter_refuses_text_without_end_or_too_long() -> None:
    with pytest.raises(Malformed, match=r"^F:1: the front matter has no closing '---' line$"):
        split_front_matter("---\na: 1\n", "F")
    with pytest.raises(Malformed, match=r"^F:1: the front matter is larger than 64 KiB$"):
        split_front_matter("---\n" + "a: b\n" * 20_000 + "---\n", "F")


def test_line_value_needs_no_valid_yaml() -> None:
    text = "---\n[broken\nloop:\n  phase: 9\n'phase' : \"a # b\"  # now\n---\nphase: 7\n"
    assert line_value(text, "phase") == "a"
    assert line_value(text.replace('"a # b"', "'a#b'"), "x", "phase") == "a#b"
    assert line_value(text, "absent") is None
    assert line_value("phase: 7\n", "phase") is None


def test_load_yaml_converts_only_integers_booleans_and_null() -> None:
    text = "a: 010\nb: 10\nc: yes\nd: True\ne: ~\nf: '1'\ng: 2026-01-01\nh: [1, {i: x}]\nj:\n"
    found = load_yaml(text, first_line=5)
    assert found == {
        "a": "010", "b": 10, "c": "yes", "d": True, "e": None, "f": "1", "g": "2026-01-01",
        "h": [1, {"i": "x"}], "j": None,
    }  # fmt: skip
    assert (found.line, found.line_of("c"), found["h"][1].line_of("i")) == (5, 7, 12)
    assert load_yaml("a: 010\nb: ~", scalar=str) == {"a": "010", "b": "~"}
    assert load_yaml("# nothing\n") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: &x 1\nb: *x", "4: YAML aliases are not supported"),
        ("\na: !!python/name:os.system", "4: YAML tags are not supported"),
        ("[" * 50_000, "3: nested more than 20 levels deep"),
        ("a: 1\nb: 2\na: 3", "5: duplicate key: a"),
        ("? [a]\n: b", "3: a key must be text"),
        ("a: 1\n---\nb: 2", "5: a second YAML document"),
        ("a: [1", "3: not valid YAML: expected ',' or ']', but got '<stream end>'"),
        ("a: \x00", "3: not valid YAML: special characters are not allowed"),
        ('a: "\\UFFFFFFFF"', "3: not valid YAML: "),
    ],
)
def test_load_yaml_refuses_hostile_text_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(Malformed) as error:
        load_yaml(text, "F", 3)
    assert error.value.message.startswith(f"F:{problem}")


FRAGMENTS = (
    *("a: ", "\n", "\n  ", "\r\n", "\r", "\t", " ", "#", "---\n", "\ufeff", "\x00", "\u2028", "\x85", "{", "}"),
    *("[", "]", ":", ": ", "- ", "? ", "&a ", "*a", "!", "|", ">", "'", '"', "%", ",", "1:30", "~", "=", "<<: "),
)  # fmt: skip


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=20).map("".join))
def test_load_yaml_reads_any_text_or_refuses_it_with_its_line(text: str) -> None:
    line = 1
    try:
        load_yaml(text)
    except Malformed as error:
        line = error.line
    assert 1 <= line <= sum(map(text.count, "\n\r\x85\u2028")) + 1


def test_block_lines_cover_a_key_and_its_block() -> None:
    key = re.compile("key:")
    text = "a: 1\nkey:\n  b: 2\n\n# c\n}\nd: 3"
    assert block_lines(text.split("\n"), key) == range(1, 6)
    assert block_lines(["key: 1", "a: 2"], key) == range(1)
    assert block_lines(["  key:", "keys:"], key) is None
    assert block_lines(["key:", "  a", "# b"], key, " ") == range(2)
