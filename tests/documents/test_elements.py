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
    assert found_in(text, "a") == (
        [
            ("a", {"b": "1 & 2", "c": ">", "d": "3"}, "in <i>\n", 10),
            ("a", {"e": ""}, "", 13),
        ],
        [],
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("\n<a>x", (11, "<a> has no </a>")),
        ("</a><a>", (10, "<a> has no </a>")),
        ("\n\n<a b>x</a>", (12, '<a> cannot be read: its attributes are not name="value"')),
        ('<a b="x>', (10, '<a> cannot be read: its attributes are not name="value"')),
    ],
)
def test_elements_reports_malformed_ones_with_their_line(
    text: str, problem: tuple[int, str]
) -> None:
    assert found_in(text, "a") == ([], [problem])
    assert found_in(text, "b") == ([], [])


def test_elements_take_linear_time_on_hostile_text() -> None:
    for text in ("<a>", "<a b='\"", "<a b=c ", "</a>", "<a></a>", "<"):
        found_in(text * 50_000, "a")


def test_blank_comments_keeps_lines_and_positions() -> None:
    assert blank_comments("a<!-- b\nc -->d<!--e\n") == "a      \n     d     \n"


@pytest.mark.parametrize(
    ("text", "content"),
    [(" <![CDATA[ a ]]>\n", " a "), ("<![CDATA[a]]> b", "<![CDATA[a]]> b"), ("a", "a")],
)
def test_without_cdata_unwraps_the_whole_text_only(text: str, content: str) -> None:
    assert without_cdata(text) == content


@given(st.text("&<>\"'ampltgquos;#x "))
def test_unescape_reverses_escape(text: str) -> None:
    assert unescape(escape(text)) == text
    found, problems = found_in(f'<a b="{escape(text)}">{escape(text)}</a>', "a")
    assert (found[0][1]["b"], unescape(found[0][2]), problems) == (text, text, [])
