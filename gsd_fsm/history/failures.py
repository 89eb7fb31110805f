"""What went wrong in the loops of a journal, and what ended it; read fast, and never folded."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gsd_fsm.core.codec import MAX_LINE
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.loop.records import Limits
from gsd_fsm.core.syscalls import (
    READ,
    close,
    close_directory,
    open_directory,
    open_regular,
    read_at,
)
from gsd_fsm.core.system import system
from gsd_fsm.core.text.quoting import clip

Event = dict[str, Any]

# Of a longer journal only the end is read, and of what went wrong only the latest is kept.
MOST_BYTES = 64 << 20
MOST_FAILURES = 2_000
MOST_ALIKE = 5
_BLOCK = 1 << 20
_LONG = 2_000
_MARK = re.compile(
    rb'"type":"(?:cancel|complete|criterion|failure|gap|note|pause|plan|resume|start|task)"'
)
# Most events of a task only say that it runs.
_TELLS = (b'"status":"complete"', b'"status":"skipped"', b'"title":"')


class Failure:
    """One thing that went wrong: a failed task, a failed check, or a gap.

    `ended` is how it ended, in words; `mended` whether that was a success.
    """

    __slots__ = ("about", "ended", "error", "mended", "past", "remedy", "seq")

    def __init__(self, past: Past, seq: int, error: str, about: str, remedy: str = "") -> None:
        self.past = past
        self.seq = seq
        self.error = clip(error, _LONG)
        self.about = about
        self.remedy = remedy
        self.ended = ""
        self.mended = False


class Past:
    """A loop, as far as its failures need it."""

    def __init__(self, loop: str) -> None:
        self.loop = loop
        self.goal = ""
        self.titles: dict[str, str] = {}
        self.most_retries: int = Limits().max_retries
        self.tries: dict[str, int] = {}
        self.paused = ""
        self.open: dict[tuple[str, str], list[Failure]] = {}
        self.closed: dict[str, list[Failure]] = {}

    def end(self, kind: str, name: str, words: str, *, mended: bool, remedy: str = "") -> None:
        """Whatever went wrong with this has ended so."""
        for failure in self.open.pop((kind, name), ()):
            why = (failure.remedy or remedy) if mended else ""  # what did not help is no remedy
            failure.ended = f"{words}: {why}" if why else words
            failure.mended = mended

    def end_all(self, words: str, *, mended: bool = False) -> None:
        for kind, name in list(self.open):
            self.end(kind, name, words, mended=mended)


def failures(journal_path: Path, but: str | None = None) -> tuple[list[list[Failure]], set[str]]:
    """The failures of all loops except `but`, those of the same error together, latest last.

    And the lessons that were dismissed there: they are not given again.
    Whatever cannot be read is passed over: what is not known cannot be learnt from.
    """
    reader = _Reader(but)
    try:
        for line in _lines(journal_path):
            reader.take(line)
    except (OSError, GsdError):
        pass  # a help, and no reason to stop for: whoever needs the journal will be told
    return reader.finish(), reader.dismissed


def _lines(path: Path) -> Iterator[bytes]:
    """The lines that may matter; never from anything but a plain file of this user."""
    directory = open_directory(str(path.parent))
    try:
        fd = open_regular(directory, path.name, READ)
        try:
            yield from _marked(fd, system.fstat(fd).st_size)
        finally:
            close(fd)
    finally:
        close_directory(directory)


def _marked(fd: int, size: int) -> Iterator[bytes]:
    at = max(0, size - MOST_BYTES)
    cut, rest = at > 0, b""  # whether the first line that is read has lost its beginning
    while at < size and (block := read_at(fd, at, _BLOCK)):
        at += len(block)
        head, newline, tail = (rest + block).rpartition(b"\n")
        rest = tail
        if newline:
            yield from _found(head.partition(b"\n")[2] if cut else head)
            cut = False
        if len(rest) > MAX_LINE:  # no line of a journal: what follows is passed over up to its end
            cut, rest = True, b""


def _found(lines: bytes) -> Iterator[bytes]:
    after = 0
    for mark in _MARK.finditer(lines):
        if mark.start() >= after:
            start = lines.rfind(b"\n", 0, mark.start()) + 1
            end = lines.find(b"\n", mark.end())
            after = len(lines) if end < 0 else end
            line = lines[start:after]
            if mark[0] != b'"type":"task"' or any(word in line for word in _TELLS):
                yield line


class _Reader:
    """Events in their order; each failure waits until something ends it."""

    def __init__(self, but: str | None) -> None:
        import orjson

        self.loads = orjson.loads
        self.but = but
        self.pasts: dict[str, Past] = {}
        self.dismissed: set[str] = set()
        self.alike: OrderedDict[str, list[Failure]] = OrderedDict()

    def take(self, line: bytes) -> None:
        try:
            event = self.loads(line)
        except ValueError:
            return
        if not (isinstance(event, dict) and isinstance(event.get("data"), dict)):
            return
        loop, seq = event.get("loop"), event.get("seq")
        if not isinstance(loop, str) or not isinstance(seq, int) or loop == self.but:
            return
        happens = _HAPPENINGS.get(str(event.get("type")))
        if happens is not None:
            past = self.pasts.get(loop) or self.pasts.setdefault(loop, Past(loop))
            happens(self, past, seq, event["data"])

    def finish(self) -> list[list[Failure]]:
        for past in self.pasts.values():
            past.end_all(f"paused ({past.paused})" if past.paused else "never")
        return list(self.alike.values())

    def _add(self, kind: str, name: str, like: str, failure: Failure) -> None:
        failure.past.open.setdefault((kind, name), []).append(failure)
        same = self.alike.setdefault(f"{kind} {like}", [])
        same.append(failure)
        del same[:-MOST_ALIKE]
        self.alike.move_to_end(f"{kind} {like}")
        if len(self.alike) > MOST_FAILURES:
            self.alike.popitem(last=False)

    def start(self, past: Past, _seq: int, data: Event) -> None:
        plan = data.get("plan")
        title = _text(plan, "title") if isinstance(plan, dict) else ""
        past.goal = (_text(data, "goal") or title)[:_LONG]
        limits = data.get("limits")
        most = limits.get("max_retries") if isinstance(limits, dict) else None
        past.most_retries = most if isinstance(most, int) else past.most_retries
        self.plan(past, _seq, data)

    def plan(self, past: Past, _seq: int, data: Event) -> None:
        tasks = data.get("tasks")
        for task in tasks if isinstance(tasks, list) else ():
            if isinstance(task, dict):
                past.titles[_text(task, "id")] = _text(task, "title")

    def failure(self, past: Past, seq: int, data: Event) -> None:
        task, error = _text(data, "task"), _text(data, "error")
        remedy = _text(data, "fix") or _text(data, "analysis")
        failure = Failure(past, seq, error, past.titles.get(task, ""), remedy)
        self._add("task", task, _text(data, "signature") or error, failure)
        past.tries[task] = past.tries.get(task, 0) + 1
        if data.get("class") in ("blocking", "unknown"):
            past.paused = _text(data, "class")
        elif task and past.tries[task] > past.most_retries:
            past.paused = "retries"

    def task(self, past: Past, _seq: int, data: Event) -> None:
        task, status, title = _text(data, "task"), data.get("status"), _text(data, "title")
        if title:
            past.titles[task] = title
        if status == "complete":
            words = f"task {task} completed after retry {past.tries.get(task, 0)}"
            past.end("task", task, words, mended=True, remedy=_text(data, "summary"))
        elif status == "skipped":
            past.end("task", task, f"task {task} skipped", mended=False)

    def criterion(self, past: Past, seq: int, data: Event) -> None:
        name, proof = _text(data, "criterion"), data.get("evidence")
        if data.get("met") is True:
            past.end("check", name, "criterion met", mended=True)
        elif isinstance(proof, dict) and proof.get("exit_code") not in (0, None):
            tail = _text(proof, "tail")
            error = tail if tail.strip() else f"check {name} failed"
            like = _text(proof, "likeness") or error
            self._add("check", name, f"{name} {like}", Failure(past, seq, error, name))

    def gap(self, past: Past, seq: int, data: Event) -> None:
        gap, action = _text(data, "gap"), data.get("action")
        if action == "closed":
            past.closed[gap] = past.open.get(("gap", gap), [])
            past.end("gap", gap, "gap closed", mended=True, remedy=_text(data, "evidence"))
        elif past.closed.get(gap):  # what closed it did not last
            past.open["gap", gap] = past.closed.pop(gap)
            past.open["gap", gap][-1].seq = seq
        elif description := _text(data, "description"):
            file = _text(data, "file")
            error = f"{description} ({file})" if file else description
            self._add("gap", gap, error, Failure(past, seq, error, _text(data, "kind")))

    def note(self, _past: Past, _seq: int, data: Event) -> None:
        if data.get("dismissed") is True:
            self.dismissed.add(_text(data, "text"))

    def pause(self, past: Past, _seq: int, data: Event) -> None:
        past.paused = _text(data, "code")

    def resume(self, past: Past, _seq: int, data: Event) -> None:
        past.paused = ""
        add = data.get("add")
        more = add.get("max_retries") if isinstance(add, dict) else None
        past.most_retries += more if isinstance(more, int) else 0

    def cancel(self, past: Past, _seq: int, _data: Event) -> None:
        past.end_all("cancelled")

    def complete(self, past: Past, _seq: int, _data: Event) -> None:
        past.end_all("loop completed", mended=True)


_HAPPENINGS = {
    "start": _Reader.start,
    "plan": _Reader.plan,
    "failure": _Reader.failure,
    "task": _Reader.task,
    "criterion": _Reader.criterion,
    "gap": _Reader.gap,
    "note": _Reader.note,
    "pause": _Reader.pause,
    "resume": _Reader.resume,
    "cancel": _Reader.cancel,
    "complete": _Reader.complete,
}


def _text(data: Event, name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""
