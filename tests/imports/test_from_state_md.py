from __future__ import annotations

from typing import Any

import pytest
import yaml

from gsd_fsm.core.views.state_md import loop_section
from gsd_fsm.imports.findings import OldLoop
from tests.support.foreign_files import STATE_MD, loop_of, read, refused


def section(*lines: str) -> str:
    return "---\nloop:\n" + "".join(f"  {line}\n" for line in lines) + "---\n"


def verify(*lines: str) -> OldLoop:
    return read(section("active: true", "type: verify", *lines))


def test_execute_loop_is_imported_with_its_retries() -> None:
    old = read(STATE_MD)
    loop = loop_of(old)
    assert (old.format, loop.kind, loop.status, loop.phase) == ("state-md", "execute", "running", 1)
    assert (loop.iteration, loop.limits.max_iterations, loop.round) == (4, 30, 0)
    assert {name: task.retries for name, task in loop.tasks.items()} == {"T02": 2, "T05": 1}
    assert loop.last_iteration == "2026-02-05T10:30:00.000Z"
    history = ["iteration 1: T02 failed", '{"iteration":2,"result":"T05 failed"}']
    assert loop.imported["history"] == history
    assert "does not contain the status of its tasks" in old.notes[0]


def test_verify_loop_is_imported_with_rounds_and_open_gaps() -> None:
    text = STATE_MD.replace("type: execute", "type: verify")
    old = read(text.replace("gaps_remaining: 0", "gaps_remaining: 3"))
    loop = loop_of(old)
    assert (loop.kind, loop.status, loop.round, loop.iteration) == ("verify", "fixing", 4, 0)
    assert (loop.limits.max_rounds, loop.limits.max_iterations) == (30, 20)
    assert list(loop.gaps) == ["G1", "G2", "G3"]
    assert {(gap.kind, gap.status) for gap in loop.gaps.values()} == {("imported", "open")}
    assert loop.gaps["G2"].description == "gap 2 of 3 that FILE counted"
    assert any("replaces G1 to G3." in note for note in old.notes)


@pytest.mark.parametrize("flow", [None, True, False])
def test_view_of_an_imported_loop_section_equals_the_file(flow: bool | None) -> None:
    old = yaml.safe_load(STATE_MD.partition("---\n")[2].partition("---\n")[0])
    section = {
        **old["loop"], "started": "2026-02-05T10:00:00Z", "last_iteration": "2026-02-05T10:30:00Z",
        "active": False, "paused": True, "pause_reason": "a: b\n\n# 'c' \"d\"\n---\ne",
        "history": ["- x", "{y: z}", " # é\x85\u2028", "long " * 40 + "."],
    }  # fmt: skip
    front = yaml.safe_dump({"before": "x: y", "loop": section, "zero": 0}, default_flow_style=flow)
    if flow:
        front = f"loop: {yaml.safe_dump(section, default_flow_style=True, width=10**6)}"
    shown = yaml.safe_load("\n".join(loop_section(loop_of(read(f"---\n{front}---\n")))))["loop"]
    for name in ("started", "last_iteration"):
        shown[name] = shown[name].replace(".000Z", "Z")
    assert shown == section


def test_paused_loop_is_paused_after_all_other_events() -> None:
    lines = ("type: verify", "paused: true", "pause_reason: 'Task 2: no'", "gaps_remaining: 1")
    for active in ("active: true", "active: false"):
        old = read(section(active, *lines))
        loop = loop_of(old)
        assert old.later[-1] == ("pause", {"code": "manual", "reason": "Task 2: no"})
        assert (loop.status, loop.pause_code, loop.before_pause) == ("paused", "manual", "fixing")
        assert len(loop.gaps) == 1
    old = verify("pause_reason: old")
    assert old.later == []
    assert old.notes == ["loop.pause_reason: not imported, because the loop is not paused."]


def test_imported_gaps_turn_auto_loop_on() -> None:
    off: dict[str, Any] = {"mode": "yolo", "auto_loop": False, "limits": {}}
    assert verify("gaps_remaining: 1").events(off)[0][1]["auto_loop"] is True
    assert read(STATE_MD).events(off)[0][1]["auto_loop"] is False


def test_phase_is_a_number_or_a_name() -> None:
    phases = {"2": 2, '"02"': "02", "02": "02", "1.5": "1.5", "auth flow": "auth flow"}
    for written, phase in phases.items():
        assert loop_of(verify(f"phase: {written}")).phase == phase


def test_only_the_loop_section_must_be_valid_yaml() -> None:
    flow = "{active: true, type: execute, task_retries: {T1: 1,\n    T2: 0}, mood: fine}"
    text = f'---\ntitle: Not: YAML: at all\n"loop": {flow}\n# a comment\nafter: [}}\n---\n'
    old = read(text)
    assert list(loop_of(old).tasks) == ["T1", "T2"]
    assert "Not imported: loop.mood." in old.notes


def test_end_of_a_long_history_is_imported() -> None:
    old = verify("history:", *(f"  - line {number}" for number in range(300)))
    assert loop_of(old).imported["history"] == [f"line {number}" for number in range(100, 300)]
    assert old.notes == ["loop.history: the first 100 lines are not imported."]
    wide = verify("history:", *(f"  - {number:03} {'x' * 400}" for number in range(100)))
    history = loop_of(wide).imported["history"]
    assert history[-1].startswith("099")
    assert sum(map(len, history)) < 24_000


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("type", "goal", " must be one of execute, verify, not 'goal'"),
        ("type", "null", " is missing"),
        *((name, "yes", " must be true or false, not 'yes'") for name in ("active", "paused")),
        *((name, "1.5", " must be a whole number from 0 to 1000000000")
          for name in ("iteration", "max_iterations")),
        ("gaps_remaining", "201", " must be a whole number from 0 to 200"),
        ("task_retries", "[T1]", " must be an object, not a list"),
        ("task_retries", "{T1: -1}", ".T1 must be a whole number"),
        ("task_retries", "{../x: 1}", ".../x: a task id has"),
        *((name, "today", " must be a time such as") for name in ("started", "last_iteration")),
        ("phase", "{a: 1}", " must be a number or a name, not an object"),
        ("phase", "true", " must be a number or a name, not true"),
        *((name, "[a]", " must be a text, not a list") for name in ("last_error", "pause_reason")),
        ("history", "all", " must be a list, not 'all'"),
    ],
)  # fmt: skip
def test_state_md_problem_is_reported_with_its_member(name: str, value: str, message: str) -> None:
    lines = [other for other in ("active: true", "type: execute") if name not in other]
    found = refused(section(*lines, f"{name}: {value}"))
    assert found.startswith(f"FILE: loop.{name}{message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" {active: false}", " nothing to import: the loop is neither active nor paused"),
        ("\n  active: true\na: 1\nloop: {}", " duplicate key: loop"),
        ("\n  last_error: {a", "3: not valid YAML: "),
        (" 3", " loop must be an object, not 3"),
        ("", " loop is missing"),
    ],
)
def test_state_md_damage_is_reported_with_its_line(text: str, message: str) -> None:
    assert f"FILE:{message}" in refused(f"---\nloop:{text}\n---\n")
