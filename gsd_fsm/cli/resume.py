"""`resume`: go on after a pause, a question or an interruption."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from gsd_fsm.cli.answer import DECLINED
from gsd_fsm.cli.call import ONE_OR_MORE, Amount, Call, Event, verb
from gsd_fsm.cli.checkpoints import open_gate
from gsd_fsm.cli.plan_change import accepts_change
from gsd_fsm.cli.planned import asks, repository_of, values
from gsd_fsm.cli.voice import counted
from gsd_fsm.cli.work_record import late_checkpoint
from gsd_fsm.core.flow import needs_human
from gsd_fsm.core.fold import World
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.loop import Loop, is_planned
from gsd_fsm.core.meter import is_resting
from gsd_fsm.core.question import may_decline
from gsd_fsm.core.waves import running_tasks

_NAMES = {
    "max_iterations": "iterations",
    "max_retries": "retries",
    "max_rounds": "rounds",
    "budget_usd": "money",
    "max_tokens": "tokens",
    "max_minutes": "minutes",
}


@click.command()
@click.option(
    "--add-iterations",
    "max_iterations",
    type=ONE_OR_MORE,
    metavar="N",
    help="That many more iterations.",
)
@click.option(
    "--add-retries",
    "max_retries",
    type=ONE_OR_MORE,
    metavar="N",
    help="That many more retries of each task.",
)
@click.option(
    "--add-rounds",
    "max_rounds",
    type=ONE_OR_MORE,
    metavar="N",
    help="That many more verification rounds.",
)
@click.option(
    "--add-budget",
    "budget_usd",
    type=Amount(above_zero=True),
    metavar="USD",
    help="That much more money.",
)
@click.option(
    "--add-tokens",
    "max_tokens",
    type=ONE_OR_MORE,
    metavar="N",
    help="That many more tokens.",
)
@click.option(
    "--add-minutes",
    "max_minutes",
    type=Amount(above_zero=True),
    metavar="N",
    help="That much more active time.",
)
@verb
def resume(call: Call, **more: float | None) -> None:
    """Go on with a loop, in this session; counters and history stay.

    The whole journal is verified and replayed by the state machine first.
    """
    from gsd_fsm.replay import Replay

    replay = Replay(call.journal())
    replay.run()
    replay.compare()
    add = {name: value for name, value in more.items() if value is not None}

    def build(loop: Loop, _world: World, _now: int) -> Iterator[Event]:
        again = _still_asked(loop)
        data = {**({"add": add} if add else {}), **_views(call, loop)}
        if is_resting(loop) or loop.owner != call.caller.session:
            data["anew"] = True
        event = call.event("resume", loop, data)
        if loop.status == "paused" and (loop.pause_reason or "").startswith(DECLINED):
            needs_human(loop, event, "go on against a no in")
        yield event
        yield from accepts_change(call, loop)
        if again:
            yield call.event("wait", loop, again, by="cli")
        yield from asks(call, loop)

    journal, loop = call.append(build)
    open_gate(call, journal, loop)
    late_checkpoint(call, journal, loop)
    whose = "" if loop.owner else " The next session that gets a prompt here will own it."
    most = loop.limits["max_iterations"]
    now = f" {most} iterations now." if "max_iterations" in add and most else ""
    unlimited = [word for n, word in _NAMES.items() if n in add and not loop.limits.get(n)]
    now += f" It has no limit of {', '.join(unlimited)}: nothing was added." if unlimited else ""
    facts = _interrupted(journal, loop) if is_planned(loop) else {}
    asked = f" {loop.question}" if loop.status == "waiting" else ""
    said = f"Resumed.{now}{_words(loop, facts)}{asked}{whose}"
    call.acknowledge(journal, loop, said, **facts)


def _views(call: Call, loop: Loop) -> dict[str, Any]:
    """The views that the settings name by now, if they are others."""
    if loop.kind != "goal":
        return {}
    wanted = list(values(call.journal())["views"])
    return {"views": wanted} if wanted != loop.views else {}


def _still_asked(loop: Loop) -> dict[str, str] | None:
    """The wait for a decision that going on does not make: there is more than yes and no to it."""
    if loop.status != "waiting" or loop.asked is None or may_decline(loop.asked):
        return None
    return {"for": "human", "question": loop.question, "about": loop.asked}


def _interrupted(journal: Journal, loop: Loop) -> dict[str, Any]:
    """What was under way, and whether what was done before is still there."""
    running = [
        {"task": name, "ref": loop.tasks[name]["ref"], "phase": loop.tasks[name]["phase"]}
        for name in running_tasks(loop)
    ]
    commits = {name: task["commit"] for name, task in loop.tasks.items() if task["commit"]}
    repository = repository_of(journal) if commits else None
    missing = [
        name for name, commit in commits.items() if repository and not repository.contains(commit)
    ]
    found = len(commits) - len(missing) if repository else 0
    return {"running": running, "verified_commits": found, "missing_commits": missing}


def _words(loop: Loop, facts: dict[str, Any]) -> str:
    if not facts:
        return ""
    words = ""
    if facts["verified_commits"]:
        words += f" Commits of {counted(facts['verified_commits'], 'task')} verified."
    if facts["missing_commits"]:
        named = ", ".join(facts["missing_commits"])
        words += f" Not on this branch any more: the commits of {named}."
    for it in facts["running"]:
        ref = f" ({it['ref']})" if it["ref"] else ""
        words += f" Task {it['task']}{ref} was running: report it, or run it again."
    return words
