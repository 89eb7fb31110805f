"""`next`: what to do now, and for a planned loop the complete prompt of everything that can start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gsd_fsm.cli.call import Call, head, require_trust, verb
from gsd_fsm.cli.planned import frozen_plan, has_changed, project_of, values
from gsd_fsm.cli.voice import say
from gsd_fsm.core.advice import next_step
from gsd_fsm.core.codec import digest_of, dumps
from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.loop import Loop, current_wave, is_planned, open_gaps, open_tasks
from gsd_fsm.core.question import pending_question
from gsd_fsm.core.sanitize import display
from gsd_fsm.core.table import ACTIVE
from gsd_fsm.core.waves import ready_gaps, ready_tasks, running_tasks

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import PlanTask


@click.command("next")
@click.argument("task_id", metavar="[ID]", required=False)
@verb
def next_(call: Call, *, task_id: str | None) -> None:
    """Tell what to do now and the command for it; changes nothing.

    In a planned loop: the tasks that can start now. With the ID of a task or gap: its complete
    prompt, for the subagent that is to do it. With --json: both.
    """
    journal, world = call.glance()
    require_trust(world, journal.path)
    loop = call.look_at(world)
    work = _Work(call, journal, loop) if is_planned(loop) else None
    if task_id is not None:
        if work is None:
            raise UsageError(
                f"loop {loop.id} follows no plan, so task {task_id} has no prompt", "gsd-fsm next"
            )
        item = work.one(task_id)
        say(dumps(item) if call.json else display(item["prompt"], lines=True))
        return
    sentence, command = next_step(loop)
    command = command.replace("gsd-fsm", call.command, 1)
    facts: dict[str, Any] = {"loop": loop.id, "status": loop.status, "text": sentence}
    facts["command"] = command
    lines = [display(sentence)]
    items = work.items(prompts=call.json) if work else []
    if work:
        facts.update({"wave": current_wave(loop), "tasks": items, "running": work.running()})
        lines += [_line(item) for item in items]
        lines += [f"  {it['id']} is running; then: {it['report']}" for it in facts["running"]]
    if not items:
        stands = loop.status in ("paused", "waiting")
        run = "If the user wants it to go on, run" if stands else "Run"
        lines.append(f"{run}: {display(command)}")
    call.answer(facts, "\n".join(lines))


def _line(item: dict[str, Any]) -> str:
    return (
        f"  {display(item['description'])}\n"
        f"    its prompt, for a subagent ({item['subagent_type']}): {item['show']}\n"
        f"    once it runs: {item['command']}\n"
        f"    its output: {item['report']}"
    )


class _Work:
    """What the subagents of one loop are told."""

    def __init__(self, call: Call, journal: Journal, loop: Loop) -> None:
        self.loop = loop
        self.project = project_of(journal)
        self.settings = values(journal)
        self.run = f"{call.command} --loop {loop.id}"
        self.head = head(journal)
        self._sources: Any = None

    def items(self, *, prompts: bool) -> list[dict[str, Any]]:
        """Everything that can start now; nothing while the loop stands still."""
        if self.loop.status not in ACTIVE:
            return []
        if self.loop.kind == "verify":
            asked = pending_question(self.loop)
            if asked is not None and asked[0].startswith("gaps:"):
                return []
            return [self._gap(gap_id) for gap_id in ready_gaps(self.loop)]
        ready = ready_tasks(self.loop)
        if prompts or has_changed(self.project, self.loop):
            self._read(ready)
        build = self._task if prompts else self._brief
        return [build(task_id) for task_id in ready]

    def running(self) -> list[dict[str, Any]]:
        return [
            {
                "id": task_id,
                "ref": self.loop.tasks[task_id]["ref"],
                "report": f"{self.run} report {task_id}",
            }
            for task_id in running_tasks(self.loop)
        ]

    def one(self, name: str) -> dict[str, Any]:
        if name in self.loop.gaps:
            return self._gap(name)
        task_id = name if name in self.loop.tasks else f"T{name}"
        if self.loop.kind != "execute" or task_id not in self.loop.tasks:
            known = ", ".join([*open_tasks(self.loop), *open_gaps(self.loop)][:20]) or "none"
            raise UsageError(f"loop {self.loop.id} has no task or gap {name}", f"open: {known}")
        if task_id not in open_tasks(self.loop):
            raise Refused(f"task {task_id} is {self.loop.tasks[task_id]['status']}", "gsd-fsm next")
        self._read([task_id])
        return self._task(task_id)

    def _brief(self, task_id: str) -> dict[str, Any]:
        from gsd_fsm.subagents.prompt import description

        title = self.loop.tasks[task_id]["title"]
        return self._item(task_id, description(self.loop.phase, task_id, title), "")

    def _item(self, name: str, description: str, prompt: str) -> dict[str, Any]:
        from gsd_fsm.subagents.prompt import SUBAGENT_TYPE

        return {
            "id": name,
            "description": description,
            "subagent_type": SUBAGENT_TYPE,
            "background": True,
            "prompt": prompt,
            "show": f"{self.run} next {name}",
            "command": f"{self.run} task {name} running --ref ID",
            "report": f"{self.run} report {name}",
        }

    def _task(self, task_id: str) -> dict[str, Any]:
        from gsd_fsm.subagents.prompt import description, task_prompt

        plan, context = self._sources
        task: PlanTask | None = plan.task(task_id)
        if task is None:
            raise Refused(f"the plan has no task {task_id}", f"{self.run} task {task_id} skipped")
        state = self.loop.tasks[task_id]
        prompt = task_prompt(
            plan,
            task,
            state,
            self.loop.limits,
            context,
            command=self.run,
            nonce=self._nonce(task_id),
        )
        item = self._item(task_id, description(self.loop.phase, task_id, task.title), prompt)
        return {**item, "wave": state["wave"], "attempt": state["retries"] + 1}

    def _gap(self, gap_id: str) -> dict[str, Any]:
        from gsd_fsm.verification.strategy import gap_description, gap_prompt

        gap = self.loop.gaps[gap_id]
        most = self.loop.limits["max_rounds"]
        task = self.loop.tasks.get(gap_id)
        limits = self.loop.limits
        prompt = gap_prompt(gap, self.loop.round, most, self._nonce(gap_id), task, limits)
        return self._item(gap_id, gap_description(self.loop.phase, gap), prompt)

    def _nonce(self, name: str) -> str:
        """What the author of a quotation cannot know, and the same as long as nothing happens."""
        return digest_of(f"{self.head} {name}")

    def _read(self, wanted: list[str]) -> None:
        """Read these tasks of the plan, and what the project says to whoever works in it."""
        from gsd_fsm.subagents.context import read_context

        plan = frozen_plan(self.project, self.loop, wanted)
        self._sources = (plan, read_context(self.project, self.settings))
