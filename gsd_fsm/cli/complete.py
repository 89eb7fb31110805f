"""gsd-fsm complete: complete a loop and the phase that it executed."""

from __future__ import annotations

from typing import Any

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.cli.output import say
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.engine import complete as engine
from gsd_fsm.engine.finish import ends_phase


@click.command()
@verb
def complete(call: Call) -> None:
    """Complete a loop; refused while its completion rule does not hold.

    Each missing condition of a goal is named, and becomes a task.

    Evidence counts only for the content it was taken from: after a change, check again.
    A loop that executed a plan writes the summary of its phase, and marks it complete in the
    roadmap and the state of the project. Run it again to finish an interrupted completion.
    """
    done = engine.complete(call.context)
    is_phase = ends_phase(done.receipt.loop)
    facts: dict[str, Any] = {"report": done.report} if done.report or is_phase else {}
    if is_phase:
        facts = {"tag": done.tag, "written": done.written, **facts}
    call.print_receipt(done.receipt, _words(done), **facts)
    if done.report and not call.json and not done.already_completed:
        say(done.report if is_phase else display(done.report, lines=True))


def _words(done: engine.Completion) -> str:
    if not done.already_completed:
        return "Completed."
    if not done.finished:
        return "Already completed: nothing is missing."
    return f"Already completed. Finished {', '.join(done.finished)}."
