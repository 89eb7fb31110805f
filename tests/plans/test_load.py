"""Load plans in both formats."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.plans.load import BrokenPlan, load_plan
from gsd_fsm.plans.plan import PlanTask
from tests.support import plan_texts
from tests.support.plan_texts import LOOP_MECHANISM, broken, loaded, require_problem, task


def test_plan_full_of_foreign_markup_loads() -> None:
    plan = load_plan(LOOP_MECHANISM)
    assert (plan.phase, plan.title, plan.format) == (1, "Loop Mechanism", "markdown")
    assert [task.id for task in plan.tasks] == [f"T0{n}" for n in range(1, 8)]
    waves = [(wave.number, wave.sequential) for wave in plan.waves]
    assert waves == [(1, False), (2, True), (3, True)]
    assert len(plan.must_haves) == 7
    assert plan.must_haves[4] == "Loop state tracked in STATE.md under `loop:` section"
    assert plan.tasks[3].depends == ("T01", "T02", "T03")
    assert plan.tasks[3].skills == ("verification-before-completion",)
    assert "<previous_attempt>" in plan.tasks[3].action
    assert plan.tasks[4].action.endswith("reference sections at end.")
    assert (plan.estimated_tokens, plan.warnings) == ("45k", ())
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


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    text = "".join(task(f"{n:02d}", depends="99") for n in range(1, 31))
    assert len(broken(tmp_path, text)) == 30
    with pytest.raises(BrokenPlan, match="and 10 more"):
        loaded(tmp_path, text)


def test_plan_that_is_not_a_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing", Path("/dev/zero")):
        with pytest.raises(UsageError, match=r"regular file|missing file"):
            load_plan(path)
    (tmp_path / "huge").write_bytes(b"x" * (5 << 20))
    with pytest.raises(UsageError, match="larger than 4 MiB"):
        load_plan(tmp_path / "huge")


@given(st.text(max_size=300) | st.binary(max_size=300))
def test_any_content_loads_or_raises_a_usage_error(
    tmp_path_factory: pytest.TempPathFactory, content: str | bytes
) -> None:
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    with pytest.raises(UsageError):
        loaded(tmp_path_factory.mktemp("plans"), raw)


words = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=20
).map(lambda text: " ".join(["x", *text.split()]))
names = st.lists(st.from_regex(r"(?!none)[a-z][a-z-]{0,8}", fullmatch=True), max_size=3)
paths = st.from_regex(r"[a-z]{1,8}/[a-z]{1,8}\.py", fullmatch=True)
markup = st.sampled_from(["", "```", "  <b>", "</verify>", "<done>", "a && b", "<task>"])
actions = st.lists(words | markup, max_size=6).map(lambda it: "\n".join(["Do", *it, "so."]))
file = st.fixed_dictionaries({"path": paths, "action": st.sampled_from(["create", "modify", ""])})
kinds = st.sampled_from(["file", "content", "test", "manual", "console"])
check = st.fixed_dictionaries({"type": kinds, "text": words}, optional={"cmd": words})
members = st.fixed_dictionaries({
    "wave": st.integers(1, 4), "title": words, "action": actions, "done": words, "reqs": words,
    "files": st.lists(file, max_size=3), "test_files": st.lists(paths, max_size=2),
    "test_required": st.sampled_from(["true", "false", "existing"]), "skills": names,
    "libraries": names, "verify": st.lists(check, min_size=1, max_size=3),
    "type": st.sampled_from(["fix", ""]),
})  # fmt: skip


@st.composite
def json_tasks(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return tasks that depend on all tasks of earlier waves."""
    tasks = draw(st.lists(members, min_size=1, max_size=4))
    for number, it in enumerate(tasks, 1):
        earlier = (n for n, other in enumerate(tasks, 1) if other["wave"] < it["wave"])
        it.update(id=f"{number:02d}", depends=[f"{n:02d}" for n in earlier])
    return tasks


def as_markdown(task: dict[str, Any]) -> str:
    """Return the JSON task as an element."""
    files = "".join(f'<file action="{it["action"]}">{it["path"]}</file>\n' for it in task["files"])
    tests = "".join(f"<file>{path}</file>" for path in task["test_files"])
    checks = ""
    for it in task["verify"]:
        command = f" cmd={quoteattr(it['cmd'])}" if "cmd" in it else ""
        checks += f'<check type="{it["type"]}"{command}>{escape(it["text"])}</check>\n'
    action = task["action"].replace("\n", "\n      ")
    depends = ",".join(task["depends"])
    texts = [(name, task[name]) for name in ("title", "done", "reqs", "type", "test_required")]
    texts += [(name, ", ".join(task[name]) or "none") for name in ("libraries", "skills")]
    return (
        f'<task id="{task["id"]}" wave="{task["wave"]}" depends="{depends}">\n'
        f"  <files>\n{files}</files>\n  <test_files>{tests}</test_files>\n"
        f"  <action>\n      {action}\n  </action>\n  <verify>\n{checks}</verify>\n"
        + "".join(f"  <{name}>{escape(text)}</{name}>\n" for name, text in texts)
        + "</task>\n"
    )


def without_lines(task: PlanTask) -> PlanTask:
    return task._replace(line=0, checks=tuple(check._replace(line=0) for check in task.checks))


@settings(max_examples=40)
@given(json_tasks())
def test_both_formats_give_the_same_tasks(
    tmp_path_factory: pytest.TempPathFactory, tasks: list[dict[str, Any]]
) -> None:
    place = tmp_path_factory.mktemp("plans")
    one = loaded(place, "\n".join(map(as_markdown, tasks)))
    other = loaded(place, json.dumps({"tasks": tasks}))
    assert list(map(without_lines, one.tasks)) == list(map(without_lines, other.tasks))
    assert (one.waves, one.warnings) == (other.waves, other.warnings)
    assert sorted(task.action for task in one.tasks) == sorted(it["action"] for it in tasks)
    assert sum(len(task.checks) for task in one.tasks) == sum(len(it["verify"]) for it in tasks)
