"""gsd-fsm pause, resume, wait, answer, mode, cancel, complete: halt, continue and end a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from gsd_fsm.cli.call import ONE_OR_MORE, Call, Number, command_options, parse_time
from gsd_fsm.cli.display.progress import progress
from gsd_fsm.cli.help import candidates
from gsd_fsm.cli.output import flat, say, without_owner
from gsd_fsm.core.errors import GsdError, UsageError
from gsd_fsm.core.loop.completion import proof_counts
from gsd_fsm.core.loop.events.lifecycle import MODES
from gsd_fsm.core.loop.limits import COUNTED
from gsd_fsm.core.loop.records import LIMITS
from gsd_fsm.core.loop.schema import AMOUNT
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.text.questions import plural
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.documents.journal_text import read_option
from gsd_fsm.engine import lifecycle as engine

# Units of `resume --add-CODE` where the code is not the unit.
_UNITS = {
    "iterations": "iterations to the limit",
    "rounds": "verification rounds",
    "budget": "US dollars to the budget",
    "tokens": "tokens to the budget",
    "minutes": "minutes of active time",
    "retries": "retries per task",
}
_ADDED = {**{code: row.limit for code, row in COUNTED.items()}, "retries": "max_retries"}


@click.command()
@click.argument("question", required=False)
@click.option(
    "--until",
    metavar="TIME",
    help="Wait until the client's rate limit ends, at this time (UTC unless an offset is given).",
)
@command_options
def wait(call: Call, *, question: str | None, until: str | None) -> None:
    """Wait for the user's answer, or until a rate limit ends."""
    if until:
        proof = engine.wait_until(call.context, parse_time(until), question)
    elif question and question.strip():
        proof = engine.ask(call.context, question)
    else:
        raise UsageError("no question given", "Run: gsd-fsm wait QUESTION")
    call.print_receipt(proof, "Waiting.")


@click.command()
@click.option("--reason", metavar="TEXT", help="Reason for the pause.")
@click.option(
    "--all",
    "everywhere",
    is_flag=True,
    help="Pause every live loop of all projects on this machine.",
)
@command_options
def pause(call: Call, *, reason: str | None, everywhere: bool) -> None:
    """Pause the loop, so that the agent may stop.

    A loop that is already paused does not change.
    """
    if everywhere:
        _pause_all(call, reason)
        return
    done = engine.pause(call.context, reason)
    if done.is_new:
        call.print_receipt(done.receipt, "Paused.")
        return
    loop = done.receipt.loop
    facts = {"loop": loop.id, "seq": done.receipt.seq, "status": loop.status}
    facts["head"] = done.receipt.head
    call.answer(facts, flat(f"Loop {loop.id} is already paused ({_pause_words(loop)})."))


def _pause_all(call: Call, reason: str | None) -> None:
    """Pause the loops of all projects and report each; exit with the code of the first problem."""
    if call.context.loop_id is not None:
        raise UsageError("--all and --loop exclude each other", "Omit one of them.")
    rows: list[dict[str, Any]] = []
    problems: list[dict[str, Any]] = []
    lines: list[str] = []
    code = 0
    for project, loop_id, outcome in engine.pause_all(call.context, reason):
        if isinstance(outcome, GsdError):
            code = code or outcome.exit_code
            problems.append({"project": project, "loop": loop_id, "error": outcome.message})
            lines.append(f"! {loop_id or 'journal'} in {project}: {outcome.message}")
            continue
        loop = outcome.receipt.loop
        rows.append({"project": project, "loop": loop.id, "status": loop.status})
        words = "Paused" if outcome.is_new else f"Already paused ({_pause_words(loop)}):"
        lines.append(f"{words} {loop.id} in {project}")
    words = "\n".join(map(flat, lines)) or "No live loops."
    call.answer({"loops": rows, "problems": problems}, words)
    if code:
        raise click.exceptions.Exit(code)


def _pause_words(loop: Loop) -> str:
    return f"{loop.pause_code}: {loop.pause_reason}"


@click.command()
@click.option("--reason", metavar="TEXT", help="Reason for the cancellation.")
@command_options
def cancel(call: Call, *, reason: str | None) -> None:
    """End the loop for good; report what was done and what remains."""
    ended = engine.cancel(call.context, reason)
    report = "".join(
        f" {what.capitalize()} done: {', '.join(part['done']) or 'none'}; "
        f"remaining: {', '.join(part['remaining']) or 'none'}."
        for what, part in ended.work.items()
        if part["done"] or part["remaining"]
    )
    call.print_receipt(ended.receipt, f"Cancelled.{report}", **ended.work)


@click.command()
@command_options
def release(call: Call) -> None:
    """Detach the loop from its session, so that the session may stop.

    Its status does not change; the next session that gets a prompt here will own it.
    """
    done = engine.release(call.context)
    call.print_receipt(done, f"Released. {' '.join(without_owner(done.loop))}.")


@click.command()
@click.argument("words", metavar="[ID] TEXT", nargs=-1, shell_complete=candidates.questions)
@click.option("--file", "file", metavar="FILE|-", help="Read the answer from a file or stdin.")
@command_options
def answer(call: Call, *, words: tuple[str, ...], file: str | None) -> None:
    """Answer the question that the loop is waiting for.

    ID is required while several questions are open. Where a yes or a no decides, the whole answer
    must be one: yes, ok, go, continue … or no, stop, cancel, later, never, not yet …
    """
    if len(words) > 2 or (file is not None and len(words) > 1):
        raise UsageError("too many words", "Quote the answer: gsd-fsm answer [ID] 'TEXT'")
    question_id = words[0] if words and (len(words) == 2 or file is not None) else None
    given = words[-1] if words and file is None else None
    text = read_option(given, file, "the answer")
    if text is None:
        raise UsageError("no answer given", "Run: gsd-fsm answer TEXT")
    _print(call, "Answered.", engine.answer(call.context, text, question_id))


@click.command()
@click.argument("name", type=click.Choice(MODES))
@command_options
def mode(call: Call, *, name: str) -> None:
    """Choose whether the loop asks you for decisions."""
    _print(call, f"Mode {name}.", engine.set_mode(call.context, name))


def _print(call: Call, words: str, decision: engine.Decision) -> None:
    loop = decision.receipt.loop
    asked = loop.question if loop.status == "waiting" else ""
    elsewhere = loop.is_active and loop.owner not in (None, call.context.session)
    how = "To continue, send any message in the session of the loop." if elsewhere else ""
    texts = filter(None, (words, decision.note, asked, how))
    call.print_receipt(decision.receipt, " ".join(texts))


def _additions(function: Callable[..., None]) -> Callable[..., None]:
    for code, limit in reversed(_ADDED.items()):
        is_amount = (LIMITS.members or {})[limit] is AMOUNT
        add = click.option(
            f"--add-{code}",
            limit,
            type=Number(whole=False, above=True) if is_amount else ONE_OR_MORE,
            metavar="USD" if code == "budget" else "N",
            help=f"Add this many {_UNITS.get(code, code)}.",
        )
        function = add(function)
    return function


@click.command()
@_additions
@command_options
def resume(call: Call, **more: float | None) -> None:
    """Continue the loop in this session; limits can be raised.

    Counters and history stay. The whole journal is verified and replayed first.
    """
    from gsd_fsm.engine.history import event_count

    add = {name: value for name, value in more.items() if value is not None}
    with progress("Verifying the journal", event_count(call.context)) as advance:
        done = engine.resume(call.context, add, advance)
    loop = done.receipt.loop
    words = f"Resumed.{_limit_words(done, add)}{_interruption_words(done)}"
    words += f" {done.note}" if done.note else ""
    words += f" {loop.question}" if loop.status == "waiting" else ""
    words += "" if loop.owner else f" {' '.join(without_owner(loop))}."
    call.print_receipt(done.receipt, words, **_facts(done))


def _facts(done: engine.Resumed) -> dict[str, Any]:
    if not done.receipt.loop.is_planned:
        return {}
    return {
        "running": [task._asdict() for task in done.running],
        "verified_commits": done.verified_commits,
        "missing_commits": done.missing_commits,
    }


def _limit_words(done: engine.Resumed, add: dict[str, float]) -> str:
    limits = done.receipt.loop.limits
    most = limits.max_iterations
    words = f" {most} iterations now." if "max_iterations" in add and most else ""
    unlimited = [
        "money" if code == "budget" else code
        for code, limit in _ADDED.items()
        if limit in add and not getattr(limits, limit)
    ]
    if unlimited:
        words += f" Nothing added: {', '.join(unlimited)} had no limit."
    return words


def _interruption_words(done: engine.Resumed) -> str:
    words = ""
    if done.verified_commits:
        words += f" Commits of {plural(done.verified_commits, 'task')} verified."
    if done.missing_commits:
        words += f" No longer on this branch: the commits of {', '.join(done.missing_commits)}."
    for task in done.running:
        ref = f" ({task.ref})" if task.ref else ""
        words += f" Task {task.task}{ref} was running: report it, or run it again."
    return words


@click.command()
@command_options
def complete(call: Call) -> None:
    """Complete the loop, if nothing is missing.

    In a goal loop this is also the exit signal. A loop that a limit paused completes if everything
    is met. Each unmet condition of a goal is listed and becomes a task. Evidence is valid only for
    the content it was taken from: after a change, check again. A loop that executed a plan writes
    the summary of its phase and marks it complete in the roadmap and the project state. Run it
    again to finish an interrupted completion.
    """
    complete_and_print(call)


def complete_and_print(
    call: Call, before: str = "", lines: Iterable[str] = (), **more: Any
) -> None:
    """Complete the loop and print the result; the other arguments are printed before it."""
    from gsd_fsm.core.text.notices import result
    from gsd_fsm.engine.complete import complete as complete_loop
    from gsd_fsm.engine.planned.phase_end import ends_phase

    done = complete_loop(call.context, call.screen)
    loop = done.receipt.loop
    is_phase = ends_phase(loop)
    facts: dict[str, Any] = {"report": done.report} if done.report or is_phase else {}
    if is_phase:
        facts = {"tag": done.tag, "written": done.written, **facts}
    proven, claimed = proof_counts(loop)
    facts = {**more, "proven": proven, "claimed": claimed, **facts}
    words = "already completed." if done.already_completed else result(loop, 0)
    words = f"{before} " * bool(before) + words[:1].upper() + words[1:]
    if done.already_completed and done.finished:
        words += f" Finished {', '.join(done.finished)}."
    call.print_receipt(done.receipt, words, lines, **facts)
    if done.report and not call.json and not done.already_completed:
        say(done.report if is_phase else display(done.report, lines=True))
