"""What a check, a list or a word of a plan is taken for."""

from __future__ import annotations

import pytest

from gsd_fsm.plans.plan import Check
from gsd_fsm.plans.values import check_of, commit_type, dedented, phase_of, quoted_texts, title_of


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("file", "hooks/hooks.json exists", "file"),
        ("FILE", "hooks/hooks.json", "file"),
        ("file", "`hooks/hooks.json` exists", "file"),
        ("file", 'The file "a b.json" is there', "file"),
        ("file", "src/includes/has.h exists", "file"),
        ("file", "a.json no longer exists", "file"),
        ("file", 'a.json contains "Stop"', "content"),
        ("file", "`a.json` references `stop-hook.sh`", "content"),
        ("file", "a.json includes a hook for stops", "manual"),
        ("content", 'File contains "Stop" hook type', "content"),
        ("content", "contains “Stop”", "content"),
        ("content", "contains `Stop`", "content"),
        ("content", "contains 'Tools Used:' in a section", "content"),
        ("content", "Script reads the user's state, the hook's too", "manual"),
        ("content", 'an empty "" quotation', "manual"),
        ("manual", 'says "x"', "manual"),
        ("", "a.py exists", "manual"),
        ("visual", "looks good", "manual"),
        ("test", "pytest -q", "command"),
        ("test", "All tests pass", "manual"),
        ("Command", "make", "command"),
    ],
)
def test_a_check_is_what_a_machine_can_make_of_it(kind: str, text: str, found: str) -> None:
    assert check_of(kind, text, None, 7).kind == found


def test_a_command_makes_every_check_a_command() -> None:
    assert check_of("file", "a.py", " ls \n", 7) == Check("command", "a.py", "ls", 7)
    assert check_of("", "", "ls", 7) == Check("command", "ls", "ls", 7)
    assert check_of("command", " ", "  ", 7).kind == "manual"
    lines = "\n    if x\n    then\n      y\n    fi\n  "
    assert check_of("run", lines, None, 7) == Check(
        "command", "if x then y fi", "if x\nthen\n  y\nfi", 7
    )


def test_quotations_are_found_in_every_kind_of_quote() -> None:
    text = "has \"a\", “b”, `c` and 'd e', but not the user's or the hooks' words"
    assert quoted_texts(text) == ["a", "b", "c", "d e"]


@pytest.mark.parametrize(
    ("value", "phase"),
    [(1, 1), ("1", 1), ("01", 1), (" 2.1 ", "2.1"), ("auth", "auth"), ("", None), (None, None),
     (True, None), (1.5, None), ([], None), ("null", None), ("~", None), ("9" * 20, "9" * 20),
     ("²", "²")],
)  # fmt: skip
def test_a_phase_is_a_number_where_it_is_one(value: object, phase: object) -> None:
    assert phase_of(value) == phase


@pytest.mark.parametrize(
    ("word", "found"),
    [("fix", "fix"), (" Docs ", "docs"), ("", "feat"), ("auto", "feat"), ("a b", "feat"),
     ("x\ny", "feat"), ("checkpoint:human-verify", "feat"), ("$(rm)", "feat")],
)  # fmt: skip
def test_the_type_of_a_commit_is_one_plain_word(word: str, found: str) -> None:
    assert commit_type(word) == found


def test_a_title_is_one_line_of_at_most_200_characters() -> None:
    assert title_of("", "\n  \n  Do \t it.\nThen stop.") == "Do it."
    assert title_of("A", "B") == "A"
    assert title_of("x" * 999, "") == "x" * 200
    assert title_of("", " \n") == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [("  a\n    b\n    c", "a\nb\nc"), ("\n    a\n      b\n\n    c\n  ", "a\n  b\n\nc"), ("\n\n", ""),
     ("\n\ta\n\tb", "a\nb"), ("a", "a")],
)  # fmt: skip
def test_the_indent_of_an_action_is_not_part_of_it(text: str, found: str) -> None:
    assert dedented(text) == found
