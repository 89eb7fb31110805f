"""Collect what went wrong in the loops of a journal, and how it ended, while the journal is folded."""

from __future__ import annotations

import contextlib
import hashlib
from collections import OrderedDict
from typing import Any

from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.text.sanitize import truncate
from gsd_fsm.history.replay import watching

Event = dict[str, Any]

# Only the latest failures are kept.
MOST_FAILURES = 2_000
MOST_ALIKE = 5
_LONG = 2_000


class Failure:
    """A failed task, a failed check or a gap; `ended` says how it ended, "" while it is open."""

    __slots__ = ("about", "ended", "error", "fixed", "goal", "loop", "remedy", "seq")

    def __init__(self, loop: Loop, seq: int, error: str, about: str, remedy: str = "") -> None:
        self.loop = loop.id
        self.goal = (loop.goal or loop.plan.title or "")[:_LONG]
        self.seq = seq
        self.error = truncate(error, _LONG)
        self.about = about
        self.remedy = remedy
        self.ended = ""
        self.fixed = False

    def end(self, words: str, remedy: str | None = None) -> None:
        """Record how the failure ended; `remedy` is given only if it was fixed."""
        self.fixed = remedy is not None
        why = (self.remedy or remedy) if self.fixed else ""
        self.ended = f"{words}: {why}" if why else words


def read_failures(journal: Journal, except_loop: str | None = None) -> Failures:
    """Return the failures of all loops but one, up to the first damaged line."""
    found = Failures(except_loop)
    # Commands that need the journal report its damage; here it only means that less is known.
    with contextlib.suppress(OSError, GsdError):
        journal.read(
            watching(lambda event: found.see(event, journal.loops)), hashlib.sha256, Loops()
        )
    found.finish(journal.loops)
    return found


class Failures:
    """Failures grouped by error, the latest last, and the lessons that users dismissed."""

    def __init__(self, except_loop: str | None = None) -> None:
        self.except_loop = except_loop
        self.alike: OrderedDict[str, list[Failure]] = OrderedDict()
        self.dismissed: set[str] = set()
        self._by_subject: dict[str, dict[tuple[str, str], list[Failure]]] = {}

    def see(self, event: Event, loops: Loops) -> None:
        """Take an event and the loops before it."""
        loop = loops.by_id.get(event["loop"])
        if loop is None or loop.id == self.except_loop:
            return
        seq, data = event["seq"], event["data"]
        match event["type"]:
            case "failure":
                self._take_failure(loop, seq, data)
            case "task":
                self._take_task(loop, data)
            case "criterion":
                self._take_criterion(loop, seq, data)
            case "gap":
                self._take_gap(loop, seq, data)
            case "note" if data.get("dismissed"):
                self.dismissed.add(data["text"])
            case "cancel":
                self._end_all(loop.id, "cancelled")
            case "complete":
                self._end_all(loop.id, "loop completed", "")

    def finish(self, loops: Loops) -> None:
        """Describe how failures were left that nothing ended."""
        for loop_id in self._by_subject:
            loop = loops.by_id.get(loop_id)
            paused = f"paused ({loop.pause_code})" if loop and loop.status == "paused" else ""
            self._end_all(loop_id, paused or "never")

    def _add(self, kind: str, name: str, like: str, failure: Failure) -> None:
        subjects = self._by_subject.setdefault(failure.loop, {})
        subjects.setdefault((kind, name), []).append(failure)
        alike = self.alike.setdefault(f"{kind} {like}", [])
        alike.append(failure)
        del alike[:-MOST_ALIKE]
        self.alike.move_to_end(f"{kind} {like}")
        if len(self.alike) > MOST_FAILURES:
            self.alike.popitem(last=False)

    def _of(self, loop_id: str, kind: str, name: str) -> list[Failure]:
        return self._by_subject.get(loop_id, {}).get((kind, name), [])

    def _end_all(self, loop_id: str, words: str, remedy: str | None = None) -> None:
        for failures in self._by_subject.get(loop_id, {}).values():
            _end(failures, words, remedy)

    def _take_failure(self, loop: Loop, seq: int, data: Event) -> None:
        name, error = data.get("task", ""), data["error"]
        task = loop.tasks.get(name)
        remedy = data.get("fix") or data.get("analysis") or ""
        failure = Failure(loop, seq, error, task.title if task else "", remedy)
        self._add("task", name, data.get("signature") or error, failure)

    def _take_task(self, loop: Loop, data: Event) -> None:
        name = data["task"]
        if data["status"] == "complete":
            task = loop.tasks.get(name)
            words = f"task {name} completed after retry {task.retries if task else 0}"
            _end(self._of(loop.id, "task", name), words, data.get("summary", ""))
        elif data["status"] == "skipped":
            _end(self._of(loop.id, "task", name), f"task {name} skipped")

    def _take_criterion(self, loop: Loop, seq: int, data: Event) -> None:
        name, evidence = data["criterion"], data.get("evidence")
        if data["met"]:
            _end(self._of(loop.id, "check", name), "criterion met", "")
        elif evidence and evidence["exit_code"] not in (0, None) and not data.get("baseline"):
            tail = evidence.get("tail", "")
            error = tail if tail.strip() else f"check {name} failed"
            like = evidence.get("likeness") or error
            self._add("check", name, f"{name} {like}", Failure(loop, seq, error, name))

    def _take_gap(self, loop: Loop, seq: int, data: Event) -> None:
        name = data["gap"]
        known = self._of(loop.id, "gap", name)
        if data["action"] == "closed":
            _end(known, "gap closed", data.get("evidence", ""))
        elif known:  # reopened: what closed it did not last
            known[-1].seq, known[-1].ended = seq, ""
        elif description := data.get("description"):
            file = data.get("file")
            error = f"{description} ({file})" if file else description
            self._add("gap", name, error, Failure(loop, seq, error, data.get("kind", "")))


def _end(failures: list[Failure], words: str, remedy: str | None = None) -> None:
    for failure in failures:
        if not failure.ended:
            failure.end(words, remedy)
