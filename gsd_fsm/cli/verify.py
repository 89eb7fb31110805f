"""gsd-fsm verify, gap, verified: verify a plan, and record gaps and verdicts."""

from __future__ import annotations

from collections.abc import Iterator

import click

from gsd_fsm.cli.call import Call, command_options, timeout_option
from gsd_fsm.cli.help import candidates
from gsd_fsm.cli.output import advice_lines, altered_lines, flat
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import CheckFailed, UsageError
from gsd_fsm.core.loop.completion import open_verdicts
from gsd_fsm.core.loop.state import FINAL, Loop, open_gaps
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.core.text.questions import plural
from gsd_fsm.core.text.sanitize import one_line
from gsd_fsm.documents.journal_text import read_option
from gsd_fsm.engine import gaps
from gsd_fsm.engine.planned import verify as engine
from gsd_fsm.engine.planned.verify import GapsText, Round, Verification, named
from gsd_fsm.verify.gaps import tally
from gsd_fsm.verify.report import manual_checks
from gsd_fsm.verify.strategy import STRATEGIES, require_kind


@click.command()
@click.option("--phase", metavar="N", help="Exit with 2 unless the loop verifies this phase.")
@click.option(
    "--plan", "plan_name", metavar="FILE", help="Exit with 2 unless the loop follows this plan."
)
@click.option(
    "--gaps",
    "gaps_file",
    metavar="FILE|-",
    help="Read reported <gaps> from a file or stdin instead of VERIFICATION.md.",
)
@click.option(
    "--verdict",
    "verdict",
    nargs=2,
    type=(str, click.Choice(("pass", "fail"))),
    metavar="ID pass|fail",
    help="Judge a manual check, must-have or gap of the last round instead.",
)
@click.option("--evidence", metavar="TEXT", help="Evidence for the verdict.")
@timeout_option
@command_options
def verify(
    call: Call,
    *,
    phase: str | None,
    plan_name: str | None,
    gaps_file: str | None,
    verdict: tuple[str, str] | None,
    evidence: str | None,
    timeout: int | None,
) -> None:
    """Run the checks of the plan and the CI commands as one round.

    A failed check opens a gap, a passed one closes it. Gaps that an agent wrote into
    VERIFICATION.md are opened too. Manual checks, must-haves and gaps without a check each need a
    verdict. Without gaps and open verdicts the loop completes; with gaps, exit code 7. A run that
    is interrupted records nothing.
    """
    if verdict is not None:
        _judge(call, *verdict, evidence or "")
        return
    gaps = None
    if gaps_file is not None:
        gaps = GapsText(read_option(None, gaps_file, "the gaps") or "", gaps_file)
    done = engine.verify(
        call.context,
        phase=phase,
        plan=plan_name,
        gaps=gaps,
        timeout=timeout,
        watch=call.screen,
    )
    _print(call, done)


def _judge(call: Call, verdict_id: str, word: str, evidence: str) -> None:
    judged = engine.give_verdict(call.context, verdict_id, passed=word == "pass", evidence=evidence)
    loop = judged.receipt.loop
    words = f"Verdict on {verdict_id}: {word}."
    if judged.left and loop.verified:
        words += f" Still to be judged: {named(judged.left)}."
    call.print_receipt(judged.receipt, words, verdict=verdict_id, left=judged.left)
    if not call.json and not judged.left:
        sentence, command = next_step(loop)
        call.answer({}, f"Next: {one_line(sentence)}\nRun: {command}")


def _print(call: Call, done: Verification) -> None:
    """Print a round; exit with 7 if it did not pass."""
    loop, this = done.receipt.loop, done.round
    if not call.json:
        altered = altered_lines(call.context, loop, loop.protection.altered)
        call.answer({}, "\n".join([*_summary(done), *altered]))
        if not this.passed:
            raise CheckFailed(_verdict(loop, this), _hint(loop, this))
        return
    facts = {
        "round": loop.round,
        "max_rounds": loop.limits.max_rounds,
        "passed": this.passed,
        "checks": [result.facts() for result in this.results],
        "gaps": open_gaps(loop),
        "opened": this.opened,
        "closed": this.closed,
        "reopened": this.reopened,
        "manual": manual_checks(this.results),
        "report": str(done.report),
        "verdicts": [it.id for it in open_verdicts(loop)],
    }
    call.print_checked(done.receipt, "", facts, is_passed=this.passed)


def _summary(done: Verification) -> list[str]:
    """Return a line for each failed check, other open gap and manual check, then the totals."""
    loop, this = done.receipt.loop, done.round
    lines = [*_missed(loop, this)]
    lines += [
        f"? {result.key} {one_line(result.text, 160)}: {result.evidence}"
        for result in this.results
        if result.passed is None
    ]
    most = loop.limits.max_rounds
    changed = (("closed", this.closed), ("opened", this.opened), ("reopened", this.reopened))
    changes = ", ".join(f"{word} {named(ids)}" for word, ids in changed if ids)
    total = f"Round {loop.round}{f' of {most}' if most else ''}: {tally(this.results)}"
    lines.append(f"{total}; {changes}." if changes else f"{total}.")
    lines.append(f"Report: {done.report}")
    left = open_verdicts(loop) if this.passed else []
    lines += [f"? {it.id} needs a verdict: {one_line(it.text, 160)}" for it in left]
    if this.passed:
        what = "The checks passed" if left else "Verification passed"
        lines.append(f"{what}. Loop {loop.id} is {loop.status}.")
        if loop.status not in FINAL:
            lines += [*advice_lines(loop, "Next: "), f"Run: {flat(next_step(loop)[1])}"]
    return lines


def _missed(loop: Loop, this: Round) -> Iterator[str]:
    for miss in this.misses:
        gap = this.gap_of_check.get(miss.key, "")
        what = f"{f'{gap} ' if gap else ''}{miss.key} {one_line(miss.text, 120)}"
        yield f"✗ {what}: {one_line(miss.evidence, 160)}"
    shown = set(this.gap_of_check.values())
    for gap_id in open_gaps(loop):
        if gap_id not in shown:
            found = loop.gaps[gap_id]
            where = f" {one_line(found.file, 80)}" if found.file else ""
            yield f"✗ {gap_id} {found.kind}{where}: {one_line(found.description, 160)}"


def _verdict(loop: Loop, this: Round) -> str:
    """Return why the round did not pass, and the status of the loop if it needs the user."""
    ids = open_gaps(loop)
    words = f"verification found {plural(len(ids), 'open gap')}: {named(ids)}"
    unrecorded = sum(miss.key not in this.gap_of_check for miss in this.misses)
    if unrecorded:
        words += f"; {unrecorded} more failed checks will be reported by later rounds"
    if loop.status == "paused":
        words += (
            f"; loop {loop.id} is now paused ({loop.pause_code}): {one_line(loop.pause_reason)}"
        )
    elif loop.status == "waiting":
        words += f"; {one_line(loop.question)}"
    return words


def _hint(loop: Loop, this: Round) -> str:
    if this.remedy:
        return f"Fix the gaps by hand, then run: {this.remedy}"
    if loop.status in ("paused", "waiting"):
        return f"Run: {next_step(loop)[1]}"
    again = command_line("verify", loop.id)
    return f"Fix the gaps ({command_line('next', loop.id)}), then run: {again}"


@click.command()
@click.argument("action", type=click.Choice(("found", "close", "reopen")))
@click.argument("gap_id", metavar="[ID]", required=False, shell_complete=candidates.gaps)
@click.option(
    "--kind", default="other", help=f"Kind of gap: {', '.join(STRATEGIES)} (default: other)."
)
@click.option("--file", "file", metavar="PATH", help="File with the gap.")
@click.option("--description", metavar="TEXT", help="What is missing or wrong.")
@click.option("--evidence", metavar="TEXT", help="Evidence for the gap.")
@command_options
def gap(
    call: Call,
    *,
    action: str,
    gap_id: str | None,
    kind: str,
    description: str | None,
    **details: str | None,
) -> None:
    """Record, close or reopen a gap.

    The same kind, file and description found again is the same gap and keeps its id. Reopening a
    gap for the second time pauses the loop.
    """
    require_kind(kind)
    if action == "found":
        change = gaps.report_gap(
            call.context, description or "", kind=kind, gap_id=gap_id, **details
        )
    elif gap_id is None:
        raise UsageError("missing gap id", "Run: gsd-fsm status")
    else:
        done = "closed" if action == "close" else "reopened"
        change = gaps.change_gap(call.context, gap_id, done, description=description, **details)
    loop = change.receipt.loop
    paused = f" {loop.pause_reason}." if loop.status == "paused" else ""
    words = f"{change.action.capitalize()} gap {change.gap}.{paused}"
    call.print_receipt(change.receipt, words, gap=change.gap)


@click.command()
@click.argument("verdict", type=click.Choice(("pass", "fail")))
@click.option("--report", metavar="TEXT", help="Summary of the verification.")
@command_options
def verified(call: Call, *, verdict: str, report: str | None) -> None:
    """Record a verification round by hand.

    If this was the last round that the limit allows, the loop pauses, unless it can complete.
    """
    receipt = engine.record_round(call.context, passed=verdict == "pass", report=report)
    call.print_receipt(receipt, f"Verification {verdict}ed.")
