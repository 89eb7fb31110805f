"""Start a loop: append its events, then check out its branch and create its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.journal.journal import JOURNAL_NAME, Journal
from gsd_fsm.core.journal.transaction import Author, Transaction
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.branches import needed_switch
from gsd_fsm.engine.choose_plan import plan_on_branch, plan_to_follow
from gsd_fsm.engine.context import Context, Receipt, receipt
from gsd_fsm.engine.effects import carry_out
from gsd_fsm.engine.follow_plan import append_question, append_wait
from gsd_fsm.engine.new_loop import (
    Place,
    budget_notes,
    cancel_conflicting,
    find_place,
    kept_state_notes,
    new_loop_id,
    other_loop_notes,
    rehearsal,
)
from gsd_fsm.engine.plan_events import frozen, named_plan, portions
from gsd_fsm.engine.start_request import (
    StartRequest,
    described,
    frozen_goal_settings,
    frozen_limits,
)
from gsd_fsm.engine.work_specs import add_shape

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan
    from gsd_fsm.repository.branches import Switch


@dataclass(frozen=True)
class Started:
    """A started loop, and what else happened.

    The loop is paused if its branch could not be checked out.
    """

    receipt: Receipt
    new_journal: str | None  # the `.gsd` directory in which a journal was created
    cancelled: list[str]
    notes: list[str]
    lessons: list[str]  # of earlier loops with a similar goal


@dataclass(frozen=True)
class _Draft:
    """A loop before its first event."""

    id: str
    data: dict[str, Any]
    more_tasks: list[list[dict[str, Any]]]  # those that do not fit into the first event
    question: Switch | None

    def append(self, tx: Transaction) -> Loop:
        loop = tx.start(self.id, self.data)
        for tasks in self.more_tasks:
            tx.append(loop, "plan", {"tasks": tasks})
        if self.question is None:
            append_question(tx, loop)
        else:
            append_wait(tx, loop, f"branch:{self.question.branch}", self.question.question)
        return loop


def start(context: Context, request: StartRequest) -> Started:
    """Append the events of a new loop, then carry out their effects (engine/start_effects.py).

    Whatever is wrong is refused before the first event: then nothing has changed. If git refuses
    to check out the loop's branch, the loop is paused.
    """
    data = described(request)
    if request.has_own_work and request.plan is not None:
        data["plan"] = named_plan(Path(context.directory), request.plan)
    place = find_place(context)
    place.require_enabled()
    draft, notes = _draft(context, request, place, data)
    journal = _journal(place, context.author, draft)
    cancelled: list[str] = []
    with context.transaction(journal) as tx:
        if request.fresh:
            cancelled = cancel_conflicting(tx, context.author, "start --fresh")
        loop = draft.append(tx)
    proof, effects = _carry_out(context, receipt(tx, loop))
    notes += [*kept_state_notes(place, loop), *effects]
    return Started(
        proof,
        None if place.has_journal else place.gsd,
        cancelled,
        notes,
        _lessons(place, proof.loop),
    )


def _carry_out(context: Context, proof: Receipt) -> tuple[Receipt, list[str]]:
    """Carry out the effects of the start; return the receipt after them, and notes on them.

    A failure is noticed and does not undo the start: the next command tries again.
    """
    outcome = carry_out(context, proof.loop)
    if not outcome.done and not outcome.failed:
        return proof, []
    journal, loops = context.read()
    loop = loops.by_id[proof.loop.id]
    proof = Receipt(loop, loops.seq, f"{loops.seq}:{journal.at.sum}")
    if loop.status == "paused":
        return proof, []  # because of the branch, as the reason of the pause says
    context.notices += [error.message for _, error in outcome.failed]
    return proof, [f"Switched to branch {loop.branch}."] if loop.branch else []


def _journal(place: Place, author: Author, draft: _Draft) -> Journal:
    """Return the journal; create one only if the draft will not be refused."""
    if not place.has_journal:
        with rehearsal(author) as tx:
            draft.append(tx)
    return place.open_journal()


def _draft(
    context: Context, request: StartRequest, place: Place, data: dict[str, Any]
) -> tuple[_Draft, list[str]]:
    """Return the loop that is wanted, with the settings of this place, and notes for the user."""
    settings = place.settings()
    directory = Path(context.directory)
    question: Switch | None = None
    parts: list[list[dict[str, Any]]] = [data.get("tasks", [])]
    notes: list[str] = []
    if not request.has_own_work:
        phase = data.get("phase")
        plan = plan_to_follow(request.kind, directory, request.plan, place.project, phase)
        if plan is not None:
            question, parts, notes = _follow(plan, request, place, settings, data)
    tasks = sum(map(len, parts)) if request.kind == "execute" else 0
    data.update(frozen_limits(settings, request, tasks))
    notes += budget_notes(context.directory, data["limits"])
    if request.kind == "goal":
        data.update(frozen_goal_settings(settings, request.task_list))
        if request.shape_file:
            notes += add_shape(data, directory, request.shape_file)
        notes += other_loop_notes(place)
    return _Draft(new_loop_id(), data, parts[1:], question), notes


def _follow(
    plan: Plan, request: StartRequest, place: Place, settings: dict[str, Any], data: dict[str, Any]
) -> tuple[Switch | None, list[list[dict[str, Any]]], list[str]]:
    """Put plan, phase, tasks and branch into `data`.

    Return the branch to ask about, the tasks in lists that fit into one event each, and notes.
    """
    question: Switch | None = None
    parts: list[list[dict[str, Any]]] = [[]]
    notes: list[str] = []
    phase = data.get("phase", plan.phase)
    if request.kind == "execute":
        needed = needed_switch(place.project, settings)
        if needed is not None and (request.mode or settings["mode"]) == "yolo":
            repository, switch = needed
            plan = plan_on_branch(repository, plan, switch.branch)
            data["branch"] = switch.branch
        elif needed is not None:
            question = needed[1]
        notes = _plan_notes(plan, place.project, phase)
        parts = portions(plan)
        data["tasks"] = parts[0]
    if phase is not None:
        data["phase"] = phase
    data["plan"] = frozen(plan, place.project)
    return question, parts, notes


def _plan_notes(plan: Plan, project: Path, phase: int | str | None) -> list[str]:
    notes: list[str] = []
    if phase is not None:
        from gsd_fsm.phase.roadmap import roadmap_warning

        warning = roadmap_warning(project, phase)
        notes += [warning] if warning else []
        if plan.phase not in (None, phase):
            notes.append(f"The plan names another phase: {plan.phase}.")
    return [*notes, *plan.warnings]


def _lessons(place: Place, loop: Loop) -> list[str]:
    """Return what earlier loops of this project learned about such a goal."""
    if not place.has_journal or loop.kind != "goal":
        return []
    from gsd_fsm.recall import lessons

    found = lessons(Path(place.gsd, JOURNAL_NAME), loop.goal or "", before=loop.id)
    return [lesson.text for lesson in found]
