"""gsd-fsm report: record the output of a subagent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gsd_fsm.cli.call import Call, command_options, timeout_option
from gsd_fsm.cli.help import candidates
from gsd_fsm.cli.output import (
    advice_lines,
    flat,
    new_nonce,
    retry_words,
    say,
    settled_facts,
    settled_lines,
)
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.documents.journal_text import read_option

if TYPE_CHECKING:
    from gsd_fsm.engine.planned.report import Reported


@click.command()
@click.argument("task_id", metavar="ID", shell_complete=candidates.tasks_and_gaps)
@click.option(
    "--file",
    "file",
    metavar="FILE|-",
    default="-",
    help="Read the output from a file (default: stdin).",
)
@click.option("--commit", metavar="SHA", help="Commit with the result, if you made one.")
@timeout_option
@command_options
def report(call: Call, *, task_id: str, file: str, commit: str | None, timeout: int | None) -> None:
    """Record the output of a subagent, then prove its task or gap.

    The output must contain exactly one verdict: TASK COMPLETE, TASK FAILED: reason, or CHECKPOINT:
    decision. It may also contain lines NEW ISSUE: [severity] text. A task is complete once its
    checks pass (exit code 7 if one fails). In a parallel wave commands run when all of its tasks
    are reported.
    """
    from gsd_fsm.engine.planned.report import report_task

    output = read_option(None, file, "the output") or ""
    watch = call.screen
    reported = report_task(call.context, task_id, output, commit, timeout=timeout, watch=watch)
    facts: dict[str, Any] = {"task": reported.task, "verdict": reported.result.verdict}
    facts |= {"commit": reported.commit, "tag": reported.tag, **settled_facts(reported.settled)}
    settled = reported.settled
    is_passed = settled is None or settled.is_passed
    with call.checked(is_passed=is_passed):
        lines = _settled(call, reported)
        call.print_receipt(reported.receipt, _words(reported, lines), lines, **facts)
        if not call.json and not reported.repeated:
            _print_context(call, reported)


def _settled(call: Call, reported: Reported) -> list[str]:
    """Return what became of this task and of others that were reported before."""
    settled = reported.settled
    if reported.repeated or settled is None or reported.result.verdict != "complete":
        return []
    return [*settled_lines(call.context, settled)]


def _words(reported: Reported, settled: list[str]) -> str:
    loop, name, verdict = reported.receipt.loop, reported.task, reported.result.verdict
    if reported.repeated:
        return f"Task {name} was already complete."
    what = f"Gap {name}" if name in loop.gaps else f"Task {name}"
    if settled:
        words = ""
    elif name in loop.tasks and loop.tasks[name].status == "reported":
        words = f"{what} is reported. It is settled by gsd-fsm check, once the loop is resumed."
    elif verdict == "failed":
        task = loop.tasks[name]
        words = f"{what} failed ({task.errors[-1].error_class})."
        if loop.status == "retrying":
            words += f" {retry_words(loop, name)}"
    elif verdict == "checkpoint":
        words = f"{what} needs a decision."
    else:
        words = f"{what} is {'closed' if name in loop.gaps else 'complete'}."
        if reported.commit:
            words += f" Commit {reported.commit[:12]}."
    if loop.status == "paused":
        words += f" {(loop.pause_reason or '').rstrip('.')}."
    elif loop.status == "waiting":
        words += f" {loop.question or ''}"
    return words


def _print_context(call: Call, reported: Reported) -> None:
    """Print the whole context if a human is needed, else the next step."""
    loop, verdict = reported.receipt.loop, reported.result.verdict
    if verdict == "checkpoint" and loop.status == "waiting":
        from gsd_fsm.subagents.failure_report import checkpoint_report

        say(checkpoint_report(loop, reported.task, reported.result, new_nonce()))
    elif verdict == "failed" and loop.status == "paused":
        from gsd_fsm.subagents.failure_report import failure_report

        say(failure_report(loop, reported.task, new_nonce()))
    else:
        # The question of a waiting loop was printed above.
        lines = [] if loop.status == "waiting" else advice_lines(loop, "Next: ")
        if reported.settled and reported.settled.failed:
            del lines[1:]  # so was the evidence
        say("\n".join([*lines, f"Run: {flat(next_step(loop)[1])}"]))
