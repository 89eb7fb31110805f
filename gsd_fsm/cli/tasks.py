"""gsd-fsm iterate, task, fail, report, spend, note: record the work of a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gsd_fsm.cli.call import COUNT, Amount, Call, verb
from gsd_fsm.cli.output import say, spent_words, warn
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.loop.events.tasks import ERROR_CLASSES, TDD_PHASES
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.documents.journal_text import keep, read_text

if TYPE_CHECKING:
    from gsd_fsm.engine.report import Reported


@click.command()
@verb
def iterate(call: Call) -> None:
    """Begin an iteration by hand, if no hook does it.

    A limit that is used up pauses the loop instead (exit code 4).
    """
    from gsd_fsm.engine.tasks import iterate as begin_iteration

    receipt = begin_iteration(call.context)
    loop, most = receipt.loop, receipt.loop.limits.max_iterations
    call.print_receipt(receipt, f"Iteration {loop.iteration}{f'/{most}' if most else ''}.")


@click.command()
@click.argument("task_id", metavar="ID")
@click.argument(
    "status",
    type=click.Choice(("pending", "running", "complete", "failed", "checkpoint", "skipped")),
)
@click.option("--title", metavar="TEXT", help="Title of a new task.")
@click.option(
    "--blocked-by",
    "blocked_by",
    multiple=True,
    metavar="ID",
    help="A task that must be done before this pending one (repeatable, or separated by commas).",
)
@click.option("--commit", metavar="SHA", help="The commit with its result.")
@click.option("--ref", metavar="ID", help="The client's id of the background task that does it.")
@click.option("--phase", type=click.Choice(TDD_PHASES), help="TDD phase of the task.")
@click.option("--question", metavar="TEXT", help="The decision that a checkpoint needs.")
@verb
def task(
    call: Call, *, task_id: str, status: str, blocked_by: tuple[str, ...], **details: str | None
) -> None:
    """Set the status of a task: pending → running → complete, failed, checkpoint or skipped.

    Pending adds a task, or makes one that has not begun wait for others.
    """
    if status == "failed":
        if blocked_by or any(details.values()):
            raise UsageError(
                "a failure takes none of these options", f"Run: gsd-fsm fail {task_id} --error TEXT"
            )
        _fail(call, task_id, "reported as failed, without an error")
        return
    from gsd_fsm.engine.tasks import record_task
    from gsd_fsm.engine.work_specs import split_ids

    depends = split_ids(blocked_by)
    change = record_task(call.context, task_id, status, depends=depends, **details)
    if change.warning:
        warn(change.warning)
    call.print_receipt(change.receipt, f"Task {task_id} is {status}.{_asked(change.receipt.loop)}")


@click.command()
@click.argument("task_id", metavar="[ID]", required=False)
@click.option("--error", metavar="TEXT", help="The error message.")
@click.option("--error-file", metavar="FILE|-", help="Read the error from a file or stdin.")
@click.option(
    "--class",
    "error_class",
    type=click.Choice(ERROR_CLASSES),
    help="Class of the error (default: by published patterns).",
)
@click.option("--analysis", metavar="TEXT", help="Why it failed.")
@click.option("--fix", metavar="TEXT", help="What to try next.")
@verb
def fail(
    call: Call, *, task_id: str | None, error: str | None, error_file: str | None, **why: str | None
) -> None:
    """Record that a task, or the loop, has failed.

    It is retried while retries are left; transient errors once; blocking and unknown ones pause.
    """
    _fail(call, task_id, read_text(error, error_file, "the error") or "", **why)


def _fail(call: Call, task_id: str | None, error: str, **why: str | None) -> None:
    from gsd_fsm.engine.tasks import record_failure

    failure = record_failure(call.context, task_id, error, **why)
    loop = failure.receipt.loop
    words = f"{f'Task {task_id}' if task_id else 'The loop'} failed ({failure.error_class})."
    if loop.status == "paused":
        words += f" {loop.pause_reason}."
    elif task_id:
        words += f" Retry {loop.tasks[task_id].retries} of {loop.limits.max_retries}."
    call.print_receipt(failure.receipt, words + _asked(loop))


def _asked(loop: Loop) -> str:
    return f" {loop.question}" if loop.status == "waiting" else ""


@click.command()
@click.argument("task_id", metavar="ID")
@click.option("--file", "file", metavar="FILE|-", default="-", help="The output; default: stdin.")
@click.option("--commit", metavar="SHA", help="The commit with the result, if you made one.")
@verb
def report(call: Call, *, task_id: str, file: str, commit: str | None) -> None:
    """Record the output of the subagent that did a task or fixed a gap.

    The output must contain exactly one verdict: TASK COMPLETE, TASK FAILED: reason, or CHECKPOINT:
    decision. It may also contain lines NEW ISSUE: [severity] text.
    """
    from gsd_fsm.engine.report import report_task

    output = read_text(None, file, "the output") or ""
    reported = report_task(call.context, task_id, output, commit)
    for warning in reported.warnings:
        warn(warning)
    facts = {"task": reported.task, "verdict": reported.result.verdict}
    call.print_receipt(
        reported.receipt, _words(reported), **facts, commit=reported.commit, tag=reported.tag
    )
    if not call.json and not reported.repeated:
        _print_context(call, reported)


def _words(reported: Reported) -> str:
    loop, name, verdict = reported.receipt.loop, reported.task, reported.result.verdict
    if reported.repeated:
        return f"Task {name} was already complete."
    what = f"Gap {name}" if name in loop.gaps else f"Task {name}"
    if verdict == "failed":
        task = loop.tasks[name]
        words = f"{what} failed ({task.errors[-1].error_class})."
        if loop.status == "retrying":
            words += f" Retry {task.retries} of {loop.limits.max_retries}."
    elif verdict == "checkpoint":
        words = f"{what} needs a decision."
    else:
        words = f"{what} is {'closed' if name in loop.gaps else 'complete'}."
        if reported.commit:
            words += f" Commit {reported.commit[:12]}."
    if loop.status == "paused":
        words += f" {(loop.pause_reason or '').rstrip('.')}."
    elif loop.status == "waiting":
        words += f" {' '.join((loop.question or '').split())}"
    return words


def _print_context(call: Call, reported: Reported) -> None:
    """Print the whole context if a human is needed, else the next step."""
    loop, verdict = reported.receipt.loop, reported.result.verdict
    if verdict == "checkpoint" and loop.status == "waiting":
        from gsd_fsm.subagents.failure_report import checkpoint_report

        say(checkpoint_report(loop, reported.task, reported.result))
    elif verdict == "failed" and loop.status == "paused":
        from gsd_fsm.subagents.failure_report import failure_report

        say(failure_report(loop, reported.task))
    else:
        words, command = next_step(loop)
        say(display(f"Next: {words}"))
        say(display(f"Run: {command.replace('gsd-fsm', call.command, 1)}"))


@click.command()
@click.argument("usd", type=Amount(), required=False)
@click.option("--tokens", type=COUNT, metavar="N", help="Number of tokens used.")
@click.option("--what", metavar="TEXT", help="Purpose of the spending.")
@verb
def spend(call: Call, *, usd: float | None, tokens: int | None, what: str | None) -> None:
    """Record money or tokens spent; a used-up budget pauses the loop unless it can complete."""
    if usd is None and tokens is None:
        raise UsageError("no amount given", "Run: gsd-fsm spend USD [--tokens N]")
    from gsd_fsm.engine.notes import spend as spend_budget

    proof = spend_budget(call.context, usd, tokens, keep(what, 1_000) if what else None)
    loop = proof.loop
    more = f" To continue: {next_step(loop)[1]}." if loop.status == "paused" else ""
    call.print_receipt(proof, f"{spent_words(loop) or 'Nothing'} spent.{more}")


@click.command()
@click.argument("text", required=False)
@click.option("--file", "file", metavar="FILE|-", help="Read the note from a file or stdin.")
@verb
def note(call: Call, *, text: str | None, file: str | None) -> None:
    """Leave a note for the agent; the next block delivers it, once."""
    words = read_text(text, file, "the note") or ""
    if not words.strip():
        raise UsageError("a note needs its text", "Run: gsd-fsm note TEXT")
    from gsd_fsm.engine.notes import leave_note

    call.print_receipt(leave_note(call.context, keep(words, 4_000)), "Noted.")
