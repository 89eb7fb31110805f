"""`verify`: run what proves a plan, record the round, and report the gaps."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gsd_fsm.cli.call import ONE_OR_MORE, Call, Event, head, require_trust, verb
from gsd_fsm.cli.planned import (
    asks,
    frozen_plan,
    has_changed,
    notices_change,
    plan_path,
    project_of,
    values,
)
from gsd_fsm.cli.screen import ended_by_signals, screen_for
from gsd_fsm.cli.voice import say
from gsd_fsm.core.advice import next_step
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import CheckFailed, NotFound, Refused, UsageError
from gsd_fsm.core.fold import World
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.loop import Loop, is_planned, open_gaps
from gsd_fsm.core.quote import one_line
from gsd_fsm.core.table import ACTIVE, FINAL
from gsd_fsm.texts import read_text

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan
    from gsd_fsm.verification.gaps_text import ReportedGap
    from gsd_fsm.verification.round import Round


@click.command()
@click.option("--phase", metavar="N", help="The phase that must be the loop's.")
@click.option("--plan", "plan_name", metavar="FILE", help="The plan that must be the loop's.")
@click.option(
    "--gaps",
    "gaps_file",
    metavar="FILE|-",
    help="Read reported <gaps> from here instead of VERIFICATION.md.",
)
@click.option("--timeout", type=ONE_OR_MORE, metavar="SECONDS", help="Time limit of each command.")
@verb
def verify(
    call: Call,
    *,
    phase: str | None,
    plan_name: str | None,
    gaps_file: str | None,
    timeout: int | None,
) -> None:
    """Run the checks of the plan and the CI commands, several at once, and record one round.

    A miss opens a gap, a pass closes it; gaps that an agent wrote into VERIFICATION.md are opened
    too. Without a gap the loop completes; else exit code 7. A run that a signal ends records
    nothing.
    """
    journal, loop = _chosen(call, phase, plan_name)
    project = project_of(journal)
    found = values(journal)
    plan = _plan(call, project, loop)
    from gsd_fsm.verification.probe import CI, probe
    from gsd_fsm.verification.report import facts_of, place_of, present, save
    from gsd_fsm.verification.round import Round

    ci = {name: str(found[f"ci_{name}"]) for name in CI if found[f"ci_{name}"]}
    if plan is None and not ci:
        raise UsageError(
            f"loop {loop.id} has nothing to verify: no plan, and no CI command",
            'gsd-fsm start verify --plan FILE, or a setting such as ci_test = "make test"',
        )
    directory = place_of(project, plan, loop.phase)
    before = present(project, directory)
    reported = _reported(loop, gaps_file, before, directory)
    limit = float(timeout or found["check_timeout_seconds"])
    with ended_by_signals():
        results = probe(plan, project, ci, limit, screen_for(call).say)
    if not reported and all(result.passed is None for result in results):
        raise UsageError(
            f"loop {loop.id} has only checks that are made by hand ({len(results)})",
            f"once they are made: {call.command} --loop {loop.id} verified pass",
        )
    this = Round(results, reported)
    journal, loop = _append(call, this)
    facts = facts_of(loop, results, passed=this.passed)
    report = save(project, directory, facts, plan, before)
    _answer(call, journal, loop, this, report)


def _chosen(call: Call, phase: str | None, plan_name: str | None) -> tuple[Journal, Loop]:
    """The live verify loop that is meant, trusted and active."""
    wanted = " --phase " + shlex.quote(phase) if phase else ""
    wanted += " --plan " + shlex.quote(plan_name) if plan_name else ""
    start = f"{call.command} start verify{wanted}"
    try:
        journal, world = call.glance()
        require_trust(world, journal.path)
        loop = call.choose(world)
    except NotFound as error:
        raise NotFound(error.message, error.hint if call.loop_id else start) from error
    call.loop_id = loop.id
    if loop.kind != "verify":
        raise UsageError(f"loop {loop.id} is a loop of kind {loop.kind}, not verify", start)
    _require_active(loop)
    _require_meant(call, journal, loop, phase, plan_name)
    return journal, loop


def _require_active(loop: Loop) -> None:
    if loop.status not in ACTIVE:
        words, command = next_step(loop)
        final = loop.status in FINAL
        why = "it is final" if final else one_line(words)
        raise Refused(f"loop {loop.id} is {loop.status}: it cannot be verified now; {why}", command)


def _require_meant(
    call: Call, journal: Journal, loop: Loop, phase: str | None, plan_name: str | None
) -> None:
    from gsd_fsm.phase.name import same

    other = f"{call.command} start verify --fresh"
    if phase is not None and not same(phase, loop.phase):
        its = "no phase" if loop.phase is None else f"phase {loop.phase}"
        raise UsageError(
            f"loop {loop.id} verifies {its}, not {phase}", f"{other} --phase {shlex.quote(phase)}"
        )
    if plan_name is not None:
        given = os.path.realpath(os.path.join(call.start_directory, plan_name))
        own = plan_path(project_of(journal), loop) if is_planned(loop) else None
        if own is None or given != os.path.realpath(own):
            its = f"the plan {loop.plan['file']}" if own else "no plan"
            raise UsageError(
                f"loop {loop.id} verifies {its}, not {plan_name}",
                f"{other} --plan {shlex.quote(plan_name)}",
            )


def _plan(call: Call, project: Path, loop: Loop) -> Plan | None:
    """The plan of the loop; one that was changed pauses it, before anything of it is run."""
    if not is_planned(loop):
        return None
    paused: list[Event] = []

    def build(loop: Loop, _world: World, _now: int) -> Iterator[Event]:
        for event in notices_change(call, loop):
            paused.append(event)
            yield event

    if has_changed(project, loop):
        _, loop = call.append(build)
    if paused:
        raise Refused(
            f"loop {loop.id} is now paused ({loop.pause_code}): {loop.pause_reason}",
            f"read the plan, then {call.command} --loop {loop.id} resume",
        )
    return frozen_plan(project, loop)


def _reported(
    loop: Loop, given: str | None, present: bytes | None, directory: Path
) -> list[ReportedGap]:
    """What others found; gaps of ours in our own file are known already."""
    from gsd_fsm.verification.gaps_text import read_gaps
    from gsd_fsm.verification.report import NAME, is_ours

    if given is not None:
        text, name, own = read_text(None, given, "the gaps") or "", given, False
    elif present is not None:
        text, name = present.decode("utf-8", "replace"), str(directory / NAME)
        own = is_ours(present)
    else:
        return []
    return [gap for gap in read_gaps(text, name) if not _is_known(loop, gap, own)]


def _is_known(loop: Loop, gap: ReportedGap, own: bool) -> bool:
    """Whether its check, or `gap close`, decides about this gap.

    An agent that numbers its own gaps may give one the id of another.
    """
    known = loop.gaps.get(gap.id)
    return known is not None and (
        own or (known["kind"], known["description"].split()) == (gap.kind, gap.description.split())
    )


def _append(call: Call, this: Round) -> tuple[Journal, Loop]:
    def build(loop: Loop, _world: World, now: int) -> Iterator[Event]:
        _require_active(loop)
        for kind, data, by in this.events(loop, now):
            yield call.event(kind, loop, data, by)
        yield from asks(call, loop)

    return call.append(build)


def _answer(call: Call, journal: Journal, loop: Loop, this: Round, report: Path) -> None:
    from gsd_fsm.verification.report import manual_of

    facts: dict[str, Any] = {
        "loop": loop.id,
        "seq": journal.world.seq,
        "status": loop.status,
        "head": head(journal),
        "round": loop.round,
        "max_rounds": loop.limits["max_rounds"],
        "passed": this.passed,
        "checks": [result._asdict() for result in this.results],
        "gaps": open_gaps(loop),
        "opened": this.opened,
        "closed": this.closed,
        "reopened": this.reopened,
        "manual": manual_of(this.results),
        "report": str(report),
    }
    if call.json:
        with contextlib.suppress(BrokenPipeError):
            say(dumps(facts))
        if not this.passed:
            raise click.exceptions.Exit(CheckFailed.exit_code)
        return
    from gsd_fsm.verification.words import hint, summary, verdict

    call.answer(facts, "\n".join(summary(loop, this, str(report))))
    if not this.passed:
        raise CheckFailed(verdict(loop, this), hint(loop, this).replace("gsd-fsm", call.command))
