"""Say what to do now; for a planned loop, with the prompt of everything that can start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.codec import digest_of
from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.state import Loop, open_gaps, open_tasks
from gsd_fsm.core.loop.waves import current_wave, ready_gaps, ready_tasks, running_tasks
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.core.text.questions import pending_question
from gsd_fsm.engine.context import Context, head_of
from gsd_fsm.engine.effects import unfinished
from gsd_fsm.engine.planned.plan import frozen_plan, has_changed

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan, PlanTask
    from gsd_fsm.subagents.context import Context as ProjectContext


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


class Running(NamedTuple):
    """A task under way."""

    id: str
    ref: str | None
    report: str


class NextStep(NamedTuple):
    """One sentence and one command; of a planned loop also the items that can start."""

    loop: Loop
    sentence: str
    command: str
    wave: int | None
    items: list[Item]
    running: list[Running]


def next_work(context: Context, *, prompts: bool = False, command: str = "gsd-fsm") -> NextStep:
    """Return what to do now; change nothing.

    `prompts`: with the complete prompt of each item. `command`: how gsd-fsm is called here.
    """
    journal, loops = context.read_trusted()
    loop = context.loop_or_last(loops)
    context.notices += unfinished(context, loops)
    sentence, advised = next_step(loop)
    work = _Work(context, journal, loop, command) if loop.is_planned else None
    return NextStep(
        loop,
        sentence,
        advised.replace("gsd-fsm", command, 1),
        current_wave(loop),
        work.items(prompts=prompts) if work else [],
        work.running() if work else [],
    )


def next_item(context: Context, name: str, command: str = "gsd-fsm") -> Item:
    """Return one task or gap of a planned loop with its prompt."""
    journal, loops = context.read_trusted()
    loop = context.loop_or_last(loops)
    if not loop.is_planned:
        raise UsageError(
            f"loop {loop.id} follows no plan, so task {name} has no prompt", "Run: gsd-fsm next"
        )
    return _Work(context, journal, loop, command).one(name)


class _Work:
    """What the subagents of one loop read."""

    def __init__(self, context: Context, journal: Journal, loop: Loop, command: str) -> None:
        self.loop = loop
        self._context = context
        self._run = f"{command} --loop {loop.id}"
        self._head = head_of(journal)
        self._sources: tuple[Plan, dict[str, PlanTask], ProjectContext] | None = None

    def items(self, *, prompts: bool) -> list[Item]:
        """Return everything that can start now; nothing while the loop is not active."""
        if not self.loop.is_active:
            return []
        if self.loop.kind == "verify":
            asked = pending_question(self.loop)
            if asked is not None and asked[0].startswith("gaps:"):
                return []
            return [self._gap(gap_id) for gap_id in ready_gaps(self.loop)]
        ready = ready_tasks(self.loop)
        if prompts or has_changed(self._context.project, self.loop):
            self._read(ready)
        build = self._task if prompts else self._brief
        return [build(task_id) for task_id in ready]

    def running(self) -> list[Running]:
        return [
            Running(task_id, self.loop.tasks[task_id].ref, f"{self._run} report {task_id}")
            for task_id in running_tasks(self.loop)
        ]

    def one(self, name: str) -> Item:
        if name in self.loop.gaps:
            return self._gap(name)
        task_id = name if name in self.loop.tasks else f"T{name}"
        task = self.loop.tasks.get(task_id)
        if self.loop.kind != "execute" or task is None:
            known = ", ".join([*open_tasks(self.loop), *open_gaps(self.loop)][:20]) or "none"
            raise UsageError(f"loop {self.loop.id} has no task or gap {name}", f"Open: {known}")
        if task.is_done:
            raise Refused(f"task {task_id} is {task.status}", "Run: gsd-fsm next")
        self._read([task_id])
        return self._task(task_id)

    def _brief(self, task_id: str) -> Item:
        from gsd_fsm.subagents.prompt import description

        title = self.loop.tasks[task_id].title
        return self._item(task_id, description(self.loop.phase, task_id, title), "")

    def _task(self, task_id: str) -> Item:
        from gsd_fsm.subagents.prompt import description, task_prompt

        if self._sources is None:
            self._read([task_id])
        assert self._sources is not None  # noqa: S101 - _read has set it
        plan, tasks, project = self._sources
        task = tasks.get(task_id)
        if task is None:
            raise Refused(
                f"the plan has no task {task_id}", f"Run: {self._run} task {task_id} skipped"
            )
        state = self.loop.tasks[task_id]
        limits, nonce = self.loop.limits, self._nonce(task_id)
        prompt = task_prompt(plan, task, state, limits, project, command=self._run, nonce=nonce)
        about = description(self.loop.phase, task_id, task.title)
        return self._item(task_id, about, prompt, state.wave, state.retries + 1)

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
        prompt: str,
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
            show=f"{self._run} next {name}",
            command=f"{self._run} task {name} running --ref ID",
            report=f"{self._run} report {name}",
            wave=wave,
            attempt=attempt,
        )

    def _nonce(self, name: str) -> str:
        """Return what the author of a quotation cannot know; the same while nothing happens."""
        return digest_of(f"{self._head} {name}")

    def _read(self, wanted: list[str]) -> None:
        """Read these tasks of the plan, and what the project says to anyone who works in it."""
        from gsd_fsm.subagents.context import read_context

        project = self._context.project
        plan = frozen_plan(project, self.loop, wanted)
        context = read_context(project, self._context.settings())
        self._sources = (plan, plan.tasks_by_id(), context)
