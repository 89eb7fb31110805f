"""gsd-fsm status, why, next: show a loop, explain its decisions and name the next step."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, Any

import click

from gsd_fsm.cli.call import ONE_OR_MORE, Call, command_options
from gsd_fsm.cli.help import candidates
from gsd_fsm.cli.output import advice_lines, flat, quoted, say, spent_words, status_word
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.completion import NO_TREE, awaits_complete, lacks_tree
from gsd_fsm.core.loop.state import Loop, listed, undelivered_notes
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.core.text.questions import review_words
from gsd_fsm.core.text.sanitize import display, one_line
from gsd_fsm.core.views.loop_json import shown_stage

if TYPE_CHECKING:
    from gsd_fsm.core.loop.records import Criterion, Gap, Task, Verdict
    from gsd_fsm.engine.status import Item

_TASK_MARKS = {"complete": "✓", "skipped": "-", "failed": "✗", "running": "▸", "checkpoint": "?",
               "reported": "◂"}  # fmt: skip


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
        say("\n".join(panel(found.loop, found.view["head"], trusted=found.is_trusted)))
        if found.is_stopped:
            say(f"{'hook':<10} disabled by .gsd/STOP; remove the file to enable it")
    if check:
        raise click.exceptions.Exit(engine.CHECK_CODES[found.loop.status])


def panel(loop: Loop, head: str, *, trusted: bool) -> list[str]:
    """Return the lines that show a loop; one that is not trusted gives no advice."""
    from gsd_fsm.core.text.progress import shown_tasks

    most, paused = loop.limits.max_iterations, loop.status == "paused"
    words, command = next_step(loop, brief=True)
    advice = [words, f"Run: {flat(command)}"]
    rows: list[tuple[str, Iterable[str]]] = [
        ("goal", _one(loop.goal)),
        ("phase", _one(loop.phase)),
        ("iteration", [f"{loop.iteration}{f' of {most}' if most else ''}"]),
        ("round", _one(loop.round or None)),
        ("paused", [f"{loop.pause_code}: {flat(loop.pause_reason)}"] if paused else []),
        ("stage", _one(shown_stage(loop))),
        ("score", _one(_score(loop))),
        ("spent", _one(spent_words(loop))),
        ("owner", [flat(loop.owner) or "none yet"]),
        ("question", _one(loop.question)),
        ("answer", _one(loop.answer)),
        ("must not", map(flat, loop.must_not)),
        ("lessons", map(flat, loop.recalled)),
        ("reviews", (f"{it.replace('_', ' ')}: {review_words(loop, it)}" for it in loop.reviews)),
        ("notes", (_first_line(note.text) for note in undelivered_notes(loop))),
        ("criteria", map(_criterion, loop.criteria.values(), count(1))),
        ("baseline", _baseline(loop)),
        ("evidence", [NO_TREE.removeprefix("Evidence ")] if lacks_tree(loop) else []),
        ("tasks", map(_task, shown_tasks(loop))),
        ("gaps", map(_gap, loop.gaps.values())),
        ("verdicts", map(_verdict, loop.verdicts.values() if loop.verified else ())),
    ]
    closing: list[tuple[str, Iterable[str]]] = [
        ("since", [f"{loop.started}, last event {loop.last_event}"]),
        ("head", [head]),
        ("next", advice if trusted else ["This journal is not trusted here. Run: gsd-fsm trust"]),
    ]
    lines = [f"{'loop':<10} {loop.id} · {loop.kind} · {status_word(loop.status)} · {loop.mode}"]
    lines += _row_lines(rows)
    if loop.last_error and loop.status != "completed":
        lines.append(quoted("last error", loop.last_error))
    return lines + _row_lines(closing)


def _row_lines(rows: list[tuple[str, Iterable[str]]]) -> list[str]:
    return [
        f"{'' if number else name:<10} {text}"
        for name, texts in rows
        for number, text in enumerate(texts)
    ]


def _one(value: object) -> list[str]:
    """Return the value as the only line of a row; no line if there is none."""
    shown = flat(str("" if value is None else value))
    return [shown] if shown else []


def _score(loop: Loop) -> str:
    if loop.spec_score is None:
        return ""
    known = {"fit": loop.fit_score, "shape": loop.shape}
    more = [f"{name} {value}" for name, value in known.items() if value is not None]
    return ", ".join([f"spec {loop.spec_score}/10", *more])


def _criterion(criterion: Criterion, number: int) -> str:
    mark = "✓" if criterion.met else "~" if criterion.stale else "·"
    where = f"in {flat(criterion.directory)}: " if criterion.directory else ""
    check = f"  [{where}{flat(criterion.check)}]" if criterion.check else ""
    flaky = "  flaky" if criterion.evidence and criterion.evidence.get("flaky") else ""
    return f"{mark} {number} {flat(criterion.name)}{check}{flaky}"


def _baseline(loop: Loop) -> Iterable[str]:
    """Yield which checks passed and failed before any work."""
    for words, result in (("passed before any work", True), ("failed before any work", False)):
        names = [name for name, passed in loop.baseline.items() if passed is result]
        if names:
            yield f"{words}: {flat(listed(names))}"


def _task(task: Task) -> str:
    retries = f" (retry {task.retries})" if task.retries else ""
    mark = _TASK_MARKS.get(task.status, "·")
    proof = f" ({task.proof})" if task.proof else " (skip requested)" if task.skip else ""
    return f"{mark} {task.id} {task.status}{proof}{retries}  {flat(task.title)}".rstrip()


def _verdict(verdict: Verdict) -> str:
    by = " (reviewed by an agent)" if verdict.agent else ""
    word = "open" if verdict.passed is None else "passed" if verdict.passed else "failed"
    return f"{verdict.id} {word}{by}  {_first_line(verdict.text)}".rstrip()


def _gap(gap: Gap) -> str:
    mark = "·" if gap.is_open else "✓"
    return f"{mark} {gap.id} {flat(gap.kind)} {flat(gap.file)}  {_first_line(gap.description)}"


def _first_line(text: str) -> str:
    return one_line(text.strip().split("\n", 1)[0], 120)


@click.command()
@click.argument("seq", type=ONE_OR_MORE, required=False)
@command_options
def why(call: Call, *, seq: int | None) -> None:
    """Explain why the last stop was blocked or allowed."""
    from gsd_fsm.engine.status import explain

    found = explain(call.context, seq)
    words = {"block": "Blocked", "allow": "Allowed"}.get(found.decision, "No stop")
    facts = {name: value for name, value in found._asdict().items() if name != "ts"}
    call.answer(
        facts,
        flat(f"{words} ({found.code}) at event {found.seq}, {found.ts}. {found.why}"),
    )


@click.command("next")
@click.argument("task_id", metavar="[ID]", required=False, shell_complete=candidates.tasks_and_gaps)
@command_options
def next_(call: Call, *, task_id: str | None) -> None:
    """Show the next step and its command; change nothing.

    In a planned loop: the tasks that can start now. With the ID of a task or gap: its complete
    prompt, for the subagent that will do it; with `review`: that of the subagent that judges what
    no command can. With --json: both.
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
