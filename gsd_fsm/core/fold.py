"""Events to state: pure, total, in order. The same events always give the same world."""

from __future__ import annotations

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.errors import Newer, Refused
from gsd_fsm.core.events import check_event
from gsd_fsm.core.flow import fact_said
from gsd_fsm.core.loop import Loop
from gsd_fsm.core.payloads import PAYLOADS
from gsd_fsm.core.rules import COMPOUND, PLANS, arrive, illegal, trigger_of
from gsd_fsm.core.table import ACTIVE, FINAL, LIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Event = dict[str, Any]

# What this code makes of events; a snapshot of another fold is not used.
FOLD_VERSION = 6
# Events that concern only the loop they name.
_ORDINARY = frozenset(PAYLOADS) - {"journal", "repair", "start", "resume", "session"}
_ALIVE = frozenset(("agent", "human"))


class World:
    """The loops of one journal after some number of its events.

    Of the ended loops only the last is held, and the one named `keep`: a long journal stays small.
    """

    def __init__(self, keep: str | None = None) -> None:
        self.keep = keep
        self.journal = ""
        self.seq = 0
        self.ts = ""
        self.backwards = 0
        self.repairs = 0
        self.loops: dict[str, Loop] = {}
        self.ended: dict[str, None] = {}

    def apply(self, event: Event) -> None:
        """Check and fold one event; ValueError or Refused leaves the world as it was."""
        check_event(event)
        self.fold(event)

    def fold(self, event: Event) -> None:
        """Fold one event that is known to be well-formed."""
        seq = self.seq + 1
        if event["seq"] != seq:
            raise ValueError("seq %d is due" % seq)
        kind = event["type"]
        ts = event["ts"]
        loop = self.loops.get(event["loop"])
        if loop is None or kind not in _ORDINARY:
            self._fold_worldly(kind, event)
        else:
            source = loop.status
            self.step(loop, event)
            if loop.status != source or ts < loop.last_event:
                self._account(loop, ts, source)
            loop.last_event = ts
            loop.last_seq = seq
            if event["by"] in _ALIVE:
                loop.idle = 0
            elif "signal" in event["data"]:
                fact_said(loop, event)
        if ts < self.ts:
            self.backwards += 1
        self.ts = ts
        self.seq = seq

    def _fold_worldly(self, kind: str, event: Event) -> None:
        """Events about the journal, about loops that are not there, and about owners."""
        if (kind == "journal") is not (self.seq == 0):
            raise ValueError("a journal event is the first, and only the first")
        if kind == "journal":
            self._open(event["data"])
        elif kind == "repair":
            self.repairs += 1
        elif kind in PAYLOADS:
            self._fold_with_owner(kind, event)

    def _open(self, data: dict[str, Any]) -> None:
        unknown = data.get("incompat", ())
        if unknown:
            raise Newer("the journal needs %s" % ", ".join(unknown))
        self.journal = data["id"]

    def _fold_with_owner(self, kind: str, event: Event) -> None:
        loop_id = event["loop"]
        loop = self.loops.get(loop_id)
        if kind == "start":
            if loop is not None or loop_id in self.ended:
                raise Refused("loop %s exists already" % loop_id)
            self._check_owner(event, "")
            loop = Loop()
        elif loop is None:
            if loop_id in self.ended:
                raise Refused("loop %s has ended" % loop_id, "it is final")
            raise Refused("there is no loop %s" % loop_id)
        elif kind == "resume":
            self._check_owner(event, loop_id)
        elif kind == "session":
            self._check_binding(event, loop_id)
        source = loop.status
        self.step(loop, event)
        if kind == "start":
            self.loops[loop_id] = loop
        self._account(loop, event["ts"], source)
        loop.last_event = event["ts"]
        loop.last_seq = event["seq"]
        if event["by"] in _ALIVE:
            loop.idle = 0

    def _let_go(self, last: str) -> None:
        for loop_id, loop in list(self.loops.items()):
            if loop.status in FINAL and loop_id not in (last, self.keep):
                del self.loops[loop_id]
                self.ended[loop_id] = None

    def step(self, loop: Loop, event: Event) -> None:
        """One arrow of the table."""
        trigger = event["type"]
        if trigger in COMPOUND:
            trigger = trigger_of(event)
        source = loop.status
        plan = PLANS[trigger].get(source)
        if plan is None:
            raise illegal(loop, trigger)
        check, choices, fact, dest = plan
        if check is not None:
            check(loop, event)
        if choices is not None:
            for condition, dest in choices:  # noqa: B007 - the one that holds is used below
                if condition is None or condition(loop, event):
                    break
            else:
                raise illegal(loop, trigger)
        fact(loop, event)
        if dest != source:
            arrive(loop, event, source, dest)

    def _account(self, loop: Loop, ts: str, source: str) -> None:
        """Keep the active time when the status changes or the clock goes back."""
        if loop.active_since is not None:
            if ts < loop.last_event:
                # The clock went back: the stretch so far counts, and a new one begins.
                loop.active_ms += ms_of(loop.last_event) - ms_of(loop.active_since)
                loop.active_since = ts
            if loop.status not in ACTIVE:
                loop.active_ms += ms_of(ts) - ms_of(loop.active_since)
                loop.active_since = None
        elif loop.status in ACTIVE:
            loop.active_since = ts
        if loop.status in FINAL and loop.status != source:
            self._let_go(loop.id)

    def _check_owner(self, event: Event, this: str) -> None:
        """A session owns at most one live loop; at most one live loop is unowned."""
        session = event.get("session")
        for other in self.live():
            if other.owner == session and other.id != this:
                whose = (
                    "belongs to this session already" if session else "belongs to no session yet"
                )
                raise Refused(
                    "live loop %s (%s) %s" % (other.id, other.status, whose),
                    "gsd-fsm --loop %s status · gsd-fsm --loop %s resume · "
                    "'start … --fresh' cancels it" % (other.id, other.id),
                )

    def _check_binding(self, event: Event, loop_id: str) -> None:
        action = event["data"]["action"]
        if action == "bind":
            if not event.get("session"):
                raise ValueError("session.bind without session")
            self._check_owner(event, loop_id)
        elif action == "release":
            self._check_owner({"session": None}, loop_id)

    def live(self) -> list[Loop]:
        return [loop for loop in self.loops.values() if loop.status in LIVE]

    def last_ended(self) -> Loop | None:
        """The loop that ended last."""
        ended = [loop for loop in self.loops.values() if loop.status in FINAL]
        return max(ended, key=lambda loop: loop.last_seq, default=None)
