"""Tasks as both formats make them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.documents.read import Object
from gsd_fsm.plans.plan import Check, PlanDraft, PlanTask
from gsd_fsm.plans.task import check_of, dedent, make_task
from tests.support.plan_texts import broken, json_plan, json_task, loaded
from tests.support.plan_texts import task as task_text

TYPES = (
    "file", "content", "manual", "command", "cmd", "run", "shell", "bash", "test", "lint", "build",
    "typecheck", "ci", "e2e",
)  # fmt: skip
ACTIONS = {
    "create": "create", "add": "create", "new": "create", "write": "create", "modify": "modify",
    "edit": "modify", "update": "modify", "change": "modify", "delete": "delete", "remove": "delete",
}  # fmt: skip


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
        ("command", "test", ("pytest -q",)),
        ("manual", "test", ("All tests pass",)),
        ("command", "Command", ("make",)),
    ],
)  # fmt: skip
def test_check_is_manual_unless_a_program_can_decide_it(found: str, kind: str, texts) -> None:
    for text in texts:
        assert check_of(kind, text, "", 7).kind == found, text


@pytest.mark.parametrize("spell", [str, str.upper, " {} ".format])
def test_all_known_types_actions_and_none_are_accepted(tmp_path: Path, spell) -> None:
    for word in (*TYPES, *ACTIONS, ""):
        kind, action = ("file", word) if word in ACTIONS else (word, "create")
        marked = (
            task_text("01").replace("create", spell(action)).replace('file"', spell(kind) + '"')
        )
        files = [{"path": "a", "action": spell(action)}, "b"]
        checks: list[Any] = [{"type": spell(kind), "check": "a exists"}, "look"]
        listed = json_plan(
            json_task("01", files=files, verify=[*checks, {"type": None, "check": "x"}])
        )
        for text in (marked, listed):
            (found,) = loaded(tmp_path, text).tasks
            assert found.files[0].action == {**ACTIONS, "": ""}[action]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('type="file"', 'type="comand"', "unknown check type 'comand' (did you mean 'command'?)"),
        (
            'type="file"',
            'type="Fiel" cmd="true"',
            "unknown check type 'fiel' (did you mean 'file'?)",
        ),
        ('type="file"', 'type="visual"', "unknown check type 'visual' (did you mean 'manual'?)"),
        ('="create"', '="creates"', "unknown file action 'creates' (did you mean 'create'?)"),
        ('="create"', f'="{"delet" * 99}"', f"unknown file action '{'delet' * 16}' (did you mean"),
    ],
)
def test_unknown_word_in_markdown_is_refused(tmp_path: Path, old: str, new: str, what: str) -> None:
    text = task_text("01") + task_text("02").replace(old, new)
    tests = task_text("03").replace("files>", "test_files>").replace(old, new)
    for number, it in enumerate((text, tests)):
        (found,) = broken(tmp_path, it)
        assert found[0] == (8 - 6 * number if "action" in what else 10 - 6 * number)
        assert found[1].startswith(what)


def test_unknown_word_in_json_is_refused_with_the_line_of_its_member(tmp_path: Path) -> None:
    checks = [{"check": "a exists", "type": "fil"}, {"cmd": "true", "type": ["command"]}]
    files = [{"path": "a", "action": "mod"}, {"path": "b", "action": False}]
    text = json_plan(json_task("01", verify=checks, files=files))
    lines = [
        at
        for at, line in enumerate(text.split("\n"), 1)
        if "type" in line or '"action": "m' in line
    ]
    last = text.split("\n").index('          "action": false') + 1
    assert broken(tmp_path, text) == [
        (lines[0], "unknown check type 'fil' (did you mean 'file'?)"),
        (lines[1], "the check type is not a word"),
        (lines[2], "unknown file action 'mod' (did you mean 'modify'?)"),
        (last, "the file action is not a word"),
    ]


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
