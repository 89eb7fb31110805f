"""Compose the files in `.loop/` that show a goal, in the form that other programs expect."""

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

# By view: its file, and the line of that file that names the goal.
LOOP_FILES = {
    "workflow-state": ("workflow-state.json", 3),
    "state": ("state.json", 1),
    "progress": ("PROGRESS.md", 0),
}


class ViewFile:
    """The new content of a file that shows a loop, and the rules for replacing the old content.

    `due`: the file is this loop's; `backup`: the name under which foreign content is saved.
    """

    def __init__(self, loops: Loops, view: str, loop: Loop) -> None:
        self.name, self._line = LOOP_FILES[view]
        self.loop = loop.id
        self.data = _content(view, loop)
        self.backup = kept_name(self.name, loop.id)
        self.due = _is_due(loops, loop)
        self._is_new = loop.viewed.get(view) == loop.last_event
        others = [it for it in loops.by_id.values() if it is not loop and _has(it, view)]
        self._shown_before = any(_is_due(loops, it) for it in others)
        self._others = [(view, it) for it in others]

    def replaces(self, found: bytes) -> bool:
        """Return whether to write; for a loop that ended earlier, only to update its own file."""
        return found != self.data and (self.due or self._names_goal(found))

    def is_foreign(self, found: bytes) -> bool:
        """Return whether another program may have written this, so that it must be saved."""
        if self._shown_before or (self.due and not self._is_new and self._names_goal(found)):
            return False
        return found not in [_content(*other) for other in self._others]

    def _names_goal(self, found: bytes) -> bool:
        line = self._line
        return found.split(b"\n")[line : line + 1] == self.data.split(b"\n")[line : line + 1]


def view_files(loops: Loops) -> list[ViewFile]:
    """Return the file of every view that a loop of this journal has."""
    shown = [(view, _shown(loops, view)) for view in LOOP_FILES]
    return [ViewFile(loops, view, loop) for view, loop in shown if loop is not None]


def _shown(loops: Loops, view: str) -> Loop | None:
    """Return the live loop with this view that was started last, else the loop that ended last."""
    live = [loop for loop in loops.live() if _has(loop, view)]
    last = loops.last_ended()
    return live[-1] if live else last if last is not None and _has(last, view) else None


def _has(loop: Loop, view: str) -> bool:
    return loop.kind == "goal" and view in loop.views


def _is_due(loops: Loops, loop: Loop) -> bool:
    """Return whether its files are this loop's: while it is live, and in the append that ends it."""
    return loop.status in LIVE or bool(loop.last_event == loops.ts)


def _content(view: str, loop: Loop) -> bytes:
    if view == "progress":
        return progress(loop).encode("utf-8")
    shown = workflow_state(loop) if view == "workflow-state" else state(loop)
    return (_pretty(shown) + "\n").encode("utf-8")


def is_untouched(loop: Loop) -> bool:
    """Return whether nothing has happened to this loop since the append that started it."""
    return bool(loop.first_ts == loop.last_event)


def workflow_state(loop: Loop) -> dict[str, Any]:
    """Return the members of `workflow-state.json`."""
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


def shown_stage(loop: Loop) -> str | None:
    """Return the stage as its view shows it, None for a loop with neither stages nor that view."""
    return _stage_of(loop) if loop.stage or "workflow-state" in loop.views else None


def _stage_of(loop: Loop) -> str:
    """Return the stage; only a completed loop is in stage complete."""
    if loop.status == "completed":
        return "complete"
    return "review" if loop.stage == "complete" else loop.stage or "executing"


def state(loop: Loop) -> dict[str, Any]:
    """Return the members of `state.json`."""
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
    """Return the time without milliseconds if they are zero."""
    return ts[:-5] + "Z" if ts is not None and ts.endswith(".000Z") else ts


def _in_order(review: str) -> tuple[bool, int, str]:
    """Return the sort key of a review: waves by number, then the thorough review."""
    number = review.rpartition("_")[2]
    return not number.isdigit(), int(number) if number.isdigit() else 0, review


def _pretty(value: Any, margin: str = "\n") -> str:
    """Return indented JSON; `json` itself is expensive to import in the hook."""
    inner = margin + "  "
    if value and type(value) is dict:
        rows = ["%s: %s" % (_quoted(key), _pretty(item, inner)) for key, item in value.items()]
        return "{%s%s%s}" % (inner, ("," + inner).join(rows), margin)
    if value and type(value) is list:
        return "[%s%s%s]" % (inner, ("," + inner).join([_pretty(v, inner) for v in value]), margin)
    return _quoted(value) if type(value) is str else dumps(value)


def _quoted(text: str) -> str:
    """Return a JSON string without escapes beyond ASCII."""
    return '"%s"' % "".join([quote(c)[1:-1] if c < "\x7f" else c for c in text])
