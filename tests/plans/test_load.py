"""Plans in Markdown and JSON: what they say, and every way in which they are broken, with its line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.plans.load import BrokenPlan, load_plan
from gsd_fsm.plans.plan import Plan

LOOP_MECHANISM = Path(__file__).with_name("loop-mechanism.md")
TASK = """<task id="{id}" wave="{wave}"{more}>
  <files><file action="create">{id}.py</file></files>
  <action>Write {id}.</action>
  <verify><check type="file">{id}.py exists</check></verify>
  <done>It is there.</done>
</task>
"""


def task(number: str, wave: int = 1, depends: str = "") -> str:
    more = f' depends="{depends}"' if depends else ""
    return TASK.format(id=number, wave=wave, more=more)


def loaded(tmp_path: Path, text: str | bytes, name: str = "plan.md") -> Plan:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_plan(path)


def broken(tmp_path: Path, text: str | bytes, name: str = "plan.md") -> list[tuple[int, str]]:
    with pytest.raises(BrokenPlan) as error:
        loaded(tmp_path, text, name)
    for problem in error.value.problems[:20]:
        assert f"{tmp_path / name}:{problem.line}: {problem.what}" in error.value.message
    return [(problem.line, problem.what) for problem in error.value.problems]


def test_a_plan_full_of_foreign_markup_loads_with_its_waves_and_must_haves() -> None:
    plan = load_plan(LOOP_MECHANISM)
    assert (plan.phase, plan.title, plan.format) == (1, "Loop Mechanism", "markdown")
    assert [task.id for task in plan.tasks] == [f"T0{n}" for n in range(1, 8)]
    assert [(wave.number, wave.sequential) for wave in plan.waves] == [
        (1, False),
        (2, True),
        (3, True),
    ]
    assert len(plan.must_haves) == 7
    assert plan.must_haves[4] == "Loop state tracked in STATE.md under `loop:` section"
    assert plan.tasks[3].depends == ("T01", "T02", "T03")
    assert plan.tasks[3].skills == ("verification-before-completion",)
    assert "<previous_attempt>" in plan.tasks[3].action
    assert plan.tasks[4].action.endswith("reference sections at end.")
    assert plan.estimated_tokens == "45k"
    assert plan.warnings == ()


def test_every_check_of_that_plan_has_its_kind_and_its_line() -> None:
    kinds = [check.kind for task in load_plan(LOOP_MECHANISM).tasks for check in task.checks]
    assert (len(kinds), kinds.count("file"), kinds.count("manual")) == (23, 2, 1)
    lines = LOOP_MECHANISM.read_text().splitlines()
    for found in load_plan(LOOP_MECHANISM).tasks:
        for check in found.checks:
            assert check.text in lines[check.line - 1]
        assert f'<task id="{found.number}"' in lines[found.line - 1]


def test_the_same_plan_in_json_is_sniffed_whatever_the_file_is_called(tmp_path: Path) -> None:
    tasks = [{"id": "01", "title": "One", "files": ["a.py"], "action": "Do it", "done": "done",
              "verify": [{"type": "test", "cmd": "pytest"}]}]  # fmt: skip
    text = json.dumps(
        {"phase": 3, "title": "P", "waves": [{"wave": 1, "sequential": True, "tasks": tasks}]}
    )
    plan = loaded(tmp_path, text, "plan.md")
    assert (plan.format, plan.phase, plan.waves[0].sequential) == ("json", 3, True)
    assert plan.tasks[0].checks[0].command == "pytest"
    assert loaded(tmp_path, task("01"), "plan.json").format == "markdown"


def test_the_flat_form_of_json_loads_too(tmp_path: Path) -> None:
    plan = loaded(tmp_path, json.dumps({"phase": 3, "title": "E", "wave_count": 2, "tasks": [
        {"id": "01", "wave": 1, "title": "A", "files": [{"path": "a.md", "action": "modify"}],
         "test_required": False, "action": "x", "done": "y",
         "verify": [{"type": "file", "check": "a.md contains 'Tools Used:' in a section"},
                    {"type": "file", "check": "a.md references b.json in startup"}]},
        {"id": 2, "wave": 2, "depends_on": ["01"], "title": "B", "action": ["x", "y"], "done": "z",
         "verify": ["look at it"], "test_required": "existing", "test_files": ["t.py"]},
    ]}))  # fmt: skip
    assert [check.kind for check in plan.tasks[0].checks] == ["content", "manual"]
    assert (plan.tasks[1].id, plan.tasks[1].depends, plan.tasks[1].action) == (
        "T2",
        ("T01",),
        "x\ny",
    )
    assert plan.tasks[1].test_required == "existing"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (task("01", depends="09"), 1, "depends on 09, which is not in the plan"),
        (task("01") + task("01"), 7, "task 01 stands at line 1 already"),
        (task("01", 1, "02") + task("02", 2), 1, "task 01 of wave 1 depends on task 02 of wave 2"),
        (task("01") + task("02", 1, "01"), 7, "both in wave 1, which runs them at once"),
        ("## Wave 1 (Sequential)\n" + task("01", 1, "02") + task("02", 1, "01"), 2, "in a circle"),
        (task("01").replace("<done>It is there.</done>", ""), 1, "task 01 has no <done>"),
        (task("01").replace('<check type="file">01.py exists</check>', ""), 1, "no check in <verify>"),
        (task("01").replace("<action>Write 01.</action>", ""), 1, "task 01 has no <action>"),
        (task("01").replace('wave="1"', 'wave="none"'), 1, "not a number above zero"),
        (task("01").replace('id="01"', 'id="../x"'), 1, "is not the id of a task"),
        (task("01").replace(">01.py</file>", ">../01.py</file>"), 1, "not a path inside the project"),
        (task("01").replace(">01.py</file>", ">/etc/x</file>"), 1, "not a path inside the project"),
        (task("01").replace("</task>", ""), 1, "<task> has no </task>"),
        (task("01").replace("</action>", ""), 3, "<action> has no </action>"),
        (task("01").replace("</verify>", ""), 4, "<verify> has no </verify>"),
        ("---\ntitle: x\n" + task("01"), 1, "the front matter has no end"),
        ("---\na: [1\n---\n" + task("01"), 2, "not valid YAML"),
        ("# nothing\n", 1, "there is no task in this plan"),
        ('{"tasks": [\n}', 2, "not valid JSON"),
        ('{"tasks":\n[{"id":"01","action":"x","done":"y"}]}', 2, "no check in <verify>"),
        ("[" * 100_000, 1, "not valid JSON"),
        (b"\xff\xfe\n", 1, "not valid UTF-8"),
        (b"one\n\x00", 2, "a NUL character"),
    ],
)  # fmt: skip
def test_a_broken_plan_is_refused_with_its_line(
    tmp_path: Path, text: str | bytes, line: int, what: str
) -> None:
    assert any(it[0] == line and what in it[1] for it in broken(tmp_path, text)), broken(
        tmp_path, text
    )


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = "".join(task(f"{n:02d}", depends="99") for n in range(1, 31))
    problems = broken(tmp_path, text)
    assert len(problems) == 30
    with pytest.raises(BrokenPlan, match="and 10 more"):
        loaded(tmp_path, text)


def test_counts_that_disagree_and_missing_waves_are_warnings(tmp_path: Path) -> None:
    plan = loaded(tmp_path, "---\ntask_count: 5\nwave_count: 3\n---\n" + task("01") + task("02", 3))
    assert plan.warnings == (
        "task_count says 5, but there are 2",
        "wave_count says 3, but there are 2",
        "no task belongs to wave 2",
    )


def test_examples_in_fences_are_no_tasks(tmp_path: Path) -> None:
    plan = loaded(tmp_path, "```xml\n" + task("09") + "```\n" + task("01"))
    assert [it.id for it in plan.tasks] == ["T01"]


def test_a_task_without_a_wave_belongs_to_the_heading_above_or_after_what_it_needs(
    tmp_path: Path,
) -> None:
    bare = task("01").replace(' wave="1"', "")
    assert loaded(tmp_path, "## Wave 4: Late\n" + bare).tasks[0].wave == 4
    later = task("02", depends="01").replace(' wave="1"', "")
    assert [it.wave for it in loaded(tmp_path, bare + later).tasks] == [1, 2]


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    text = LOOP_MECHANISM.read_bytes()
    odd = loaded(tmp_path, b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))
    assert odd.tasks == load_plan(LOOP_MECHANISM).tasks


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing", Path("/dev/zero")):
        with pytest.raises(UsageError, match=r"regular file|missing file"):
            load_plan(path)
    (tmp_path / "huge").write_bytes(b"x" * (5 << 20))
    with pytest.raises(UsageError, match="larger than 4 MiB"):
        load_plan(tmp_path / "huge")


@given(st.text(max_size=300) | st.binary(max_size=300))
def test_whatever_a_file_holds_it_loads_or_is_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, content: str | bytes
) -> None:
    place = tmp_path_factory.mktemp("plans") / "plan.md"
    place.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
    with pytest.raises(UsageError):
        load_plan(place)
