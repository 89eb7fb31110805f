"""Tasks as both formats make them."""

from __future__ import annotations

import pytest

from gsd_fsm.documents.read import Object
from gsd_fsm.plans.plan import Check, PlanDraft, PlanTask
from gsd_fsm.plans.task import check_of, dedent, make_task


def task_with(**members: str) -> PlanTask:
    found = Object(1)
    found.update(members)
    return make_task(found, 1, PlanDraft("json"))


@pytest.mark.parametrize(
    ("found", "kind", "texts"),
    [
        ("file", "file", ("hooks/hooks.json exists", "hooks/hooks.json", "`a/b.json` exists",
                          'The file "a b.json" is there', "src/includes/has.h exists",
                          "a.json no longer exists")),
        ("file", "FILE", ("hooks/hooks.json",)),
        ("content", "file", ('a.json contains "Stop"', "`a.json` references `stop-hook.sh`")),
        ("manual", "file", ("a.json includes a hook for stops",)),
        ("content", "content", ('File contains "Stop" hook type', "contains “Stop”",
                                "contains `Stop`", "contains 'Tools Used:' in a section")),
        ("manual", "content", ("Script reads the user's state, the hook's too",
                               'an empty "" quotation')),
        ("manual", "manual", ('says "x"',)),
        ("manual", "", ("a.py exists",)),
        ("manual", "visual", ("looks good",)),
        ("command", "test", ("pytest -q",)),
        ("manual", "test", ("All tests pass",)),
        ("command", "Command", ("make",)),
    ],
)  # fmt: skip
def test_check_is_manual_unless_a_program_can_decide_it(found: str, kind: str, texts) -> None:
    for text in texts:
        assert check_of(kind, text, "", 7).kind == found, text


def test_check_with_a_command_is_a_command() -> None:
    assert check_of("file", "a.py", " ls \n", 7) == Check("command", "a.py", "ls", 7)
    assert check_of("", "", "ls", 7) == Check("command", "ls", "ls", 7)
    assert check_of("command", " ", "  ", 7).kind == "manual"
    lines = "\n    if x\n    then\n      y\n    fi\n  "
    command = "if x\nthen\n  y\nfi"
    assert check_of("run", lines, "", 7) == Check("command", "if x then y fi", command, 7)


def test_commit_type_is_one_word_or_feat() -> None:
    for word in ("", "auto", "a b", "x\ny", "checkpoint:human-verify", "$(rm)"):
        assert task_with(type=word).commit_type == "feat"
    assert [task_with(type=word).commit_type for word in ("fix", " Docs ")] == ["fix", "docs"]


def test_title_is_one_line_of_at_most_200_characters() -> None:
    assert task_with(title="A", action="B").title == "A"
    assert task_with(action="\n  \n  Do \t it.\nThen stop.").title == "Do it."
    assert task_with(title="x" * 999).title == "x" * 200
    assert task_with(action=" \n").title == ""


def test_dedent_removes_the_common_indent() -> None:
    assert dedent("  a\n    b\n    c") == "a\nb\nc"
    assert dedent("\n    a\n      b\n\n    c\n  ") == "a\n  b\n\nc"
    assert dedent("\n\ta\n\tb") == "a\nb"
    assert (dedent("\n\n"), dedent("a")) == ("", "a")
