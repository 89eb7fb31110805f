"""Read a loop: show its state, say what to do now, and explain why a stop was allowed or blocked."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.codec import digest_of
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import NotFound, Refused, UsageError
from gsd_fsm.core.hook.memory import unrecorded_failures
from gsd_fsm.core.loop.completion import open_verdicts, proof_counts
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.limits import active_minutes
from gsd_fsm.core.loop.state import ACTIVE, Loop, open_gaps
from gsd_fsm.core.loop.waves import current_wave, ready_gaps, ready_tasks, running_tasks
from gsd_fsm.core.project import is_registered
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.core.text.questions import pending_question
from gsd_fsm.core.views.loop_json import shown_stage
from gsd_fsm.core.views.state_md import history_line
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.effects import note_unfinished

if TYPE_CHECKING:
    from gsd_fsm.history.evidence import Evidence

# The exit code of `status --check`, by status.
CHECK_CODES = {
    "completed": 0,
    **dict.fromkeys(ACTIVE, 10),
    "waiting": 11,
    "paused": 12,
    "cancelled": 13,
}
# The events between two calls of `advance`.
_EVERY = 1_000


class Status(NamedTuple):
    """A loop with its view for scripts; whether its journal is trusted and the hook enabled.

    `failed_stop`: why its last stop was allowed without a decision, "" if it was decided.
    """

    loop: Loop
    view: dict[str, Any]
    is_trusted: bool
    is_hook_disabled: bool
    failed_stop: str


def status(context: Context) -> Status:
    """Return the state of the selected loop, or else of the one that ended last."""
    loops = context.read(trusted=False)
    loop = context.loop_or_last(loops)
    note_unfinished(context, loops, superseded=True)
    return Status(
        loop,
        status_view(loop, context.receipt(loop).head),
        is_trusted(context),
        is_hook_disabled(context),
        failed_stop(context, loop),
    )


def failed_stop(context: Context, loop: Loop) -> str:
    """Return why the last stop of the owner was allowed without a decision, "" if it was decided."""
    if unrecorded := _unrecorded(context, loop):
        return f"The {unrecorded}"
    last, answer = loop.last_stop, loop.last_answer
    is_last = last is not None and last.code == "error" and (not answer or answer.seq <= last.seq)
    if last is None or not is_last or not loop.is_live:
        return ""
    return f"The last stop was allowed without a decision (event {last.seq}): {last.reason}"


def _unrecorded(context: Context, loop: Loop) -> str:
    """Return the last failed stop that is not in the journal yet, in words after "the"; "" for none."""
    failures = unrecorded_failures(context.gsd, loop)
    if not failures:
        return ""
    return f"stop at {failures[-1].at} was allowed without a decision: {failures[-1].reason}"


def is_trusted(context: Context) -> bool:
    """Return whether this user has started or trusted the journal that was read."""
    return is_registered(context.journal.loops.journal_id, context.gsd)


def is_hook_disabled(context: Context) -> bool:
    """Return whether a file disables the hook in this project."""
    return os.path.lexists(os.path.join(context.gsd, "STOP"))


def status_view(loop: Loop, head: str) -> dict[str, Any]:
    """Everything a script may ask about a loop; absent things are null or empty, never missing."""
    sentence, command = next_step(loop)
    tasks = loop.tasks.values()
    return {
        "loop": loop.id,
        **members(loop, "kind status mode goal phase"),
        "wave": current_wave(loop),
        **members(loop, "round iteration"),
        "max_iterations": loop.limits.max_iterations,
        "last_iteration": loop.last_iteration,
        "task_retries": {task.id: task.retries for task in tasks},
        "tasks": [
            {
                **members(task, "id title status wave"),
                "depends": list(task.depends),
                **members(task, "retries phase attempts ref commit proof"),
                "errors": [error.text for error in task.errors],
            }
            for task in tasks
        ],
        "background_tasks": [
            {"task_id": task.ref, "task_num": task.id, "status": "running"}
            for task in tasks
            if task.ref and task.status == "running"
        ],
        "steps": [
            {"step": task.title, "id": task.id, "status": task.status}
            for task in tasks
            if task.step
        ],
        "gaps": [
            members(gap, "id kind file description evidence reopened round status")
            for gap in loop.gaps.values()
        ],
        "gaps_remaining": len(open_gaps(loop)),
        "criteria": [
            members(criterion, "name check met stale evidence")
            for criterion in loop.criteria.values()
        ],
        **members(loop, "last_unmet exit_signal stuck idle last_error started last_event"),
        **members(loop, "pause_code pause_reason owner"),
        "stage": shown_stage(loop),
        **members(loop, "spec_score fit_score shape"),
        "reviews": {name: review.facts() for name, review in loop.reviews.items()},
        "spent_usd": loop.spent_usd,
        "budget_usd": loop.limits.budget_usd,
        "history": [history_line(change) for change in loop.history],
        "head": head,
        "next": f"{sentence} Run: {command}",
    }


def members(record: object, names: str) -> dict[str, Any]:
    """Return these members of a record, in this order."""
    return {name: getattr(record, name) for name in names.split()}


# what to do now


class Item(NamedTuple):
    """A task or gap that can start: its prompt, and the commands that go with it."""

    id: str
    description: str
    subagent_type: str
    background: bool
    prompt: str
    show: str
    command: str
    report: str
    wave: int | None = None
    attempt: int | None = None

    def facts(self) -> dict[str, Any]:
        """Return its members; of a gap, and without a prompt, wave and attempt are left out."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class RunningTask(NamedTuple):
    """A task under way."""

    id: str
    ref: str | None
    report: str


class NextStep(NamedTuple):
    """One sentence and one command; of a planned loop also the items that can start.

    `review`: the prompt of a reviewing subagent, if verdicts are open.
    """

    loop: Loop
    sentence: str
    command: str
    wave: int | None
    items: list[Item]
    running: list[RunningTask]
    review: str = ""


def next_work(context: Context, *, prompts: bool = False) -> NextStep:
    """Return what to do now; change nothing.

    `prompts`: with the complete prompt of each item.
    """
    loops = context.read()
    loop = context.loop_or_last(loops)
    note_unfinished(context, loops)
    sentence, command = next_step(loop)
    running = [
        RunningTask(name, loop.tasks[name].ref, command_line("report", loop.id, name))
        for name in (running_tasks(loop) if loop.is_planned else ())
    ]
    return NextStep(
        loop,
        sentence,
        command,
        current_wave(loop),
        _Prompts(context, loop).ready(prompts=prompts),
        running,
        _Prompts(context, loop).review(),
    )


def next_item(context: Context, name: str) -> Item:
    """Return one task or gap of a planned loop with its prompt."""
    loop = context.loop_or_last(context.read())
    if not loop.is_planned:
        raise UsageError(
            f"task {name} has no prompt: loop {loop.id} does not follow a plan", "Run: gsd-fsm next"
        )
    return _Prompts(context, loop).one(name)


class _Prompts:
    """What the subagents of one loop read."""

    def __init__(self, context: Context, loop: Loop) -> None:
        self.context, self.loop = context, loop

    def ready(self, *, prompts: bool) -> list[Item]:
        """Return everything of a planned loop that can start now."""
        loop = self.loop
        if not loop.is_planned or not loop.is_active:
            return []
        if loop.kind != "verify":
            return self._tasks(ready_tasks(loop), prompts=prompts)
        asked = pending_question(loop)
        waits = asked is not None and asked[0].startswith("gaps:")
        return [] if waits else [self._gap(gap_id) for gap_id in ready_gaps(loop)]

    def review(self) -> str:
        """Return the prompt of a reviewing subagent, "" if no verdict is open."""
        if not self.loop.verified or not open_verdicts(self.loop) or not self.loop.is_live:
            return ""
        from gsd_fsm.verify.review import review_prompt

        return review_prompt(self.loop, self._nonce("review"))

    def one(self, name: str) -> Item:
        from gsd_fsm.engine.planned.plan import unknown_work

        loop = self.loop
        if name in loop.gaps:
            return self._gap(name)
        task_id = name if name in loop.tasks else f"T{name}"
        task = loop.tasks.get(task_id)
        if loop.kind != "execute" or task is None:
            raise unknown_work(loop, name)
        if task.is_done:
            raise Refused(f"task {task_id} is {task.status}", "Run: gsd-fsm next")
        return self._tasks([task_id], prompts=True)[0]

    def _tasks(self, names: list[str], *, prompts: bool) -> list[Item]:
        from gsd_fsm.engine.planned.plan import frozen_plan, has_changed
        from gsd_fsm.subagents.context import read_context
        from gsd_fsm.subagents.prompt import description, task_prompt

        loop, project = self.loop, self.context.project
        titles = {name: description(loop.phase, name, loop.tasks[name].title) for name in names}
        if not prompts and not has_changed(project, loop):
            return [self._item(name, title) for name, title in titles.items()]
        plan = frozen_plan(project, loop, names)  # raises if it was changed
        tasks = plan.tasks_by_id()
        about = read_context(project, self.context.settings())
        items = []
        for name in names:
            task, state = tasks[name], loop.tasks[name]
            more = {"loop_id": loop.id, "nonce": self._nonce(name)}
            prompt = task_prompt(plan, task, state, loop.limits, about, **more)
            title = description(loop.phase, name, task.title)
            items.append(self._item(name, title, prompt, state.wave, state.retries + 1))
        return items

    def _gap(self, gap_id: str) -> Item:
        from gsd_fsm.verify.strategy import gap_description, gap_prompt

        loop = self.loop
        gap, task, limits = loop.gaps[gap_id], loop.tasks.get(gap_id), loop.limits
        nonce = self._nonce(gap_id)
        prompt = gap_prompt(gap, loop.round, limits.max_rounds, nonce, task, limits)
        return self._item(gap_id, gap_description(loop.phase, gap), prompt)

    def _item(
        self,
        name: str,
        description: str,
        prompt: str = "",
        wave: int | None = None,
        attempt: int | None = None,
    ) -> Item:
        from gsd_fsm.subagents.prompt import SUBAGENT_TYPE

        return Item(
            id=name,
            description=description,
            subagent_type=SUBAGENT_TYPE,
            background=True,
            prompt=prompt,
            show=command_line("next", self.loop.id, name),
            command=command_line("task", self.loop.id, f"{name} running --ref ID"),
            report=command_line("report", self.loop.id, name),
            wave=wave,
            attempt=attempt,
        )

    def _nonce(self, name: str) -> str:
        """Return what the author of a quotation cannot know; the same while nothing happens."""
        return digest_of(f"{self.context.receipt(self.loop).head} {name}")


# why a stop was decided so


class Explanation(NamedTuple):
    """A decision (block, allow or none) with its code, its reason and the state that it rests on.

    `proven` and `claimed` are those of a completed loop, None for any other.
    """

    loop: str
    seq: int
    ts: str
    type: str
    decision: str
    code: str
    why: str
    counts: dict[str, Any]
    evidence: list[Evidence]
    proven: dict[str, int] | None
    claimed: dict[str, int] | None


def explain(
    context: Context, seq: int | None = None, advance: Callable[[int], None] | None = None
) -> Explanation:
    """Return why the last stop, or that of event `seq`, was decided as it was.

    It reads the journal twice; `advance` is called with the number of events that have been read.
    """
    from gsd_fsm.history.evidence import evidence_of
    from gsd_fsm.history.replay import Replay
    from gsd_fsm.history.timeline import DECISIONS, aftermath, explain_decision, follows

    replay = Replay(context.journal)
    # The last decision about each loop; under None, event `seq`.
    decided: dict[str | None, _Found] = {}

    def count(event: Any, before: int = 0) -> None:
        if advance is not None and not event["seq"] % _EVERY:
            advance(before + event["seq"])

    def see(event: Any, source: str, loops: Loops) -> None:
        count(event)
        key = event["loop"] if seq is None else None
        known = decided.get(key)
        if known is not None and known.later is None and follows(known.event, event):
            known.later = event
        loop = loops.by_id.get(event["loop"])
        paused = loop is not None and loop.status == "paused" and source != "paused"
        is_decision = event["type"] in DECISIONS or paused
        if is_decision if seq is None else event["seq"] == seq:
            decided[key] = _Found(event, source or "idle")

    replay.run(see)
    if seq is not None and seq > replay.loops.seq:
        raise UsageError(f"the journal ends at event {replay.loops.seq}", "Run: gsd-fsm replay")
    wanted = context.loop_or_last(replay.loops) if seq is None else None
    later = _unrecorded(context, wanted) if wanted is not None else ""
    found = decided.get(wanted.id if wanted is not None else None)
    if found is None:
        reason = f"; the {later}" if later else ""
        raise NotFound(f"no stop of this loop has been decided yet{reason}", "Run: gsd-fsm status")
    note_unfinished(context, replay.loops)
    event, read = found.event, replay.loops.seq
    replay.run(lambda it, _source, _loops: count(it, read), at=event["seq"])
    if event["loop"] not in replay.loops.by_id:
        raise UsageError(f"event {seq} does not belong to a loop", "Run: gsd-fsm replay")
    loop = replay.loops.by_id[event["loop"]]
    decision, code, why = explain_decision(event, loop, found.source)
    why += aftermath(event, found.later)
    why += f" {later}" if later else ""
    proven, claimed = proof_counts(loop) if loop.status == "completed" else (None, None)
    return Explanation(
        *(loop.id, event["seq"], event["ts"], event["type"], decision, code, why),
        *(_counts(loop), evidence_of(event, loop), proven, claimed),
    )


def _counts(loop: Loop) -> dict[str, Any]:
    """Return the counters with their limits; a limit of 0 or None is not in force."""
    counted = members(loop, "iteration stuck idle round spent_usd spent_tokens")
    counted["active_minutes"] = round(active_minutes(loop, ms_of(loop.last_event)), 3)
    limits = "max_iterations stuck_limit idle_limit max_rounds budget_usd max_tokens max_minutes"
    return {**counted, **members(loop.limits, limits)}


class _Found:
    """An event, the status of its loop before it, and the event that shows its aftermath."""

    def __init__(self, event: Any, source: str) -> None:
        self.event = event
        self.source = source
        self.later: Any = None
