"""Journals that grow in one way at a time: in tasks, gaps, notes, ended loops and so on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.codec import encode_event
from gsd_fsm.core.loop.limits import (
    MOST_CRITERIA,
    MOST_DEPENDENCIES_IN_ALL,
    MOST_GAPS,
    MOST_NOTES,
    MOST_TASKS,
)
from tests.support.events import draft

START = 1_794_783_600_000
SESSION = "growing"
LIMITS = {"max_iterations": 0, "stuck_limit": 0, "idle_limit": 0}
Events = Iterator[dict[str, Any]]


def begin(kind: str, loop: str = "lp", session: str = SESSION, **data: Any) -> dict[str, Any]:
    start = {"kind": kind, "mode": "yolo", "goal": "Grow", "limits": LIMITS, **data}
    return draft("start", loop, "human", start, session=session)


def happen(kind: str, _by: str = "agent", **data: Any) -> dict[str, Any]:
    return draft(kind, "lp", _by, data)


def waiting_tasks(count: int) -> Events:
    yield begin("execute")
    for number in range(count):
        yield happen("plan", tasks=[{"id": f"T{number}", "title": f"Task {number}"}])


def finished_tasks(count: int) -> Events:
    """A scored goal: each wave ends in a light review, and one task is left."""
    yield begin("goal")
    yield happen("score", spec_score=9, fit_score=40, shape="tool")
    for number in range(count):
        yield happen("task", task=f"T{number}", status="pending", wave=number + 1)
        yield happen("task", task=f"T{number}", status="running")
        yield happen("task", task=f"T{number}", status="complete")
        yield happen("review", action="light", wave=number + 1, score=9)
    yield happen("task", task="last", status="pending", wave=count + 1)


def chain(count: int) -> Events:
    """Each task waits for the one before it, and is added by itself."""
    yield begin("goal")
    yield happen("task", task="T0", status="pending")
    for number in range(1, count):
        yield happen("task", task=f"T{number}", status="pending", depends=[f"T{number - 1}"])


def fan_in(count: int) -> Events:
    """One task waits for all others, which are named one by one."""
    yield begin("goal")
    yield happen("task", task="all", status="pending")
    for number in range(count):
        yield happen("task", task=f"T{number}", status="pending")
        yield happen("task", task="all", status="pending", depends=[f"T{number}"])


def plan_in_waves(count: int) -> Events:
    plan = {"file": "plan.md", "digest": "d", "tasks": count, "waves": count // 4}
    yield begin("execute", plan=plan)
    for number in range(count):
        spec = {"id": f"T{number}", "wave": number // 4 + 1}
        if number >= 4:
            spec["depends"] = [f"T{number - 4}"]
        yield happen("plan", tasks=[spec])
    for number in range(count // 2):
        yield happen("task", task=f"T{number}", status="running")
        yield happen("task", task=f"T{number}", status="complete")


def failed_tasks(count: int) -> Events:
    yield begin("execute")
    for number in range(count):
        yield happen("task", task=f"T{number}", status="running")
        error = {"error": f"error {number}", "class": "logic"}
        yield happen("failure", task=f"T{number}", **error)
        yield draft("resume", "lp", "human", {}, session=SESSION)


def mirrored_tasks(count: int) -> Events:
    yield begin("goal", task_list="list")
    for number in range(1, count + 1):
        depends = [str(number - 1)] if number > 1 else []
        about = {"title": f"do {number}", "depends": depends, "list": "list", "named": True}
        yield happen("task", "hook", task=str(number), status="pending", mirrored=True, **about)


def gaps(count: int) -> Events:
    yield begin("verify")
    for number in range(count):
        yield happen("gap", action="found", gap=f"G{number}", description="It is wrong")
    for number in range(0, count, 2):
        yield happen("gap", action="closed", gap=f"G{number}")
        yield happen("iteration", "hook", activity=True)
    for number in range(0, count, 4):
        yield happen("gap", action="reopened", gap=f"G{number}")


def criteria(count: int) -> Events:
    """Each criterion has a task of its own and is proven from other content than the others."""
    names = [f"criterion {number}" for number in range(count)]
    yield begin("goal")
    for name in names:
        yield happen("plan", criteria=[{"name": name, "check": "make"}])
        about = {"condition": f"criterion:{name}", "title": name}
        yield happen("task", "cli", task=name.replace(" ", "-"), status="pending", **about)
    for number, name in enumerate(names[:-1]):
        proof = {"command": "make", "exit_code": 0, "tree": f"tree {number}"}
        yield happen("criterion", "cli", criterion=name, met=True, evidence=proof)
        yield happen("iteration", "hook", activity=True)


def must_nots(count: int) -> Events:
    yield begin("goal")
    for number in range(count):
        yield happen("plan", must_not=[f"break {number}"])


def notes(count: int) -> Events:
    """Each block delivers one note, and the client drops every second block."""
    yield begin("goal")
    first = 3  # after the events `journal` and `start`
    for number in range(count):
        yield happen("note", "human", text=f"note {number}")
    for number in range(count // 2):
        about = {"delivered": [first + number], "signal": f"{number}"}
        yield happen("iteration", "hook", activity=True, **about)
        if number % 2:
            yield happen("stop", "hook", code="client")


def ended_loops(count: int) -> Events:
    for number in range(count):
        yield begin("goal", f"lp-{number}", f"s-{number}")
        yield draft("cancel", f"lp-{number}", "human", {})
    yield begin("goal")


def live_loops(count: int) -> Events:
    for number in range(count):
        yield begin("goal", f"lp-{number}", f"s-{number}", tasks=[{"id": "T1"}])
    for number in range(0, count, 2):
        yield draft("cancel", f"lp-{number}", "human", {})
    yield begin("goal")


def iterations(count: int) -> Events:
    yield begin("goal", criteria=[{"name": "done"}])
    for number in range(count):
        yield happen("iteration", "hook", activity=True, reason=f"Go on {number}", code="continue")


def full_plan() -> Events:
    """A loop with as many tasks and dependencies as it may have."""
    each = MOST_DEPENDENCIES_IN_ALL // MOST_TASKS
    tasks = [
        {
            "id": f"T{number}",
            "title": f"Task number {number}",
            "depends": [f"T{other}" for other in range(max(0, number - each), number)],
        }
        for number in range(MOST_TASKS)
    ]
    yield begin("execute")
    for first in range(0, MOST_TASKS, 400):
        yield happen("plan", tasks=tasks[first : first + 400])


def full_goal() -> Events:
    """A loop with as many failed criteria, notes, must-nots and tasks of the client as it may have."""
    text = "It is not so. " * 280
    yield begin("goal")
    for number in range(MOST_CRITERIA):
        name = f"criterion {number}"
        proof = {"command": "make", "exit_code": 1, "tail": text, "tree": "t"}
        yield happen("plan", criteria=[{"name": name, "check": "make"}], must_not=[f"not {name}"])
        yield happen("criterion", "cli", criterion=name, met=False, evidence=proof)
    for number in range(MOST_NOTES):
        yield happen("note", "human", text=f"{number}: {text}")
    for number in range(MOST_TASKS):
        about = {"mirrored": True, "list": SESSION, "title": f"do {number}"}
        yield happen("task", "hook", task=str(number), status="pending", **about)


def full_verification() -> Events:
    yield begin("verify")
    for number in range(MOST_GAPS):
        text = f"It is wrong: {number}. " * 50
        yield happen("gap", action="found", gap=f"G{number}", description=text, evidence=text)


GROWTH: dict[str, Callable[[int], Events]] = {
    "waiting tasks": waiting_tasks,
    "finished tasks and reviewed waves": finished_tasks,
    "chain of dependent tasks": chain,
    "dependencies of one task": fan_in,
    "plan in waves": plan_in_waves,
    "failed tasks": failed_tasks,
    "mirrored tasks": mirrored_tasks,
    "gaps": gaps,
    "criteria": criteria,
    "must-nots": must_nots,
    "notes": notes,
    "ended loops": ended_loops,
    "live loops": live_loops,
    "journal length": iterations,
}


def write_long_journal(gsd: Path, events: Events) -> None:
    """Write a journal with these events into the new directory `gsd`, without a sync."""
    gsd.mkdir(parents=True, mode=0o700)
    first = draft("journal", None, "cli", {"id": "j-long", "incompat": [], "compat": []})
    last = ""
    with (gsd / "journal.jsonl").open("wb") as file:
        for seq, fields in enumerate((first, *events), 1):
            event = {"v": 1, "seq": seq, "ts": to_iso(START + seq * 250), **fields}
            line, last = encode_event(event, last)
            file.write(line)
    (gsd / "journal.jsonl").chmod(0o600)
