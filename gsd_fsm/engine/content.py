"""Read the content that evidence of a loop belongs to; without it, nothing counts as met."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import GsdError, Refused
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context
from gsd_fsm.evidence.interruption import Output

if TYPE_CHECKING:
    from gsd_fsm.git.tree import Content


def has_tree(context: Context) -> bool:
    """Return whether evidence of a new loop has a tree; raise Refused if git refuses the work tree."""
    return context.repository is not None


def content_of(context: Context, loop: Loop, output: Output | None = None) -> Content | None:
    """Return the content of the work tree; None if evidence of this loop has no tree.

    If git could read it when the loop started and cannot now, pause the loop and raise Refused.
    `output` is polled first: a signal may have ended git.
    """
    from gsd_fsm.git.tree import read_content

    if loop.rules is None:
        return read_content(context.project)
    if not loop.rules.tree:
        return None
    why, fix = "git is missing, or this is not a git work tree any more", "Restore it"
    try:
        content = read_content(context.project)
        if content is not None:
            return content
    except GsdError as error:
        why, fix = error.message, error.hint
    except OSError as error:
        why = f"cannot run git: {error.strerror}"
    if output is not None:
        output.poll()
    why = " ".join(why.split())
    reason = f"evidence needs the content of the work tree, which cannot be read: {why}"
    with context.writing(loop) as tx:
        if tx.loop.is_active or tx.loop.status == "waiting":
            tx.pause("blocking", reason)
    raise Refused(
        f"loop {loop.id} is {tx.loop.status}: {reason}",
        f"{fix}, then run: {command_line('resume', loop.id)}",
    )


def tree_of(context: Context, loop: Loop) -> str | None:
    """Return the digest of the content, as `content_of` reads it."""
    content = content_of(context, loop)
    return content.tree if content else None
