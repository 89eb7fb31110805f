"""Run the checks of a loop, declare criteria met, and give the exit signal."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.errors import CheckFailed, Refused, UsageError
from gsd_fsm.core.loop.state import FINAL, Loop
from gsd_fsm.core.text.sanitize import clean, one_line
from gsd_fsm.documents.journal_text import redact_and_truncate
from gsd_fsm.engine.content import content_of
from gsd_fsm.engine.context import Context, Receipt, one_of
from gsd_fsm.engine.protection.compare import record_finding
from gsd_fsm.engine.protection.witness import Witness
from gsd_fsm.evidence.interruption import Output, Watch, in_silence

if TYPE_CHECKING:
    from gsd_fsm.core.loop.records import Criterion
    from gsd_fsm.evidence.checks import Outcome
    from gsd_fsm.git.tree import Content

_MOST_NAMED = 20
_LONGEST_NAME = 60


class CheckRun(NamedTuple):
    """The outcome of each check that was run, by criterion, and what the evidence is worth.

    `tree` is the content after the last check. `changed` are the files that changed while the
    checks ran, `edited` those that no check wrote: then no criterion was met. `altered` are the
    protected files that differ, `refused` checks that passed with doubtful tests.
    """

    outcomes: dict[str, Outcome]
    receipt: Receipt
    tree: str | None
    flaky: list[str]
    changed: list[str]
    edited: list[str]
    altered: list[dict[str, Any]]
    refused: list[str]
    doubts: dict[str, list[str]]
    watched: Any

    @property
    def failed(self) -> list[str]:
        return [name for name, outcome in self.outcomes.items() if outcome.exit_code]

    @property
    def is_passed(self) -> bool:
        return not (self.failed or self.edited or self.altered or self.refused)


def run_checks(
    context: Context,
    names: Sequence[str] = (),
    *,
    timeout: float | None = None,
    watch: Watch = in_silence,
) -> CheckRun:
    """Run the checks of these criteria, or all, and record the evidence.

    Evidence belongs to the content after the last check. If files changed since before the first
    one, the checks that passed run once more: if only the same files change again, they wrote them
    themselves; if other files change, what passed is stale. If the output raises to end the
    commands, nothing is recorded.
    """
    loop = context.working_loop()
    if loop.status in FINAL:
        raise Refused(f"cannot check: loop {loop.id} is {loop.status}", "Run: gsd-fsm status")
    wanted = _wanted(loop, names)
    with watch() as output:
        checks = LoopChecks(context, loop, output, timeout)
        evidence, changed, edited = _settled(checks, wanted)
    witness, recorded = checks.witness, {}
    refused = [
        name
        for name, proof in evidence.items()
        if not proof.outcome.exit_code and witness.is_refused(name, proof.outcome)
    ]
    with context.writing(loop) as tx:
        record_finding(tx, witness.finding)
        for name, proof in evidence.items():
            passed = not proof.outcome.exit_code
            counts = not edited and witness.counts(name, proof.outcome)
            data: dict[str, Any] = {"criterion": name, "met": passed and counts}
            if passed and edited:
                data["stale"] = True
            criterion = tx.loop.criterion(name)
            about = witness.facts(name, proof.outcome, criterion.directory)
            recorded[name] = data["evidence"] = {**proof.facts(criterion, changed), **about}
            tx.append("criterion", data)
    outcomes = {name: proof.outcome for name, proof in evidence.items()}
    trees = [proof.after for proof in evidence.values() if proof.after]
    return CheckRun(
        outcomes,
        tx.receipt,
        trees[-1] if trees else None,
        [name for name, facts in recorded.items() if "flaky" in facts],
        changed,
        edited,
        [
            it
            for it in witness.finding.altered
            if any(it in witness.finding.of_check(n) for n in evidence)
        ],
        refused,
        {name: facts["doubts"] for name, facts in recorded.items() if "doubts" in facts},
        witness.finding.watched,
    )


class Proof(NamedTuple):
    """What a check returned, and the content before the first and after the last check of its run."""

    outcome: Outcome
    before: str | None
    after: str | None

    def facts(self, criterion: Criterion, changed: Sequence[str] = ()) -> dict[str, Any]:
        """Return the evidence as an event holds it."""
        outcome = self.outcome
        facts: dict[str, Any] = {
            "command": outcome.command,
            "shell": outcome.shell,
            "exit_code": outcome.exit_code,
            "tail": outcome.tail,
            "digest": outcome.digest,
            "likeness": outcome.likeness,
            "tree": self.after,
            "seconds": round(outcome.seconds, 3),
            "timed_out": outcome.timed_out,
        }
        if self.before not in (None, self.after):
            facts["before"] = self.before
            facts["changed"] = [redact_and_truncate(path, 300) for path in changed[:_MOST_NAMED]]
        if outcome.reruns:
            facts["reruns"] = outcome.reruns
        if criterion.is_flaky(facts):
            facts["flaky"] = True
        return facts


class LoopChecks:
    """Run the checks of one loop."""

    def __init__(
        self, context: Context, loop: Loop, output: Output, timeout: float | None = None
    ) -> None:
        settings = context.settings()
        self.context, self.loop, self.output = context, loop, output
        self.timeout = float(timeout or settings["check_timeout_seconds"])
        self.reruns = int(settings["check_reruns"])
        self.witness = Witness(context, loop)

    def run(self, names: Collection[str]) -> Iterator[tuple[str, Outcome]]:
        """Run the checks of these criteria, show their output, and yield each outcome."""
        shell = self.context.check_shell() if names else ""
        for number, name in enumerate(names, 1):
            criterion = self.loop.criteria[name]
            place = f"[{number}/{len(names)}] {name}"
            self.output.say(f"{place}: {criterion.check}")
            self.output.running([one_line(place, _LONGEST_NAME)])
            outcome = self._outcome(criterion, shell)
            self.output.running([])
            self.output.say(f"  {outcome.result}")
            if outcome.exit_code:
                self.output.quote(f"Output of the check {name}", outcome.tail)
            yield name, outcome

    def content(self) -> Content | None:
        """Return the content of the work tree, and compare what the checks depend on."""
        content = content_of(self.context, self.loop, self.output)
        self.witness.look(content)
        return content

    def _outcome(self, criterion: Criterion, shell: str) -> Outcome:
        from gsd_fsm.evidence.checks import run_check

        return run_check(
            criterion.check or "",
            self._directory(criterion),
            self.timeout,
            self.output.show,
            self.output.poll,
            shell=shell,
            reruns=self.reruns,
            variables=self.witness.variables,
        )

    def _directory(self, criterion: Criterion) -> Path:
        """Return where the check runs; raise CheckFailed if that is not in the project any more."""
        project = self.context.project
        real = Path(os.path.realpath(project / criterion.directory))
        if not real.is_dir() or not real.is_relative_to(os.path.realpath(project)):
            raise CheckFailed(
                f"check {criterion.name!r} runs in {criterion.directory}, "
                "which is not a directory of this project any more",
                f"Run: mkdir -p {criterion.directory}",
            )
        return project / criterion.directory


def _settled(
    checks: LoopChecks, names: Collection[str]
) -> tuple[dict[str, Proof], list[str], list[str]]:
    """Run the checks; return evidence, files that changed meanwhile, and those not by a check."""
    # A loop of version 1 takes the content only once, after the last check.
    before = checks.content() if checks.loop.rules else None
    outcomes, after = dict(checks.run(names)), checks.content()
    evidence = {name: _proof(outcome, before, after) for name, outcome in outcomes.items()}
    changed = _changes(before, after)
    passed = [name for name, outcome in outcomes.items() if not outcome.exit_code]
    if not changed or not passed:
        return evidence, changed, []
    checks.output.say(
        f"Files changed while the checks ran: {named_files(changed)}. "
        "Running the checks that passed once more."
    )
    outcomes, last = dict(checks.run(passed)), checks.content()
    again = {name: _proof(outcome, after, last) for name, outcome in outcomes.items()}
    return {**evidence, **again}, changed, [it for it in _changes(after, last) if it not in changed]


def _proof(outcome: Outcome, before: Content | None, after: Content | None) -> Proof:
    return Proof(outcome, before.tree if before else None, after.tree if after else None)


def _changes(before: Content | None, after: Content | None) -> list[str]:
    return after.changed_since(before) if before and after else []


def named_files(paths: Sequence[str]) -> str:
    """Return a list of files that fits into a message."""
    more = len(paths) - _MOST_NAMED
    named = ", ".join(one_line(path, 120) for path in paths[:_MOST_NAMED])
    return named + (f" and {more} more" if more > 0 else "")


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


def checked_criteria(loop: Loop) -> list[str]:
    """Return the criteria that have a check."""
    return [name for name, criterion in loop.criteria.items() if criterion.check is not None]


def _wanted(loop: Loop, names: Sequence[str]) -> list[str]:
    """Return these criteria, or all that have a check; raise UsageError if one has none."""
    chosen = list(dict.fromkeys(find_criterion(loop, name) for name in names))
    without = [name for name in chosen if loop.criteria[name].check is None]
    if without:
        raise UsageError(f"no check for: {', '.join(without)}", "Run: gsd-fsm criterion ID met")
    found = chosen or checked_criteria(loop)
    if not found:
        raise UsageError(
            f"loop {loop.id} has no checks; they come from 'start' and SHAPE.md",
            "Run: gsd-fsm criterion ID met",
        )
    return found
