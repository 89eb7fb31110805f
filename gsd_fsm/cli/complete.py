"""`complete`: the end of a loop, and of the phase that it carried out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gsd_fsm.cli.call import Call, Event, require_trust, verb
from gsd_fsm.core.errors import CannotWrite, Refused
from gsd_fsm.core.fold import World
from gsd_fsm.core.loop import Loop, is_planned
from gsd_fsm.core.proof import check_complete, has_tree, stale
from gsd_fsm.core.table import ACTIVE

if TYPE_CHECKING:
    from gsd_fsm.cli.phase_end import PhaseEnd


@click.command()
@verb
def complete(call: Call) -> None:
    """Complete a loop; refused while its completion rule does not hold.

    Evidence counts only for the content it was taken from: after a change, check again.
    A loop that executed a plan leaves the summary of its phase, and marks it complete in the
    roadmap and the state of the project.
    """
    tree = _tree_now(call)
    old: list[str] = []
    end = _phase_end(call, tree)

    def build(loop: Loop, _world: World, _now: int) -> list[Event]:
        old[:] = stale(loop, tree) if loop.status in ACTIVE else []
        if old:
            return [
                call.event(
                    "criterion", loop, {"criterion": name, "met": False, "stale": True}, by="cli"
                )
                for name in old
            ]
        return [call.event("complete", loop, {} if tree is None else {"tree": tree})]

    journal, loop = call.append(build)
    if old:
        raise Refused(
            f"loop {loop.id} is {loop.status} and not done: the content changed after the checks of "
            f"{', '.join(old)}, so their evidence is stale",
            f"gsd-fsm --loop {loop.id} check",
        )
    if end:
        end.commit()
    call.acknowledge(journal, loop, "Completed.", **(end.facts(loop) if end else {}))
    if end and not call.json:
        from gsd_fsm.cli.voice import say

        say(end.report(loop))


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
