"""The table of statuses: every row, every refusal, and the graph as a whole."""

from __future__ import annotations

import pytest

from gsd_fsm.core.loop.fold import TRIGGERS, steps_of
from gsd_fsm.core.loop.state import ACTIVE, FINAL, LIVE, STATUSES
from gsd_fsm.history.machine import MachineLoops
from tests.support.story import PAYLOADS, Story, brought_to

ROWS = [
    (trigger, source, dest, when)
    for trigger in TRIGGERS
    for source in STATUSES
    for when, _, dest in steps_of(trigger, source)
]

# The contract, written down a second time: trigger -> source -> destination of the payload above.
SAME_ACTIVE = {status: status for status in ACTIVE}
SAME_LIVE = {status: status for status in LIVE}
CONTRACT = {
    "start": {"idle": "running"},
    "iteration": SAME_ACTIVE,
    "failure": dict.fromkeys(ACTIVE, "retrying"),
    "task": SAME_ACTIVE,  # T1 stays failed, so a retrying loop stays so
    "gap.found": dict.fromkeys(ACTIVE, "fixing"),
    "gap.reopened": dict.fromkeys(ACTIVE, "fixing"),
    "gap.closed": dict.fromkeys(ACTIVE, "running"),
    "review.begun": {"running": "reviewing", "fixing": "reviewing"},
    "review.passed": {"reviewing": "running"},
    "review.failed": {"reviewing": "fixing"},
    "wait": dict.fromkeys(ACTIVE, "waiting"),
    "answer": {"waiting": "running"},
    "resume": {**SAME_ACTIVE, "waiting": "running", "paused": "running"},
    "pause": dict.fromkeys((*ACTIVE, "waiting"), "paused"),
    "complete": dict.fromkeys((*ACTIVE, "paused"), "completed"),
    "cancel": dict.fromkeys(LIVE, "cancelled"),
    **dict.fromkeys(
        (
            "session", "criterion", "verified", "exit", "review.light", "stage", "score", "plan",
            "mode", "spend", "note", "issue", "stop", "checkpoint",
        ),
        SAME_LIVE,
    ),
}  # fmt: skip


def prepared(trigger: str, status: str) -> Story:
    """Return a loop in this status in which only the status can refuse the trigger."""
    if status == "idle":
        return Story()
    is_complete = trigger == "complete" or status == "completed"
    if is_complete:
        story = Story("execute", tasks=[{"id": "T1"}], rules={})
        story.task("T1", "skipped")
    else:
        tasks = [{"id": "T1"}, {"id": "T2"}]
        story = Story("goal", criteria=[{"name": "C"}], tasks=tasks)
        if trigger in ("criterion", "exit"):
            story("criterion", criterion="C", met=True)
        if trigger == "gap.reopened":
            story.gap("G0")
            story.gap("G0", "closed")
    if trigger == "gap.closed" or status == "fixing":
        story.gap("G1")
    if status != "fixing" and story.status == "fixing":
        # A review that passes leaves the gap open and the loop running.
        story("review", action="begun")
        story("review", action="passed")
    if status == "retrying":
        story.fail(None if is_complete else "T1")
    if (trigger, status) == ("complete", "paused"):
        story("pause", code="iterations")
        return story
    return brought_to(status, story)


def test_contract_lists_every_trigger() -> None:
    assert set(CONTRACT) == set(TRIGGERS) == set(PAYLOADS)
    contract = {trigger: set(sources) for trigger, sources in CONTRACT.items()}
    contract["task"] = set(LIVE)  # in waiting and paused only a report
    assert contract == {
        trigger: {source for name, source, *_ in ROWS if name == trigger} for trigger in TRIGGERS
    }


NEXT_COMMANDS = {
    "waiting": "answer TEXT",
    "paused": "resume",
    **dict.fromkeys(FINAL, "start --help"),
}


@pytest.mark.parametrize("trigger", CONTRACT)
def test_trigger_follows_contract_or_is_refused(trigger: str) -> None:
    kind = trigger.split(".", maxsplit=1)[0]
    for status in STATUSES:
        story = prepared(trigger, status)
        target = CONTRACT[trigger].get(status)
        if target is not None:
            assert story(kind, **PAYLOADS[trigger]).status == target, status
            continue
        refusal = story.refused(kind, **PAYLOADS[trigger])
        if kind == "start":
            assert "cannot run 'start'" in refusal.message
        elif status == "idle":
            assert "no such loop: lp-1" in refusal.message
        else:
            assert status in refusal.message
            can_begin_review = kind == "review" and status in CONTRACT["review.begun"]
            command = "review begun" if can_begin_review else NEXT_COMMANDS.get(status, "next")
            assert refusal.hint == f"Run: gsd-fsm {command}"


def test_last_arrow_of_trigger_is_unconditional() -> None:
    for trigger in TRIGGERS:
        for source in STATUSES:
            conditions = [when for when, _, _ in steps_of(trigger, source)]
            if trigger == "task" and source not in ACTIVE:
                assert [when and when.__name__ for when in conditions] in ([], ["is_report"])
            elif conditions:
                last = getattr(conditions[-1], "__name__", None)
                allowed = "paused_by_limit" if trigger == "complete" else "came_from"
                assert last is None or (last, source) in ((allowed, "paused"), (allowed, "waiting"))
                assert None not in conditions[:-1]


def test_report_of_task_keeps_the_status_of_every_live_loop() -> None:
    for status in STATUSES:
        story = prepared("note", status)
        if status in LIVE:
            assert story.task("T2", "reported", verdict="complete").status == status
        else:
            story.refused("task", task="T2", status="reported", verdict="complete")


def test_machine_has_the_transitions_of_the_table() -> None:
    machine = MachineLoops().machine
    assert set(machine.events) == set(TRIGGERS)
    arrows = [(name, t.source, t.dest) for name in TRIGGERS for t in machine.get_transitions(name)]
    assert sorted(arrows) == sorted((name, a, b) for name, a, b, _ in ROWS)
    for status in STATUSES:
        possible = [trigger for trigger in TRIGGERS if steps_of(trigger, status)]
        assert sorted(machine.get_triggers(status)) == sorted(possible)
