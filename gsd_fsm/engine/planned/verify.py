"""Verify a plan: run its checks, record rounds, gaps and verdicts, and write the report."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import NotFound, Refused, UsageError
from gsd_fsm.core.loop.completion import (
    has_tree,
    is_complete,
    latest_tree,
    needs_clean_room,
    open_verdicts,
)
from gsd_fsm.core.loop.decisions import due_events
from gsd_fsm.core.loop.events.sessions import is_decided
from gsd_fsm.core.loop.limits import LimitReached, oscillation, used_up_limit
from gsd_fsm.core.loop.state import FINAL, Loop, open_gaps
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.core.text.sanitize import one_line
from gsd_fsm.documents.journal_text import redact_and_truncate
from gsd_fsm.engine.content import content_of, tree_of
from gsd_fsm.engine.context import Context, LoopTransaction, Receipt, one_of
from gsd_fsm.engine.gaps import texts_of_gap
from gsd_fsm.engine.planned.plan import (
    append_plan_change,
    append_question,
    frozen_plan,
    has_changed,
    plan_path,
)
from gsd_fsm.engine.protection.compare import record_finding
from gsd_fsm.engine.protection.freeze import portions
from gsd_fsm.engine.protection.protect import ci_commands, note_changed_commands
from gsd_fsm.engine.protection.witness import Witness
from gsd_fsm.evidence.interruption import Watch, in_silence
from gsd_fsm.verify.ci import ci_checks
from gsd_fsm.verify.gaps import (
    MAX_EVIDENCE,
    gap_data,
    gap_event,
    known_gaps,
    same_gap,
    tally,
)

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan
    from gsd_fsm.verify.gaps import Result
    from gsd_fsm.verify.reported_gaps import ReportedGap

_MOST_NAMED = 20
MAX_VERDICT = 300
_VERDICTS_PER_EVENT = 25


class Round(NamedTuple):
    """The results of one round of verification, and the gaps that it changed.

    `gap_of_check` names the open gap of each missed check, `remedy` the command that lifts the
    limit at which this round paused the loop.
    """

    results: list[Result]
    opened: list[str]
    closed: list[str]
    reopened: list[str]
    gap_of_check: dict[str, str]
    passed: bool = False
    remedy: str = ""

    @property
    def misses(self) -> list[Result]:
        return [result for result in self.results if result.passed is False]

    @property
    def altered(self) -> list[Result]:
        return [result for result in self.results if result.altered]


class Verification(NamedTuple):
    """A recorded round, and the file that reports it."""

    round: Round
    report: Path
    receipt: Receipt


class GapsText(NamedTuple):
    """A text with `<gaps>`, and the name of its file for error messages."""

    text: str
    name: str


def verify(
    context: Context,
    *,
    phase: str | None = None,
    plan: str | None = None,
    gaps: GapsText | None = None,
    timeout: float | None = None,
    watch: Watch = in_silence,
) -> Verification:
    """Run the checks of the plan and the CI commands, and record one round.

    `phase` and `plan` must be the loop's, if given. `gaps` replaces the `<gaps>` that an agent wrote
    into VERIFICATION.md. If the output raises to end the commands, nothing is recorded.
    """
    from gsd_fsm.verify.report import read_report, report_directory, report_facts, write_report
    from gsd_fsm.verify.run import run_plan_checks

    loop = _chosen(context, phase, plan)
    project, settings = context.project, context.settings()
    its_plan = _unchanged_plan(context, loop)
    ci = ci_commands(loop, settings)
    if its_plan is None and not ci:
        raise UsageError(
            f"loop {loop.id} has nothing to verify: no plan, and no CI command",
            _way_to_verify(loop, settings),
        )
    note_changed_commands(context, loop, ci, ci_checks(settings))
    directory = report_directory(project, its_plan, loop.phase)
    before = read_report(project, directory)
    witness = Witness(context, loop)
    witness.look(content_of(context, loop) if witness.is_needed else None)
    reported = _reported(loop, gaps, before, directory)
    limit = float(timeout or settings["check_timeout_seconds"])
    with watch() as output:
        results = run_plan_checks(
            its_plan,
            project,
            ci,
            limit,
            output,
            find_shell=context.check_shell,
            reruns=settings["check_reruns"],
            variables=witness.variables,
            judged=witness.judged,
        )
    if loop.rules is None and not reported and all(it.passed is None for it in results):
        raise UsageError(
            f"loop {loop.id} has only manual checks ({len(results)})",
            f"Do them, then run: {command_line('verified pass', loop.id)}",
        )
    content = content_of(context, loop)
    witness.look(content)
    results = [witness.marked(result) for result in results]
    with context.writing(loop) as tx:
        _require_active(tx.loop)
        record_finding(tx, witness.finding)
        must_haves = its_plan.must_haves if its_plan else ()
        ran = [witness.ran(result) for result in results if result.outcome is not None]
        tree = content.tree if content else None
        this = append_round(tx, results, reported, must_haves, tree=tree, ran=ran)
        append_question(tx)
    facts = report_facts(tx.loop, results, passed=this.passed)
    report = write_report(project, directory, facts, its_plan, before)
    return Verification(this, report, tx.receipt)


# the loop and its plan


def _way_to_verify(loop: Loop, settings: Mapping[str, Any]) -> str:
    """Return how a loop without a check gets one: commands of the settings count once accepted."""
    for name in ci_checks(settings):
        return f"Run: {command_line('accept', loop.id, name)}"
    return (
        "Run: gsd-fsm start verify --plan FILE. "
        f'Or set ci_test = "make test", then run: {command_line("accept", loop.id, "ci:test")}'
    )


def _chosen(context: Context, phase: str | None, plan: str | None) -> Loop:
    """Return the selected verify loop; raise NotFound, UsageError or Refused."""
    wanted = " --phase " + shlex.quote(phase) if phase else ""
    wanted += " --plan " + shlex.quote(plan) if plan else ""
    start = f"Run: gsd-fsm start verify{wanted}"
    try:
        loop = context.working_loop()
    except NotFound as error:
        raise NotFound(error.message, error.hint if context.loop_id else start) from error
    if loop.kind != "verify":
        raise UsageError(f"loop {loop.id} ({loop.kind}) is not a verify loop", start)
    _require_active(loop)
    _require_meant(context, loop, phase, plan)
    return loop


def _require_active(loop: Loop) -> None:
    if loop.is_active:
        return
    words, command = next_step(loop)
    why = "" if loop.status in FINAL else f"; {one_line(words)}"
    raise Refused(
        f"loop {loop.id} is {loop.status} and cannot be verified now{why}", f"Run: {command}"
    )


def _require_meant(context: Context, loop: Loop, phase: str | None, plan: str | None) -> None:
    """Refuse another phase or plan than that of the loop."""
    from gsd_fsm.plans.phase_name import same_phase

    other = "Run: gsd-fsm start verify --fresh"
    if phase is not None and not same_phase(phase, loop.phase):
        its = "no phase" if loop.phase is None else f"phase {loop.phase}"
        raise UsageError(
            f"loop {loop.id} verifies {its}, not {phase}", f"{other} --phase {shlex.quote(phase)}"
        )
    if plan is not None:
        given = os.path.realpath(os.path.join(context.directory, plan))
        own = plan_path(context.project, loop) if loop.is_planned else None
        if own is None or given != os.path.realpath(own):
            its = f"the plan {loop.plan.file}" if own else "no plan"
            raise UsageError(
                f"loop {loop.id} verifies {its}, not {plan}", f"{other} --plan {shlex.quote(plan)}"
            )


def _unchanged_plan(context: Context, loop: Loop) -> Plan | None:
    """Return the plan of the loop; if it was changed, pause before anything of it is run."""
    if not loop.is_planned:
        return None
    if has_changed(context.project, loop):
        with context.writing(loop) as tx:
            paused = append_plan_change(tx, context.project)
        loop = tx.loop
        if paused:
            raise Refused(
                f"loop {loop.id} is now paused ({loop.pause_code}): {loop.pause_reason}",
                f"Read the plan, then run: {command_line('resume', loop.id)}",
            )
    return frozen_plan(context.project, loop)


def _reported(
    loop: Loop, given: GapsText | None, present: bytes | None, directory: Path
) -> list[ReportedGap]:
    """Return the gaps that others found; those in our own file are known already."""
    from gsd_fsm.verify.report import NAME, is_own_report
    from gsd_fsm.verify.reported_gaps import read_gaps

    if given is None and present is None:
        return []
    own = given is None and present is not None and is_own_report(present)
    if given is None:
        given = GapsText((present or b"").decode("utf-8", "replace"), str(directory / NAME))
    return [gap for gap in read_gaps(given.text, given.name) if not _is_known(loop, gap, own)]


def _is_known(loop: Loop, gap: ReportedGap, own: bool) -> bool:
    """Return whether its check, or `gap close`, decides about this gap.

    An agent that numbers its own gaps may give one the id of another.
    """
    known = loop.gaps.get(gap.id)
    return known is not None and (
        own or (known.kind, known.description.split()) == (gap.kind, gap.description.split())
    )


# one round as events


def append_round(
    tx: LoopTransaction,
    results: list[Result],
    reported: list[ReportedGap],
    must_haves: Sequence[str] = (),
    *,
    tree: str | None = None,
    ran: Sequence[dict[str, Any]] = (),
) -> Round:
    """Append the gaps of a round, its result, and the completion or pause that follows.

    `ran` is what the commands returned, as an event holds it.
    """
    loop = tx.loop
    this = Round(results, [], [], [], {})
    known = known_gaps(loop, [result for result in results if result.passed is not None])
    # Closed ones first: without auto_loop the loop pauses at the first open gap.
    for result in results:
        gap_id = known.get(result.key)
        counts = result.passed and not result.altered
        if counts and gap_id and loop.gaps[gap_id].is_open:
            this.closed.append(gap_id)
            tx.append("gap", {"action": "closed", "gap": gap_id}, by="cli")
    for miss in this.misses:
        found = {**gap_data(miss), "evidence": redact_and_truncate(miss.evidence, MAX_EVIDENCE)}
        gap_id = _append_opening(tx, this, known.get(miss.key), found, by="cli")
        if gap_id is not None:
            this.gap_of_check[miss.key] = gap_id
    for gap in reported:
        found = {"kind": gap.kind, **texts_of_gap(gap.description, gap.file, gap.evidence)}
        _append_opening(tx, this, same_gap(loop, found), found)
    passed = not (this.misses or this.altered or open_gaps(loop))
    left = named(open_gaps(loop))
    report = tally(results) + (f"; open gaps: {left}" if left else "")
    data: dict[str, Any] = {"passed": passed, "report": report}
    if loop.rules is not None:
        data |= {"tree": tree, "machine": sum(it.passed is not None for it in results)}
    if shell := next((it.shell for it in results if it.shell), ""):
        data["shell"] = shell
    due = verdicts_due(loop, results, must_haves) if passed else []
    append_result(tx, data, due, ran)
    if passed and loop.is_active and is_complete(loop, latest_tree(loop)):
        if not has_tree(loop) and not needs_clean_room(loop):
            tx.append("complete", {"tree": tree} if tree else {}, by="cli")
        return this._replace(passed=True)
    limit = used_up_rounds(loop, tx.now) if loop.is_active and not loop.verified else None
    tx.pause_at(limit)
    return this._replace(passed=passed, remedy=limit.remedy if limit else "")


def verdicts_due(
    loop: Loop, results: list[Result], must_haves: Sequence[str]
) -> list[dict[str, str]]:
    """Return what no command of this round decides: manual checks, must-haves, closed gaps."""
    if loop.rules is None:
        return []
    due = [_due(it.key, "check", it.text) for it in results if it.passed is None]
    due += [_due(f"MH{number}", "must-have", it) for number, it in enumerate(must_haves, 1)]
    decided = {result.key for result in results} | {it["id"] for it in due}
    return due + [
        _due(gap.id, "gap", gap.description)
        for gap in loop.gaps.values()
        if gap.check not in decided
    ]


def _due(verdict_id: str, kind: str, text: str) -> dict[str, str]:
    return {"id": verdict_id, "kind": kind, "text": redact_and_truncate(text, MAX_VERDICT)}


def append_result(
    tx: LoopTransaction,
    data: dict[str, Any],
    due: list[dict[str, str]],
    ran: Sequence[dict[str, Any]] = (),
) -> None:
    """Append a round with its checks and the verdicts that it needs, in as many events as they fill."""
    parts = [{"checks": part} for part in portions(ran)]
    parts += [
        {"verdicts": due[at : at + _VERDICTS_PER_EVENT]}
        for at in range(0, len(due), _VERDICTS_PER_EVENT)
    ]
    first = parts.pop(0) if parts else {}
    tx.append("verified", {**data, **first})
    for part in parts:
        tx.append("verified", {"passed": data["passed"], **part, "continued": True})


def _append_opening(
    tx: LoopTransaction, this: Round, known: str | None, data: dict[str, Any], *, by: str = ""
) -> str | None:
    """Open a gap, or update its evidence; return its id, None if a paused loop has no such gap."""
    event = gap_event(tx.loop, known, data) if tx.loop.is_active else None
    if event is None:
        return known
    tx.append("gap", event, by=by)
    gap_id = str(event["gap"])
    if known is None:
        this.opened.append(gap_id)
    elif event["action"] == "reopened":
        this.reopened.append(gap_id)
    return gap_id


# rounds by hand, and verdicts


def record_round(context: Context, *, passed: bool, report: str | None = None) -> Receipt:
    """Record one round of verification by hand; the last one that the limit allows pauses the loop.

    An agent cannot pass a plan that has checks, and what it cannot prove needs verdicts.
    """
    data: dict[str, Any] = {"report": redact_and_truncate(report)} if report else {}
    with context.writing() as tx:
        loop = tx.loop
        due: list[dict[str, str]] = []
        if passed and loop.rules is None and loop.is_planned:
            context.require_human(loop, "declare the plan verified in")
        elif passed and loop.rules is not None and context.author.by == "agent":
            plan = frozen_plan(context.project, loop) if loop.is_planned else None
            due = _due_of_plan(loop, plan)
        append_result(tx, {"passed": passed, **data}, due if not open_gaps(loop) else [])
        tx.pause_at(used_up_rounds(loop, tx.now))
        append_question(tx)
    return tx.receipt


def _due_of_plan(loop: Loop, plan: Plan | None) -> list[dict[str, str]]:
    """Return the verdicts that an agent's round needs; raise Refused if commands decide it."""
    from gsd_fsm.verify.run import manual_results

    results = manual_results(plan) if plan else []
    if results is None:
        raise Refused(
            f"agents cannot declare loop {loop.id} verified: its plan has checks",
            f"Run: {command_line('verify', loop.id)}",
        )
    return verdicts_due(loop, results, plan.must_haves if plan else ())


class Judged(NamedTuple):
    """A recorded verdict, and what is still to be judged."""

    receipt: Receipt
    left: list[str]


def give_verdict(context: Context, verdict_id: str, *, passed: bool, evidence: str) -> Judged:
    """Record a human's verdict on what no command decides; a failed one opens its gap.

    Raise Refused if the content has changed since the round that the verdict belongs to.
    """
    if not evidence.strip():
        raise UsageError(
            "a verdict needs evidence",
            f"Run: gsd-fsm verify --verdict {verdict_id} pass --evidence TEXT",
        )
    loop = context.working_loop()
    require_same_tree(context, loop)
    data = {"verdict": verdict_id, "passed": passed}
    with context.writing(loop) as tx:
        if verdict_id not in tx.loop.verdicts:
            known = one_of(it.id for it in open_verdicts(tx.loop))
            raise UsageError(f"loop {loop.id} needs no verdict on {verdict_id}", known)
        context.require_human(tx.loop, f"judge {verdict_id} in")
        tx.append("verified", {**data, "evidence": redact_and_truncate(evidence, MAX_EVIDENCE)})
        if is_decided(tx.loop):
            tx.append("answer", {"text": "all verdicts are given"})
        for kind, consequence in due_events(tx.loop):
            tx.append(kind, consequence, by="cli")
        append_question(tx)
    return Judged(tx.receipt, [it.id for it in open_verdicts(tx.loop)])


def require_same_tree(context: Context, loop: Loop) -> None:
    """Raise Refused if the content is not that of the last round; another one is due then."""
    if loop.verified and loop.round_tree not in (None, tree_of(context, loop)):
        why = f"the content has changed since round {loop.round} of loop {loop.id}"
        refute_round(context, loop, why)


def refute_round(context: Context, loop: Loop, why: str) -> NoReturn:
    """Record that the last round no longer holds, end a wait for its verdicts, and raise Refused."""
    with context.writing(loop) as tx:
        if tx.loop.is_live and tx.loop.verified:
            tx.append("verified", {"passed": False, "stale": True, "report": why}, by="cli")
            if is_decided(tx.loop):
                tx.append("answer", {"text": why}, by="cli")
    raise Refused(why, f"Run: {command_line('verify', loop.id)}")


def used_up_rounds(loop: Loop, now: int) -> LimitReached | None:
    """Return the limit that forbids another round: a gap that keeps coming back, or the rounds."""
    limit = oscillation(loop)
    if limit is not None:
        return limit
    limit = used_up_limit(loop, loop.limits, now, ("rounds",))
    if limit is None or is_complete(loop, latest_tree(loop)):
        return None
    left = named(open_gaps(loop))
    reason = limit.reason + (f"; gaps left: {left}" if left else "")
    return LimitReached(limit.code, reason, limit.remedy)


def named(gap_ids: list[str]) -> str:
    """Return a list of gaps that fits into a message."""
    more = len(gap_ids) - _MOST_NAMED
    return ", ".join(gap_ids[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
