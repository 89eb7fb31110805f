"""Checkpoints of a planned loop: tags in git, journalled, before, between and after its tasks."""

from __future__ import annotations

from typing import Any

from gsd_fsm.cli.call import Call
from gsd_fsm.cli.planned import project_of, values
from gsd_fsm.cli.voice import warn
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.loop import Loop, is_planned
from gsd_fsm.core.table import ACTIVE


def open_gate(call: Call, journal: Journal, loop: Loop) -> None:
    """Set the checkpoint `pre`, once nothing stands between this loop and its first task."""
    if loop.kind == "execute" and loop.status in ACTIVE and is_planned(loop):
        begun = any(task["status"] != "pending" for task in loop.tasks.values())
        if not loop.checkpoints and not begun:
            set_checkpoint(call, journal, loop, "pre")


def set_checkpoint(
    call: Call, journal: Journal, loop: Loop, name: str, task: str | None = None
) -> str | None:
    """Tag the commit that is checked out and journal that; the tag, None where git has none to tag.

    What it marks is recorded already: that git refuses is told, and is no failure.
    """
    if not is_planned(loop) or loop.phase is None or not values(journal)["checkpoints"]:
        return None
    from gsd_fsm.repository.checkpoints import checkpoint_tag
    from gsd_fsm.repository.repo import Repository

    tag = checkpoint_tag(loop.phase, name)
    try:
        repository = Repository.around(project_of(journal))
        commit = repository.tag(tag) if repository else None
    except GsdError as error:
        warn(f"no checkpoint {tag} was set: {error.message}")
        return None
    if commit is None:
        return None
    data: dict[str, Any] = {"name": tag, "commit": commit, **({"task": task} if task else {})}
    loop_id = loop.id
    journal.transact(
        lambda world, _now: [call.event("checkpoint", world.loops[loop_id], data, by="cli")]
    )
    return tag
