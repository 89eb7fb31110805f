"""Markdown line by line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.documents import markdown
from gsd_fsm.documents.markdown import Hidden, heading_of, hidden_at, prose, split_lines


@given(st.text())
def test_split_lines_keeps_every_character(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(line.endswith("\n") for line in lines[:-1])


def test_newline_of_is_that_of_the_first_line() -> None:
    for text, newline in (("a\r\nb\n", "\r\n"), ("a\nb\r\n", "\n"), ("a\r", "\n"), ("", "\n")):
        assert markdown.newline_of(text) == newline


@pytest.mark.parametrize(
    ("text", "readable"),
    [("a\n```md\n# b\n```\nc", [0, 4]), ("~~~\n```\n~~~\na", [3]), ("````\n```\n````\na", [3]),
     ("``` `x`\na", [0, 1]), ("<!-- a -->\nb\n<!--\nc\n--> d\ne", [1, 5]), ("a <!--\nb", [0, 1]),
     ("a\n```\nb", [0])],
)  # fmt: skip
def test_prose_skips_code_fences_and_comments(text: str, readable: list[int]) -> None:
    assert list(prose(text.split("\n"))) == readable
    assert list(prose(split_lines(text))) == readable


def test_hidden_at_describes_a_fence_or_comment() -> None:
    lines = ["  ```YAML", "a", "```", "<!--", "b"]
    assert hidden_at(lines, 0) == Hidden("code fence", 0, 3, True, "yaml")
    assert hidden_at(lines, 1) is None
    assert hidden_at(lines, 3) == Hidden("comment", 3, 5, False, "")


@pytest.mark.parametrize(
    ("line", "heading"),
    [("# A", (1, "A")), ("   ###### A # B ## ", (6, "A # B")), ("##\tA\r\n", (2, "A")), ("##", (2, "")),
     ("#A", None), ("    # A", None), ("####### A", None), ("A # B", None)],
)  # fmt: skip
def test_heading_of_returns_level_and_title(line: str, heading: tuple[int, str] | None) -> None:
    found = heading_of(line)
    assert (found and (found.level, found.title)) == heading


def test_headings_have_line_indices_and_skip_code() -> None:
    found = markdown.headings(["# A", "```", "# B", "```", "## C"])
    assert [(it.title, it.line) for it in found] == [("A", 0), ("C", 4)]


@pytest.mark.parametrize(
    ("line", "item"),
    [("- a", (0, None, "a")), ("  * [ ] a b ", (2, " ", "a b")), ("\t12) [X] a", (4, "x", "a")),
     ("+ [x]", (0, "x", "")), ("- [y] a", (0, None, "[y] a")), ("-a", None), ("a", None)],
)  # fmt: skip
def test_item_of_returns_indent_box_and_text(line: str, item: tuple[int, str, str] | None) -> None:
    assert markdown.item_of(line) == item


def test_quotations_are_found_in_every_kind_of_quote() -> None:
    text = "has \"a\", “b”, `c`, ('f') and 'd e', but not \"\", the user's or the hooks' words"
    assert markdown.quotations(text) == ["a", "b", "c", "f", "d e"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("max_retries __init__", r"max_retries \_\_init\_\_"), ("# a\nb", r"\# a b"), ("1. a", r"1\. a"),
     ("- a", r"\- a"), ("-a", "-a"), ("<b>`c`*[d](e)", r"\<b>\`c\`\*\[d\](e)"), (None, "")],
)  # fmt: skip
def test_escape_markdown_has_no_effect_in_markdown(text: str | None, shown: str) -> None:
    assert markdown.escape_markdown(text) == shown


@given(st.text("`~a\n"))
def test_code_block_is_one_closed_fence(text: str) -> None:
    lines = markdown.code_block(text, "xml").split("\n")
    assert hidden_at(lines, 0) == Hidden("code fence", 0, len(lines), True, "xml")
