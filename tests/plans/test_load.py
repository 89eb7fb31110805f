"""Load plans in both formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.plans.load import load_plan
from gsd_fsm.plans.plan import PlanTask
from tests.support import plan_texts
from tests.support.plan_texts import LOOP_MECHANISM, loaded, require_problem, task


def test_plan_full_of_foreign_markup_loads() -> None:
    plan = load_plan(LOOP_MECHANISM)
    assert [task.id for task in plan.tasks] == [f"T0{n}" for n in range(1, 8)]
    assert plan.must_haves[4] == "Loop state tracked in STATE.md under `loop:` section"
    assert plan.tasks[3].skills == ("verification-before-completion",)
    assert "<previous_attempt>" in plan.tasks[3].action
    assert plan.tasks[4].action.endswith("reference sections at end.")
    kinds = [check.kind for task in plan.tasks for check in task.checks]
    assert (len(kinds), kinds.count("file"), kinds.count("manual")) == (23, 2, 1)
    lines = LOOP_MECHANISM.read_text().splitlines()
    for found in plan.tasks:
        assert all(check.text in lines[check.line - 1] for check in found.checks)
        assert f'<task id="{found.number}"' in lines[found.line - 1]


def test_load_plan_limited_to_tasks_reads_only_those(tmp_path: Path) -> None:
    path = tmp_path / "plan.md"
    path.write_text(task("01") + task("02", 2, "01") + task("03").replace(' wave="1"', ""))
    found = load_plan(path, only=["T02", "T03"]).tasks
    assert [(it.id, it.wave) for it in found] == [("T03", 1), ("T02", 2)]


def test_content_decides_the_format_not_the_file_name(tmp_path: Path) -> None:
    assert loaded(tmp_path, plan_texts.json_plan(plan_texts.json_task("01"))).format == "json"
    assert loaded(tmp_path, task("01"), "plan.json").format == "markdown"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("# nothing\n", 1, "the plan has no tasks"),
        ('{"tasks": [\n}', 2, "not valid JSON"),
        ('{"tasks":\n[{"id":"01","action":"x","done":"y"}]}', 2, "no check in <verify>"),
        (b"one\n\xff\xfe\n", 2, "not valid UTF-8"),
    ],
)
def test_file_that_is_not_a_plan_is_refused_with_a_line(tmp_path, text, line, what) -> None:
    require_problem(tmp_path, text, line, what)


def test_plan_that_is_missing_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="missing file"):
        load_plan(tmp_path / "missing")
    with pytest.raises(UsageError, match="larger than 4 MiB"):
        loaded(tmp_path, b"x" * (5 << 20))


@given(st.text(max_size=300) | st.binary(max_size=300))
def test_any_content_loads_or_raises_a_usage_error(tmp_path_factory, content) -> None:
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    with pytest.raises(UsageError):
        loaded(tmp_path_factory.mktemp("plans"), raw)


def test_both_formats_give_the_same_tasks(tmp_path: Path) -> None:
    markdown = loaded(tmp_path, task("01") + task("02", 2, "01"))
    tasks = [
        {"id": number, "wave": wave, "depends": depends, "action": f"Write {number}.",
         "files": [{"path": f"{number}.py", "action": "create"}], "done": "It is there.",
         "verify": [{"type": "file", "text": f"{number}.py exists"}]}
        for number, wave, depends in (("01", 1, []), ("02", 2, ["01"]))
    ]  # fmt: skip
    from_json = loaded(tmp_path, json.dumps({"tasks": tasks}))
    assert list(map(without_lines, markdown.tasks)) == list(map(without_lines, from_json.tasks))
    assert (markdown.waves, markdown.warnings) == (from_json.waves, from_json.warnings)


def without_lines(task: PlanTask) -> PlanTask:
    return task._replace(line=0, checks=tuple(check._replace(line=0) for check in task.checks))
