"""Random events, mostly legal, some absurd; the same for a seed on every machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.loop.fold import TRIGGERS, Loops, steps_of
from gsd_fsm.core.loop.state import Loop
from tests.support.events import NOW, apply_new

Event = dict[str, Any]
TASKS = ("T1", "T2", "T3", "T4")
MODES = ("interactive", "yolo")
BOOST = ("max_iterations", "max_retries", "max_rounds", "budget_usd", "max_minutes")
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2.5, 2**53 + 1, float("inf"), "", "x", "../x", [], ["a"], {}, {"a": 1},
)  # fmt: skip
STEPS = (0, 1, 500, 1000, 1000, 1000, 60_000, 3_600_000, -1, -5000, -3_600_000)


def _start(r: Random, loop: Loop | None) -> Event:
    data: Event = {"kind": r.choice(("execute", "verify", "goal")), "mode": r.choice(MODES)}
    limits: Event = {}
    for name in ("max_iterations", "max_retries", "max_rounds", "stuck_limit", "idle_limit"):
        if r.random() < 0.4:
            limits[name] = r.randrange(4)
    for name in ("budget_usd", "max_minutes"):
        if r.random() < 0.2:
            limits[name] = r.choice((0, 0.5, 5))
    data["limits"] = limits
    if r.random() < 0.6:
        data["tasks"] = [
            {"id": name, "wave": n // 2, "depends": ["T1"] if n == 2 else []}
            for n, name in enumerate(TASKS[: r.randrange(5)])
        ]
    if r.random() < 0.6:
        data["criteria"] = [{"name": "A"}, {"name": "B", "check": "make"}][: r.randrange(3)]
    for name, value in (("auto_loop", False), ("review", True)):
        if r.random() < 0.1:
            data[name] = value
    if r.random() < 0.5:
        data["rules"] = {"prove": r.random() < 0.8, "report_grace": r.randrange(3)}
        for task in data.get("tasks", ()):
            task["checks"] = r.randrange(2)
    return data


def _failure(r: Random, loop: Loop | None) -> Event:
    classes = ("logic", "logic", "logic", "transient", "transient", "blocking", "unknown")
    data = {"error": r.choice(("e1", "e2", "e3", "e4")), "class": r.choice(classes)}
    if r.random() < 0.7:
        data["task"] = r.choice(TASKS)
    done = [it.id for it in loop.tasks.values() if it.status == "complete"] if loop else []
    if done and r.random() < 0.2:
        return {**data, "task": r.choice(done), "repeated": True}
    return data


def _task(r: Random, loop: Loop | None) -> Event:
    statuses = ("running", "running", "complete", "complete", "skipped", "checkpoint", "pending")
    data: Event = {"task": r.choice(TASKS), "status": r.choice(statuses)}
    if data["status"] == "complete" and r.random() < 0.5:
        data["proven"] = True
    if r.random() < 0.25:
        return {**data, **r.choice(REPORTS)}
    if r.random() < 0.2:
        data["phase"] = r.choice(("red", "green", "refactor"))
    if r.random() < 0.2:
        data.update(locked={"a.py": r.choice((None, "d"))}, exit_code=r.randrange(3))
    return data


REPORTS: tuple[Event, ...] = (
    {"status": "reported", "verdict": "complete"},
    {"status": "reported", "verdict": "complete", "summary": "s", "message": "m"},
    {"status": "reported", "verdict": "failed", "error": "e"},
    {"status": "reported", "verdict": "checkpoint", "question": "q"},
    {"status": "reported", "proving": True},
    {"status": "reported", "proof": {"check": "T1#1", "passed": True, "seconds": 100}},
    {"status": "skipped", "request": True, "summary": "why"},
    {"status": "running", "ref": "a-1"},
    {"status": "running", "ended": True},
)


def _plan(r: Random, loop: Loop | None) -> Event:
    if r.random() < 0.1:
        return {"wave": r.randrange(3), "modified": {"a.py": r.choice((None, "d"))}}
    if r.random() < 0.5:
        data: Event = {"digest": "d", "changed": r.random() < 0.5}
        if r.random() < 0.5:
            data["criteria"] = [{"name": "A", "check": "make"}, {"name": "C"}][: r.randrange(3)]
            data["joins"] = r.random() < 0.5
        return data
    tasks = [{"id": r.choice(TASKS), "wave": r.randrange(1, 4)} for _ in range(r.randrange(3))]
    return {"count": r.randrange(6), "tasks": tasks, "sequential": [2]}


def _checkpoint(r: Random, loop: Loop | None) -> Event:
    data: Event = {"name": r.choice("cd"), "commit": "e"}
    if r.random() < 0.5:
        data["reset"] = r.sample(TASKS, r.randrange(len(TASKS)))
    return data


def _criterion(r: Random, loop: Loop | None) -> Event:
    data: Event = {"criterion": r.choice("ABC"), "met": r.random() < 0.7}
    if r.random() < 0.6:
        proof = {"command": r.choice(("make", "other")), "exit_code": r.choice((0, 0, 0, 1))}
        if r.random() < 0.5:
            proof["tree"] = r.choice((None, "t1", "t2"))
        if r.random() < 0.5:
            proof["likeness"] = r.choice(("l1", "l2"))
        data["evidence"] = proof
    return data


def _iteration(r: Random, loop: Loop | None) -> Event:
    data: Event = {"activity": True} if r.random() < 0.3 else {}
    if r.random() < 0.1:
        data["code"] = "review"
    if loop is not None and loop.notes and r.random() < 0.7:
        data["delivered"] = list(loop.notes)[: r.randrange(3)]
    return data


def _resume(r: Random, loop: Loop | None) -> Event:
    add = {r.choice(BOOST): r.randrange(1, 4) for _ in range(r.randrange(1, 3))}
    return {"add": add} if r.random() < 0.5 else {}


def _wait(r: Random, loop: Loop | None) -> Event:
    if r.random() < 0.3:
        about = [("T1", "checkpoint:T1:1"), ("T2", "skip:T2:1"), ("V1", "verdict:V1:1")]
        asked = r.sample(about, r.randrange(1, 4))
        questions = [{"id": name, "about": key, "question": "?"} for name, key in asked]
        return {"for": "human", "question": "Which?", "questions": questions}
    if r.random() < 0.6:
        return {"for": "human", "question": "Which?"}
    return {"for": "throttled", "until": to_iso(NOW)}


def _answer(r: Random, loop: Loop | None) -> Event:
    data: Event = {"text": "yes"}
    if loop is not None and loop.questions and r.random() < 0.8:
        data["question"] = r.choice(list(loop.questions))
    return {**data, "yes": r.random() < 0.7} if r.random() < 0.5 else data


def _verified(r: Random, loop: Loop | None) -> Event:
    data: Event = {"passed": r.random() < 0.6}
    if loop is not None and loop.verdicts and r.random() < 0.5:
        data.update(verdict=r.choice(list(loop.verdicts)), evidence="e")
        return {**data, "agent": r.choice(("a-1", "a-2"))} if r.random() < 0.5 else data
    if r.random() < 0.5:
        data["verdicts"] = [{"id": "V1", "kind": "check"}, {"id": "G1", "kind": "gap"}]
        data["tree"] = r.choice((None, "t1"))
        data["continued"] = r.random() < 0.2
    return data


def _one_of(name: str, *values: Any, **fixed: Any) -> Callable[[Random, Loop | None], Event]:
    return lambda r, loop: {name: r.choice(values), **fixed}


MAKERS: dict[str, Callable[[Random, Loop | None], Event]] = {
    "start": _start, "failure": _failure, "task": _task, "criterion": _criterion, "plan": _plan,
    "iteration": _iteration, "resume": _resume, "wait": _wait, "checkpoint": _checkpoint,
    "gap": _one_of("gap", "G1", "G2", "G3", description="d"),
    "pause": _one_of(
        "code", "manual", "iterations", "rounds", "budget", "minutes", "retries", "stuck"
    ),
    "session": _one_of("action", "bind", "release", "start", "prompt", "prompt", "compact", "end"),
    "review": lambda r, loop: {"blockers": r.randrange(2)} if r.random() < 0.3 else {},
    "verified": _verified,
    "stage": _one_of("stage", "intent", "shape", "decompose", "executing", "review"),
    "score": lambda r, loop: {"spec_score": r.randrange(100)},
    "spend": _one_of("usd", 0.1, 1, 2.5, tokens=10),
    "note": _one_of("kind", "steer", "recall", text="n"),
    "complete": lambda r, loop: {"tree": r.choice((None, "t1", "t2"))} if r.random() < 0.6 else {},
    "mode": _one_of("mode", *MODES),
    "answer": _answer, "cancel": lambda r, loop: {},
    "exit": lambda r, loop: {}, "issue": lambda r, loop: {"text": "i"},
    "stop": lambda r, loop: {"code": "background"},
}  # fmt: skip
# Ends are rare, otherwise stories would be short.
RARE = {"cancel": 0.06, "complete": 0.5, "wait": 0.4, "pause": 0.4}


@cache
def _legal(status: str) -> tuple[str, ...]:
    return tuple(trigger for trigger in TRIGGERS if steps_of(trigger, status))


def _trigger(r: Random, status: str) -> str:
    legal = _legal(status)
    trigger: str = r.choice(legal if legal and r.random() < 0.85 else tuple(TRIGGERS))
    if r.random() > RARE.get(trigger, 1):
        return "task" if status in ("running", "retrying", "fixing") else "note"
    return trigger


def envelope(loops: Loops, now: int, kind: str, *rest: Any) -> Event:
    loop, by, data = rest
    return {
        "v": 1, "seq": loops.seq + 1, "ts": to_iso(now), "loop": loop, "type": kind, "by": by,
        "data": data, "sum": "0" * 16,
    }  # fmt: skip


def random_event(r: Random, loops: Loops, now: int) -> Event:
    """Return an event for these loops, usually one that they accept."""
    if loops.seq == 0:
        return envelope(loops, now, "journal", None, "cli", {"id": "j-chaos"})
    names = list(loops.by_id)
    new = not names or r.random() < 0.05
    name = f"lp-{r.randrange(6)}" if new else r.choice(names)
    loop = loops.by_id.get(name)
    trigger = _trigger(r, loop.status if loop is not None else "idle")
    kind, _, action = trigger.partition(".")
    data = MAKERS[kind](r, loop)
    if action:
        data["action"] = action
    event = envelope(loops, now, kind, name, r.choice(("agent", "human", "hook", "cli")), data)
    if r.random() < 0.4:
        event["session"] = r.choice(("s-1", "s-2", "s-3"))
    if r.random() < 0.04:
        _spoil(r, event)
    return event


def _spoil(r: Random, event: Event) -> None:
    where = r.randrange(4)
    if where == 0:
        event[r.choice(("v", "seq", "ts", "loop", "type", "by", "data", "session"))] = r.choice(ODD)
    elif where == 1 and event["data"]:
        del event["data"][r.choice(list(event["data"]))]
    elif where == 2 and event["data"]:
        event["data"][r.choice(list(event["data"]))] = r.choice(ODD)
    else:
        event["data"]["unknown"] = r.choice(ODD)


def run_random_story(
    r: Random, length: int, look: Callable[[Loops], None] | None = None
) -> tuple[Loops, list[Event]]:
    """Return loops after random events, and the events that they accepted."""
    loops, taken, now = Loops(), [], NOW
    for _ in range(length):
        event = random_event(r, loops, now)
        now = max(0, now + r.choice(STEPS))
        try:
            apply_new(loops, event)
        except (GsdError, ValueError):
            continue
        taken.append(event)
        if look is not None:
            look(loops)
    return loops, taken
