"""Settle reported tasks: run their checks outside the lock, record each proof, then judge them."""

from __future__ import annotations

import re
import shutil
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.records import Task
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.loop.waves import can_start, current_wave, defers_commands, reported_tasks
from gsd_fsm.core.text.next_step import LONG_PROOF
from gsd_fsm.core.text.sanitize import one_line
from gsd_fsm.documents.journal_text import redact_and_truncate
from gsd_fsm.engine.content import content_of
from gsd_fsm.engine.context import Context, LoopTransaction, Receipt, alone
from gsd_fsm.engine.planned.checkpoints import finish_task
from gsd_fsm.engine.planned.commits import Work, commit_work
from gsd_fsm.engine.planned.plan import append_consequences, append_plan_change, frozen_plan
from gsd_fsm.engine.protection.compare import record_finding
from gsd_fsm.engine.protection.witness import Witness
from gsd_fsm.evidence.failure import failure_data
from gsd_fsm.evidence.interruption import Output, Watch, in_silence
from gsd_fsm.plans.tdd_files import changed

if TYPE_CHECKING:
    from gsd_fsm.core.loop.payloads import ProofData
    from gsd_fsm.evidence.checks import Outcome
    from gsd_fsm.plans.plan import PlanTask
    from gsd_fsm.verify.gaps import Result
    from gsd_fsm.verify.run import Job

_NOT_FOUND = 127  # exit code of a shell that finds no such program
_NAMES_PROGRAM = re.compile(r"(?m)^.*?(?:\d+: )?([^\s:]+): (?:command )?not found\s*$")
MAX_ERROR = 3_000


class Settled(NamedTuple):
    """What became of reported tasks.

    `failed` has the failed checks by task; `deferred` the tasks that are still reported, with the
    checks that are to run once the tasks in `awaited` are reported; `missing` a program that this
    machine lacks.
    """

    receipt: Receipt
    complete: dict[str, str]  # by task: "proven" or "claimed"
    failed: dict[str, list[Result]]
    deferred: dict[str, list[str]]
    awaited: list[str]
    missing: str
    notes: list[str]
    commits: dict[str, str | None]
    tags: dict[str, str | None]
    is_slow: bool
    altered: list[dict[str, Any]] = []  # noqa: RUF012 - never changed

    @property
    def is_passed(self) -> bool:
        return not (self.failed or self.missing or self.altered)


class _Case:
    """One reported task with the results of its checks."""

    def __init__(self, task: Task, plan_task: PlanTask | None, jobs: list[Job]) -> None:
        self.task = task
        self.plan_task = plan_task
        self.looks = [job for job in jobs if job.command is None]
        known = task.proofs
        self.passed = [job.key for job in jobs if job.key in known and _counts(known[job.key])]
        self.commands = [job for job in jobs if job.command and job.key not in self.passed]
        self.misses: list[Result] = []
        self.unchanged: list[Result] = []
        self.failing: list[Result] = []
        # The checks that passed, and do not count because a file is altered.
        self.altered: list[str] = []
        self.error = ""
        self.has_run = not self.commands

    @property
    def is_refuted(self) -> bool:
        """Return whether the files that the task names are not as they should be.

        A file that was not modified counts only if no other check of the task passes.
        """
        is_idle = self.has_run and bool(self.unchanged) and not (self.passed or self.failing)
        return bool(self.misses or self.error) or is_idle


def settle(
    context: Context,
    loop: Loop,
    *,
    timeout: float | None = None,
    watch: Watch = in_silence,
) -> Settled:
    """Settle the reported tasks of an active loop, as far as their checks can be run now.

    Each proof of a command is recorded as it ends, so that a killed run leaves the rest `reported`.
    Raise CannotWrite if another process is running the checks.
    """
    run = _Run(context, loop, timeout, watch)
    with context.proving():
        while run.settle_due():
            pass
    return run.settled()


class _Run:
    """One run over the reported tasks of a loop."""

    def __init__(self, context: Context, loop: Loop, timeout: float | None, watch: Watch) -> None:
        self.context, self.project, self.watch = context, context.project, watch
        self.loop = loop
        self.limit = float(timeout or context.settings()["check_timeout_seconds"])
        self.reruns = int(context.settings()["check_reruns"])
        self.begun = time.monotonic()
        self.judged: set[str] = set()
        self.open_checks: dict[str, list[str]] = {}
        self.complete: dict[str, str] = {}
        self.failed: dict[str, list[Result]] = {}
        self.missing = ""
        self.notes: list[str] = []
        self.witness = Witness(context, loop)
        self.altered: dict[str, dict[str, Any]] = {}
        self.commits: dict[str, str | None] = {}
        self.tags: dict[str, str | None] = {}

    def settled(self) -> Settled:
        receipt = self.context.receipt(self.loop)
        loop = receipt.loop
        left = reported_tasks(loop)
        return Settled(
            receipt,
            self.complete,
            self.failed,
            {name: self.open_checks.get(name, []) for name in left},
            defers_commands(loop) if left else [],
            self.missing,
            self.notes,
            self.commits,
            self.tags,
            time.monotonic() - self.begun > LONG_PROOF,
            list(self.altered.values()),
        )

    def settle_due(self) -> bool:
        """Settle what can be settled now; return whether that changed anything."""
        loops = self.context.read()
        self.loop = loop = loops.by_id[self.loop.id]
        due = [task for task in self._in_turn() if task.id not in self.judged]
        if not due or not loop.is_active:
            return False
        self._require_plan()
        others = [task for task in due if task.verdict != "complete"]
        if others:
            self._settle_other_reports(others)
            return True
        cases = self._cases(due)
        for case in cases:
            self._look(case)
        run_now = not defers_commands(self.loop)
        outcomes = self._run_commands(cases) if run_now else {}
        missing = self._missing_program(cases, outcomes)
        if missing:
            self._pause(missing)
            return False
        for case in cases:
            self.open_checks[case.task.id] = [job.key for job in case.commands]
        ready = [case for case in cases if case.has_run or case.is_refuted]
        self._judge(ready)
        self.judged.update(case.task.id for case in ready)
        return bool(ready)

    def _in_turn(self) -> list[Task]:
        """Return the reported tasks; one that was reported too early waits for those before it."""
        wave = current_wave(self.loop) or 0
        tasks = [self.loop.tasks[name] for name in reported_tasks(self.loop)]
        return [it for it in tasks if (it.wave or 0) <= wave and can_start(self.loop, it)]

    def _require_plan(self) -> None:
        """Pause and raise Refused if the plan was changed: its checks are not those of the loop."""
        if not self.loop.is_planned:
            return
        with self.context.writing(self.loop) as tx:
            is_changed = append_plan_change(tx, self.project)
        if is_changed:
            raise Refused(
                f"loop {tx.loop.id} is now paused ({tx.loop.pause_code}): {tx.loop.pause_reason}",
                f"Read the plan, then run: {command_line('resume', tx.loop.id)}",
            )

    def _settle_other_reports(self, tasks: list[Task]) -> None:
        """Append the failure or the checkpoint of tasks reported during a wait or a pause."""
        with self.context.writing(self.loop) as tx:
            for task in tasks:
                append_other_verdict(tx, task)
            append_consequences(tx, self.project)
        self.loop = tx.loop
        self.judged.update(task.id for task in tasks)

    # checks

    def _cases(self, tasks: list[Task]) -> list[_Case]:
        from gsd_fsm.verify.run import task_jobs

        names = [task.id for task in tasks]
        planned = self.loop.is_planned and self.loop.kind == "execute" and names
        plan = frozen_plan(self.project, self.loop, names) if planned else None
        by_id = plan.tasks_by_id() if plan else {}
        cases = []
        for task in tasks:
            plan_task = by_id.get(task.id)
            own = task_jobs(plan_task) if plan_task and self.loop.proves_tasks else []
            jobs = [job for job in own if not job.is_manual]
            cases.append(_Case(task, plan_task, jobs))
        return cases

    def _look(self, case: _Case) -> None:
        """Look at the files of a task, and at the locks and tests of a TDD task."""
        from gsd_fsm.verify.run import look

        before = self.loop.wave_files.get(str(case.task.wave or 0), {})
        for job in case.looks:
            result = look(job, self.project, before)
            if result.passed is False:
                (case.unchanged if job.kind == "modify" else case.misses).append(result)
            elif result.passed:
                case.passed.append(job.key)
        named = {result.file for result in case.misses if result.kind in ("file", "content")}
        case.misses = [
            it for it in case.misses if it.kind not in ("create", "delete") or it.file not in named
        ]
        if case.plan_task is not None and self.loop.proves_tasks:
            case.error = tdd_problem(self.context, case.task, case.plan_task)

    def _run_commands(self, cases: list[_Case]) -> dict[str, Outcome | str]:
        """Run each distinct command of these tasks once; record what passed as it ends."""
        from gsd_fsm.verify.run import command_result, run_commands

        cases = [case for case in cases if case.commands and not case.is_refuted]
        commands = dict.fromkeys(job.command or "" for case in cases for job in case.commands)
        if not commands:
            return {}
        shell = self.context.check_shell()
        self._look_at_protected()
        self._append_proof(cases[0].task, {"proving": True})
        outcomes: dict[str, Outcome | str] = {}
        with (
            self.watch() as output,
            closing(
                run_commands(
                    commands,
                    self.project,
                    self.limit,
                    output,
                    shell=shell,
                    reruns=self.reruns,
                    variables=self.witness.variables,
                )
            ) as finished,
        ):
            for command, outcome in finished:
                outcomes[command] = outcome
                for case in cases:
                    for job in case.commands:
                        if job.command == command:
                            result = self.witness.judged(command_result(job, outcome))
                            self._take(case, result)
                            _say(output, len(outcomes), len(commands), result)
        self._look_at_protected()
        for case in cases:
            case.has_run = True
            self._hold_back(case, outcomes)
        return outcomes

    def _look_at_protected(self) -> None:
        """Compare the protected files now, and record which of them are altered."""
        self.witness.look(content_of(self.context, self.loop) if self.witness.is_needed else None)
        with self.context.writing(self.loop) as tx:
            record_finding(tx, self.witness.finding)

    def _hold_back(self, case: _Case, outcomes: dict[str, Outcome | str]) -> None:
        """Note the checks of a task that do not count; revoke the proof of those that just ran."""
        from gsd_fsm.verify.run import command_result

        case.altered = [key for key in case.passed if self.witness.finding.of_check(key)]
        for file in self.witness.finding.altered:
            if any(file in self.witness.finding.of_check(key) for key in case.altered):
                self.altered[file["path"]] = file
        for job in case.commands:
            outcome = outcomes.get(job.command or "")
            if job.key in case.altered and outcome is not None:
                self._append_result(case, command_result(job, outcome))

    def _take(self, case: _Case, result: Result) -> None:
        if not result.passed:
            case.failing.append(result)
            return
        case.passed.append(result.key)
        if result.flaky:
            self.notes.append(f"check {result.key} is flaky: it failed first and passed on a rerun")
        self._append_result(case, result)

    def _append_result(self, case: _Case, result: Result) -> None:
        self._append_proof(case.task, {"proof": self._proof(result)})

    def _proof(self, result: Result) -> dict[str, Any]:
        evidence = redact_and_truncate(result.evidence, MAX_ERROR)
        return {**self.witness.ran(result), "evidence": evidence}

    def _append_proof(self, task: Task, data: dict[str, Any]) -> None:
        """Record a fact about a task that is still reported; the loop may be paused meanwhile."""
        with self.context.writing(self.loop) as tx:
            now = tx.loop.tasks.get(task.id)
            if tx.loop.is_live and now is not None and now.status == "reported":
                tx.append("task", {"task": task.id, "status": "reported", **data}, by="cli")

    def _missing_program(self, cases: list[_Case], outcomes: dict[str, Outcome | str]) -> str:
        """Return the check and the program that this machine lacks, "" if there is none.

        A program that the task should have created is its own failure.
        """
        for case in cases:
            named = {file.path for file in case.plan_task.files} if case.plan_task else set()
            for job in case.commands:
                outcome = outcomes.get(job.command or "")
                program = (
                    missing_program(outcome) if outcome and not isinstance(outcome, str) else ""
                )
                if program and program not in named and "/" not in program.replace("\\", "/"):
                    return f"check {job.key} needs the program {program}, which is not installed"
        return ""

    def _pause(self, reason: str) -> None:
        self.missing = reason
        with self.context.writing(self.loop) as tx:
            if tx.loop.is_active:
                tx.pause("blocking", reason)

    # judgement

    def _judge(self, cases: list[_Case]) -> None:
        """Complete what is proven, fail what is refuted; leave the rest reported."""
        refuted = [case for case in cases if case.is_refuted]
        unproven = [case for case in cases if not case.is_refuted and case.failing]
        proven = [case for case in cases if not case.is_refuted and not case.failing]
        proven = [case for case in proven if not case.altered]
        for case in proven:
            self._complete(case)
        with self.context.writing(self.loop) as tx:
            for case in refuted:
                self._fail(tx, case, [*case.misses, *case.unchanged])
            for case in unproven:
                # The command may depend on the files that another task has not delivered.
                if refuted:
                    self._keep(tx, case)
                else:
                    self._fail(tx, case, case.failing)
            append_consequences(tx, self.project)
        self.loop = tx.loop

    def _complete(self, case: _Case) -> None:
        task = case.task
        with alone(self.context):
            data = self._completion(case)
            if self.loop.is_planned and self.context.repository_or_none() is not None:
                with self.context.dry_run(self.loop) as rehearsed:
                    if not _is_settleable(rehearsed.loop, task):
                        return
                    rehearsed.append("task", data)
            work = Work(task.message, task.summary or "")
            commit = task.commit or commit_work(self.context, self.loop, task.id, work)
            if commit:
                data["commit"] = commit
            with self.context.writing(self.loop) as tx:
                if not _is_settleable(tx.loop, task):
                    return
                tx.append("task", data)
                append_consequences(tx, self.project)
            self.loop = tx.loop
            self.commits[task.id] = commit
            self.complete[task.id] = "proven" if data.get("proven") else "claimed"
            self.notes += [f"{task.id}: {it.evidence}" for it in case.unchanged]
            if self.loop.kind == "execute":
                self.tags[task.id] = finish_task(self.context, self.loop, task.id)

    def _completion(self, case: _Case) -> dict[str, Any]:
        task = case.task
        data: dict[str, Any] = {"task": task.id, "status": "complete"}
        if case.passed:
            data["proven"] = True
            data["seconds"] = round(time.monotonic() - self.begun, 3)
        return data

    def _fail(self, tx: LoopTransaction, case: _Case, results: list[Result]) -> None:
        self.failed[case.task.id] = results
        if not _is_settleable(tx.loop, case.task):
            return
        alike = case.error + " ".join(f"{it.key} {it.evidence}" for it in results)
        data = failure_data(case.task.id, error_of(case.error, results), "logic", alike=alike)
        tx.append("failure", data)

    def _keep(self, tx: LoopTransaction, case: _Case) -> None:
        """Record why a task stays reported."""
        for result in case.failing if _is_settleable(tx.loop, case.task) else ():
            data = {"task": case.task.id, "status": "reported", "proof": self._proof(result)}
            tx.append("task", data, by="cli")


def _counts(proof: ProofData) -> bool:
    """Return whether a check passed, and no file was altered that it depends on."""
    return proof["passed"] and not proof.get("altered")


def _is_settleable(loop: Loop, task: Task) -> bool:
    now = loop.tasks.get(task.id)
    return loop.is_active and now is not None and now.status == "reported"


def _say(output: Output, done: int, total: int, result: Result) -> None:
    what = f"{result.key} {one_line(result.text, 80)}"
    output.say(f"[{done}/{total}] {what} … {result.verdict}")


def append_other_verdict(tx: LoopTransaction, task: Task) -> None:
    """Append what a report other than TASK COMPLETE means, if the task is still reported."""
    if not _is_settleable(tx.loop, task):
        return
    if task.verdict == "failed":
        error = task.error or "failed without an error message"
        tx.append("failure", failure_data(task.id, error, alike=error.partition("\n")[0]))
    elif task.verdict == "checkpoint":
        data = {"task": task.id, "status": "checkpoint", "question": task.question or "continue?"}
        tx.append("task", data)


def error_of(problem: str, results: list[Result]) -> str:
    """Return the error of a task whose checks failed, with the evidence of each."""
    parts = [problem] if problem else []
    parts += [f"check {it.key} ({one_line(it.text, 200)}): {it.evidence}" for it in results]
    return redact_and_truncate("\n".join(parts), MAX_ERROR)


def missing_program(outcome: Outcome) -> str:
    """Return the program that the shell did not find on this machine, "" if it found all."""
    if outcome.exit_code != _NOT_FOUND:
        return ""
    named = _NAMES_PROGRAM.search(outcome.tail)
    words = outcome.command.split()
    program = named[1] if named else words[0] if words else ""
    return "" if shutil.which(program) else program


# TDD


def tdd_problem(context: Context, task: Task, plan_task: PlanTask) -> str:
    """Return why a TDD task cannot be complete yet, "" if nothing is missing.

    Its tests must have failed in RED and passed in GREEN, and the locked files be unchanged.
    """
    if plan_task.test_required == "false":
        return ""
    touched = changed(context.project, task.locked or {})
    if touched:
        return f"locked files were changed: {', '.join(touched)}"
    if task.phase != "refactor":
        now = (task.phase or "red").upper()
        return f"its tests have not passed in GREEN: it is in {now}"
    return "its tests failed in REFACTOR" if task.exit_code else ""
