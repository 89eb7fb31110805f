"""Plans in JSON, in all their spellings, and the lines of their problems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.plans.plan import PlanFile, Wave
from tests.support.plan_texts import broken, json_plan, json_task, loaded


def test_wave_has_number_title_and_mode(tmp_path: Path) -> None:
    for wave, title, is_sequential in (
        ({"wave": 2, "title": "A", "sequential": True}, "A", True),
        ({"number": "2", "name": "A  B", "parallel": False}, "A B", True),
        ({"id": 2, "mode": "Sequential", "description": "A"}, "A", True),
        ({"wave": 2, "parallel": True}, "", False),
        ({"wave": 2, "mode": "parallel"}, "", False),
    ):
        plan = loaded(tmp_path, json.dumps({"waves": [{**wave, "tasks": [json_task("01")]}]}))
        assert plan.waves == (Wave(2, title, is_sequential),)
        assert (plan.tasks[0].wave, plan.phase) == (2, None)


def test_waves_may_have_no_numbers_or_only_name_their_tasks(tmp_path: Path) -> None:
    waves: Any = [{"tasks": [json_task("01")]}, {"tasks": [json_task("02", depends="01")]}]
    plan = loaded(tmp_path, json.dumps({"waves": waves}))
    assert [task.wave for task in plan.tasks] == [1, 2]
    waves = [{"wave": 1, "tasks": ["T01", 2]}, {"wave": 2, "sequential": True, "tasks": ["x"]}]
    tasks = [json_task("x"), json_task("01"), json_task(2)]
    plan = loaded(tmp_path, json_plan(*tasks, waves=waves))
    assert [(task.id, task.wave) for task in plan.tasks] == [("T01", 1), ("T2", 1), ("x", 2)]
    assert [wave.sequential for wave in plan.waves] == [False, True]
    waves[0]["tasks"] = ["01", "99"]
    ((line, what),) = broken(tmp_path, json_plan(*tasks, waves=waves))
    assert (line, "'T99'" in what) == (1, True)


def test_task_members_are_read_in_all_spellings(tmp_path: Path) -> None:
    task = json_task(
        1.5, title="A \ud800", test_files=["t.py", {"path": "u.py"}], test_required=True,
        files=[{"path": "a.py", "action": "Modify"}, {"file": "b.py"}, "c.py"],
        action=["    First", "      then"], libraries=["next auth", "zod"], done=["one", "two"],
        skills="a, b", reqs=["R1", 2], type="fix", depends_on=[7], wave="2", unknown={"id": "99"},
        verify=[{"type": "file", "check": "a.py exists"}, {"type": "content", "value": 'contains "x"'},
                {"description": "tests", "command": "make test"}, {"type": "command", "text": "ls -l"},
                {"type": "content", "file": "a.py", "contains": "y"}, "npm test"],
    )  # fmt: skip
    found = loaded(tmp_path, json_plan(json_task(7, wave=1), task)).tasks[1]
    assert (found.id, found.number, found.wave, found.depends) == ("T1.5", "1.5", 2, ("T7",))
    assert found.files == (PlanFile("a.py", "modify"), PlanFile("b.py", ""), PlanFile("c.py", ""))
    assert (found.test_files, found.test_required) == (("t.py", "u.py"), "true")
    assert (found.action, found.done) == ("First\n  then", "one two")
    assert found.title == "A \ufffd\ufffd\ufffd"
    assert (found.libraries, found.skills) == (("next auth", "zod"), ("a", "b"))
    assert (found.reqs, found.commit_type) == ("R1, 2", "fix")
    kinds = ["file", "content", "command", "command", "content", "manual"]
    assert [check.kind for check in found.checks] == kinds
    commands = [None, None, "make test", "ls -l", None, None]
    assert [check.command for check in found.checks] == commands
    assert found.checks[4].text == 'a.py contains "y"'


def test_none_is_read_as_an_empty_list(tmp_path: Path) -> None:
    for none in (None, "none", "None", [], ["none"], ""):
        task = json_task("01", libraries=none, skills=none, depends=none)
        found = loaded(tmp_path, json_plan(task)).tasks[0]
        assert (found.libraries, found.skills, found.depends) == ((), (), ())
        assert (found.title, found.commit_type, found.test_required) == ("Do it", "feat", "false")


def test_must_haves_counts_and_phase_are_read(tmp_path: Path) -> None:
    more = {"must_haves": ["a", 7, None], "wave_count": 1, "task_count": "1", "waves": 1}
    plan = loaded(tmp_path, json_plan(json_task("01"), phase="04", estimated_tokens=45, **more))
    assert (plan.must_haves, plan.phase, plan.estimated_tokens) == (("a", "7"), 4, "45")
    assert plan.warnings == ()
    totals = json_plan(json_task("01"), total_waves=2, total_tasks=1)
    assert loaded(tmp_path, totals).warnings == ("wave_count is 2, but the plan has 1",)


def test_problems_and_checks_have_the_lines_of_their_objects(tmp_path: Path) -> None:
    first = """{"tasks": [
    {"action": "say \\"id\\": {", "done": "}", "verify": [{"id": "inner", "type": "file",
                 "check": "a"},
                {"type": "file", "check": "b"}],
     "id": "01"}"""
    assert [it.line for it in loaded(tmp_path, first + "]}").tasks[0].checks] == [2, 4]
    more = ',\n{\n"id" : "01", "meta": {"x": {"id": 3}},\n"verify": ["id", {"check": " "}]},\n{}]}'
    assert broken(tmp_path, first + more) == [
        (7, "duplicate task T01: first in line 5"),
        (7, "task T01 has no <action>"),
        (7, "task T01 has no <done>"),
        (8, "a check is empty"),
        (9, "a task has no <action>"),
        (9, "a task has no <done>"),
        (9, "a task has no check in <verify>"),
        (9, "a task has no id"),
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"tasks": ["01"]}', "a task is not an object"),
        ('{"waves": ["01"]}', "wave 1 is not an object"),
        ('{"waves": [{"wave": 0, "tasks": []}]}', "not a positive integer"),
        ('{"tasks": 7}', "a task is not an object"),
        ("{}", "the plan has no tasks"),
        ("[]", "not a JSON object"),
        *((json_plan(json_task(number)), "a task has no id") for number in (True, {"a": 1})),
        *((json_plan(json_task("01", wave=wave)), "its wave is not a positive integer")
          for wave in (1.5, -1, 10**9)),
        (json_plan(json_task("01", done={})), "task T01 has no <done>"),
        (json_plan(json_task("01", files=[{}])), "'' is not a path inside"),
    ],
)  # fmt: skip
def test_json_that_is_not_a_plan_is_refused(tmp_path: Path, text: str, what: str) -> None:
    problems = broken(tmp_path, text)
    assert any(what in it[1] for it in problems), problems
