"""gsd-fsm status, why, next: show a loop, explain its decisions and name the next step.

Modules that compose and print pages are imported late: neither `next` nor `status --json` needs them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from gsd_fsm.cli.call import ONE_OR_MORE, Call, command_options
from gsd_fsm.cli.help import candidates
from gsd_fsm.cli.output import advice_lines, flat, say
from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.completion import awaits_complete
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.engine.context import SeveralLive

if TYPE_CHECKING:
    from gsd_fsm.cli.display.page import Part, Style, Words
    from gsd_fsm.core.loop.state import Loop
    from gsd_fsm.engine.status import Explanation, Item

_DECISIONS: dict[str, tuple[str, Style]] = {
    "block": ("Blocked", "busy"),
    "allow": ("Allowed", "good"),
}
# Limits of `why`: quotations, and the last lines of each at a terminal.
_QUOTES, _LINES = 5, 15


@click.command()
@click.option(
    "--check",
    is_flag=True,
    help="Exit with 0 if completed, 10 active, 11 waiting, 12 paused, 13 cancelled, 3 no loop.",
)
@click.option("--all", "full", is_flag=True, help="Show long lists and texts in full.")
@command_options
def status(call: Call, *, check: bool, full: bool) -> None:
    """Show the loop, or the last one that ended.

    If several loops are live, show all of them, unless --loop selects one.
    """
    from gsd_fsm.engine import status as engine

    try:
        found = engine.status(call.context)
    except SeveralLive as several:
        if call.json or check:
            raise
        _show_all(call, several.loops)
        return
    if call.json:
        say(dumps(found.view))
    else:
        from gsd_fsm.cli.display.loop import LoopPage
        from gsd_fsm.cli.display.show import is_read_by_person, show

        page = LoopPage(found.loop, now_ms(), full=full or not is_read_by_person(sys.stdout))
        show(page.parts(found))
    if check:
        raise click.exceptions.Exit(engine.CHECK_CODES[found.loop.status])


def _show_all(call: Call, live: list[Loop]) -> None:
    from gsd_fsm.cli.display.loop import HOOK_DISABLED, detailed_box, not_trusted
    from gsd_fsm.cli.display.page import Command, Line
    from gsd_fsm.cli.display.show import show
    from gsd_fsm.engine.status import failed_stop, is_hook_disabled, is_trusted

    live.sort(key=lambda loop: -loop.last_seq)
    trusted = is_trusted(call.context)
    page: list[Part] = []
    for loop in live:
        page += detailed_box(loop, failed_stop(call.context, loop), trusted=trusted)
    if is_hook_disabled(call.context):
        page.append(Line(f"The hook is {HOOK_DISABLED}."))
    one: Words = ["To see one of them, run: ", Command(command_line("status", "ID"))]
    page.append(Line(one if trusted else not_trusted()))
    show(page)


@click.command()
@click.argument("seq", type=ONE_OR_MORE, required=False)
@command_options
def why(call: Call, *, seq: int | None) -> None:
    """Explain why the last stop was blocked or allowed.

    With SEQ, explain that event. The evidence is shown: the output of failed checks, and errors.
    """
    from gsd_fsm.cli.display.progress import progress
    from gsd_fsm.engine.history import event_count
    from gsd_fsm.engine.status import explain

    with progress("Reading the journal", 2 * event_count(call.context)) as advance:
        found = explain(call.context, seq, advance)
    facts = {name: value for name, value in found._asdict().items() if name != "ts"}
    facts["evidence"] = [it._asdict() for it in found.evidence]
    call.show(facts, _explained(found))


def _explained(found: Explanation) -> Iterator[Part]:
    """Yield the page of a decision."""
    from gsd_fsm.cli.display.loop import proof_rows, quote_of
    from gsd_fsm.cli.display.page import Command, Fields, Line, Moment, Styled
    from gsd_fsm.cli.display.show import is_read_by_person

    words, style = _DECISIONS.get(found.decision, ("No stop", "faint"))
    place = f" ({flat(found.code)}) at event {found.seq}, "
    yield Line([Styled(words, style), place, Moment(found.ts), f". {flat(found.why)}"])
    yield Fields(proof_rows(found.proven or {}, found.claimed or {}))
    most = _LINES if is_read_by_person(sys.stdout) else None
    yield from (quote_of(it, most) for it in found.evidence[:_QUOTES])
    if len(found.evidence) > _QUOTES:
        yield Line(
            [
                f"… {len(found.evidence) - _QUOTES} more; to see all, run: ",
                Command(command_line("why --json")),
            ]
        )


@click.command("next")
@click.argument("task_id", metavar="[ID]", required=False, shell_complete=candidates.tasks_and_gaps)
@command_options
def next_(call: Call, *, task_id: str | None) -> None:
    """Show the next step and its command; change nothing.

    In a planned loop: the tasks that can start now. With the ID of a task or gap: its complete
    prompt, for the subagent that will do it; with `review`: that of the subagent that judges what
    no command can. With --json, every prompt is included.
    """
    from gsd_fsm.engine.status import next_item, next_work

    if task_id is not None and task_id != "review":
        item = next_item(call.context, task_id)
        say(dumps(item.facts()) if call.json else display(item.prompt, lines=True))
        return
    found = next_work(call.context, prompts=call.json)
    loop = found.loop
    if task_id is not None and not call.json:
        if not found.review:
            raise Refused(f"loop {loop.id} has no open verdicts", "Run: gsd-fsm next")
        say(display(found.review, lines=True))
        return
    facts: dict[str, Any] = {"loop": loop.id, "status": loop.status, "text": found.sentence}
    if found.review:
        facts["review"] = found.review
    facts["command"] = found.command
    if loop.is_planned:
        items = [item.facts() for item in found.items]
        running = [task._asdict() for task in found.running]
        facts.update({"wave": found.wave, "tasks": items, "running": running})
    lines = [*advice_lines(loop), *(_line(item) for item in found.items)]
    lines += [f"  {task.id} is running; once it ends, run: {task.report}" for task in found.running]
    if found.review:
        lines.append(
            f"  prompt for a reviewing subagent: {command_line('next', loop.id, 'review')}"
        )
    elif not found.items and found.command not in [task.report for task in found.running]:
        halted = loop.status in ("paused", "waiting") and not awaits_complete(loop)
        run = "If the user wants the loop to continue, run" if halted else "Run"
        lines.append(f"{run}: {flat(found.command)}")
    call.answer(facts, "\n".join(lines))


def _line(item: Item) -> str:
    return (
        f"  {item.description}\n"
        f"    prompt for a subagent ({item.subagent_type}): {item.show}\n"
        f"    once it is running, run: {item.command}\n"
        f"    to report its output, run: {item.report}"
    )
