"""gsd-fsm start, import: start a loop with its limits frozen, or take one over from another tool."""

from __future__ import annotations

import os
import sys
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from gsd_fsm.cli.call import AMOUNT, COUNT, Call, project_options
from gsd_fsm.cli.display.page import Line
from gsd_fsm.cli.display.show import is_read_by_person, show
from gsd_fsm.cli.help.options import SettingOption
from gsd_fsm.cli.output import (
    flat,
    quoted,
    say,
    unproven_facts,
    unproven_lines,
    without_owner,
)
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.core.loop.events.lifecycle import KINDS, MODES
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.core.text.notices import way_to_end
from gsd_fsm.core.text.questions import plural
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.documents.journal_text import read_option
from gsd_fsm.engine.start import Started, StartRequest
from gsd_fsm.engine.start import start as start_loop

if TYPE_CHECKING:
    from gsd_fsm.engine.import_loop import Imported

_SHOWN = 10  # manual checks
_setting = partial(click.option, cls=SettingOption)
_count = partial(_setting, type=COUNT, metavar="N")
_repeatable = partial(click.option, multiple=True)


@click.command()
@click.argument(
    "kind",
    metavar=f"[{'|'.join(KINDS)}]",
    required=False,
    shell_complete=lambda _context, _param, begun: [it for it in KINDS if it.startswith(begun)],
)
@click.argument("goal", required=False)
@click.option("--goal-file", metavar="FILE|-", help="Read the goal from a file or stdin.")
@click.option("--phase", metavar="N", help="Execute or verify this phase.")
@click.option(
    "--plan", metavar="FILE", help="Follow this plan; a later change to the file pauses the loop."
)
@_setting(
    "--mode",
    setting="mode",
    type=click.Choice(MODES),
    help="Ask the user at decisions, or continue without asking (default: DEFAULT).",
)
@_count(
    "--max-iterations",
    setting="max_iterations",
    unset="20, or 3 per task if more",
    help="Maximum number of iterations (0: unlimited; default: DEFAULT).",
)
@_count(
    "--max-retries",
    setting="execute_max_retries",
    help="Maximum number of retries per task (default: DEFAULT).",
)
@_count(
    "--stuck-limit",
    setting="stuck_limit",
    help="Pause after this many iterations without progress (0: never; default: DEFAULT).",
)
@_count(
    "--idle-limit",
    setting="idle_limit",
    help="Pause after this many blocks without activity (0: never; default: DEFAULT).",
)
@_setting(
    "--budget",
    setting="budget_usd",
    type=AMOUNT,
    metavar="USD",
    help="Pause when this many US dollars are spent (0: no limit; default: DEFAULT).",
)
@_setting(
    "--max-minutes",
    setting="max_minutes",
    type=AMOUNT,
    metavar="N",
    help="Pause after this many active minutes (0: no limit; default: DEFAULT).",
)
@_count(
    "--max-tokens",
    setting="max_tokens",
    help="Pause when this many tokens are used (0: no limit; default: DEFAULT).",
)
@_repeatable("--criterion", "criteria", metavar="TEXT", help="Add a criterion (repeatable).")
@_repeatable(
    "--check",
    "checks",
    metavar="NAME=CMD",
    help="Add a criterion that a command proves (repeatable).",
)
@_repeatable("--task", "tasks", metavar="ID[:TITLE]", help="Add a task (repeatable).")
@_repeatable("--step", "steps", metavar="TEXT", help="Add a step (repeatable).")
@_repeatable("--must-not", metavar="TEXT", help="State what must not happen (repeatable).")
@_repeatable(
    "--blocked-by",
    metavar="ID=ID,…",
    help="Make a task or step (S1, S2 …) wait for others (repeatable).",
)
@click.option(
    "--shape-file", metavar="FILE", help="Read criteria, must-nots and checks from a SHAPE.md."
)
@click.option(
    "--task-list",
    metavar="ID",
    help="Mirror this task list of the client (auto: the session's own; none: no list).",
)
@_repeatable(
    "--protect",
    metavar="GLOB",
    help="Also protect these files: a check does not count after they change (repeatable).",
)
@_repeatable(
    "--may-change",
    metavar="GLOB",
    help="Do not protect these files, although a check depends on them (repeatable).",
)
@click.option(
    "--strict-tests",
    is_flag=True,
    help="Fail a check that runs no tests, only skipped ones, or fewer than before.",
)
@click.option(
    "--clean",
    is_flag=True,
    help="Before the loop completes, run the checks in a clean copy of the work tree.",
)
@click.option("--session-only", is_flag=True, help="Cancel the loop when its session ends.")
@click.option("--fresh", is_flag=True, help="Cancel the conflicting live loop first.")
@click.option(
    "--baseline", is_flag=True, help="Run each check once, and report what passes before any work."
)
@project_options
def start(
    call: Call,
    *,
    kind: str | None,
    goal: str | None,
    goal_file: str | None,
    baseline: bool,
    **options: Any,
) -> None:
    """Start an execute, verify or goal loop.

    `execute` does the tasks of a plan, `verify` checks it until no gap is left, `goal` (the
    default for a GOAL of several words) continues until every criterion is met. `execute` and
    `verify` need a plan, a planned phase (default: the current one) or tasks. The defaults shown
    are those of the current settings. To see them, run: gsd-fsm config
    """
    kind, goal = _kind_and_goal(kind, goal)
    text = read_option(goal, goal_file, "the goal")
    done = start_loop(call.context, StartRequest(kind, text, **options))
    loop = done.receipt.loop
    if loop.status == "paused":
        raise Refused(
            f"loop {loop.id} was started and is now paused ({loop.pause_code}): "
            f"{loop.pause_reason}",
            f"Fix the cause, then run: {next_step(loop)[1]}",
        )
    words = [*_created(done), f"Started {kind} loop {loop.id}."]
    facts: dict[str, Any] = {"notes": done.notes, "warnings": done.warnings}
    facts |= {**unproven_facts(done.unproven), "protected": done.protected}
    if kind == "goal":
        facts["recall"] = done.lessons
    elif loop.is_planned:
        words.append(f"Plan: {loop.plan.file}, {plural(loop.plan.task_count or 0, 'task')}.")
        facts |= {"plan": loop.plan.file, "question": loop.question}
    words += done.notes
    if loop.question:
        words.append(f"{loop.question} ({command_line('answer', loop.id, 'y')})")
    words += _owner(call, loop)
    if not baseline:
        _print_started(call, done, words, facts)
    else:
        _print_with_baseline(call, done, words, facts)
    if call.json:
        return
    warnings = [f"warning: {it}" for it in done.warnings]
    protected = _protected_line([file.shown for file in loop.protection.files])
    lines = [way_to_end(loop), *protected, *warnings, *unproven_lines(done.unproven, _SHOWN)]
    show([Line(it) for it in lines])
    if done.lessons:
        keep, drop = (
            command_line("recall", loop.id, it) for it in ("--accept all", "--dismiss all")
        )
        lessons = "\n".join(
            f"{number}. {flat(text)}" for number, text in enumerate(done.lessons, 1)
        )
        say(quoted("Learned in earlier loops here", lessons, len(lessons)))
        say(f"To keep them: {keep}. If they do not apply: {drop}")


def _protected_line(names: list[str]) -> list[str]:
    """Return a line that names the protected files, if there are any."""
    if not names:
        return []
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    listed = ", ".join(map(display, names[:_SHOWN]))
    return [f"Protected: {listed}{more}. A check does not count after one of them has changed."]


def _kind_and_goal(kind: str | None, goal: str | None) -> tuple[str, str | None]:
    """Return kind and goal; several words in place of the kind are the goal of a goal loop."""
    known = ", ".join(KINDS)
    if kind is None:
        raise UsageError(f"missing argument: one of {known}", 'Run: gsd-fsm start goal "GOAL"')
    if kind in KINDS:
        return kind, goal
    if goal is None and any(map(str.isspace, kind)):
        return "goal", kind
    words = quote(" ".join(filter(None, (kind, goal))))
    raise UsageError(
        f"{kind[:40]!r} is not one of {known}", f"For a goal loop, run: gsd-fsm start goal {words}"
    )


def _print_started(
    call: Call, done: Started | Imported, words: list[str], facts: dict[str, Any]
) -> None:
    """Print one line or JSON object; for a person a line for each of the texts."""
    loop = done.receipt.loop
    if call.json or not is_read_by_person(sys.stdout):
        call.print_receipt(done.receipt, " ".join(words), **facts)
    else:
        show([Line(it) for it in (*words, f"Loop {loop.id} is {loop.status}.")])


def _print_with_baseline(
    call: Call, done: Started, words: list[str], facts: dict[str, Any]
) -> None:
    """Print the start, run the checks, and print their results; with --json, all as one object."""
    from gsd_fsm.engine.baseline import take_baseline

    if not call.json:
        _print_started(call, done, words, {})
    found = take_baseline(call.context, done.receipt.loop, watch=call.screen)
    results = {"passed": found.passed, "failed": found.failed, "manual": found.manual}
    if call.json:
        call.print_receipt(found.receipt, "", **facts, baseline=results)
        return
    shown = [f"{word}: {', '.join(names)}" for word, names in results.items() if names]
    lines = [f"Before any work: {'; '.join(shown) or 'there are no checks'}."]
    if found.passed and not found.failed:
        lines.append("Every check passes already, so a pass does not show that the work is done.")
    call.answer({}, "\n".join(map(flat, lines)))


def _created(done: Started | Imported) -> list[str]:
    """Return sentences about a new journal and cancelled loops."""
    created = [f"Created the journal in {done.new_journal}."] if done.new_journal else []
    return created + [f"Cancelled loop {name}." for name in done.cancelled]


def _owner(call: Call, loop: Loop) -> list[str]:
    """Return a sentence about a loop that no session owns yet."""
    if loop.owner:
        return []
    from gsd_fsm.install.installer import hook_problem
    from gsd_fsm.install.presence import missing_hook

    problem, fix = "", ""
    start = os.fspath(call.context.directory)
    if not call.json and not any(missing_hook(os.path.dirname(call.context.gsd), start)):
        problem, fix = hook_problem(start)
    missing = f"{problem[:1].upper()}{problem[1:]}. To install it, run: {fix}."
    return [*([missing] if problem else []), " ".join(without_owner(loop)) + "."]


@click.command("import")
@click.argument("file")
@_setting(
    "--mode", setting="mode", type=click.Choice(MODES), help="Set the mode (default: DEFAULT)."
)
@_repeatable(
    "--check",
    "checks",
    metavar="NAME=CMD",
    help="Add a criterion that a command proves to a goal loop (repeatable).",
)
@click.option(
    "--budget",
    type=AMOUNT,
    metavar="USD",
    help="Pause when this many US dollars are spent (0: no limit; default: that of the file).",
)
@click.option("--dry-run", is_flag=True, help="Show the events and write nothing.")
@click.option("--fresh", is_flag=True, help="Cancel the conflicting live loop first.")
@project_options
def import_(call: Call, *, dry_run: bool, **options: Any) -> None:
    """Take over a live loop from another tool, with its counters.

    FILE is the file of that tool: a STATE.md, a state.json of .opti-gsd, a workflow-state.json or
    state.json of .loop, a ralph-loop.local.md, or a task of the client's task list whose metadata
    hold a goal. The content decides which; the name does not matter.
    """
    from gsd_fsm.engine.import_loop import ImportRequest, import_loop, preview_import

    request = ImportRequest(**options)
    if dry_run:
        preview = preview_import(call.context, request)
        events = [{"type": kind, "data": data} for kind, data in preview.events]
        lines = "\n".join(f"{kind} {dumps(data)}" for kind, data in preview.events)
        call.answer({"format": preview.format, "events": events, "notes": preview.notes}, lines)
        if not call.json:
            _print_notes(preview.notes)
        return
    from gsd_fsm.cli.display.progress import progress

    done = import_loop(call.context, request, partial(progress, "Recording the loop"))
    loop = done.receipt.loop
    imported = f"Imported {display(done.file)} as {loop.kind} loop {loop.id}."
    words = [*_created(done), imported, *_owner(call, loop)]
    _print_started(call, done, words, {"format": done.format, "notes": done.notes})
    if not call.json:
        _print_notes(done.notes)


def _print_notes(notes: list[str]) -> None:
    for note in notes:
        say(flat(f"- {note}"))
