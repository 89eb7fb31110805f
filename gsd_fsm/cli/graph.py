"""gsd-fsm graph, schema: print the state machine and the JSON Schema of events."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import Call, project_options
from gsd_fsm.cli.output import say
from gsd_fsm.core.codec import dumps
from gsd_fsm.history.event_schema import event_schema
from gsd_fsm.history.graph import mermaid


@click.command()
@project_options
def graph(call: Call) -> None:
    """Draw the state machine as a Mermaid diagram."""
    call.answer({"mermaid": mermaid()}, mermaid())


@click.command()
@click.argument("what", type=click.Choice(("events",)))
@project_options
def schema(call: Call, *, what: str) -> None:
    """Print the JSON Schema of a journal line."""
    say(dumps(event_schema()))
