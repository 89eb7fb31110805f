"""`complete`: the end of a loop, and of the phase that it carried out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gsd_fsm.cli.call import Call, Event, require_trust, verb
from gsd_fsm.cli.voice import say
from gsd_fsm.core.announce import closing_report
from gsd_fsm.core.client import list_changes
from gsd_fsm.core.errors import CannotWrite, Refused
from gsd_fsm.core.fold import World
from gsd_fsm.core.loop import Loop, is_planned, open_tasks
from gsd_fsm.core.proof import check_complete, conditions, has_tree, stale
from gsd_fsm.core.sanitize import display
from gsd_fsm.core.table import ACTIVE
from gsd_fsm.gate_tasks import blocker_titles, gate_task

if TYPE_CHECKING:
    from gsd_fsm.cli.phase_end import PhaseEnd


@click.command()
@verb
def complete(call: Call) -> None:
    """Complete a loop; refused while its completion rule does not hold.

    Of a goal each condition that is missing is named, and becomes a task.

    Evidence counts only for the content it was taken from: after a change, check again.
    A loop that executed a plan leaves the summary of its phase, and marks it complete in the
    roadmap and the state of the project.
    """
    tree = _tree_now(call)
    old: list[str] = []
    left: list[str] = []
    end = _phase_end(call, tree)

    def build(loop: Loop, _world: World, _now: int) -> Iterator[Event]:
        old[:] = stale(loop, tree) if loop.status in ACTIVE else []
        for name in old:
            data = {"criterion": name, "met": False, "stale": True}
            yield call.event("criterion", loop, data, by="cli")
        if loop.kind == "goal" and loop.status in ACTIVE:
            for data in list_changes(loop, loop.owner or call.caller.session or ""):
                yield call.event("task", loop, data, by="cli")
            for data in _missing_blockers(loop):
                yield call.event("task", loop, data, by="cli")
            wanted = conditions(loop, tree)
            left.extend(words for _, words in wanted)
            for data in _gate_tasks(loop, wanted):
                yield call.event("task", loop, data, by="cli")
        if not old and not left:
            yield call.event("complete", loop, {} if tree is None else {"tree": tree})

    journal, loop = call.append(build)
    if old:
        why = (
            f"the content changed after the checks of {', '.join(old)}, so their evidence is stale"
        )
        raise Refused(
            f"loop {loop.id} is {loop.status} and not done: {'; '.join([why, *left])}{_as_tasks(loop)}",
            f"gsd-fsm --loop {loop.id} check",
        )
    if left:
        raise Refused(
            f"loop {loop.id} is {loop.status} and not done: {'; '.join(left)}{_as_tasks(loop)}",
            "gsd-fsm next tells what to do",
        )
    if end:
        end.commit()
    told = end.report(loop) if end else closing_report(loop).strip()
    facts = end.facts(loop) if end else {"report": told} if told else {}
    call.acknowledge(journal, loop, "Completed.", **facts)
    if told and not call.json:
        say(told if end else display(told, lines=True))


def _gate_tasks(loop: Loop, wanted: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """A task for each failed condition that is none already."""
    for key, words in wanted:
        known = [name for name in open_tasks(loop) if loop.tasks[name]["condition"] == key]
        if not known and not key.startswith("task:"):
            yield gate_task(loop.tasks, "F", words, key)


def _missing_blockers(loop: Loop) -> Iterator[dict[str, Any]]:
    """The tasks of a failed review whose recording was interrupted."""
    review = loop.reviews.get("thorough", {})
    left = 0 if review.get("passed", True) else review["blockers_remaining"] or 0
    known = [task["title"] for task in loop.tasks.values() if task["condition"] == "blocker"]
    for title in blocker_titles([], left, known):
        yield gate_task(loop.tasks, "B", title, "blocker")


def _as_tasks(loop: Loop) -> str:
    names = [name for name in open_tasks(loop) if loop.tasks[name]["condition"]]
    return f". Each is a task now: {', '.join(names)}" if names else ""


def _phase_end(call: Call, tree: str | None) -> PhaseEnd | None:
    """Carry out the end of the phase, if this loop may complete and executed a plan."""
    journal, world = call.glance()
    loop = call.choose(world)
    if loop.kind != "execute" or not is_planned(loop) or loop.status not in ACTIVE:
        return None
    require_trust(world, journal.path)
    if stale(loop, tree):
        return None
    check_complete(loop, {"data": {"tree": tree}})
    from gsd_fsm.cli.phase_end import PhaseEnd

    call.loop_id = loop.id
    return PhaseEnd(call, journal, loop)


def _tree_now(call: Call) -> str | None:
    """The content of the work tree, if evidence of the chosen loop was bound to one."""
    journal, world = call.glance()
    if not has_tree(call.choose(world)):
        return None
    require_trust(world, journal.path)  # git may run programs that a repository names
    from gsd_fsm.tree import content_tree

    tree = content_tree(Path(journal.path).parent)
    if tree is None:
        raise CannotWrite(
            "the evidence belongs to the content of a git work tree, and git cannot tell it now",
            "make git work here, or check again without it: gsd-fsm check",
        )
    return tree
