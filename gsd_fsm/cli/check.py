"""`check`: run the commands that prove criteria, and journal what they returned."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import click

from gsd_fsm import settings
from gsd_fsm.checks import Outcome, run_check
from gsd_fsm.cli.call import ONE_OR_MORE, Call, Event, head, require_trust, verb
from gsd_fsm.cli.proof import find_criterion
from gsd_fsm.cli.screen import ended_by_signals, screen_for
from gsd_fsm.cli.voice import counted, say
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import CheckFailed, Refused, UsageError
from gsd_fsm.core.fold import World
from gsd_fsm.core.loop import Loop
from gsd_fsm.core.table import FINAL
from gsd_fsm.tree import content_tree


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--timeout", type=ONE_OR_MORE, metavar="SECONDS", help="Time limit of each command.")
@verb
def check(call: Call, *, names: tuple[str, ...], timeout: int | None) -> None:
    """Run the checks of a loop, all or the named ones, and record the evidence.

    Exit code 7 when one fails. The output is streamed as it comes; what is kept of it, its end, is
    redacted first. A check that is ended by a signal records nothing.
    """
    journal, world = call.glance()
    require_trust(world, journal.path)
    loop = call.choose(world)
    if loop.status in FINAL:
        raise Refused(f"loop {loop.id} is {loop.status}: nothing is left to check", "it is final")
    wanted = _wanted(loop, names)
    limit = timeout or settings.load(Path(journal.path))["check_timeout_seconds"].value
    root = Path(journal.path).parent
    outcomes = {}
    screen = screen_for(call)
    with ended_by_signals():
        for number, (name, command) in enumerate(wanted.items(), 1):
            screen.say(f"[{number}/{len(wanted)}] {name}: {command}")
            outcomes[name] = run_check(command, root, float(limit or 0), screen.show)
            screen.say(_verdict(outcomes[name]))
    # The content is taken once, after the last check, because checks may write files themselves.
    tree = content_tree(root)
    call.loop_id = loop.id
    journal, loop = call.append(
        lambda loop, world, _now: _evidence(call, loop, world, outcomes, tree)
    )
    failed = [name for name, outcome in outcomes.items() if outcome.exit_code]
    if failed and not call.json:
        raise CheckFailed(
            f"{len(failed)} of {counted(len(outcomes), 'check')} failed: {', '.join(failed)}",
            f"mend what they show, then gsd-fsm --loop {loop.id} check",
        )
    facts = {
        "loop": loop.id,
        "seq": journal.world.seq,
        "status": loop.status,
        "head": head(journal),
    }
    results = {
        name: {"exit_code": o.exit_code, "timed_out": o.timed_out} for name, o in outcomes.items()
    }
    if call.json:
        with contextlib.suppress(BrokenPipeError):
            say(dumps({**facts, "checks": results, "failed": failed}))
        if failed:
            raise click.exceptions.Exit(CheckFailed.exit_code)
    else:
        passed = counted(len(outcomes), "check")
        call.answer(facts, f"{passed} passed. Loop {loop.id} is {loop.status}.")


def _wanted(loop: Loop, names: tuple[str, ...]) -> dict[str, str]:
    chosen = [find_criterion(loop, name) for name in names] or list(loop.criteria)
    wanted = {name: loop.criteria[name]["check"] for name in chosen}
    without = [name for name in names if loop.criteria[find_criterion(loop, name)]["check"] is None]
    if without:
        raise UsageError(f"{', '.join(without)} has no check", "gsd-fsm criterion ID met")
    found = {name: command for name, command in wanted.items() if command is not None}
    if not found:
        raise UsageError(
            f"loop {loop.id} has no checks; 'start' and a SHAPE.md give them",
            "gsd-fsm criterion ID met",
        )
    return found


def _evidence(
    call: Call, loop: Loop, _world: World, outcomes: dict[str, Outcome], tree: str | None
) -> list[Event]:
    drafts = []
    for name, outcome in outcomes.items():
        evidence: dict[str, Any] = {
            "command": outcome.command,
            "exit_code": outcome.exit_code,
            "tail": outcome.tail,
            "digest": outcome.digest,
            "likeness": outcome.likeness,
            "tree": tree,
            "seconds": round(outcome.seconds, 3),
            "timed_out": outcome.timed_out,
        }
        met = outcome.exit_code == 0
        drafts.append(
            call.event("criterion", loop, {"criterion": name, "met": met, "evidence": evidence})
        )
    return drafts


def _verdict(outcome: Outcome) -> str:
    if outcome.timed_out:
        return f"  timed out after {outcome.seconds:.0f} s"
    state = "passed" if outcome.exit_code == 0 else f"failed with exit code {outcome.exit_code}"
    return f"  {state} in {outcome.seconds:.1f} s"
