"""Which issues of a list are open."""

from __future__ import annotations

import pytest

from gsd_fsm.subagents.context import is_open, open_issues


def test_unchecked_items_are_open_with_the_lines_below_them() -> None:
    text = (
        "# Issues\n\nSome words.\n\n- [ ] a leak\n  in the lexer\n\n- [x] a crash\n  at the end\n"
        "* [ ] slow\n- [X] loud\n- [ ] ~~late~~ (fixed)\nThe end.\n"
    )
    assert open_issues(text) == "- [ ] a leak\n  in the lexer\n* [ ] slow"


@pytest.mark.parametrize(
    "line",
    [
        "- a leak (fixed)", "- [RESOLVED] a leak", "- a leak: closed", "- FIXED: a leak",
        "- ~~a leak~~", "- a leak, fixed in 1.2", "| a leak | Closed |", "- a leak — resolved",
        "- a leak was fixed.", "Closed - a leak",
    ],
)  # fmt: skip
def test_a_line_that_is_marked_as_settled_is_not_open(line: str) -> None:
    assert open_issues(f"# Issues\n\n{line}\n- another\n") == "- another"


@pytest.mark.parametrize(
    "line",
    [
        "- a leak", "- the fixed-width font is wide", "- a leak that must be fixed",
        "- closed sockets leak", "- not fixed", "| a leak | open |", "- it crashed",
    ],
)  # fmt: skip
def test_a_line_that_only_has_the_word_is_open(line: str) -> None:
    assert open_issues(f"# Issues\n\n{line}\n") == line


def test_a_settled_section_is_settled_as_a_whole() -> None:
    text = (
        "# Issues\n\n## Open\n\n### One\n**Status:** open\n\n### Two\n- Status: resolved\nwords\n"
        "#### More\nof two\n\n## Resolved\n\n### Three\nwords\n\n## Later\n- four\n"
    )
    assert open_issues(text) == "### One\n**Status:** open\n## Later\n- four"


def test_nothing_open_is_nothing() -> None:
    assert open_issues("# Issues\n\n- [x] a\n") == ""
    assert open_issues("# Issues\n\n---\n\n## Closed\n- a\n") == ""


@pytest.mark.parametrize(
    "text", ["status: open", "a\n**Status:** Open\nb", "- Status — open", "| status | open |"]
)
def test_a_file_says_that_its_issue_is_open(text: str) -> None:
    assert is_open(text)


@pytest.mark.parametrize(
    "text", ["", "open", "status: opened", "status:\nopen", "the status: open"]
)
def test_a_file_that_does_not_say_so_is_not_open(text: str) -> None:
    assert not is_open(text)


@pytest.mark.parametrize(
    "text", ["~", "\n", "- [", "(", " ", "fixed ", "|", "#", ", ", "- [ ] x\n"]
)
def test_long_texts_of_anything_are_read_without_effort(text: str) -> None:
    long = text * (65_536 // len(text))
    assert isinstance(open_issues(long + "x"), str)
    assert not is_open(long)
