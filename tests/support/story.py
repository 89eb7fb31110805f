"""Write journals event by event, without a file, for tests of the core."""

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import GsdError, Refused
from gsd_fsm.core.journal.snapshot import loops_to_dict
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.limits import LimitReached, reached_limit
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.history.iterations import Iteration, Iterations
from tests.support.events import NOW, apply_new

SECOND = 1000
MINUTE = 60 * SECOND


def frozen(loops: Loops) -> str:
    """Return the whole state of these loops as text."""
    return dumps(loops_to_dict(loops)) + loops.ended_ids().decode()


class Story:
    """Events given in words: `story("task", task="T1", status="running", _by="agent")`.

    Names with a leading underscore belong to the envelope; a trailing underscore is removed.
    """

    def __init__(self, kind: str = "", *, loops: Loops | None = None, **start: Any) -> None:
        self.loops = Loops() if loops is None else loops
        self.now = NOW
        self.obeys_rules = True
        self.events: list[dict[str, Any]] = []
        self("journal", id="j-test", _loop=None, _by="cli")
        if kind:
            self("start", kind=kind, **{"mode": "yolo", "limits": {}, **start})

    def event(self, kind: str, /, **words: Any) -> dict[str, Any]:
        data = {name.rstrip("_"): value for name, value in words.items() if name[0] != "_"}
        who = {name: words["_" + name] for name in ("session", "client") if "_" + name in words}
        return {
            "v": 1, "seq": self.loops.seq + 1, "ts": to_iso(self.now), "type": kind,
            "loop": words.get("_loop", "lp-1"), "by": words.get("_by", "human"), **who,
            "data": data, "sum": "0" * 16,
        }  # fmt: skip

    def __call__(self, kind: str, /, **words: Any) -> Loop:
        self.now += words.pop("_after", SECOND)
        event = self.event(kind, **words)
        fold = apply_new if self.obeys_rules else Loops.apply
        fold(self.loops, event)
        self.events.append(event)
        return self.loops.by_id.get(event["loop"], Loop())

    def then(self, *events: tuple[str, dict[str, Any]]) -> Story:
        """Append these events, each a type and its data; return the story."""
        for kind, data in events:
            self(kind, **data)
        return self

    def refused(self, kind: str, /, **words: Any) -> Refused:
        """Require that this event is refused and changes nothing; return the error."""
        refusal = self._error(Refused, kind, **words)
        assert refusal.exit_code == 4
        return refusal

    def invalid(self, kind: str, /, **words: Any) -> str:
        """Require that this event is invalid and changes nothing; return the message."""
        return str(self._error(ValueError, kind, **words))

    def _error(self, error_type: Any, kind: str, /, **words: Any) -> Any:
        before = frozen(self.loops)
        with pytest.raises(error_type) as error:
            self(kind, **words)
        assert frozen(self.loops) == before
        return error.value

    @property
    def loop(self) -> Loop:
        return self.loops.by_id["lp-1"]

    @property
    def status(self) -> str:
        return str(self.loop.status)

    def task(self, name: str, status: str, /, **words: Any) -> Loop:
        return self("task", task=name, status=status, **words)

    def fail(self, name: str | None = None, class_: str = "logic", **words: Any) -> Loop:
        about = {} if name is None else {"task": name}
        return self("failure", **{"error": "it broke", "class": class_, **about, **words})

    def gap(self, name: str, action: str = "found", **words: Any) -> Loop:
        return self("gap", gap=name, action=action, **words)

    def block(self, *, activity: bool = False) -> LimitReached | None:
        """Stop once: append an iteration of the hook, or the pause of a reached limit."""
        spent = reached_limit(self.loop, self.now + SECOND, activity)
        if spent is None:
            self("iteration", activity=activity, _by="hook")
        return spent

    def blocks(self, most: int = 200, **seen: bool) -> tuple[int, str]:
        """Stop until a limit is reached; return the number of blocks and the code."""
        for count in range(most):
            spent = self.block(**seen)
            if spent is not None:
                return count, spent.code
        return most, ""


# the one event that brings an active loop to this status
_STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "reviewing": ("review", {"action": "begun"}),
    "waiting": ("wait", {"for_": "human", "question": "Which?"}),
    "paused": ("pause", {"code": "manual"}),
    "cancelled": ("cancel", {}),
    "completed": ("complete", {}),
}


def brought_to(status: str, story: Story) -> Story:
    """Bring the story to this status, with one more event if needed."""
    if status in _STEPS:
        story.then(_STEPS[status])
    assert story.status == status
    return story


def in_status(status: str, loops: Loops | None = None) -> Story:
    """Return a loop that reached this status in the usual way."""
    if status == "idle":
        return Story(loops=loops)
    story = Story("execute", tasks=[{"id": "T1"}, {"id": "T2"}], loops=loops)
    if status == "retrying":
        story.fail("T1")
    elif status == "fixing":
        story.gap("G1")
    elif status == "completed":
        for name in ("T1", "T2"):
            story.task(name, "skipped")
    return brought_to(status, story)


# one acceptable payload for every trigger
PAYLOADS: dict[str, dict[str, Any]] = {
    "start": {"kind": "execute", "mode": "yolo", "limits": {}},
    "failure": {"error": "it broke", "class": "logic", "task": "T2"},
    "task": {"task": "T2", "status": "running"},
    "gap.found": {"action": "found", "gap": "G2"},
    "gap.reopened": {"action": "reopened", "gap": "G0"},
    "gap.closed": {"action": "closed", "gap": "G1"},
    **{f"review.{action}": {"action": action} for action in ("begun", "passed", "failed")},
    "review.light": {"action": "light", "wave": 1},
    "wait": {"for": "human", "question": "Which?"}, "answer": {"text": "This one."},
    "criterion": {"criterion": "C", "met": True}, "verified": {"passed": True},
    "stage": {"stage": "intent"}, "score": {"spec_score": 90}, "plan": {"digest": "d"},
    "mode": {"mode": "yolo"}, "spend": {"usd": 0.5}, "note": {"text": "Mind the gap."},
    "issue": {"text": "A smell."}, "stop": {"code": "background"}, "pause": {"code": "manual"},
    "checkpoint": {"name": "before"}, "session": {"action": "prompt"},
    **{trigger: {} for trigger in ("iteration", "resume", "complete", "cancel", "exit")},
}  # fmt: skip


def error_of(action: Any, *args: Any) -> str:
    """Return the kind of the error, "" if there was none."""
    try:
        action(*args)
    except GsdError as error:
        return type(error).__name__ + ": " + error.message + " → " + error.hint
    except ValueError as error:
        return "ValueError: " + str(error)
    return ""


def grouped(story: Story, *, every: bool = False) -> list[Iteration]:
    """Return the iterations of this story in the order in which they end."""
    loops, found = Loops(), list[Iteration]()
    group = Iterations(found.append, every=every)
    for event in story.events:
        before = loops.by_id.get(event["loop"])
        source = before.status if before else ""
        loops.fold(event)
        group.see(event, source, loops)
    group.finish()
    return found
