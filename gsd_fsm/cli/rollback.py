"""gsd-fsm rollback: go back to a checkpoint, in git and in the loop."""

from __future__ import annotations

import shlex
from typing import Any

import click

from gsd_fsm.cli.call import Call, command_options
from gsd_fsm.cli.help import candidates
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.text.questions import plural
from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.engine.planned import rollback as engine
from gsd_fsm.engine.planned.rollback import SHOWN, Step
from gsd_fsm.git.snapshots import listed


@click.command()
@click.argument("target", metavar="[TARGET]", required=False, shell_complete=candidates.checkpoints)
@click.option("--phase", metavar="N", help="Phase of the checkpoint (default: the loop's phase).")
@click.option("--yes", is_flag=True, help="Roll back; without it, only show what would change.")
@command_options
def rollback(call: Call, *, target: str | None, phase: str | None, yes: bool) -> None:
    """Go back to a checkpoint, in git and in the loop.

    TARGET is pre, post, a task (T01) or the full name of a tag. Without it the checkpoints are
    listed. Files created since then are removed, changed and deleted ones are restored; ignored
    files stay. Nothing is lost: a tag keeps commits and files as they were before. Undone tasks
    become pending again.
    """
    if target is None:
        _list(call, phase)
        return
    done = engine.roll_back(call.context, target, phase) if yes else None
    step = done.step if done else engine.plan_rollback(call.context, target, phase)
    left = done.left if done else None
    facts: dict[str, Any] = {
        "target": step.target.tag,
        "commit": step.target.commit,
        "leaves": step.leaves,
        "reset": step.reset,
        "done": yes and not step.is_needless,
        "left": left,
        "removed": [*map(clean, step.files.removed)],
        "restored": [*map(clean, step.files.restored)],
        "left_out": [*map(clean, step.now.left_out)],
        "submodules": [*map(clean, step.files.submodules)],
    }
    if step.is_needless:
        call.answer(facts, f"Nothing to do: already at {step.target.name}.")
    elif done is None:
        how = [shlex.quote(target), "--yes", *(["--phase", shlex.quote(phase)] if phase else [])]
        again = command_line("rollback", call.context.loop_id or "", " ".join(how))
        call.answer(facts, "\n".join([*_plan_lines(step), f"→ {again}"]))
    elif done.receipt is None:
        none = f"No live loop of phase {step.phase}: nothing was recorded."
        call.answer(facts, "\n".join([f"{_outcome(step, left)} {none}", *_exceptions(step)]))
    else:
        lines = [_outcome(step, left)]
        lines[0] += f" Pending again: {', '.join(step.reset)}." if step.reset else ""
        call.print_receipt(done.receipt, "\n".join([*lines, *_exceptions(step)]), **facts)


def _list(call: Call, phase: str | None) -> None:
    from gsd_fsm.plans.phase_name import shortest_name

    wanted, known = engine.list_checkpoints(call.context, phase)
    width = max((len(it.name) for it in known), default=0)
    title = f"Checkpoints of phase {wanted}, newest last:"
    lines = [title if known else engine.no_checkpoints(wanted)]
    lines += [
        f"  {it.name:<{width}}  {it.commit[:7]}  {it.subject}"
        + ("  (with uncommitted changes)" if it.snapshot else "")
        + ("" if it.contained else "  (not in the current branch)")
        for it in known
    ]
    found = [it._asdict() for it in known]
    call.answer({"phase": shortest_name(wanted), "checkpoints": found}, "\n".join(lines))


def _place(step: Step) -> str:
    return f"{step.target.name} ({step.target.commit[:7]})"


def _plan_lines(step: Step) -> list[str]:
    lines = []
    if step.leaves:
        lines.append(f"Branch {step.branch} would go back to {_place(step)}.")
        lines.append(f"{plural(step.leaves, 'commit')} would be undone and kept by a tag:")
        lines += [f"  {subject}" for subject in step.subjects]
        lines += [f"  … and {step.leaves - SHOWN} more"] if step.leaves > SHOWN else []
    elif step.leaves_something:
        lines.append(f"The files would go back to {_place(step)}.")
    files = step.files
    for words, paths in (
        ("Files that would be removed", files.removed),
        ("Files that would be restored", files.restored),
        ("Uncommitted changes that a tag would keep", step.uncommitted),
        ("Tasks that would become pending", step.reset),
    ):
        lines += [f"{words}: {listed(paths)}."] if paths else []
    return [*lines, *_exceptions(step), "Nothing has been changed yet."]


def _exceptions(step: Step) -> list[str]:
    """Return what the rollback does not save or restore."""
    lines = []
    if step.now.left_out:
        lines.append(f"Neither saved nor changed: {step.now.omission}.")
    if step.files.submodules:
        lines.append(f"Submodules stay as they are: {listed(step.files.submodules)}.")
    return lines


def _outcome(step: Step, left: str | None) -> str:
    if left is None:
        return f"Branch {step.branch} was already at {_place(step)}."
    if not step.leaves:
        return f"The files are back at {_place(step)}. The state before is kept as {left}."
    commits = plural(step.leaves, "commit")
    return f"Branch {step.branch} is back at {_place(step)}. {commits} undone, kept as {left}."
