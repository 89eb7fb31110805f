"""List every event type, derive the transition table, and fold events into the state of all loops.

The fold knows the schema, the transition table and which ids exist. It has no rules: those were
checked when an event was appended.
"""

from __future__ import annotations

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.errors import GsdError, Newer, Refused
from gsd_fsm.core.loop.events.gaps import GAP, VERIFIED
from gsd_fsm.core.loop.events.goals import CRITERION, EXIT, REVIEW, SCORE, STAGE
from gsd_fsm.core.loop.events.lifecycle import (
    CANCEL,
    COMPLETE,
    ITERATION,
    PAUSE,
    RESUME,
    START,
    STOP,
    record_answer,
)
from gsd_fsm.core.loop.events.notes import CHECKPOINT, ISSUE, MODE, NOTE, PLAN, SPEND
from gsd_fsm.core.loop.events.sessions import ANSWER, SESSION, WAIT, clear_human_prompt
from gsd_fsm.core.loop.events.tasks import FAILURE, TASK
from gsd_fsm.core.loop.schema import (
    BACK,
    COUNT,
    ID,
    OF_THE_JOURNAL,
    SAME,
    TEXTS,
    EventType,
    check_event,
)
from gsd_fsm.core.loop.state import ACTIVE, FINAL, LIVE, MAX_HISTORY, Loop
from gsd_fsm.core.loop.waves import lay_waves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from gsd_fsm.core.loop.payloads import Event
    from gsd_fsm.core.loop.schema import Apply, Arrow, Trigger, When
    from gsd_fsm.core.loop.state import Status

    Step = tuple[Optional[When], Apply, Status]

# What this code makes of events; a snapshot of another fold is not used.
FOLD_VERSION = 17

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
EVENTS: dict[str, EventType] = {
    declared.name: declared
    for declared in (
        JOURNAL, REPAIR, START, ITERATION, FAILURE, TASK, GAP, REVIEW, WAIT, ANSWER, RESUME, PAUSE,
        COMPLETE, CANCEL, SESSION, CRITERION, VERIFIED, EXIT, STAGE, SCORE, PLAN, MODE, SPEND,
        NOTE, ISSUE, STOP, CHECKPOINT,
    )
}  # fmt: skip
_OF_LOOPS = frozenset(EVENTS) - frozenset(OF_THE_JOURNAL)
_ALIVE = frozenset(("agent", "human"))
# Types with several triggers: the `action` in the payload selects one.
_WITH_ACTIONS = frozenset(name for name, declared in EVENTS.items() if declared.has_actions)
# trigger -> its declaration, for its rules and its command
TRIGGERS: dict[str, Trigger] = {
    declared.trigger_name(trigger): trigger
    for declared in EVENTS.values()
    for trigger in declared.triggers
}
# Where a loop may return to, by the status it returns from.
RETURNS: dict[Status, tuple[Status, ...]] = {"waiting": ACTIVE, "paused": (*ACTIVE, "waiting")}


# the transition table


# (trigger, status) -> the steps to try, in order. Filled as they are met: most processes meet few.
_steps: dict[tuple[str, Status], tuple[Step, ...]] = {}


def trigger_of(event: Event[Any]) -> str:
    """Return the row of the table that this event is about."""
    kind = event["type"]
    return "%s.%s" % (kind, event["data"]["action"]) if kind in _WITH_ACTIONS else kind


def steps_of(trigger: str, source: Status) -> tuple[Step, ...]:
    """Return the steps of a trigger from this status; none if the table does not allow it."""
    steps = _steps.get((trigger, source))
    if steps is None:
        steps = _steps[trigger, source] = tuple(
            step
            for arrow in TRIGGERS[trigger].arrows
            if source in arrow.sources
            for step in _steps_along(arrow, source)
        )
    return steps


def _steps_along(arrow: Arrow, source: Status) -> list[Step]:
    if arrow.dest == BACK:
        return [(_came_from(origin), arrow.apply, origin) for origin in RETURNS[source]]
    dest = source if arrow.dest == SAME else arrow.dest
    return [(arrow.when, arrow.apply, dest)]


def _came_from(origin: Status) -> When:
    def came_from(loop: Loop, _event: Event[Any]) -> bool:
        return (loop.before_wait if loop.status == "waiting" else loop.before_pause) == origin

    return came_from


# the fold


class Loops:
    """The loops of one journal after its first `seq` events.

    Of the ended loops only the last is held, and the one named `keep`: a long journal stays small.
    """

    def __init__(self, keep: str | None = None) -> None:
        self.keep = keep
        self.journal_id = ""
        self.seq = 0
        self.ts = ""
        # How often the clock went back, and how often the journal was repaired.
        self.backwards = 0
        self.repairs = 0
        self.by_id: dict[str, Loop] = {}
        self._last_ended = ""
        # The ids of ended loops that are no longer held. Those of a snapshot stay one text until
        # somebody asks: there may be thousands, and a stop needs none of them.
        self._ended: dict[str, None] = {}
        self._ended_before = b""

    def apply(self, event: Event[Any]) -> None:
        """Fold an event of a journal: check its payload, but no rules."""
        check_event(event, EVENTS)
        self.fold(event)
        self.settle(event["loop"])

    def check_rules(self, event: Event[Any]) -> None:
        """Raise Refused if the table or a rule forbids this event now."""
        kind = event["type"]
        if kind not in _OF_LOOPS:
            return
        loop = self.by_id.get(event["loop"] or "")
        if loop is None:
            loop = self._new_loop(event["loop"] or "", kind)
        trigger = trigger_of(event)
        for when, _, _ in steps_of(trigger, loop.status):
            if when is None or when(loop, event):
                break
        else:
            raise not_possible(loop, trigger)
        for rule in TRIGGERS[trigger].rules:
            rule(loop, event, self)

    def fold(self, event: Event[Any]) -> None:
        """Fold one event that passed `check_event`; raise and change nothing if it cannot follow.

        Raises Refused if the table or a missing id forbids it, ValueError if it is out of order.
        Call `settle` before the state is read.
        """
        seq = self.seq + 1
        if event["seq"] != seq:
            raise ValueError("expected seq %d, got %d" % (seq, event["seq"]))
        kind = event["type"]
        ts = event["ts"]
        if kind in _OF_LOOPS and seq > 1:
            loop = self.by_id.get(event["loop"] or "")
            if loop is None:
                loop = self._new_loop(event["loop"] or "", kind)
            source = loop.status
            self._step(loop, event)
            if source == "idle":
                self.by_id[loop.id] = loop
            if loop.status != source or ts < loop.last_event:
                self._account(loop, ts, source)
            loop.last_event = ts
            loop.last_seq = seq
            if event["by"] in _ALIVE:
                loop.idle = 0
            elif "signal" in event["data"] and kind != "session":
                record_answer(loop, event)
        else:
            self._fold_own(kind, event)
        if ts < self.ts:
            self.backwards += 1
        self.ts = ts
        self.seq = seq

    def settle(self, loop_id: str | None = None) -> None:
        """Compute what the fold left for later because nobody reads it between two events.

        `loop_id`: only of this loop.
        """
        loops = self.by_id.values() if loop_id is None else (self.by_id.get(loop_id),)
        for loop in loops:
            if loop is not None and loop.waves_due:
                lay_waves(loop)

    def restore(self, by_id: dict[str, Loop], ended_ids: bytes) -> None:
        """Take over the loops of a snapshot, and the ids of those that are no longer held."""
        self.by_id = by_id
        self._ended_before = ended_ids
        ended = [loop for loop in by_id.values() if loop.status in FINAL]
        for loop in sorted(ended, key=lambda loop: loop.last_seq):
            self._hold_last_ended(loop.id)

    def live(self) -> list[Loop]:
        return [loop for loop in self.by_id.values() if loop.status in LIVE]

    def last_ended(self) -> Loop | None:
        """Return the loop that ended last."""
        return self.by_id.get(self._last_ended)

    def _step(self, loop: Loop, event: Event[Any]) -> None:
        trigger = event["type"]  # trigger_of(), inlined: a long journal comes here a million times
        if trigger in _WITH_ACTIONS:
            trigger = trigger_of(event)
        source = loop.status
        steps = _steps.get((trigger, source))
        if steps is None:
            steps = steps_of(trigger, source)
        for when, apply, dest in steps:
            if when is None or when(loop, event):
                apply(loop, event)
                if dest != source:
                    change_status(loop, event, dest)
                return
        raise not_possible(loop, trigger)

    def _fold_own(self, kind: str, event: Event[Any]) -> None:
        """Fold an event about the journal itself, or one that this version may ignore."""
        if (kind == "journal") is not (self.seq == 0):
            raise ValueError(
                "a journal event must be the first event, and the only one of its type"
            )
        if kind == "journal":
            unknown = event["data"].get("incompat", ())
            if unknown:
                raise Newer("the journal uses unsupported features: %s" % ", ".join(unknown))
            self.journal_id = event["data"]["id"]
        elif kind == "repair":
            self.repairs += 1

    def _new_loop(self, loop_id: str, kind: str) -> Loop:
        """Return an idle loop for a `start`; raise Refused for any other event."""
        if self.has_dropped(loop_id):
            if kind == "start":
                raise Refused("loop %s already exists" % loop_id)
            raise Refused("loop %s has ended" % loop_id, "It is final. Run: gsd-fsm start --help")
        if kind != "start":
            raise Refused("no such loop: %s" % loop_id, "Run: gsd-fsm ps")
        return Loop(loop_id)

    def _account(self, loop: Loop, ts: str, source: Status) -> None:
        """Add up the active time when the status changes or the clock goes back."""
        if loop.active_since is not None:
            if ts < loop.last_event:
                # The clock went back: count the stretch so far, and begin a new one.
                loop.active_ms += ms_of(loop.last_event) - ms_of(loop.active_since)
                loop.active_since = ts
            if loop.status not in ACTIVE:
                loop.active_ms += ms_of(ts) - ms_of(loop.active_since)
                loop.active_since = None
        elif loop.status in ACTIVE:
            loop.active_since = ts
        if loop.status in FINAL and loop.status != source:
            self._hold_last_ended(loop.id)

    def _hold_last_ended(self, loop_id: str) -> None:
        """Drop the loop that ended before this one."""
        before, self._last_ended = self._last_ended, loop_id
        if before and before != self.keep:
            del self.by_id[before]
            self._ended[before] = None

    def has_dropped(self, loop_id: str) -> bool:
        """Return whether this loop has ended and is no longer held."""
        if self._ended_before:
            self._ended = dict.fromkeys([*self._ended_before.decode("ascii").split(), *self._ended])
            self._ended_before = b""
        return loop_id in self._ended

    def ended_ids(self) -> bytes:
        """Return the ids of ended loops that are no longer held, in the order in which they ended."""
        new = " ".join(self._ended).encode("ascii")
        return b" ".join(filter(None, (self._ended_before, new)))


def change_status(loop: Loop, event: Event[Any], dest: Status) -> None:
    """Go to another status, and add it to the history."""
    source = loop.status
    if dest == "paused":
        loop.before_pause = source
        clear_human_prompt(loop)
    loop.status = dest
    data = event["data"]
    about = data.get("task") or data.get("gap") or loop.pause_code or ""
    loop.history.append([event["seq"], event["ts"], source, dest, event["type"], about])
    if len(loop.history) > MAX_HISTORY:
        del loop.history[0]


class NotPossible(Refused):
    """The transition table has no row for this event in the status of the loop."""


def not_possible(loop: Loop, trigger: str) -> NotPossible:
    """Return the refusal of an event that the table does not allow in this status."""
    if not loop.is_live:
        hint = "Run: gsd-fsm start --help"
    elif loop.status == "waiting" and loop.wait_for == "human":
        hint = "Run: gsd-fsm answer TEXT"
    elif trigger.startswith("review.") and steps_of("review.begun", loop.status):
        hint = "Run: gsd-fsm review begun"
    elif loop.is_active:
        hint = "Run: gsd-fsm next"
    else:
        hint = "Run: gsd-fsm resume"
    verb = TRIGGERS[trigger].verb or trigger
    return NotPossible("cannot run '%s': loop %s is %s" % (verb, loop.id, loop.status), hint)


def findings_of(loops: Loops, event: Event[Any]) -> str:
    """Return why today's rules would refuse this event, "" if they would not."""
    try:
        loops.check_rules(event)
    except (GsdError, ValueError) as refusal:
        return str(refusal)
    return ""
