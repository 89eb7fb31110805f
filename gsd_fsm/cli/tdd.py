"""gsd-fsm tdd: red, green and refactor, decided by the exit code of the tests."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import Call, command_options, timeout_option
from gsd_fsm.cli.help import candidates
from gsd_fsm.cli.output import new_nonce, say
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import CheckFailed
from gsd_fsm.engine.planned.tdd import TddState, begin_cycle, run_tests
from gsd_fsm.subagents.failure_report import failure_report


@click.command()
@click.argument("task_id", metavar="ID", shell_complete=candidates.tasks)
@click.option(
    "--run", "runs", is_flag=True, help="Run the test command; its result decides the phase."
)
@timeout_option
@command_options
def tdd(call: Call, *, task_id: str, runs: bool, timeout: int | None) -> None:
    """Show the TDD phase of a task, or run its tests.

    Red must fail; green must pass within tdd_max_attempts; a failed refactoring is undone, and the
    task is complete. Changing a locked file fails the task. Exit code 7 if the phase did not pass.
    """
    if runs:
        state = run_tests(call.context, task_id, timeout=timeout, watch=call.screen)
    else:
        state = begin_cycle(call.context, task_id)
    _print_state(call, state)
    loop = state.receipt.loop
    if state.task.status == "failed" and loop.status == "paused" and not call.json:
        say(failure_report(loop, state.task.id, new_nonce()))
    if not state.passed:
        raise click.exceptions.Exit(CheckFailed.exit_code)


def _print_state(call: Call, state: TddState) -> None:
    rules, task, limits = state.rules, state.task, state.receipt.loop.limits
    call.print_receipt(
        state.receipt,
        f"{state.message}{_next_run(state)}".strip(),
        task=task.id,
        phase=rules.phase,
        exit_code=task.exit_code,
        attempt=0 if rules.phase == "red" else task.attempts,
        max_attempts=limits.tdd_max_attempts,
        allowed=list(rules.allowed),
        locked=list(rules.locked),
        test_command=state.test_command,
        passed=state.passed,
    )


def _next_run(state: TddState) -> str:
    """Return the rules of the phase, and the command that ends it."""
    rules, task, loop = state.rules, state.task, state.receipt.loop
    if task.status != "running":
        return ""
    attempt = f" (attempt {task.attempts} of {loop.limits.tdd_max_attempts})"
    return (
        f" {rules.phase.upper()}{attempt if rules.phase == 'green' else ''}: "
        f"{rules.goal.rstrip('.')}. May change: {', '.join(rules.allowed) or 'no file'}. "
        f"Locked: {', '.join(rules.locked) or 'nothing'}. Done when {rules.success}: "
        f"{command_line('tdd', loop.id, f'{task.id} --run')}."
    )
