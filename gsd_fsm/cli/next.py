"""`next`: what to do now, and for a planned loop the complete prompt of everything that can start."""

from __future__ import annotations

from typing import Any

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.cli.voice import say
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.engine.next import Item, next_item, next_work


@click.command("next")
@click.argument("task_id", metavar="[ID]", required=False)
@verb
def next_(call: Call, *, task_id: str | None) -> None:
    """Say what to do now, and the command for it; change nothing.

    In a planned loop: the tasks that can start now. With the ID of a task or gap: its complete
    prompt, for the subagent that will do it. With --json: both.
    """
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
        running = [vars(task) for task in found.running]
        facts.update({"wave": found.wave, "tasks": items, "running": running})
    lines = [display(found.sentence), *(_line(item) for item in found.items)]
    lines += [f"  {task.id} is running; then run: {task.report}" for task in found.running]
    if not found.items:
        halted = loop.status in ("paused", "waiting")
        run = "If the user wants the loop to continue, run" if halted else "Run"
        lines.append(f"{run}: {display(found.command)}")
    call.answer(facts, "\n".join(lines))
    call.report_unfinished()


def _line(item: Item) -> str:
    return (
        f"  {display(item.description)}\n"
        f"    prompt for a subagent ({item.subagent_type}): {item.show}\n"
        f"    once it runs: {item.command}\n"
        f"    its output: {item.report}"
    )
