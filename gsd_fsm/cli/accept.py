"""gsd-fsm accept, restore: settle the change of a file that a check depends on."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import Call, command_options
from gsd_fsm.cli.help import candidates
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.engine.context import Receipt
from gsd_fsm.engine.protection import accept as engine

_NAME = click.argument("name", shell_complete=candidates.altered)


@click.command()
@_NAME
@command_options
def accept(call: Call, *, name: str) -> None:
    """Accept the changed files of a check.

    They count from now on. NAME is a check, as `status` shows it, or a protected file. Both digests are recorded. Agents
    cannot run this.
    """
    done = engine.accept(call.context, name)
    what = ", ".join(done.files) or f"the command {done.command!r}"
    words = f"Accepted for {name}: {what}."
    command = done.command or None
    call.print_receipt(done.receipt, words, accepted=done.files, command=command, met=done.met)
    _print_next(call, done.receipt)


@click.command()
@_NAME
@command_options
def restore(call: Call, *, name: str) -> None:
    """Put the changed files of a check back.

    They are then as they were at `start`, or as a user accepted them. NAME is a check, as `status`
    shows it, or a protected file. Whole files are put back; what they contain now is saved in
    .gsd/replaced.
    """
    done = engine.restore(call.context, name)
    words = f"Restored: {', '.join(done.files)}."
    words += f" Saved what they contained: {', '.join(done.saved)}." if done.saved else ""
    files = done.receipt.loop.protection.files
    parts = [file.shown for file in files if file.path in done.files and file.parts]
    lines = [f"Protected is only {', '.join(parts)}: other changes are in the saved file."] * bool(
        parts
    )
    call.print_receipt(done.receipt, words, lines, restored=done.files, saved=done.saved)
    if not call.json:
        call.answer({}, f"Run: {command_line('check', done.receipt.loop.id)}")


def _print_next(call: Call, receipt: Receipt) -> None:
    if not call.json:
        sentence, command = next_step(receipt.loop)
        call.answer({}, f"{sentence} Run: {command}")
