"""gsd-fsm check, criterion, exit-signal: prove criteria and tasks, and declare the work done."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from gsd_fsm.cli.call import Call, command_options, timeout_option
from gsd_fsm.cli.help import candidates
from gsd_fsm.cli.output import altered_lines, say, settled_facts, settled_lines
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import CheckFailed
from gsd_fsm.core.loop.completion import NO_TREE, awaits_complete, lacks_tree
from gsd_fsm.core.text.next_step import altered_remedy, altered_words, next_step
from gsd_fsm.core.text.questions import plural, watched_words
from gsd_fsm.engine import criteria

if TYPE_CHECKING:
    from gsd_fsm.core.loop.protection import Altered
    from gsd_fsm.engine.criteria import CheckRun


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=candidates.checks)
@timeout_option
@click.option("--complete", is_flag=True, help="Complete the loop if every check passes.")
@command_options
def check(call: Call, *, names: tuple[str, ...], timeout: int | None, complete: bool) -> None:
    """Run the checks of the loop and of its reported tasks.

    Without NAME all checks run; tasks that are reported are proven. Exit code 7 if a check fails.
    The end of the output is redacted and recorded as evidence. A check that is interrupted records nothing. If files change while the checks run,
    those that passed run once more.
    """
    from gsd_fsm.engine.check import check as run_all

    done = run_all(call.context, names, timeout=timeout, watch=call.screen)
    loop, run, settled = done.receipt.loop, done.run, done.settled
    lines = [*settled_lines(call.context, settled)] if settled else []
    words = "No task is reported." if settled and not lines and run is None else ""
    lines += _doubts(run) if run is not None else []
    if run is not None and not call.json and not run.is_passed:
        with contextlib.suppress(BrokenPipeError):  # the exit code counts even if nobody reads
            for line in lines:
                call.answer({}, line)
            named_below = 0 if run.failed or run.refused else 1
            for line in altered_lines(call.context, loop, _altered_files(run), named_below):
                say(line)
        _require_passed(run)
    facts = _facts(run)
    if settled is not None:
        facts["tasks"] = settled_facts(settled)
    if run is not None:
        words = f"{plural(len(run.outcomes), 'check')} passed."
    if complete and done.is_passed:
        from gsd_fsm.cli.lifecycle import complete_and_print

        call.context.loop_id = loop.id  # also if another loop has begun meanwhile
        complete_and_print(call, words, lines, **facts)
        return
    sentence, command = next_step(loop)
    facts["next"] = command
    call.print_checked(done.receipt, words, facts, lines=lines, is_passed=done.is_passed)
    if awaits_complete(loop) and not call.json:
        call.answer({}, f"{sentence} Run: {command}")


def _facts(run: CheckRun | None) -> dict[str, Any]:
    if run is None:
        return {"checks": {}, "failed": [], "tree": None, "edited": [], "altered": []}
    checks = {
        name: {
            "exit_code": outcome.exit_code,
            "timed_out": outcome.timed_out,
            "reruns": outcome.reruns,
            "flaky": name in run.flaky,
            "doubts": run.doubts.get(name, []),
        }
        for name, outcome in run.outcomes.items()
    }
    return {
        "checks": checks,
        "failed": [*run.failed, *run.refused],
        "tree": run.tree,
        "edited": run.edited,
        "altered": run.altered,
        "watched": run.watched,
    }


def _doubts(run: CheckRun) -> Iterator[str]:
    """Yield what a reader should know before relying on the results."""
    if run.flaky:
        yield f"Flaky: {', '.join(run.flaky)} passed and failed on the same content."
    for name, doubts in run.doubts.items():
        yield f"Doubtful: {name}: {'; '.join(doubts)}."
    if run.watched:
        yield f"Since the start: {watched_words(run.watched)}."
    if lacks_tree(run.receipt.loop):
        yield NO_TREE


def _altered_files(run: CheckRun) -> list[Altered]:
    paths = {it["path"] for it in run.altered}
    return [file for file in run.receipt.loop.protection.altered if file.path in paths]


def _require_passed(run: CheckRun) -> None:
    """Raise CheckFailed if a check failed, or if the content changed while the checks ran."""
    loop = run.receipt.loop
    failed, again = [*run.failed, *run.refused], command_line("check", loop.id)
    if not failed and run.altered:
        file = _altered_files(run)[0]
        advice = "It is as in the upstream branch. Ask the user to run" if file.upstream else "Run"
        raise CheckFailed(
            f"the checks passed, but their evidence does not count: {altered_words(file)}",
            f"{advice}: {altered_remedy(loop, file)}",
        )
    if failed:
        raise CheckFailed(
            f"{'check' if len(failed) == 1 else 'checks'} failed: {', '.join(failed)}",
            f"Fix the cause, then run: {again}",
        )
    if run.edited:
        raise CheckFailed(
            "the checks passed, but their evidence is stale: files were changed while they ran: "
            f"{criteria.named_files(run.edited)}",
            f"When nobody changes files, run: {again}",
        )


@click.command()
@click.argument("criterion_id", metavar="ID", shell_complete=candidates.criteria)
@click.argument("verdict", type=click.Choice(("met", "unmet")))
@command_options
def criterion(call: Call, *, criterion_id: str, verdict: str) -> None:
    """Declare a criterion met or unmet.

    ID is its text, name or number. A criterion with a check is met only by `gsd-fsm check`.
    """
    receipt = criteria.declare_criterion(call.context, criterion_id, met=verdict == "met")
    call.print_receipt(receipt, f"Criterion {criterion_id} is {verdict}.")


@click.command("exit-signal")
@click.option("--reason", metavar="TEXT", help="Why the work is done.")
@command_options
def exit_signal(call: Call, *, reason: str | None) -> None:
    """Declare the work done, without completing the loop.

    Refused while a criterion is unmet. `complete` does both.
    """
    call.print_receipt(criteria.give_exit_signal(call.context, reason), "Exit signal given.")
