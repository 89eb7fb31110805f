"""`tdd`: red, green, refactor, with the test command's real exit code and with locked files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from gsd_fsm.checks import Outcome, run_check
from gsd_fsm.cli.call import ONE_OR_MORE, Call, Event, require_trust, verb
from gsd_fsm.cli.checkpoints import set_checkpoint
from gsd_fsm.cli.failing import failure_data
from gsd_fsm.cli.planned import follows, frozen_plan, project_of, require_turn, values
from gsd_fsm.cli.screen import ended_by_signals, screen_for
from gsd_fsm.cli.work_record import commit_work
from gsd_fsm.core.errors import CheckFailed, Refused, UsageError
from gsd_fsm.core.fold import World
from gsd_fsm.core.loop import Loop, is_planned
from gsd_fsm.core.rules import illegal
from gsd_fsm.core.table import ACTIVE
from gsd_fsm.plans.plan import PlanTask, task_name
from gsd_fsm.results import Result
from gsd_fsm.subagents.context import test_command
from gsd_fsm.tdd import Copies, Rules, changed, digests, first_phase, rules_of, was_run


@click.command()
@click.argument("task_id", metavar="ID")
@click.option("--run", "runs", is_flag=True, help="Run the test command; it decides the phase.")
@click.option("--timeout", type=ONE_OR_MORE, metavar="SECONDS", help="Time limit of the command.")
@verb
def tdd(call: Call, *, task_id: str, runs: bool, timeout: int | None) -> None:
    """Tell which files a test-driven task may change now; with --run, run its tests.

    Red must fail, green must pass, within tdd_max_attempts; a failed refactoring is undone and the
    task is complete. A locked file that was changed fails the task. Exit code 7 when the phase is
    not passed.
    """
    cycle = _Cycle(call, task_id)
    cycle.begin()
    if runs:
        cycle.run(timeout)
    else:
        cycle.tell("")


class _Cycle:
    """The red-green-refactor cycle of one task."""

    def __init__(self, call: Call, task_id: str) -> None:
        self.call = call
        self.journal, world = call.glance()
        require_trust(world, self.journal.path)
        self.loop: Loop = call.choose(world)
        call.loop_id = self.loop.id
        if not is_planned(self.loop) or self.loop.kind != "execute":
            raise UsageError(
                f"loop {self.loop.id} executes no plan, which would name the tests of its tasks",
                "gsd-fsm task ID running --phase red|green|refactor",
            )
        if self.loop.status not in ACTIVE:
            raise illegal(self.loop, "task")
        self.project = project_of(self.journal)
        self.settings = values(self.journal)
        self.task = self._task(task_id)
        self.copies = Copies(self.journal.path, self.loop.id, self.task.id)

    def _task(self, task_id: str) -> PlanTask:
        names = (task_id, task_name(task_id))
        known = any(name in self.loop.tasks for name in names)
        task = frozen_plan(self.project, self.loop, names).task(task_id) if known else None
        if task is None:
            listed = ", ".join(list(self.loop.tasks)[:20])
            raise UsageError(f"the plan has no task {task_id}", f"its tasks: {listed}")
        if task.test_required == "false":
            raise Refused(f"task {task.id} needs no tests", f"gsd-fsm next {task.id}")
        return task

    @property
    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = self.loop.tasks[self.task.id]
        return found

    @property
    def rules(self) -> Rules:
        return rules_of(self.task, self.state["phase"])

    def begin(self) -> None:
        """Enter the first phase, unless this attempt is in the midst of its cycle."""
        if self.state["status"] == "running" and self.state["locked"] is not None:
            return
        # A new attempt goes on in green with the tests that were seen to fail in an earlier one.
        proven = self.state["proven"]
        goes_on = proven and not changed(self.project, proven)
        self._enter("green" if goes_on else first_phase(self.task))

    def _enter(self, phase: str, **more: Any) -> None:
        locked = digests(self.project, rules_of(self.task, phase).locked)
        self._append(self._event(phase=phase, locked=locked, **more))

    def _event(self, **more: Any) -> dict[str, Any]:
        return {"task": self.task.id, "status": "running", **more}

    def _append(self, *tasks: dict[str, Any], failure: dict[str, Any] | None = None) -> None:
        def build(loop: Loop, _world: World, _now: int) -> Iterator[Event]:
            require_turn(loop, self.task.id)
            for data in tasks:
                yield self.call.event("task", loop, data)
            if failure is not None:
                yield self.call.event("failure", loop, failure)
            yield from follows(self.call, loop)

        self.journal, self.loop = self.call.append(build)

    def run(self, timeout: int | None) -> None:
        touched = changed(self.project, self.state["locked"])
        if touched:
            what = f"locked files were changed in {self.rules.phase.upper()}: {', '.join(touched)}"
            self._fail(f"{what}. In this phase only these may change: {self._allowed()}")
            raise CheckFailed(f"task {self.task.id} failed: {what}", "gsd-fsm next")
        command = test_command(self.project, self.settings)
        limit = float(timeout or self.settings["check_timeout_seconds"])
        screen = screen_for(self.call)
        screen.say(f"{self.rules.phase.upper()}: {command}")
        with ended_by_signals():
            outcome = run_check(command, self.project, limit, screen.show)
        if not was_run(outcome.exit_code):
            raise CheckFailed(
                f"the test command could not be run: {command}",
                'set it: ci_test = "…" in .gsd/config.toml',
            )
        {"red": self._red, "green": self._green, "refactor": self._refactor}[self.rules.phase](
            outcome
        )

    def _red(self, outcome: Outcome) -> None:
        problem = self._no_red(outcome)
        if problem:
            self._append(self._event(phase="red", exit_code=outcome.exit_code))
            self.tell(problem, passed=False)
        self._enter("green", exit_code=outcome.exit_code)
        self.tell("Red: the tests fail, as they must. The test files are locked now.")

    def _no_red(self, outcome: Outcome) -> str:
        """Why this is no failing test, "" when it is one."""
        if outcome.exit_code == 0:
            return "The tests pass already: write one that fails first."
        if outcome.timed_out:
            return "The tests did not come to an end: write one that fails."
        if self.task.test_files and not any(digests(self.project, self.task.test_files).values()):
            return f"{self._allowed()} is not there: write a test that fails first."
        return ""

    def _green(self, outcome: Outcome) -> None:
        if outcome.exit_code == 0:
            self.copies.save(self.project, self.rules.allowed)
            self._enter("refactor", exit_code=0)
            self.tell("Green: the tests pass.")
            return
        most = self.loop.limits["tdd_max_attempts"]
        if self.state["attempts"] >= most:
            self._fail(f"the tests still fail after {most} attempts\n\n{outcome.tail}")
            self.tell(f"The tests still fail after {most} attempts: the task failed.", passed=False)
        self._append(self._event(phase="green", exit_code=outcome.exit_code))
        self.tell("The tests fail: mend the implementation, not the tests.", passed=False)

    def _refactor(self, outcome: Outcome) -> None:
        if outcome.exit_code == 0:
            self.copies.save(self.project, self.rules.allowed)
            self._append(self._event(phase="refactor", exit_code=0))
            self.tell("The tests still pass: verify the task, then report it.")
            return
        now = self.call.choose(self.call.glance()[1])
        if now.status not in ACTIVE:  # it may have been paused while the tests ran
            raise illegal(now, "task")
        undone = self.copies.restore(self.project)
        if undone is None:
            self._append(self._event(phase="refactor", exit_code=outcome.exit_code))
            said = "The refactoring broke the tests and cannot be undone from here: mend it."
            self.tell(said, passed=False)
            return
        said = f"The refactoring broke the tests and was undone ({', '.join(undone) or 'nothing'})."
        complete = {"task": self.task.id, "status": "complete", "summary": said}
        result = Result("complete", reason="", details=said)
        commit = commit_work(self.call, self.journal, self.loop, self.task.id, result)
        self._append(
            self._event(phase="refactor", exit_code=outcome.exit_code, undone=True),
            {**complete, "commit": commit} if commit else complete,
        )
        self.copies.drop()
        set_checkpoint(self.call, self.journal, self.loop, self.task.id, self.task.id)
        self.tell(f"{said} Task {self.task.id} is complete.")

    def _fail(self, error: str) -> None:
        self._append(failure=failure_data(self.task.id, error, "logic", None, None))
        self.copies.drop()

    def _allowed(self) -> str:
        return ", ".join(self.rules.allowed) or "no file is named"

    def tell(self, said: str, *, passed: bool = True) -> None:
        """How the cycle stands; exit code 7 when the phase was not passed."""
        rules, state = self.rules, self.state
        facts = {
            "task": self.task.id,
            "phase": rules.phase,
            "exit_code": state["exit_code"],
            "attempt": 0 if rules.phase == "red" else state["attempts"],
            "max_attempts": self.loop.limits["tdd_max_attempts"],
            "allowed": list(rules.allowed),
            "locked": list(rules.locked),
            "test_command": test_command(self.project, self.settings),
            "passed": passed,
        }
        words = said
        if state["status"] == "running":
            attempt = f" (attempt {facts['attempt']} of {facts['max_attempts']})"
            words += (
                f" {rules.phase.upper()}{attempt if rules.phase == 'green' else ''}: "
                f"{rules.goal.rstrip('.')}. May change: {self._allowed()}. "
                f"Locked: {', '.join(rules.locked) or 'nothing'}. Done when {rules.success}: "
                f"gsd-fsm --loop {self.loop.id} tdd {self.task.id} --run."
            )
        self.call.acknowledge(self.journal, self.loop, words.strip(), **facts)
        if not passed:
            raise click.exceptions.Exit(CheckFailed.exit_code)
