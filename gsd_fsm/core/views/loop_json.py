"""What a goal loop shows in `.loop/`: one file for each view, as other programs read them."""

from __future__ import annotations

from gsd_fsm.core.codec import dumps, quote
from gsd_fsm.core.loop.state import FINAL, LIVE, kept_name, open_tasks
from gsd_fsm.core.text.progress import progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.records import Task
    from gsd_fsm.core.loop.state import Loop

# view -> its file, and the number of the line there that names the goal
LOOP_FILES = {
    "workflow-state": ("workflow-state.json", 3),
    "state": ("state.json", 1),
    "progress": ("PROGRESS.md", 0),
}


class Sheet:
    """A view of one loop on its way to its file, and what may become of the file there."""

    def __init__(self, loops: Loops, view: str, loop: Loop) -> None:
        self.name, self._line = LOOP_FILES[view]
        self.loop = loop.id
        self.data = _bytes(view, loop)
        self.aside = kept_name(self.name, self.loop)
        self.due = _is_due(loops, loop)
        self._begins = bool(loop.viewed.get(view) == loop.last_event)
        self._view = view
        self._others = [it for it in loops.by_id.values() if it is not loop and _has(it, view)]
        self._follows = any(_is_due(loops, it) for it in self._others)

    def replaces(self, found: bytes) -> bool:
        """Whether it is to be written; of a loop that ended before, only to mend its own file."""
        return found != self.data and (self.due or self._names_goal(found))

    def spares(self, found: bytes) -> bool:
        """Whether what was found may be somebody else's, and must not be lost."""
        if self._follows or (self.due and not self._begins and self._names_goal(found)):
            return False
        return found not in [_bytes(self._view, it) for it in self._others]

    def _names_goal(self, found: bytes) -> bool:
        line = self._line
        return found.split(b"\n")[line : line + 1] == self.data.split(b"\n")[line : line + 1]


def sheets(loops: Loops) -> list[Sheet]:
    """Every view that a loop of this journal has, each of the one loop that it shows."""
    shown = [(view, _shown(loops, view)) for view in LOOP_FILES]
    return [Sheet(loops, view, loop) for view, loop in shown if loop is not None]


def _shown(loops: Loops, view: str) -> Loop | None:
    """The live loop with this view that was started last, else the loop that ended last."""
    live = [loop for loop in loops.live() if _has(loop, view)]
    last = loops.last_ended()
    return live[-1] if live else last if last is not None and _has(last, view) else None


def _has(loop: Loop, view: str) -> bool:
    return loop.kind == "goal" and view in loop.views


def _is_due(loops: Loops, loop: Loop) -> bool:
    """Whether its file belongs to this loop: while it is live, and in the append that ends it."""
    return loop.status in LIVE or bool(loop.last_event == loops.ts)


def _bytes(view: str, loop: Loop) -> bytes:
    """The whole file of this view."""
    if view == "progress":
        return progress(loop).encode("utf-8")
    shown = workflow_state(loop) if view == "workflow-state" else state(loop)
    return (_pretty(shown) + "\n").encode("utf-8")


def is_untouched(loop: Loop) -> bool:
    """Whether nothing has happened to this loop since the append that began it."""
    return bool(loop.first_ts == loop.last_event)


def workflow_state(loop: Loop) -> dict[str, Any]:
    """How far a goal has come: the members of `workflow-state.json`."""
    updated = loop.imported.get("updated") if is_untouched(loop) else None
    return {
        "version": 1,
        "stage": _stage_of(loop),
        "task": loop.goal or "",
        "spec_score": loop.spec_score,
        "fit_score": loop.fit_score,
        "shape_chosen": loop.shape,
        "started_at": _moment(loop.started),
        "last_updated": _moment(updated or loop.last_event),
        "recall_surfaced": list(loop.recalled),
        "reviews": {
            name: loop.reviews[name].facts() for name in sorted(loop.reviews, key=_in_order)
        },
    }


def _stage_of(loop: Loop) -> str:
    """The stage as others rely on it: complete is what has completed, and nothing before that."""
    if loop.status == "completed":
        return "complete"
    return "review" if loop.stage == "complete" else loop.stage or "executing"


def state(loop: Loop) -> dict[str, Any]:
    """What is met and what is left: the members of `state.json`."""
    steps = [task for task in loop.tasks.values() if task.is_work]
    left = set(open_tasks(loop))
    return {
        "spec": loop.goal or "",
        "criteria": list(loop.criteria),
        "criteriaStatus": {name: criterion.met for name, criterion in loop.criteria.items()},
        "exit_signal": loop.exit_signal,
        "steps": [_title(task) for task in steps],
        "completedSteps": [_title(task) for task in steps if task.id not in left],
        "remainingSteps": [_title(task) for task in steps if task.id in left],
        "iteration": loop.iteration,
        "status": loop.status if loop.status in FINAL else "in_progress",
        "circuitBreaker": {"stuckCount": loop.stuck, "lastUnmet": loop.last_unmet or ""},
    }


def _title(task: Task) -> str:
    return str(task.title or task.id)


def _moment(ts: str | None) -> str | None:
    """The time, without milliseconds where there are none."""
    return ts[:-5] + "Z" if ts is not None and ts.endswith(".000Z") else ts


def _in_order(review: str) -> tuple[bool, int, str]:
    """Waves by their number, then the thorough review."""
    number = review.rpartition("_")[2]
    return not number.isdigit(), int(number) if number.isdigit() else 0, review


def _pretty(value: Any, margin: str = "\n") -> str:
    """JSON for people: a line for each member, two blanks deeper at each level."""
    inner = margin + "  "
    if value and type(value) is dict:
        rows = ["%s: %s" % (_quoted(key), _pretty(item, inner)) for key, item in value.items()]
        return "{%s%s%s}" % (inner, ("," + inner).join(rows), margin)
    if value and type(value) is list:
        return "[%s%s%s]" % (inner, ("," + inner).join([_pretty(v, inner) for v in value]), margin)
    return _quoted(value) if type(value) is str else dumps(value)


def _quoted(text: str) -> str:
    """A JSON text in which every letter stands for itself."""
    return '"%s"' % "".join([quote(c)[1:-1] if c < "\x7f" else c for c in text])
