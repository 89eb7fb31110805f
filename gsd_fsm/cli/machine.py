"""`graph`: the machine as a diagram."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.graph import mermaid


@click.command()
@verb
def graph(call: Call) -> None:
    """Draw the state machine as a Mermaid diagram."""
    call.answer({"mermaid": mermaid()}, mermaid())
