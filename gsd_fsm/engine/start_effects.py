"""Find the effects of a start that are missing: branch, STATE.md and first checkpoint."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.views.state_md import with_loop
from gsd_fsm.core.views.write import STATE_NAME
from gsd_fsm.engine.branches import branch_effects
from gsd_fsm.engine.checkpoints import set_first_checkpoint
from gsd_fsm.engine.context import Context, Effect
from gsd_fsm.engine.follow_plan import is_new, repository_of


def start_effects(context: Context, loop: Loop) -> Iterator[Effect]:
    """Return the effects that are missing, until work begins; [] on a branch that the user chose."""
    if not is_new(loop):
        return
    settings = context.settings()
    repository = repository_of(context.project)
    branch = repository.branch() if repository else None
    elsewhere = loop.branch is not None and branch not in (loop.branch, settings["base_branch"])
    if elsewhere and settings["branching"] == "milestone":
        return
    yield from branch_effects(context, loop)
    state = Path(context.gsd, STATE_NAME)
    if settings["state_md"] and not os.path.lexists(state):
        yield Effect(STATE_NAME, partial(_create_state_md, state, loop))
    tags = settings["checkpoints"] and loop.kind == "execute" and loop.phase is not None
    if tags and loop.is_active and repository is not None and repository.head() is not None:
        yield Effect("first checkpoint", partial(_set_first_checkpoint, context, loop.id))


def _create_state_md(path: Path, loop: Loop) -> None:
    """Create the file; from then on every event updates it."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(with_loop("", loop))
    except OSError as error:
        raise CannotWrite(f"{path} cannot be created: {error.strerror}") from error


def _set_first_checkpoint(context: Context, loop_id: str) -> None:
    _, loops = context.read()
    loop = loops.by_id[loop_id]  # the switch of the branch may have paused it
    if not is_new(loop) or any(branch_effects(context, loop)):
        return
    warning = set_first_checkpoint(context, loop).warning
    if warning:
        raise CannotWrite(warning)
