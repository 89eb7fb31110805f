"""XML-style elements in text that is not XML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.documents.elements import blank_comments, elements, escape, unescape, without_cdata


def found_in(text: str, *names: str) -> tuple[list[tuple[str, dict, str, int]], list]:
    problems: list[tuple[int, str]] = []
    found = elements(text, 10, names, lambda line, what: problems.append((line, what)))
    return [(it.name, it.attributes, text[it.start : it.end], it.line) for it in found], problems


def test_elements_returns_attributes_content_and_lines() -> None:
    text = 'x <a b="1 &amp; 2"\n c=\'>\' d=3>in <i>\n</a>\n<i><a>no</a></i><br/><a e="" />'
    first = ("a", {"b": "1 & 2", "c": ">", "d": "3"}, "in <i>\n", 10)
    assert found_in(text, "a") == ([first, ("a", {"e": ""}, "", 13)], [])


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [("\n<a>x", 11, "has no </a>"), ("</a><a>", 10, "has no </a>"),
     ("\n\n<a b>x</a>", 12, 'cannot be read: its attributes are not name="value"'),
     ('<a b="x>', 10, 'cannot be read: its attributes are not name="value"')],
)  # fmt: skip
def test_elements_reports_malformed_ones_with_their_line(text, line, problem) -> None:
    assert found_in(text, "a") == ([], [(line, f"<a> {problem}")])
    assert found_in(text, "b") == ([], [])


def test_elements_take_linear_time_on_hostile_text() -> None:
    for text in ("<a>", "<a b='\"", "<a b=c ", "</a>", "<a></a>", "<"):
        found_in(text * 50_000, "a")


def test_blank_comments_keeps_lines_and_positions() -> None:
    assert blank_comments("a<!-- b\nc -->d<!--e\n") == "a      \n     d     \n"


def test_without_cdata_unwraps_the_whole_text_only() -> None:
    assert without_cdata(" <![CDATA[ a ]]>\n") == " a "
    for text in ("<![CDATA[a]]> b", "a"):
        assert without_cdata(text) == text


@given(st.text("&<>\"'ampltgquos;#x "))
def test_unescape_reverses_escape(text: str) -> None:
    assert unescape(escape(text)) == text
    found, problems = found_in(f'<a b="{escape(text)}">{escape(text)}</a>', "a")
    assert (found[0][1]["b"], unescape(found[0][2]), problems) == (text, text, [])
