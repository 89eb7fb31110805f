"""List every event type, and derive the transition table from the list."""

from __future__ import annotations

from gsd_fsm.core.loop.events.criteria import CRITERION, EXIT, REVIEW
from gsd_fsm.core.loop.events.gaps import GAP, VERIFIED
from gsd_fsm.core.loop.events.goals import SCORE, STAGE
from gsd_fsm.core.loop.events.lifecycle import (
    CANCEL,
    COMPLETE,
    ITERATION,
    PAUSE,
    RESUME,
    START,
    STOP,
)
from gsd_fsm.core.loop.events.notes import CHECKPOINT, ISSUE, MODE, NOTE, PLAN, SPEND
from gsd_fsm.core.loop.events.sessions import SESSION
from gsd_fsm.core.loop.events.tasks import FAILURE, TASK
from gsd_fsm.core.loop.events.waits import ANSWER, WAIT
from gsd_fsm.core.loop.schema import BACK, COUNT, ID, SAME, TEXTS, EventType
from gsd_fsm.core.loop.state import ACTIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from gsd_fsm.core.loop.payloads import Event
    from gsd_fsm.core.loop.schema import Apply, Arrow, Trigger, When
    from gsd_fsm.core.loop.state import Loop, Status

    Step = tuple[Optional[When], Apply, Status]

JOURNAL = EventType(
    "journal",
    required={"id": ID},
    optional={"incompat": TEXTS, "compat": TEXTS},
    text="{id}",
)
REPAIR = EventType(
    "repair",
    required={"bytes": COUNT},
    optional={"aside": str, "what": str},
    text="{bytes}[ {aside}][ {what}]",
)
# Events about the journal itself, outside of every loop.
OF_THE_JOURNAL = ("journal", "repair")

EVENTS: dict[str, EventType] = {
    declared.name: declared
    for declared in (
        JOURNAL, REPAIR, START, ITERATION, FAILURE, TASK, GAP, REVIEW, WAIT, ANSWER, RESUME, PAUSE,
        COMPLETE, CANCEL, SESSION, CRITERION, VERIFIED, EXIT, STAGE, SCORE, PLAN, MODE, SPEND,
        NOTE, ISSUE, STOP, CHECKPOINT,
    )
}  # fmt: skip
# Types with several triggers: the `action` in the payload selects one.
WITH_ACTIONS = frozenset(name for name, declared in EVENTS.items() if declared.has_actions)
# trigger -> its declaration, for its rules and its command
TRIGGERS: dict[str, Trigger] = {
    declared.trigger_name(trigger): trigger
    for declared in EVENTS.values()
    for trigger in declared.triggers
}
# Where a loop may return to, by the status it returns from.
RETURNS: dict[Status, tuple[Status, ...]] = {"waiting": ACTIVE, "paused": (*ACTIVE, "waiting")}

# (trigger, status) -> the steps to try, in order. Filled as they are met: most processes meet few.
STEPS: dict[tuple[str, Status], tuple[Step, ...]] = {}


def trigger_of(event: Event[Any]) -> str:
    """Return the row of the table that this event is about."""
    kind = event["type"]
    return "%s.%s" % (kind, event["data"]["action"]) if kind in WITH_ACTIONS else kind


def steps_of(trigger: str, source: Status) -> tuple[Step, ...]:
    """Return the steps of a trigger from this status; none if the table does not allow it."""
    steps = STEPS.get((trigger, source))
    if steps is None:
        steps = STEPS[trigger, source] = tuple(
            step
            for arrow in TRIGGERS[trigger].arrows
            if source in arrow.sources
            for step in _steps(arrow, source)
        )
    return steps


def _steps(arrow: Arrow, source: Status) -> list[Step]:
    if arrow.dest == BACK:
        return [(CAME_FROM[origin], arrow.apply, origin) for origin in RETURNS[source]]
    dest = source if arrow.dest == SAME else arrow.dest
    return [(arrow.when, arrow.apply, dest)]


def _came_from(origin: Status) -> When:
    def came_from(loop: Loop, _event: Event[Any]) -> bool:
        return (loop.before_wait if loop.status == "waiting" else loop.before_pause) == origin

    return came_from


CAME_FROM: dict[Status, When] = {origin: _came_from(origin) for origin in (*ACTIVE, "waiting")}


def possible_triggers(status: Status) -> list[str]:
    """Return the triggers that the table allows in this status, in its order."""
    return [trigger for trigger in TRIGGERS if steps_of(trigger, status)]


def possible_verbs(status: Status) -> list[str]:
    """Return the commands that the table allows in this status."""
    verbs = [TRIGGERS[trigger].verb for trigger in possible_triggers(status)]
    return [verb for verb in verbs if verb]
