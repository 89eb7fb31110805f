"""Print results, and the output of checks; words that several commands print."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

import click

from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.hook.clients import LOOP_VARIABLE
from gsd_fsm.core.loop.spending import spent_of_budget
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.system import WINDOWS
from gsd_fsm.core.text.next_step import altered_advice, altered_remedy, error_to_fix, next_step
from gsd_fsm.core.text.sanitize import fenced, harmless, one_line
from gsd_fsm.evidence.interruption import Interruption, Output

if TYPE_CHECKING:
    from gsd_fsm.cli.display.progress import ProgressLine
    from gsd_fsm.core.loop.protection import Altered
    from gsd_fsm.engine.context import Context
    from gsd_fsm.engine.planned.plan import Unproven
    from gsd_fsm.engine.planned.proof import Settled

_SHOWN_NAMES = 20

# No text of the journal is longer.
_LONGEST = 30_000
LONGEST_QUOTE = 1_100
_warnings: list[str] = []


def say(text: str, *, err: bool = False, colour: bool | None = None) -> None:
    """Print text that is harmless; raise CannotWrite if that fails."""
    try:
        click.echo(text, err=err, color=colour)
    except BrokenPipeError:
        raise  # nobody reads the output
    except OSError as error:
        raise CannotWrite(
            f"cannot print the result: {error.strerror}",
            "The command may have succeeded. Run: gsd-fsm status",
        ) from error


def warn(text: str) -> None:
    """Report a problem that did not end the command: see `print_warnings`."""
    _warnings.append(text)


def print_warnings() -> None:
    """Print what was warned of on standard error, below the message of an error."""
    while _warnings:
        with contextlib.suppress(OSError):
            click.echo(f"gsd-fsm: {flat(_warnings.pop(0))}", err=True)


# Agents read what commands print, so foreign text is shown as in the texts of the hook: on one line,
# or between fences.


def flat(text: str | None) -> str:
    """Return the whole text on one line, where it cannot imitate a line of ours."""
    return one_line(text, _LONGEST)


def quoted(what: str, text: str, limit: int = LONGEST_QUOTE) -> str:
    """Return what a program or another agent wrote, between fences that it cannot imitate."""
    return fenced(what, text, new_nonce(), limit)


def new_nonce() -> str:
    return os.urandom(8).hex()


def advice_lines(loop: Loop, label: str = "") -> list[str]:
    """Return the next step in words, and the error that it is about."""
    error = error_to_fix(loop)
    return [
        label + next_step(loop, brief=True)[0],
        *([quoted("Last error", error)] if error else []),
    ]


class Screen(Output):
    """Show the output of checks; they continue even if nobody reads it.

    An agent does not see it as it comes, only quoted. A signal also ends a write that blocks.
    """

    def __init__(
        self,
        stream: TextIO | None,
        interruption: Interruption,
        *,
        for_agent: bool,
        line: ProgressLine | None = None,
    ) -> None:
        self.stream = stream
        self.interruption = interruption
        self.for_agent = for_agent
        self.line = line  # on stderr; None unless a person reads it
        self._is_in_line = False

    def say(self, text: str) -> None:
        self._print(harmless(text))

    def show(self, chunk: bytes) -> None:
        if not self.for_agent:
            self.write(chunk)

    def running(self, names: Sequence[str]) -> None:
        if self.line:
            self.line.name(names)

    def quote(self, what: str, text: str) -> None:
        if self.for_agent:
            self._print(quoted(flat(what), text or "(no output)"))

    def _print(self, text: str) -> None:
        self.write(f"{text}\n".encode("utf-8", "replace"))

    def write(self, chunk: bytes) -> None:
        self.erase()
        if self.stream is None:
            return
        try:
            self.interruption.run_blocking(partial(_write, self.stream, chunk))
            self._is_in_line = not chunk.endswith(b"\n")
        except OSError:
            self.stream = None

    def poll(self) -> None:
        """Raise Interrupted if a signal was received; redraw the progress line."""
        self.interruption.poll()
        if self.line and not self._is_in_line:
            self._draw(self.line.redrawn())

    def erase(self) -> None:
        """Erase the progress line, also after a signal."""
        if self.line and (text := self.line.erased()):
            with contextlib.suppress(OSError):
                _write(sys.stderr, text.encode())

    def _draw(self, text: str) -> None:
        if not text:
            return
        try:
            chunk = text.encode("utf-8", "replace")
            self.interruption.run_blocking(partial(_write, sys.stderr, chunk))
        except OSError:
            self.line = None


def _write(stream: TextIO, chunk: bytes) -> None:
    stream.flush()
    stream.buffer.write(chunk)
    stream.buffer.flush()


def spent_words(loop: Loop) -> str:
    """Return the money and tokens spent, and their limits; "" if there are none."""
    parts = []
    budget, most = loop.limits.budget_usd, loop.limits.max_tokens
    if loop.spent_usd or budget:
        parts.append(spent_of_budget(loop))
    if loop.spent_tokens or most:
        parts.append(f"{loop.spent_tokens}{f' of {most}' if most else ''} tokens")
    return ", ".join(parts)


def without_owner(loop: Loop) -> tuple[str, str]:
    """Return how a session comes to own this loop: in words, and a command without a user."""
    named = f"{LOOP_VARIABLE}={loop.id}"
    named = f'$env:{LOOP_VARIABLE}="{loop.id}";' if WINDOWS else named  # of PowerShell
    words = "No session owns it yet: start claude (your first prompt will bind it), or run:"
    return words, f"{named} claude -p PROMPT"


def unproven_lines(found: Unproven, most: int | None = None) -> list[str]:
    """Return a line for each manual check, at most `most`, and for the tasks and criteria."""
    lines = [f"manual: {it.check} (line {it.line}): {flat(it.text)}" for it in found.manual[:most]]
    if len(found.manual) > len(lines):
        lines.append(f"manual: {len(found.manual) - len(lines)} more; run: gsd-fsm plan check")
    for one, many, names in (
        ("task", "tasks", found.tasks),
        ("criterion", "criteria", found.criteria),
    ):
        if names:
            shown = ", ".join(map(flat, names[:_SHOWN_NAMES]))
            more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
            what = one if len(names) == 1 else many
            lines.append(f"claimed: {what} {shown}{more} (no machine check)")
    return lines


def unproven_facts(found: Unproven) -> dict[str, Any]:
    return {
        "manual": [it._asdict() for it in found.manual],
        "claimed_tasks": found.tasks,
        "claimed_criteria": found.criteria,
    }


def retry_words(loop: Loop, task_id: str) -> str:
    """Return which retry follows the last failure of a task."""
    task = loop.tasks[task_id]
    if task.errors[-1].error_class == "transient":
        return "It is retried once."
    return f"Retry {task.retries} of {loop.limits.max_retries}."


# settled tasks


def settled_facts(settled: Settled | None) -> dict[str, Any]:
    """Return what became of reported tasks, for scripts."""
    if settled is None:
        return {"proven": [], "claimed": [], "failed": [], "reported": []}
    words = settled.complete
    return {
        "proven": [name for name, word in words.items() if word == "proven"],
        "claimed": [name for name, word in words.items() if word == "claimed"],
        "failed": list(settled.failed),
        "reported": list(settled.deferred),
    }


def altered_lines(
    context: Context, loop: Loop, files: Sequence[Altered], named_below: int = 0
) -> Iterator[str]:
    """Yield how altered files differ from what counts, and how to undo it.

    The first `named_below` of them are only compared.
    """
    from gsd_fsm.engine.protection.accept import shown_difference

    for file in files:
        text = shown_difference(context, loop, file.path)
        yield quoted("Changed since the check was frozen", text, len(text))
    for file in files[named_below:]:
        yield f"Note: {flat(altered_advice(file))} Run: {altered_remedy(loop, file)}"


def settled_lines(context: Context, settled: Settled) -> Iterator[str]:
    """Yield what became of reported tasks, with the evidence of what failed."""
    loop = settled.receipt.loop
    for name, word in settled.complete.items():
        commit = settled.commits.get(name)
        made = f" Commit {commit[:12]}." if commit else ""
        yield f"Task {name} is complete ({word}).{made}"
    yield from (f"Note: {flat(note)}." for note in settled.notes)
    for name, results in settled.failed.items():
        errors = loop.tasks[name].errors
        if not results and errors:
            yield f"✗ {one_line(errors[-1].text, 300)}"
        for result in results:
            yield f"✗ check {result.key} failed: {one_line(result.text, 160)}"
            yield quoted("Evidence", result.evidence)
        failed = loop.tasks[name].status == "failed"
        retry = f" {retry_words(loop, name)}" if loop.status == "retrying" and failed else ""
        yield f"Task {name} {'failed' if failed else 'stays reported'}.{retry}"
    paths = {it["path"] for it in settled.altered}
    files = [file for file in loop.protection.altered if file.path in paths]
    yield from altered_lines(context, loop, files)
    yield from _left_lines(settled)


def _left_lines(settled: Settled) -> Iterator[str]:
    """Yield why tasks are still reported."""
    left = ", ".join(list(settled.deferred)[:20])
    if settled.missing:
        yield flat(f"{settled.missing[:1].upper()}{settled.missing[1:]}.")
    elif left and settled.awaited:
        due = ", ".join(settled.awaited[:20])
        checks = [key for keys in settled.deferred.values() for key in keys]
        deferred = f" ({', '.join(checks[:20])})" if checks else ""
        yield f"Reported: {left}. Their commands{deferred} run once these are reported: {due}."
    elif left:
        then = "" if settled.altered else " Run: gsd-fsm check"
        yield f"Reported and not proven yet: {left}.{then}"
    if settled.is_slow:
        yield "The checks took more than 90 s. Run gsd-fsm check in the background from now on."
