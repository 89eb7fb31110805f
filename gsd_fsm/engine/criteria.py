"""Run the checks of a loop, declare criteria met, and give the exit signal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.core.loop.state import FINAL, Loop
from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.documents.journal_text import redact_and_truncate
from gsd_fsm.engine.context import Context, Receipt, one_of
from gsd_fsm.evidence.interruption import Watch, in_silence

if TYPE_CHECKING:
    from gsd_fsm.evidence.checks import Outcome


class CheckRun(NamedTuple):
    """The outcome of each check that was run, by criterion."""

    outcomes: dict[str, Outcome]
    receipt: Receipt

    @property
    def failed(self) -> list[str]:
        return [name for name, outcome in self.outcomes.items() if outcome.exit_code]


def run_checks(
    context: Context,
    names: Sequence[str] = (),
    *,
    timeout: float | None = None,
    watch: Watch = in_silence,
) -> CheckRun:
    """Run the checks of these criteria, or all, and record the evidence.

    If the output raises to end the commands, nothing is recorded.
    """
    from gsd_fsm.evidence.checks import run_check
    from gsd_fsm.git.tree import content_tree

    loop = context.loop(context.read())
    if loop.status in FINAL:
        raise Refused(f"cannot check: loop {loop.id} is {loop.status}", "Run: gsd-fsm status")
    wanted = _wanted(loop, names)
    limit = float(timeout or context.settings()["check_timeout_seconds"] or 0)
    outcomes: dict[str, Outcome] = {}
    with watch() as output:
        for number, (name, command) in enumerate(wanted.items(), 1):
            output.say(f"[{number}/{len(wanted)}] {name}: {command}")
            outcome = run_check(command, context.project, limit, output.show, output.poll)
            output.say(_verdict(outcome))
            outcomes[name] = outcome
    # The content is read once, after the last check, because checks may write files themselves.
    tree = content_tree(context.project)
    with context.writing(loop) as tx:
        for name, outcome in outcomes.items():
            data = {"criterion": name, "met": outcome.exit_code == 0}
            tx.append("criterion", {**data, "evidence": _evidence(outcome, tree)})
    return CheckRun(outcomes, tx.receipt)


def declare_criterion(context: Context, name: str, *, met: bool) -> Receipt:
    """Declare a criterion met or unmet; one that has a check is met only by its check."""
    with context.writing() as tx:
        tx.append("criterion", {"criterion": find_criterion(tx.loop, name), "met": met})
    return tx.receipt


def give_exit_signal(context: Context, reason: str | None = None) -> Receipt:
    """Record that the work is done; refused while a criterion is unmet."""
    return context.append("exit", {"reason": redact_and_truncate(reason)} if reason else {})


def find_criterion(loop: Loop, wanted: str) -> str:
    """Return the criterion with this name or number; raise UsageError if there is none."""
    wanted = clean(wanted).strip()
    if wanted in loop.criteria:
        return wanted
    names = list(loop.criteria)
    if wanted.isdecimal() and len(wanted) < 10 and 1 <= int(wanted) <= len(names):
        return names[int(wanted) - 1]
    known = one_of(f"{number} {name}" for number, name in enumerate(names, 1))
    raise UsageError(f"loop {loop.id} has no criterion {wanted!r}", known)


def _wanted(loop: Loop, names: Sequence[str]) -> dict[str, str]:
    """Return the commands of these criteria, or of all that have one."""
    chosen = [find_criterion(loop, name) for name in names]
    without = [name for name in chosen if loop.criteria[name].check is None]
    if without:
        raise UsageError(f"no check for: {', '.join(without)}", "Run: gsd-fsm criterion ID met")
    checks = {name: loop.criteria[name].check for name in chosen or loop.criteria}
    found = {name: command for name, command in checks.items() if command is not None}
    if not found:
        raise UsageError(
            f"loop {loop.id} has no checks; they come from 'start' and SHAPE.md",
            "Run: gsd-fsm criterion ID met",
        )
    return found


def _evidence(outcome: Outcome, tree: str | None) -> dict[str, Any]:
    return {
        "command": outcome.command,
        "exit_code": outcome.exit_code,
        "tail": outcome.tail,
        "digest": outcome.digest,
        "likeness": outcome.likeness,
        "tree": tree,
        "seconds": round(outcome.seconds, 3),
        "timed_out": outcome.timed_out,
    }


def _verdict(outcome: Outcome) -> str:
    if outcome.timed_out:
        return f"  timed out after {outcome.seconds:.0f} s"
    state = "passed" if outcome.exit_code == 0 else f"failed with exit code {outcome.exit_code}"
    return f"  {state} in {outcome.seconds:.1f} s"
