"""Plans in JSON, in all their spellings, and the lines of what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.plans.plan import PlanFile, Wave
from tests.plans.test_load import broken, loaded


def spec(number: object, **more: Any) -> dict[str, Any]:
    return {"id": number, "action": "Do it", "done": "Done", "verify": ["look"], **more}


def text_of(*tasks: Any, **more: Any) -> str:
    return json.dumps({"phase": 3, "title": "P", "tasks": list(tasks), **more}, indent=2)


@pytest.mark.parametrize(
    ("wave", "found"),
    [
        ({"wave": 2, "title": "A", "sequential": True}, Wave(2, "A", True)),
        ({"number": "2", "name": "A  B", "parallel": False}, Wave(2, "A B", True)),
        ({"id": 2, "mode": "Sequential", "description": "A"}, Wave(2, "A", True)),
        ({"wave": 2, "parallel": True}, Wave(2, "", False)),
        ({"wave": 2, "mode": "parallel"}, Wave(2, "", False)),
    ],
)
def test_a_wave_says_how_it_runs(tmp_path: Path, wave: dict[str, Any], found: Wave) -> None:
    text = json.dumps({"waves": [{**wave, "tasks": [spec("01")]}]})
    plan = loaded(tmp_path, text)
    assert (plan.waves, plan.tasks[0].wave, plan.phase) == ((found,), 2, None)


def test_waves_without_numbers_are_counted(tmp_path: Path) -> None:
    text = json.dumps({"waves": [{"tasks": [spec("01")]}, {"tasks": [spec("02", depends="01")]}]})
    assert [task.wave for task in loaded(tmp_path, text).tasks] == [1, 2]


def test_waves_may_only_name_the_tasks(tmp_path: Path) -> None:
    waves = [{"wave": 1, "tasks": ["T01", 2]}, {"wave": 2, "sequential": True, "tasks": ["x"]}]
    plan = loaded(tmp_path, text_of(spec("x"), spec("01"), spec(2), waves=waves))
    assert [(task.id, task.wave) for task in plan.tasks] == [("T01", 1), ("T2", 1), ("x", 2)]
    assert [wave.sequential for wave in plan.waves] == [False, True]
    waves[0]["tasks"] = ["01", "99"]
    ((line, what),) = broken(tmp_path, text_of(spec("x"), spec("01"), spec(2), waves=waves))
    assert (line, "'T99'" in what) == (1, True)


def test_every_member_of_a_task_has_its_spellings(tmp_path: Path) -> None:
    task = spec(
        1.5,
        title="A title",
        files=[{"path": "a.py", "action": "Modify"}, {"file": "b.py"}, "c.py"],
        test_files=["t.py", {"path": "u.py"}],
        test_required=True,
        action=["    First", "      then"],
        libraries=["next auth", "zod"],
        done=["one", "two"],
        skills="a, b",
        reqs=["R1", 2],
        type="fix",
        depends_on=[7],
        wave="2",
        unknown={"id": "99"},
        verify=[
            {"type": "file", "check": "a.py exists"},
            {"type": "content", "value": 'contains "x"'},
            {"description": "tests", "command": "make test"},
            {"type": "command", "text": "ls -l"},
            "npm test",
        ],
    )
    found = loaded(tmp_path, text_of(spec(7, wave=1), task)).tasks[1]
    assert (found.id, found.number, found.wave, found.depends) == ("T1.5", "1.5", 2, ("T7",))
    assert found.files == (
        PlanFile("a.py", "modify"),
        PlanFile("b.py", ""),
        PlanFile("c.py", ""),
    )
    assert (found.test_files, found.test_required) == (("t.py", "u.py"), "true")
    assert (found.action, found.done, found.title) == ("First\n  then", "one two", "A title")
    assert (found.libraries, found.skills) == (("next auth", "zod"), ("a", "b"))
    assert (found.reqs, found.commit_type) == ("R1, 2", "fix")
    assert [(check.kind, check.command) for check in found.checks] == [
        ("file", None),
        ("content", None),
        ("command", "make test"),
        ("command", "ls -l"),
        ("manual", None),
    ]


@pytest.mark.parametrize("none", [None, "none", "None", [], ["none"], ""])
def test_none_is_nothing(tmp_path: Path, none: object) -> None:
    task = spec("01", libraries=none, skills=none, depends=none)
    found = loaded(tmp_path, text_of(task)).tasks[0]
    assert (found.libraries, found.skills, found.depends) == ((), (), ())
    assert (found.title, found.commit_type, found.test_required) == ("Do it", "feat", "false")


def test_must_haves_counts_and_phases_are_read(tmp_path: Path) -> None:
    more = {"must_haves": ["a", 7, None], "wave_count": 1, "task_count": "1", "waves": 1}
    plan = loaded(tmp_path, text_of(spec("01"), phase="04", estimated_tokens=45, **more))
    assert (plan.must_haves, plan.phase, plan.estimated_tokens) == (("a", "7"), 4, "45")
    assert plan.warnings == ()
    totals = {"total_waves": 2, "total_tasks": 1}
    assert loaded(tmp_path, text_of(spec("01"), **totals)).warnings == (
        "wave_count says 2, but there are 1",
    )


def test_problems_and_checks_have_the_lines_of_their_objects(tmp_path: Path) -> None:
    text = """{
  "tasks": [
    {"action": "say \\"id\\": {", "done": "}",
     "verify": [{"id": "inner", "type": "file",
                 "check": "a"},
                {"type": "file", "check": "b"}],
     "id": "01"},
    {
      "id" : "01", "meta": {"x": {"id": 3}},
      "verify": ["id", {"check": " "}]
    },
    {}
  ]
}"""
    assert broken(tmp_path, text) == [
        (9, "task 01 has no <action>"),
        (9, "task 01 has no <done>"),
        (9, "task 01 stands at line 7 already"),
        (10, "a check that says nothing"),
        (12, "a task has no <action>"),
        (12, "a task has no <done>"),
        (12, "a task has no check in <verify>"),
        (12, "a task has no id"),
    ]
    alone = text.replace('"id": "01"}', '"id": "01"}]}', 1).partition("]}")[0]
    lines = [4, 6]
    assert [check.line for check in loaded(tmp_path, alone + "]}").tasks[0].checks] == lines


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"tasks": ["01"]}', "a task is no object"),
        ('{"waves": ["01"]}', "wave 1 is no object"),
        ('{"waves": [{"wave": 0, "tasks": []}]}', "not a number above zero"),
        ('{"tasks": []}', "there is no task in this plan"),
        ('{"tasks": 7}', "a task is no object"),
        ("{}", "there is no task in this plan"),
        ("[]", "a plan is a JSON object"),
        ('{"a":' * 99_999, "nested too deeply"),
        (f'{{"a": {"9" * 9_999}}}', "a number too long"),
        ('{"a": "\n"}', "not valid JSON"),
        ('{"a": 1} {', "not valid JSON"),
        ('{"a": "\\"\\"\\"', "not valid JSON"),
        (json.dumps({"tasks": [spec(True)]}), "a task has no id"),
        (json.dumps({"tasks": [spec({"a": 1})]}), "a task has no id"),
        (json.dumps({"tasks": [spec("01", wave=1.5)]}), "its wave is not a number above zero"),
        (json.dumps({"tasks": [spec("01", wave=-1)]}), "its wave is not a number above zero"),
        (json.dumps({"tasks": [spec("01", wave=10**9)]}), "its wave is not a number above zero"),
        (json.dumps({"tasks": [spec("01", done={})]}), "task 01 has no <done>"),
        (json.dumps({"tasks": [spec("01", files=[{}])]}), "'' is not a path inside"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str, what: str) -> None:
    problems = broken(tmp_path, text)
    assert any(what in it[1] for it in problems), problems


def test_half_characters_become_whole_ones(tmp_path: Path) -> None:
    found = loaded(tmp_path, text_of(spec("01", title="a\ud800b"))).tasks[0]
    assert found.title.encode()
    assert found.title[0] + found.title[-1] == "ab"


def test_a_number_that_is_none_is_passed_over(tmp_path: Path) -> None:
    text = text_of(spec("01", weight="@")).replace('"@"', "NaN")
    assert loaded(tmp_path, text).tasks[0].id == "T01"
