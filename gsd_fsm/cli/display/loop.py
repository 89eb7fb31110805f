"""Compose the page of a loop, and the box of one among several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING

from gsd_fsm.cli.display.page import (
    Bar,
    Box,
    Command,
    Fields,
    Line,
    Moment,
    Part,
    Piece,
    Quote,
    Short,
    Style,
    Styled,
    Words,
    status_word,
)
from gsd_fsm.cli.display.people import MINUTE, duration
from gsd_fsm.cli.output import flat, spent_words
from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.loop.completion import awaits_complete, lacks_tree, proof_counts
from gsd_fsm.core.loop.limits import active_minutes
from gsd_fsm.core.loop.state import FINAL, listed, open_gaps, undelivered_notes, unmet
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.core.text.notices import counted
from gsd_fsm.core.text.progress import shown_tasks
from gsd_fsm.core.text.questions import review_words
from gsd_fsm.core.text.sanitize import one_line
from gsd_fsm.core.views.loop_json import shown_stage
from gsd_fsm.history.evidence import Evidence, failing

if TYPE_CHECKING:
    from gsd_fsm.core.loop.protection import Altered
    from gsd_fsm.core.loop.records import Criterion, Gap, Task, Verdict
    from gsd_fsm.core.loop.state import Loop
    from gsd_fsm.engine.status import Status

Row = tuple[str, list[Words]]

_WITHOUT_GIT = "changes of files after a check are not detected (no git)"
HOOK_DISABLED = "disabled by .gsd/STOP; remove the file to enable it"
_MARKS: dict[str, tuple[str, Style]] = {
    "complete": ("✓", "good"),
    "skipped": ("-", "faint"),
    "failed": ("✗", "bad"),
    "running": ("▸", "busy"),
    "checkpoint": ("?", "asking"),
    "reported": ("◂", "busy"),
    "pending": ("·", "faint"),
}
# The order in which a person needs to see tasks.
_URGENCY = ("failed", "checkpoint", "running", "reported", "pending", "complete", "skipped")
# Limits on a screen: characters of a text, rows of a list, lines of output, characters of a command.
_TEXT, _ROWS, _FEW, _LINES, _COMMAND = 240, 6, 3, 8, 32


class LoopPage:
    """The page of one loop; unless `full`, long lists and texts are cut to fit a screen."""

    def __init__(self, loop: Loop, now: int, *, full: bool) -> None:
        self.loop = loop
        self.now = now
        self.full = full

    def parts(self, found: Status) -> list[Part]:
        """Return the parts, without advice if the journal is not trusted."""
        loop = self.loop
        quotes = [self._quote(it) for it in failing(loop)[:1] if it.command]
        if loop.last_error and loop.status != "completed":
            quotes.append(Quote("last error", self._end_of(loop.last_error)))
        is_final = loop.status in FINAL
        last = ", ended " if is_final else ", last event "
        closing: list[Row] = [
            ("started", [[Moment(loop.started or ""), last, Moment(loop.last_event)]]),
            ("owner", [flat(loop.owner)] if loop.owner else [] if is_final else ["none yet"]),
            ("head", [found.view["head"]]),
            ("hook", list(_hook_problems(found))),
            ("next", _advice(loop) if found.is_trusted else [not_trusted()]),
        ]
        return [
            Fields([*self._state(), *self._progress(), *self._more()]),
            *quotes,
            Fields(closing),
        ]

    def _state(self) -> Iterator[Row]:
        loop = self.loop
        title: list[Piece] = [
            Styled(loop.id, "strong"),
            f" · {loop.kind} · ",
            status_word(loop.status),
        ]
        yield "loop", [[*title, f" · {loop.mode}"]]
        yield "goal", self._text(loop.goal)
        yield "phase", self._text(loop.phase)
        yield "paused", [pause_words(loop)] if loop.status == "paused" else []
        yield "question", self._text(loop.question)
        yield "answer", self._text(loop.answer)
        if loop.status in FINAL:
            took = duration(ms_of(loop.last_event) - ms_of(loop.started or loop.last_event))
            active = duration(loop.active_ms)
            yield "duration", [took if took == active else f"{took}, {active} of them active"]

    def _progress(self) -> Iterator[Row]:
        loop, limits = self.loop, self.loop.limits
        yield "iteration", [iterations(loop)]
        yield "round", [_used(loop.round, limits.max_rounds)] if loop.round else []
        if limits.max_minutes:
            used = active_minutes(loop, self.now)
            words = f"{duration(used * MINUTE)} of {duration(limits.max_minutes * MINUTE)}"
            yield "active", [Bar(used, limits.max_minutes, words, is_limit=True)]
        yield "spent", spending(loop)
        yield "criteria", self._criteria()
        yield "tasks", self._tasks()
        yield "gaps", self._gaps()
        verdicts = list(loop.verdicts.values()) if loop.verified else []
        yield "verdicts", self._some(map(self._verdict, verdicts), len(verdicts))
        altered = loop.protection.altered
        yield "altered", self._some(map(self._altered, altered), len(altered))
        yield from proof_rows(*proof_counts(loop))

    def _criteria(self) -> list[Words]:
        criteria = list(self.loop.criteria.values())
        if not criteria:
            return []
        numbered = list(zip(criteria, count(1), strict=False))
        if self._is_long(criteria):
            numbered.sort(key=lambda row: row[0].met)
        rows = (self._criterion(*row) for row in numbered)
        met = len(criteria) - len(unmet(self.loop))
        return [
            Bar(met, len(criteria), f"{met} of {len(criteria)} met"),
            *self._some(rows, len(criteria)),
        ]

    def _tasks(self) -> list[Words]:
        tasks = shown_tasks(self.loop)
        if not tasks:
            return []
        if self._is_long(tasks):
            tasks.sort(key=lambda task: _URGENCY.index(task.status))
        done = len([task for task in tasks if task.is_done])
        return [
            Bar(done, len(tasks), f"{done} of {len(tasks)} done"),
            *self._some(map(self._task, tasks), len(tasks)),
        ]

    def _gaps(self) -> list[Words]:
        gaps = list(self.loop.gaps.values())
        if not gaps:
            return []
        if self._is_long(gaps):
            gaps.sort(key=lambda gap: not gap.is_open)
        closed = len(gaps) - len(open_gaps(self.loop))
        return [
            Bar(closed, len(gaps), f"{closed} of {len(gaps)} closed"),
            *self._some(map(self._gap, gaps), len(gaps)),
        ]

    def _more(self) -> Iterator[Row]:
        loop = self.loop
        yield "stage", self._text(shown_stage(loop))
        yield "score", self._text(_score(loop))
        yield "must not", self._some(map(flat, loop.must_not), len(loop.must_not), _FEW)
        yield "lessons", self._some(map(flat, loop.recalled), len(loop.recalled), _FEW)
        reviews = [f"{it.replace('_', ' ')}: {review_words(loop, it)}" for it in loop.reviews]
        yield "reviews", self._some(reviews, len(reviews), _FEW)
        notes = undelivered_notes(loop)
        yield "notes", self._some((_first_line(note.text) for note in notes), len(notes), _FEW)
        yield "baseline", list(_baseline(loop))
        yield "evidence", [_WITHOUT_GIT] if lacks_tree(loop) else []
        files = [_protected(it.shown, it.checks) for it in loop.protection.files]
        yield "protected", self._some(files, len(files), _FEW)

    def _criterion(self, criterion: Criterion, number: int) -> Words:
        mark: tuple[str, Style] = ("·", "faint")
        if criterion.met:
            mark = ("✓", "good")
        elif criterion.stale:
            mark = ("~", "busy")
        elif criterion.is_refuted:
            mark = ("·", "bad")
        where = f"in {flat(criterion.directory)}: " if criterion.directory else ""
        check = f"  [{where}{flat(criterion.check)}]" if criterion.check else ""
        flaky = "  flaky" if criterion.evidence and criterion.evidence.get("flaky") else ""
        words = f" {number} {flat(criterion.name)}"
        return self._item(mark, words, check, flaky)

    def _task(self, task: Task) -> Words:
        retries = f" (retry {task.retries})" if task.retries else ""
        proof = f" ({task.proof})" if task.proof else " (skip requested)" if task.skip else ""
        words = f" {task.id} {task.status}{proof}{retries}  {flat(task.title)}"
        return self._item(_MARKS.get(task.status, ("·", "faint")), words.rstrip())

    def _gap(self, gap: Gap) -> Words:
        words = f" {gap.id} {flat(gap.kind)} {flat(gap.file)}  {_first_line(gap.description)}"
        return self._item(("·", "bad") if gap.is_open else ("✓", "good"), words)

    def _verdict(self, verdict: Verdict) -> Words:
        by = " (reviewed by an agent)" if verdict.agent else ""
        word = "open" if verdict.passed is None else "passed" if verdict.passed else "failed"
        row: list[Piece] = [f"{verdict.id} {word}{by}  {_first_line(verdict.text)}".rstrip()]
        return row if self.full else Short(row)

    def _altered(self, file: Altered) -> Words:
        change = "changed" if file.digest else "missing"
        return self._item(("✗", "bad"), f" {_protected(file.path, file.checks)} {change}")

    def _item(self, mark: tuple[str, Style], words: str, *faint: str) -> Words:
        """Return a row of a list: on a screen, one line."""
        row: list[Piece] = [Styled(*mark), words, *(Styled(it, "faint") for it in faint if it)]
        return row if self.full else Short(row)

    def _text(self, value: object) -> list[Words]:
        """Return the value as the only line of a row; no line if there is none."""
        shown = flat(str("" if value is None else value))
        return [self._cut(shown)] if shown else []

    def _cut(self, text: str) -> str:
        return text if self.full or len(text) <= _TEXT else f"{text[: _TEXT - 1]}…"

    def _is_long(self, rows: Sequence[object]) -> bool:
        return not self.full and len(rows) > _ROWS

    def _some(self, rows: Iterable[Words], total: int, most: int = _ROWS) -> list[Words]:
        """Return all rows, or the first ones and the number of the others."""
        if self.full or total <= most + 1:
            return list(rows)
        shown = [row for row, _ in zip(rows, range(most), strict=False)]
        return [*shown, Styled(f"… {total - most} more (--all)", "faint")]

    def _quote(self, evidence: Evidence) -> Quote:
        return quote_of(evidence, None if self.full else _LINES)

    def _end_of(self, text: str) -> str:
        return text if self.full else last_lines(text, _LINES)


def loop_box(loop: Loop, failed_stop: str) -> Box:
    """Return the box of one loop among several; `failed_stop` as in its status."""
    return Box(_title(loop), [Fields(_summary(loop, failed_stop))])


def detailed_box(loop: Loop, failed_stop: str, *, trusted: bool) -> list[Part]:
    """Return the box of one loop with its proof and the end of a failing output; then the next step.

    Its command is below the box, so that it can be copied.
    """
    *words, run = _advice(loop)
    more = [*proof_rows(*proof_counts(loop)), ("next", words if trusted else [])]
    quotes = [quote_of(it, _FEW) for it in failing(loop)[:1] if it.command]
    box = Box(_title(loop), [Fields([*_summary(loop, failed_stop), *more]), *quotes])
    return [box, Line(run)] if trusted else [box]


def _title(loop: Loop) -> list[Piece]:
    return [f"{loop.id} · {loop.kind} · ", status_word(loop.status)]


def _summary(loop: Loop, failed_stop: str) -> list[Row]:
    goal = one_line(loop.goal or loop.plan.title or "", _TEXT)
    halted = [pause_words(loop)] if loop.status == "paused" else []
    asked = one_line(loop.question, _TEXT) if loop.question else ""
    throttled = loop.status == "waiting" and loop.wait_for == "throttled"
    return [
        ("goal", [goal] if goal else []),
        ("progress", _overall(loop)),
        ("paused", halted),
        ("throttled", [f"until {loop.until or 'the client recovers'}"] if throttled else []),
        ("question", [asked] if asked else []),
        ("hook", [_failed(failed_stop)] if failed_stop else []),
        ("last event", [Moment(loop.last_event)]),
    ]


def _overall(loop: Loop) -> list[Words]:
    """Return a bar for each kind of work, then the iterations, money and tokens used."""
    most, spent = loop.limits.max_iterations, spent_words(loop)
    used = f"iteration {loop.iteration}" + (f" of {most}" if most else "")
    tasks = shown_tasks(loop)
    bars = [
        _done("gaps", "closed", len(loop.gaps) - len(open_gaps(loop)), len(loop.gaps)),
        _done("tasks", "done", len([task for task in tasks if task.is_done]), len(tasks)),
        _done("criteria", "met", len(loop.criteria) - len(unmet(loop)), len(loop.criteria)),
    ]
    return [*(bar for bar in bars if bar.most), ", ".join(filter(None, (used, spent)))]


def _done(what: str, verb: str, done: int, total: int) -> Bar:
    return Bar(done, total, f"{what}: {done} of {total} {verb}")


# rows that several pages show


def not_trusted() -> Words:
    words = Styled("This journal is not trusted.", "asking")
    return [words, " Run: ", Command(command_line("trust"))]


def pause_words(loop: Loop) -> Words:
    return [Styled(str(loop.pause_code), "halted"), f": {flat(loop.pause_reason)}"]


def iterations(loop: Loop) -> Words:
    return _used(loop.iteration, loop.limits.max_iterations)


def _used(used: int, most: int) -> Words:
    return Bar(used, most, f"{used} of {most}", is_limit=True) if most else str(used)


def spending(loop: Loop) -> list[Words]:
    """Return the money and tokens spent, with a bar for the limit that is closer."""
    words, limits = spent_words(loop), loop.limits
    shares = [
        (used / most, used, most)
        for used, most in (
            (loop.spent_usd, limits.budget_usd),
            (loop.spent_tokens, limits.max_tokens),
        )
        if most
    ]
    if shares:
        _, used, most = max(shares)
        return [Bar(used, most, words, is_limit=True)]
    return [words] if words else []


def _protected(shown: str, checks: list[str]) -> str:
    """Return a protected file and the checks that depend on it, by the names that commands take."""
    return f"{flat(shown)} ({flat(listed(checks)) if checks else 'every check'})"


def proof_rows(proven: dict[str, int], claimed: dict[str, int]) -> list[Row]:
    """Return a row for proven and one for claimed work, unless there is none."""
    rows = (("proven", proven), ("claimed", claimed))
    return [(label, [counted(found)]) for label, found in rows if found]


def quote_of(evidence: Evidence, most: int | None) -> Quote:
    """Return the evidence as a quotation, with at most the last `most` lines of its output."""
    what = flat(evidence.about)
    if evidence.command is not None:
        what += f": {one_line(evidence.command, _COMMAND)} (exit code {evidence.exit_code})"
    if evidence.seq is not None:
        what += f", event {evidence.seq}"
    text = evidence.output if most is None else last_lines(evidence.output, most)
    return Quote(what, text)


def last_lines(text: str, most: int) -> str:
    """Return the last lines of a text, where programs name a cause; mark omitted lines."""
    lines = text.strip("\n").split("\n")
    return "\n".join(
        lines if len(lines) <= most else [f"… {len(lines) - most} earlier lines", *lines[-most:]]
    )


def _hook_problems(found: Status) -> Iterator[Words]:
    """Yield why the hook does not continue the loop, and its last stop if that was allowed without a decision."""
    if found.is_hook_disabled:
        yield Styled(HOOK_DISABLED, "asking")
    if found.failed_stop:
        yield _failed(found.failed_stop)


def _failed(failed_stop: str) -> Words:
    return Styled(flat(failed_stop), "bad")


def _advice(loop: Loop) -> list[Words]:
    """Return the next step and its command; why a loop is paused is in a row of its own."""
    words, command = next_step(loop, brief=True)
    run: Words = ["Run: ", Command(flat(command))]
    return [run] if loop.status == "paused" and not awaits_complete(loop) else [words, run]


def _baseline(loop: Loop) -> Iterator[Words]:
    """Yield which checks passed and failed before any work."""
    for words, result in (("passed before any work", True), ("failed before any work", False)):
        names = [name for name, passed in loop.baseline.items() if passed is result]
        if names:
            yield f"{words}: {flat(listed(names))}"


def _score(loop: Loop) -> str:
    if loop.spec_score is None:
        return ""
    known = {"fit": loop.fit_score, "shape": loop.shape}
    more = [f"{name} {value}" for name, value in known.items() if value is not None]
    return ", ".join([f"spec {loop.spec_score}/10", *more])


def _first_line(text: str) -> str:
    return one_line(text.strip().split("\n", 1)[0], 120)
