"""Lead a task of a plan through red, green and refactor, by the exit code of its tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gsd_fsm.core.errors import CheckFailed, Refused, UsageError
from gsd_fsm.core.loop.fold import not_possible
from gsd_fsm.core.loop.records import Task
from gsd_fsm.core.text.next_step import altered_remedy, altered_words, next_step
from gsd_fsm.engine.content import content_of
from gsd_fsm.engine.context import Context, LoopTransaction, Receipt, one_of
from gsd_fsm.engine.planned.checkpoints import drop_copies, finish_task
from gsd_fsm.engine.planned.commits import Work, commit_work
from gsd_fsm.engine.planned.plan import append_consequences, frozen_plan, require_turn
from gsd_fsm.engine.planned.report import report_complete
from gsd_fsm.engine.protection.compare import record_finding
from gsd_fsm.engine.protection.protect import TDD
from gsd_fsm.engine.protection.witness import Witness
from gsd_fsm.evidence.checks import Outcome, run_check
from gsd_fsm.evidence.failure import failure_data
from gsd_fsm.evidence.interruption import Watch, in_silence
from gsd_fsm.plans.plan import PlanTask, task_name
from gsd_fsm.plans.tdd_files import Copies, Rules, changed, digests, first_phase, rules_of, was_run
from gsd_fsm.subagents.context import test_command


class TddState(NamedTuple):
    """The phase of a task, the files that it may change, and what the last run of its tests meant."""

    task: Task
    rules: Rules
    test_command: str
    receipt: Receipt
    message: str = ""
    passed: bool = True


def begin_cycle(context: Context, task_id: str) -> TddState:
    """Enter the first phase of a task, unless this attempt has already begun."""
    return _Cycle(context, task_id).state()


def run_tests(
    context: Context,
    task_id: str,
    *,
    timeout: float | None = None,
    watch: Watch = in_silence,
) -> TddState:
    """Run the tests of a task: red must fail, green and refactor must pass.

    Raise CheckFailed if a locked file was changed (the task has failed then), or if the test
    command cannot be run.
    """
    return _Cycle(context, task_id).run(timeout, watch)


class _Cycle:
    """The cycle of one task."""

    def __init__(self, context: Context, task_id: str) -> None:
        self.context, self.project = context, context.project
        self.loop = context.working_loop()
        if not self.loop.is_planned or self.loop.kind != "execute":
            raise UsageError(
                f"loop {self.loop.id} does not execute a plan, so its tasks name no tests",
                "Run: gsd-fsm task ID running --phase red|green|refactor",
            )
        if not self.loop.is_active:
            raise not_possible(self.loop, "task")
        self.plan_task = self._find(task_id)
        self.id = self.plan_task.id
        self.copies = Copies(context.gsd, self.loop.id, self.id)
        self.settings = context.settings()
        frozen = self.loop.protection.commands.get(TDD)
        self.command = frozen or test_command(self.project, self.settings)
        self.timeout = float(self.settings["check_timeout_seconds"])
        self._begin()

    def _find(self, task_id: str) -> PlanTask:
        names = (task_id, task_name(task_id))
        known = any(name in self.loop.tasks for name in names)
        task = frozen_plan(self.project, self.loop, names).task(task_id) if known else None
        if task is None:
            raise UsageError(f"the plan has no task {task_id}", one_of(self.loop.tasks))
        if task.test_required == "false":
            raise Refused(f"task {task.id} is not a TDD task", f"Run: gsd-fsm next {task.id}")
        return task

    @property
    def task(self) -> Task:
        return self.loop.tasks[self.id]

    @property
    def rules(self) -> Rules:
        return rules_of(self.plan_task, self.task.phase or first_phase(self.plan_task))

    @property
    def allowed(self) -> str:
        return ", ".join(self.rules.allowed) or "no file is named"

    def state(self, message: str = "", *, passed: bool = True) -> TddState:
        receipt = self.context.receipt(self.loop)
        return TddState(self.task, self.rules, self.command, receipt, message, passed)

    # events

    def _begin(self) -> None:
        """Enter the first phase, unless this attempt is already in its cycle."""
        if self.task.status == "running" and self.task.locked is not None:
            return
        # A new attempt continues in green with tests that were seen to fail in an earlier one.
        failed = self.task.red_files
        continues = failed and not changed(self.project, failed)
        self._enter("green" if continues else first_phase(self.plan_task))

    def _enter(self, phase: str, outcome: Outcome | None = None) -> None:
        locked = digests(self.project, rules_of(self.plan_task, phase).locked)
        self._record({"status": "running", "phase": phase, "locked": locked, **_result(outcome)})

    def _stay(self, outcome: Outcome) -> None:
        """Record a run of the tests that does not end the phase."""
        self._record({"status": "running", "phase": self.rules.phase, **_result(outcome)})

    def _record(self, *changes: Mapping[str, Any], error: str = "") -> None:
        """Append these changes of the task, and its failure, if there is an error."""
        with self.context.writing(self.loop) as tx:
            self._append(tx, *changes)
            if error:
                tx.append("failure", failure_data(self.id, error, "logic"))
            append_consequences(tx, self.project)
        self.loop = tx.loop
        if error:
            drop_copies(self.context, self.loop)

    def _append(self, tx: LoopTransaction, *changes: Mapping[str, Any]) -> None:
        require_turn(tx.loop, self.id)
        for change in changes:
            tx.append("task", {"task": self.id, **change})

    # runs

    def run(self, timeout: float | None, watch: Watch) -> TddState:
        touched = changed(self.project, self.task.locked or {})
        if touched:
            what = f"locked files were changed in {self.rules.phase.upper()}: {', '.join(touched)}"
            self._record(error=f"{what}. In this phase only these may change: {self.allowed}")
            raise self._locked_failure(what)
        limit, shell = float(timeout or self.timeout), self.context.check_shell()
        witness = Witness(self.context, self.loop)
        self._look(witness)
        with watch() as output:
            output.say(f"{self.rules.phase.upper()}: {self.command}")
            output.running([self.rules.phase])
            outcome = run_check(
                self.command,
                self.project,
                limit,
                output.show,
                output.poll,
                shell=shell,
                variables=witness.variables,
            )
            output.running([])
            if outcome.exit_code:
                output.quote("Output of the tests", outcome.tail)
        if not was_run(outcome.exit_code):
            raise CheckFailed(
                f"the test command could not be run: {self.command}",
                'Set it in .gsd/config.toml: ci_test = "COMMAND"',
            )
        self._look(witness)
        altered = witness.finding.of_check(TDD)
        if altered:
            self._stay(outcome)
            file = next(it for it in self.loop.protection.altered if it.path == altered[0]["path"])
            words = f"This run does not count: {altered_words(file)}."
            return self.state(f"{words} Run: {altered_remedy(self.loop, file)}", passed=False)
        judge = {"red": self._red, "green": self._green, "refactor": self._refactor}
        return judge[self.rules.phase](outcome)

    def _look(self, witness: Witness) -> None:
        """Compare the protected files now, and record which of them are altered."""
        witness.look(content_of(self.context, self.loop) if witness.is_needed else None)
        with self.context.writing(self.loop) as tx:
            record_finding(tx, witness.finding)
        self.loop = tx.loop

    def _locked_failure(self, what: str) -> CheckFailed:
        """Return the error for a task that failed, with the command that continues the loop."""
        loop, message = self.loop, f"task {self.id} failed: {what}"
        if loop.status != "paused":
            return CheckFailed(message, "Run: gsd-fsm next")
        paused = f"loop {loop.id} is now paused ({loop.pause_code}): {loop.pause_reason}"
        hint = f"Undo the changes, then run: {next_step(loop)[1]}"
        return CheckFailed(f"{message}; {paused}", hint)

    def _red(self, outcome: Outcome) -> TddState:
        tests = self.plan_task.test_files
        problem = ""
        if outcome.exit_code == 0:
            problem = "The tests already pass. Write one that fails first."
        elif outcome.timed_out:
            problem = "The tests timed out. Write one that fails."
        elif tests and not any(digests(self.project, tests).values()):
            problem = f"{self.allowed} does not exist. Write a test that fails first."
        if problem:
            self._stay(outcome)
            return self.state(problem, passed=False)
        self._enter("green", outcome)
        return self.state("Red: the tests fail, as required. The test files are locked now.")

    def _green(self, outcome: Outcome) -> TddState:
        if outcome.exit_code == 0:
            self.copies.save(self.project, self.rules.allowed)
            self._enter("refactor", outcome)
            return self.state("Green: the tests pass.")
        most = self.loop.limits.tdd_max_attempts
        if self.task.attempts >= most:
            self._record(error=f"the tests still fail after {most} attempts\n\n{outcome.tail}")
            message = f"The tests still fail after {most} attempts. The task has failed."
            return self.state(message, passed=False)
        self._stay(outcome)
        return self.state("The tests fail. Fix the implementation, not the tests.", passed=False)

    def _refactor(self, outcome: Outcome) -> TddState:
        if outcome.exit_code == 0:
            self.copies.save(self.project, self.rules.allowed)
            self._stay(outcome)
            return self.state("The tests still pass. Verify the task, then report it.")
        undo = {"status": "running", "phase": "refactor", "undone": True, **_result(outcome)}
        complete: dict[str, Any] = {"status": "complete"}
        # The loop may have been paused while the tests ran: then no file is changed.
        with self.context.dry_run(self.loop) as tx:
            self._append(tx, undo, *([complete] if self.loop.rules is None else []))
        restored = self.copies.restore(self.project)
        if restored is None:
            self._stay(outcome)
            problem = "The refactoring broke the tests and cannot be undone. Fix it."
            return self.state(problem, passed=False)
        files = ", ".join(restored) or "no file"
        message = f"The refactoring broke the tests and was undone ({files})."
        if self.loop.rules is not None:
            return self._prove_undone(undo, message)
        complete["summary"] = message
        commit = commit_work(self.context, self.loop, self.id, Work(details=message))
        if commit:
            complete["commit"] = commit
        self._record(undo, complete)
        finish_task(self.context, self.loop, self.id)
        return self.state(f"{message} Task {self.id} is complete.")

    def _prove_undone(self, undo: Mapping[str, Any], message: str) -> TddState:
        """Report the task as complete with the code that passed its tests before."""
        self._record({**undo, "exit_code": 0})
        settled = report_complete(self.context, self.loop, self.id, message)
        self.loop = self.context.receipt(self.loop).loop
        if settled is not None and self.id in settled.complete:
            return self.state(f"{message} Task {self.id} is complete.")
        return self.state(f"{message} Task {self.id} is {self.task.status}.", passed=False)


def _result(outcome: Outcome | None) -> dict[str, Any]:
    """Return what an event holds of a run of the tests."""
    if outcome is None:
        return {}
    return {"exit_code": outcome.exit_code, "shell": outcome.shell}
