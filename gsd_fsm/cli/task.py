"""gsd-fsm task, fail, iterate: record the work of a loop."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import Call, command_options
from gsd_fsm.cli.help import candidates
from gsd_fsm.cli.output import new_nonce, retry_words, say, settled_facts, settled_lines
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.loop.events.tasks import ERROR_CLASSES, TDD_PHASES
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.documents.journal_text import read_option


@click.command()
@command_options
def iterate(call: Call) -> None:
    """Begin an iteration by hand.

    With the hook, each block begins one. If a limit is reached, the loop pauses instead (exit code 4).
    """
    from gsd_fsm.engine.tasks import iterate as begin_iteration

    receipt = begin_iteration(call.context)
    loop, most = receipt.loop, receipt.loop.limits.max_iterations
    call.print_receipt(receipt, f"Iteration {loop.iteration}{f'/{most}' if most else ''}.")


@click.command()
@click.argument("task_id", metavar="ID", shell_complete=candidates.tasks)
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
    shell_complete=candidates.tasks,
    help="Task to finish before this pending one (repeatable, or comma-separated).",
)
@click.option("--commit", metavar="SHA", help="Commit with the result.")
@click.option("--ref", metavar="ID", help="Id of the client's background task that does the work.")
@click.option("--phase", type=click.Choice(TDD_PHASES), help="TDD phase of the task.")
@click.option("--question", metavar="TEXT", help="Decision that the checkpoint needs.")
@command_options
def task(
    call: Call, *, task_id: str, status: str, blocked_by: tuple[str, ...], **details: str | None
) -> None:
    """Set the status of a task.

    pending → running → complete, failed, checkpoint or skipped. `pending` adds a task, or makes
    one that has not started wait for others.
    """
    if status == "failed":
        if blocked_by or any(details.values()):
            raise UsageError(
                "options are not allowed with failed", f"Run: gsd-fsm fail {task_id} --error TEXT"
            )
        _fail(call, task_id, "failed without an error message")
        return
    from gsd_fsm.engine.tasks import record_task
    from gsd_fsm.engine.work_specs import split_ids

    depends = split_ids(blocked_by)
    change = record_task(call.context, task_id, status, depends=depends, **details)
    words = f"Task {task_id} is {change.status}."
    if change.is_request:
        words = f"The user will be asked whether to skip task {task_id}."
    if change.settled is not None:
        lines = [*settled_lines(call.context, change.settled)]
        call.print_checked(
            change.receipt,
            "" if lines else words,
            settled_facts(change.settled),
            lines=lines,
            is_passed=change.settled.is_passed,
        )
        return
    call.print_receipt(change.receipt, f"{words}{_asked(change.receipt.loop)}")


@click.command()
@click.argument("task_id", metavar="[ID]", required=False, shell_complete=candidates.tasks)
@click.option("--error", metavar="TEXT", help="Error message.")
@click.option("--error-file", metavar="FILE|-", help="Read the error from a file or stdin.")
@click.option(
    "--class",
    "error_class",
    type=click.Choice(ERROR_CLASSES),
    help="Class of the error (default: detected from the message).",
)
@click.option("--analysis", metavar="TEXT", help="Cause of the failure.")
@click.option("--fix", metavar="TEXT", help="What to try next.")
@command_options
def fail(
    call: Call, *, task_id: str | None, error: str | None, error_file: str | None, **why: str | None
) -> None:
    """Record that a task, or the loop, failed.

    A logic error is retried while retries are left, a transient error once. Blocking and unknown
    errors pause the loop.
    """
    _fail(call, task_id, read_option(error, error_file, "the error") or "", **why)


def _fail(call: Call, task_id: str | None, error: str, **why: str | None) -> None:
    from gsd_fsm.engine.tasks import record_failure

    failure = record_failure(call.context, task_id, error, **why)
    loop = failure.receipt.loop
    words = f"{f'Task {task_id}' if task_id else 'The loop'} failed ({failure.error_class})."
    if loop.status == "paused":
        words += f" {loop.pause_reason}."
    elif task_id:
        words += f" {retry_words(loop, task_id)}"
    call.print_receipt(failure.receipt, words + _asked(loop))
    if task_id and loop.status == "paused" and not call.json:
        from gsd_fsm.subagents.failure_report import failure_report

        say(failure_report(loop, task_id, new_nonce()))


def _asked(loop: Loop) -> str:
    return f" {loop.question}" if loop.status == "waiting" else ""
