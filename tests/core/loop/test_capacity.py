"""A loop holds only so much: a command beyond a limit is refused, a journal beyond it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gsd_fsm.core.loop import limits as capacity
from tests.support.story import Story


def _tasks(count: int) -> list[dict[str, Any]]:
    return [{"id": f"T{number}"} for number in range(count)]


def _criteria(count: int) -> list[dict[str, Any]]:
    return [{"name": f"c{number}"} for number in range(count)]


def _depending(count: int, each: int) -> list[dict[str, Any]]:
    names = [f"T{number}" for number in range(each)]
    return [*_tasks(each), *({"id": f"D{number}", "depends": names} for number in range(count))]


# limit -> its value here, how a loop is filled up to it, the event beyond it, and its name in words
Case = tuple[int, Callable[[], Story], dict[str, Any], str]
PENDING = {"kind": "task", "task": "new", "status": "pending"}
CASES: dict[str, Case] = {
    "MOST_TASKS": (3, lambda: Story("goal", tasks=_tasks(3)), PENDING, "3 tasks"),
    "MOST_TASKS by a plan": (
        3,
        lambda: Story("goal", tasks=_tasks(3)),
        {"kind": "plan", "tasks": [{"id": "T1"}, {"id": "new"}]},
        "3 tasks",
    ),
    "MOST_TASKS by a failure": (
        3,
        lambda: Story("goal", tasks=_tasks(3)),
        {"kind": "failure", "task": "new", "error": "e", "class_": "logic"},
        "3 tasks",
    ),
    "MOST_DEPENDENCIES": (
        2,
        lambda: Story("goal", tasks=_depending(1, 2)),
        {"kind": "task", "task": "D0", "status": "pending", "depends": ["x"]},
        "2 dependencies of one task, and task D0 has more",
    ),
    "MOST_DEPENDENCIES by a plan": (
        2,
        lambda: Story("goal", tasks=_tasks(3)),
        {"kind": "plan", "tasks": [{"id": "new", "depends": ["T0", "T1", "T2"]}]},
        "2 dependencies of one task, and task new has more",
    ),
    "MOST_DEPENDENCIES_IN_ALL": (
        4,
        lambda: Story("goal", tasks=_depending(2, 2)),
        {**PENDING, "depends": ["T0"]},
        "4 dependencies in all",
    ),
    "MOST_DEPENDENCIES_IN_ALL by a plan": (
        4,
        lambda: Story("goal", tasks=_depending(2, 2)),
        {"kind": "plan", "tasks": [{"id": "new", "depends": ["T0"]}]},
        "4 dependencies in all",
    ),
    "MOST_CRITERIA": (
        2,
        lambda: Story("goal", criteria=_criteria(2)),
        {"kind": "plan", "criteria": [{"name": "c0"}, {"name": "new"}]},
        "2 criteria",
    ),
    "MOST_MUST_NOTS": (
        1,
        lambda: Story("goal", must_not=["break it"]),
        {"kind": "plan", "must_not": ["break it", "new"]},
        "1 must-nots",
    ),
    "MOST_GAPS": (
        1,
        lambda: _after(Story("verify"), {"kind": "gap", "action": "found", "gap": "G1"}),
        {"kind": "gap", "action": "found", "gap": "new"},
        "1 gaps",
    ),
    "MOST_NOTES": (
        1,
        lambda: _after(Story("goal"), {"kind": "note", "text": "first"}),
        {"kind": "note", "text": "second"},
        "1 undelivered notes",
    ),
    "MOST_REVIEWS": (
        1,
        lambda: _after(Story("goal"), {"kind": "review", "action": "light", "wave": 1}),
        {"kind": "review", "action": "light", "wave": 2},
        "1 reviews",
    ),
    "MOST_CHECKPOINTS": (
        1,
        lambda: _after(Story("goal"), {"kind": "checkpoint", "name": "a"}),
        {"kind": "checkpoint", "name": "b"},
        "1 checkpoints",
    ),
}


def _after(story: Story, event: dict[str, Any]) -> Story:
    _append(story, event)
    return story


def _append(story: Story, event: dict[str, Any]) -> None:
    words = {name: value for name, value in event.items() if name != "kind"}
    story(event["kind"], **words)


@pytest.mark.parametrize("case", CASES)
def test_append_beyond_capacity_is_refused_but_journal_is_read(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    most, fill, event, named = CASES[case]
    monkeypatch.setattr(capacity, case.split(" ", 1)[0], most)
    story = fill()
    words = {name: value for name, value in event.items() if name != "kind"}
    refusal = story.refused(event["kind"], **words)
    assert str(refusal) == f"loop lp-1 may have at most {named}"
    assert refusal.hint.endswith(".")
    story.obeys_rules = False
    _append(story, event)


def test_capacity_ignores_known_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("MOST_TASKS", 2), ("MOST_CRITERIA", 1), ("MOST_GAPS", 1)):
        monkeypatch.setattr(capacity, name, most)
    for name in ("MOST_REVIEWS", "MOST_CHECKPOINTS"):
        monkeypatch.setattr(capacity, name, 1)
    story = Story("goal", tasks=_tasks(2), criteria=_criteria(1))
    story("plan", tasks=_tasks(2), criteria=_criteria(1))
    story.task("T1", "running")
    story("failure", task="T1", error="e", class_="logic")
    story("failure", error="of the loop itself", class_="logic")
    for _ in range(2):
        story("checkpoint", name="a")
        story("review", action="light", wave=1)
        story.gap("G1", "found")


def test_replaced_plan_counts_dependencies_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "MOST_DEPENDENCIES_IN_ALL", 4)
    story = Story("goal", tasks=_depending(2, 2))
    story("plan", tasks=_depending(2, 2))
    story("checkpoint", name="a", reset=["D0"])
    story("plan", tasks=[{"id": "D0"}])
    story.task("new", "pending", depends=["T0", "T1"])
    story.refused("task", task="D0", status="pending", depends=["T0"])


def test_delivered_notes_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "MOST_NOTES", 1)
    story = Story("goal")
    story("note", text="first")
    story("note", text="a lesson", kind="recall")
    story("iteration", delivered=list(story.loop.notes), _by="hook")
    story("note", text="second")


def test_start_beyond_capacity_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "MOST_TASKS", 2)
    monkeypatch.setattr(capacity, "MOST_LIVE_LOOPS", 1)
    story = Story()
    start = {"kind": "goal", "mode": "yolo", "limits": {}}
    refusal = story.refused("start", **start, tasks=_tasks(3))
    assert str(refusal) == "loop lp-1 may have at most 2 tasks"
    story("start", **start, tasks=_tasks(2))
    refusal = story.refused("start", **start, _loop="lp-2", _session="other")
    assert str(refusal) == "the journal already has 1 live loops"
