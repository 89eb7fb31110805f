"""`schema`: print the JSON Schemas of what gsd-fsm writes."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.cli.voice import say
from gsd_fsm.core.codec import dumps
from gsd_fsm.engine.reference import event_schema


@click.command()
@click.argument("what", type=click.Choice(("events",)))
@verb
def schema(call: Call, *, what: str) -> None:
    """Print the JSON Schema of a journal line, derived from the event declarations."""
    say(dumps(event_schema()))
