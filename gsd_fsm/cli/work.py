"""`iterate`, `task`, `fail`: the work of a loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from gsd_fsm.cli.call import ID_RULE, Call, Event, verb
from gsd_fsm.cli.checkpoints import set_checkpoint
from gsd_fsm.cli.failing import failure_data
from gsd_fsm.cli.planned import follows, require_turn, require_word, waits
from gsd_fsm.cli.start_options import split_ids
from gsd_fsm.cli.work_record import forget_copies
from gsd_fsm.core.advice import next_step
from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.core.flow import needs_human
from gsd_fsm.core.fold import World
from gsd_fsm.core.guards import guard, spent_patience
from gsd_fsm.core.loop import Loop, is_planned, work_of_its_own
from gsd_fsm.core.payloads import CLASSES, TDD_PHASES, is_id
from gsd_fsm.core.question import pending_question
from gsd_fsm.core.table import ACTIVE
from gsd_fsm.texts import read_text, whole


@click.command()
@verb
def iterate(call: Call) -> None:
    """Begin an iteration by hand, where no hook does it.

    A limit that is used up pauses the loop instead (exit code 4).
    """
    begun: list[Event] = []

    def build(loop: Loop, _world: World, now: int) -> Iterator[Event]:
        active = loop.status in ACTIVE
        asked = pending_question(loop) if active and loop.shape == "colleague" else None
        # Whoever runs this command is not idle.
        spent = guard(loop, now, activity=True) if active else None
        if asked is not None:
            yield waits(call, loop, *asked)
        elif spent is not None:
            yield call.pause(loop, spent)
        else:
            begun.append(call.event("iteration", loop, {}))
            yield begun[0]

    journal, loop = call.append(build)
    if not begun:
        why = f"paused ({loop.pause_code}): {loop.pause_reason}"
        if loop.status == "waiting":
            why = f"waiting: {loop.question}"
        raise Refused(f"loop {loop.id} is now {why}", next_step(loop)[1])
    most = loop.limits["max_iterations"]
    call.acknowledge(journal, loop, f"Iteration {loop.iteration}{f'/{most}' if most else ''}.")


@click.command()
@click.argument("task_id", metavar="ID")
@click.argument(
    "status",
    type=click.Choice(("pending", "running", "complete", "failed", "checkpoint", "skipped")),
)
@click.option("--title", metavar="TEXT", help="What a new task is about.")
@click.option(
    "--blocked-by",
    "blocked_by",
    multiple=True,
    metavar="ID",
    help="What must be done before a pending task (repeatable, or with commas).",
)
@click.option("--commit", metavar="SHA", help="The commit that holds its result.")
@click.option("--ref", metavar="ID", help="The client's id of the background task that does it.")
@click.option("--phase", type=click.Choice(TDD_PHASES), help="Where a test-driven task stands.")
@click.option("--question", metavar="TEXT", help="What must be decided at this checkpoint.")
@verb
def task(
    call: Call, *, task_id: str, status: str, blocked_by: tuple[str, ...], **options: Any
) -> None:
    """Tell how a task stands: pending → running → complete, failed, checkpoint or skipped.

    Pending adds a task, or lets one that has not begun wait for others.
    """
    _require_id(task_id)
    if status != "pending" and (blocked_by or options["title"]):
        raise UsageError(
            "only a pending task takes a title and what blocks it",
            f"gsd-fsm task {task_id} pending --title TEXT --blocked-by ID",
        )
    if status == "failed":
        if any(options.values()):
            raise UsageError(
                "a failure takes none of these options", f"gsd-fsm fail {task_id} --error …"
            )
        _fail(call, task_id, "reported as failed, without an error", None, {})
        return
    data: dict[str, Any] = {"task": task_id, "status": status}
    data.update(
        {name: whole(text, name, 2_000) for name, text in options.items() if text is not None}
    )
    depends = split_ids(blocked_by)
    if depends:
        data["depends"] = depends

    def build(loop: Loop, _world: World, _now: int) -> Iterator[Event]:
        event = call.event("task", loop, data)
        require_word(loop, task_id, event)
        if status == "pending":
            _require_known(loop, depends)
        elif task_id in loop.tasks:
            _require_own(call, loop, loop.tasks[task_id])
        if status == "running":
            require_turn(loop, task_id)
        elif status == "skipped" and is_planned(loop):
            needs_human(loop, event, f"skip task {task_id} of")
        yield event
        yield from follows(call, loop)

    journal, loop = call.append(build)
    if status == "complete" and loop.kind == "execute":
        set_checkpoint(call, journal, loop, task_id, task_id)
        forget_copies(journal, loop, task_id)
    asked = f" {loop.question}" if loop.status == "waiting" else ""
    call.acknowledge(journal, loop, f"Task {task_id} is {status}.{asked}")


def _require_own(call: Call, loop: Loop, task: dict[str, Any]) -> None:
    """Refuse what somebody else decides: the client's list, or a condition of the gate."""
    if task["mirrored"] and call.caller.by == "agent":
        from gsd_fsm.core.client import list_of

        now = list_of(loop, loop.owner or "")
        if now is not None and task["list"] in (None, now.name):
            raise Refused(
                f"task {task['id']} is one of the client's task list",
                "change it there; the next stop sees it",
            )
    if not work_of_its_own(task):
        raise Refused(
            f"task {task['id']} is complete once its condition holds: {task['title']}",
            "gsd-fsm next tells what to do",
        )


def _require_known(loop: Loop, depends: list[str]) -> None:
    if is_planned(loop):
        raise Refused(
            f"the tasks of loop {loop.id} are those of its plan", "change the plan, then resume"
        )
    unknown = [name for name in depends if name not in loop.tasks]
    if unknown:
        raise UsageError(
            f"loop {loop.id} has no task {', '.join(unknown)}",
            f"its tasks: {', '.join(loop.tasks) or 'none'}",
        )


def _require_id(task_id: str) -> None:
    if not is_id(task_id):
        raise UsageError(f"{task_id!r} is not a task id", ID_RULE)


@click.command()
@click.argument("task_id", metavar="[ID]", required=False)
@click.option("--error", metavar="TEXT", help="What went wrong.")
@click.option("--error-file", metavar="FILE|-", help="Read the error from a file or stdin.")
@click.option(
    "--class", "error_class", type=click.Choice(CLASSES), help="Default: by published patterns."
)
@click.option("--analysis", metavar="TEXT", help="Why it went wrong.")
@click.option("--fix", metavar="TEXT", help="What to try next.")
@verb
def fail(
    call: Call,
    *,
    task_id: str | None,
    error: str | None,
    error_file: str | None,
    error_class: str | None,
    **why: str | None,
) -> None:
    """Tell that a task, or the loop, has failed.

    It is retried while retries are left; transient errors once; blocking and unknown ones pause.
    """
    if task_id is not None:
        _require_id(task_id)
    text = read_text(error, error_file, "the error")
    if not (text or "").strip():
        raise UsageError(
            "a failure needs its error", "gsd-fsm fail [ID] --error TEXT | --error-file FILE|-"
        )
    _fail(call, task_id, text or "", error_class, why)


def _fail(
    call: Call, task_id: str | None, error: str, error_class: str | None, why: dict[str, str | None]
) -> None:
    data = failure_data(task_id, error, error_class, why.get("analysis"), why.get("fix"))

    def build(loop: Loop, _world: World, _now: int) -> Iterator[Event]:
        event = call.event("failure", loop, data)
        if task_id is not None:
            require_word(loop, task_id, event)
            if task_id in loop.tasks:
                _require_own(call, loop, loop.tasks[task_id])
        yield event
        spent = spent_patience(loop) if task_id is None else None
        if spent and loop.status in ACTIVE:
            yield call.pause(loop, spent)
        yield from follows(call, loop)

    journal, loop = call.append(build)
    what = f"Task {task_id}" if task_id else "The loop"
    said = f"{what} failed ({data['class']})."
    if loop.status == "paused":
        said += f" {loop.pause_reason}."
    elif task_id:
        said += f" Retry {loop.tasks[task_id]['retries']} of {loop.limits['max_retries']}."
    asked = f" {loop.question}" if loop.status == "waiting" else ""
    call.acknowledge(journal, loop, said + asked)
