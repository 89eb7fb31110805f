"""A round in words: what was missed, what changed, and what to do next."""

from __future__ import annotations

from gsd_fsm.core.advice import next_step
from gsd_fsm.core.loop import Loop, open_gaps
from gsd_fsm.core.quote import one_line
from gsd_fsm.core.table import FINAL
from gsd_fsm.verification.result import tally
from gsd_fsm.verification.round import Round, named


def summary(loop: Loop, this: Round, report: str) -> list[str]:
    """One line for each miss, for each other gap and for each check by hand; then the sum."""
    lines = []
    for miss in this.misses:
        gap = this.gap_of_check.get(miss.key, "")
        evidence = one_line(miss.evidence, 160)
        lines.append(
            f"✗ {f'{gap} ' if gap else ''}{miss.key} {one_line(miss.text, 120)}: {evidence}"
        )
    for gap_id in open_gaps(loop):
        if gap_id not in this.gap_of_check.values():
            gap = loop.gaps[gap_id]
            where = f" {one_line(gap['file'], 80)}" if gap["file"] else ""
            lines.append(f"✗ {gap_id} {gap['kind']}{where}: {one_line(gap['description'], 160)}")
    lines += [
        f"? {result.key} {one_line(result.text, 160)}: {result.evidence}"
        for result in this.results
        if result.passed is None
    ]
    most = loop.limits["max_rounds"]
    changes = ", ".join(
        f"{word} {named(ids)}"
        for word, ids in (
            ("closed", this.closed),
            ("opened", this.opened),
            ("reopened", this.reopened),
        )
        if ids
    )
    told = f"Round {loop.round}{f' of {most}' if most else ''}: {tally(this.results)}"
    lines.append(f"{told}; {changes}." if changes else f"{told}.")
    lines.append(f"Report: {report}")
    if this.passed:
        lines.append(f"Verification passed. Loop {loop.id} is {loop.status}.")
        if loop.status not in FINAL:
            words, command = next_step(loop)
            lines += [f"Next: {one_line(words)}", f"Run: {command}"]
    return lines


def verdict(loop: Loop, this: Round) -> str:
    """Why the round did not pass, and where the loop stands now."""
    ids = open_gaps(loop)
    said = f"verification found {len(ids)} open gap{'' if len(ids) == 1 else 's'}: {named(ids)}"
    unrecorded = sum(miss.key not in this.gap_of_check for miss in this.misses)
    if unrecorded:
        said += f"; {unrecorded} more missed, of which later rounds tell"
    if loop.status == "paused":
        said += f"; loop {loop.id} is now paused ({loop.pause_code}): {one_line(loop.pause_reason)}"
    elif loop.status == "waiting":
        said += f"; {one_line(loop.question)}"
    return said


def hint(loop: Loop, this: Round) -> str:
    if this.remedy:
        return f"this takes a human: fix what is left by hand, then {this.remedy}"
    if loop.status in ("paused", "waiting"):
        return next_step(loop)[1]
    run = f"gsd-fsm --loop {loop.id}"
    return f"fix them ('{run} next' tells how), then {run} verify"
