"""Print results, status panels, timelines and the output of checks."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any, TextIO

import click

from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.loop.state import Loop, undelivered_notes
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.core.text.questions import review_words
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.evidence.interruption import Interruption, Output

COLOURS = {
    "running": "green",
    "retrying": "yellow",
    "fixing": "yellow",
    "reviewing": "cyan",
    "waiting": "magenta",
    "paused": "red",
    "completed": "green",
    "cancelled": "red",
}


def say(text: str, *, err: bool = False) -> None:
    """Print a line; raise CannotWrite if that fails."""
    try:
        click.echo(text, err=err)
    except BrokenPipeError:
        raise  # nobody reads the output
    except OSError as error:
        raise CannotWrite(
            f"cannot print the result: {error.strerror}",
            "The command may have succeeded. Run: gsd-fsm status",
        ) from error


def warn(text: str) -> None:
    """Print a problem that did not end the command, on standard error."""
    with contextlib.suppress(OSError):
        click.echo(f"gsd-fsm: {display(text)}", err=True)


class Screen(Output):
    """Show the output of checks; they continue even if nobody reads it.

    A signal also ends a write that blocks.
    """

    def __init__(self, stream: TextIO | None, interruption: Interruption) -> None:
        self.stream = stream
        self.interruption = interruption

    def say(self, text: str) -> None:
        self.show((display(text) + "\n").encode("utf-8", "replace"))

    def show(self, chunk: bytes) -> None:
        if self.stream is None:
            return
        try:
            self.interruption.run_blocking(partial(_write, self.stream, chunk))
        except OSError:
            self.stream = None

    def poll(self) -> None:
        """Raise Interrupted if a signal was received."""
        self.interruption.poll()


def _write(stream: TextIO, chunk: bytes) -> None:
    stream.flush()
    stream.buffer.write(chunk)
    stream.buffer.flush()


def status_word(status: str) -> str:
    return click.style(status, fg=COLOURS.get(status), bold=True)


def panel(view: dict[str, Any], loop: Loop, *, trusted: bool) -> list[str]:
    """Return the lines that show a loop."""
    from gsd_fsm.core.text.progress import shown_tasks

    most = view["max_iterations"]
    rows = [
        (
            "loop",
            f"{view['loop']} · {view['kind']} · {status_word(view['status'])} · {view['mode']}",
        ),
        ("goal", display(" ".join((view["goal"] or "").split()))),
        ("phase", _some(view["phase"])),
        ("iteration", f"{view['iteration']}{f' of {most}' if most else ''}"),
        ("round", _some(view["round"] or None)),
        (
            "paused",
            display(f"{view['pause_code']}: {view['pause_reason']}")
            if view["status"] == "paused"
            else "",
        ),
        ("stage", _stage(view)),
        ("score", _score(view)),
        ("spent", spent_words(loop)),
        ("owner", display(view["owner"] or "none yet")),
        ("question", display(" ".join((loop.question or "").split()))),
        ("answer", display(" ".join((loop.answer or "").split()))),
    ]
    lines = [f"{name:<10} {text}" for name, text in rows if text]
    for name, entries in (
        ("must not", list(loop.must_not)),
        ("lessons", loop.recalled),
        (
            "reviews",
            [f"{name.replace('_', ' ')}: {review_words(loop, name)}" for name in loop.reviews],
        ),
        ("notes", [_first_line(note.text) for note in undelivered_notes(loop)]),
        ("criteria", _criteria(view)),
        ("tasks", _tasks(view, {task.id for task in shown_tasks(loop)})),
        ("gaps", _gaps(view)),
    ):
        lines += [f"{name if i == 0 else '':<10} {display(text)}" for i, text in enumerate(entries)]
    if view["last_error"] and view["status"] != "completed":
        lines.append(f"{'last error':<10} {display(_first_line(view['last_error']))}")
    lines.append(f"{'since':<10} {view['started']}, last event {view['last_event']}")
    lines.append(f"{'head':<10} {view['head']}")
    if not trusted:  # it is shown, but gives no advice
        return [*lines, f"{'next':<10} This journal is not trusted here. Run: gsd-fsm trust"]
    words, command = next_step(loop)
    return [*lines, f"{'next':<10} {display(words)}", f"{'':<10} Run: {display(command)}"]


def _some(value: Any) -> str:
    return "" if value is None else display(str(value))


def _stage(view: dict[str, Any]) -> str:
    return "complete" if view["stage"] and view["status"] == "completed" else _some(view["stage"])


def _score(view: dict[str, Any]) -> str:
    if view["spec_score"] is None:
        return ""
    known = {"fit": view["fit_score"], "shape": view["shape"]}
    more = [f"{name} {value}" for name, value in known.items() if value is not None]
    return ", ".join([f"spec {view['spec_score']}/10", *more])


def spent_words(loop: Loop) -> str:
    """Return the money and tokens spent, and their limits; "" if there are none."""
    parts = []
    budget, most = loop.limits.budget_usd, loop.limits.max_tokens
    if loop.spent_usd or budget:
        parts.append(f"{loop.spent_usd:.2f}{f' of {budget:.2f}' if budget else ''} USD")
    if loop.spent_tokens or most:
        parts.append(f"{loop.spent_tokens}{f' of {most}' if most else ''} tokens")
    return ", ".join(parts)


def _criteria(view: dict[str, Any]) -> list[str]:
    lines = []
    for number, criterion in enumerate(view["criteria"], 1):
        mark = "✓" if criterion["met"] else "~" if criterion["stale"] else "·"
        check = f"  [{criterion['check']}]" if criterion["check"] else ""
        lines.append(f"{mark} {number} {criterion['name']}{check}")
    return lines


def _tasks(view: dict[str, Any], shown: set[str]) -> list[str]:
    marks = {"complete": "✓", "skipped": "-", "failed": "✗", "running": "▸", "checkpoint": "?"}
    lines = []
    for task in (task for task in view["tasks"] if task["id"] in shown):
        retries = f" (retry {task['retries']})" if task["retries"] else ""
        mark = marks.get(task["status"], "·")
        lines.append(f"{mark} {task['id']} {task['status']}{retries}  {task['title']}".rstrip())
    return lines


def _gaps(view: dict[str, Any]) -> list[str]:
    return [
        f"{'✓' if gap['status'] == 'closed' else '·'} {gap['id']} {gap['kind']} {gap['file'] or ''}  "
        f"{_first_line(gap['description'])}"
        for gap in view["gaps"]
    ]


def _first_line(text: str) -> str:
    first = text.strip().split("\n", 1)[0]
    return first if len(first) <= 120 else first[:119] + "…"


def retry_words(loop: Loop, task_id: str) -> str:
    """Return which retry follows the last failure of a task."""
    task = loop.tasks[task_id]
    if task.errors[-1].error_class == "transient":
        return "It is retried once."
    return f"Retry {task.retries} of {loop.limits.max_retries}."


def timeline_line(event: dict[str, Any], source: str | None, dest: str | None, what: str) -> str:
    """Return a line with time, author, event, change of status and other changes."""
    when = event["ts"][:19].replace("T", " ")
    move = "" if dest is None else dest if source == dest else f"{source} → {dest}"
    name = click.style(f"{event['type']:<10}", bold=True)
    styled = click.style(f"{move:<22}", fg=COLOURS.get(dest or ""))
    return f"{event['seq']:>6}  {when}  {event['by']:<5}  {name} {styled} {display(what)}".rstrip()
