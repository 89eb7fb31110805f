"""gsd-fsm status, why, next: show a loop, explain its decisions and name the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gsd_fsm.cli.call import ONE_OR_MORE, Call, command_options
from gsd_fsm.cli.output import panel, say
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.text.sanitize import display

if TYPE_CHECKING:
    from gsd_fsm.engine.status import Item


@click.command()
@click.option(
    "--check",
    is_flag=True,
    help="Exit with 0 if completed, 10 active, 11 waiting, 12 paused, 13 cancelled, 3 no loop.",
)
@command_options
def status(call: Call, *, check: bool) -> None:
    """Show the loop, or the last one that ended."""
    from gsd_fsm.engine import status as engine

    found = engine.status(call.context)
    if call.json:
        say(dumps(found.view))
    else:
        say("\n".join(panel(found.view, found.loop, trusted=found.is_trusted)))
        if found.is_stopped:
            say(f"{'hook':<10} disabled by .gsd/STOP; remove the file to enable it")
    if check:
        raise click.exceptions.Exit(engine.CHECK_CODES[found.loop.status])


@click.command()
@click.argument("seq", type=ONE_OR_MORE, required=False)
@command_options
def why(call: Call, *, seq: int | None) -> None:
    """Explain why the last stop, or the one of event SEQ, was blocked or allowed."""
    from gsd_fsm.engine.status import explain

    found = explain(call.context, seq)
    words = {"block": "Blocked", "allow": "Allowed"}.get(found.decision, "No stop")
    facts = {name: value for name, value in found._asdict().items() if name != "ts"}
    call.answer(
        facts,
        display(f"{words} ({found.code}) at event {found.seq}, {found.ts}. {found.why}"),
    )


@click.command("next")
@click.argument("task_id", metavar="[ID]", required=False)
@command_options
def next_(call: Call, *, task_id: str | None) -> None:
    """Show the next step and its command; change nothing.

    In a planned loop: the tasks that can start now. With the ID of a task or gap: its complete
    prompt, for the subagent that will do it. With --json: both.
    """
    from gsd_fsm.engine.status import next_item, next_work

    if task_id is not None:
        item = next_item(call.context, task_id, call.command)
        say(dumps(item.facts()) if call.json else display(item.prompt, lines=True))
        return
    found = next_work(call.context, prompts=call.json, command=call.command)
    loop = found.loop
    facts: dict[str, Any] = {"loop": loop.id, "status": loop.status, "text": found.sentence}
    facts["command"] = found.command
    if loop.is_planned:
        items = [item.facts() for item in found.items]
        running = [task._asdict() for task in found.running]
        facts.update({"wave": found.wave, "tasks": items, "running": running})
    lines = [display(found.sentence), *(_line(item) for item in found.items)]
    lines += [f"  {task.id} is running; once it ends, run: {task.report}" for task in found.running]
    if not found.items and found.command not in [task.report for task in found.running]:
        halted = loop.status in ("paused", "waiting")
        run = "If the user wants the loop to continue, run" if halted else "Run"
        lines.append(f"{run}: {display(found.command)}")
    call.answer(facts, "\n".join(lines))


def _line(item: Item) -> str:
    return (
        f"  {display(item.description)}\n"
        f"    prompt for a subagent ({item.subagent_type}): {item.show}\n"
        f"    once it runs: {item.command}\n"
        f"    its output: {item.report}"
    )
