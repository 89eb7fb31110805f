"""`import`: take over the live loop of another tool."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.cli.start import creation_words, owner_words
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.engine.import_loop import import_loop, preview_import


@click.command("import")
@click.argument("file")
@click.option("--dry-run", is_flag=True, help="Show the events and write nothing.")
@click.option("--fresh", is_flag=True, help="Cancel the conflicting live loop first.")
@verb
def import_(call: Call, *, file: str, dry_run: bool, fresh: bool) -> None:
    """Take over a live loop of another tool, with everything that it has counted.

    FILE is the file of that tool: a STATE.md, a workflow-state.json or state.json of .loop, or a
    ralph-loop.local.md. The content decides which; the name does not matter.
    """
    if dry_run:
        preview = preview_import(call.context, file)
        events = [{"type": kind, "data": data} for kind, data in preview.events]
        lines = "\n".join(f"{kind} {dumps(data)}" for kind, data in preview.events)
        facts = {"format": preview.format, "events": events, "notes": preview.notes}
        call.answer(facts, _lines(lines, preview.notes))
        return
    done = import_loop(call.context, file, fresh=fresh)
    loop = done.receipt.loop
    words = (
        f"{creation_words(done.new_journal, done.cancelled)}Imported {display(done.file)} as "
        f"{loop.kind} loop {loop.id}.{owner_words(call, loop)} Loop {loop.id} is {loop.status}."
    )
    call.answer(
        {
            "loop": loop.id,
            "seq": done.receipt.seq,
            "status": loop.status,
            "head": done.receipt.head,
            "format": done.format,
            "notes": done.notes,
        },
        _lines(words, done.notes),
    )


def _lines(words: str, notes: list[str]) -> str:
    return "\n".join([words, *(f"- {note}" for note in notes)])
