"""Run the checks of a plan, of one task or of all, and the CI commands of the settings.

The files that a task names are checks of that task too: a file to create exists, one to delete does
not, and the content of one to modify has changed since its wave began.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gsd_fsm.core.errors import CheckFailed
from gsd_fsm.core.text.sanitize import one_line
from gsd_fsm.documents.journal_text import redact_and_truncate
from gsd_fsm.documents.read import Missing, Unreadable, is_inside, read_inside, require_inside
from gsd_fsm.evidence.checks import Outcome, run_check
from gsd_fsm.evidence.interruption import Output
from gsd_fsm.plans.claim import Claim, meant_by
from gsd_fsm.plans.tdd_files import digests
from gsd_fsm.verify.gaps import Result

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan, PlanTask

MAX_TEXT = 2_000
MAX_EVIDENCE = 3_000
LONGEST_NAME = 40
LEAST_AT_ONCE, MOST_AT_ONCE = 2, 4
SLICE_SECONDS = 0.1  # how often `poll` is called
Finding = tuple[bool | None, str | None, str]  # passed, file, evidence


class Job(NamedTuple):
    """A check to run; a CI command has no task. `kind` may also be create, modify or delete."""

    key: str
    kind: str
    text: str
    command: str | None
    task: PlanTask | None
    file: str | None = None

    @property
    def is_manual(self) -> bool:
        """Return whether no machine can decide it, wherever it is looked for."""
        return self.command is None and not self.file and _meant(self, None) is None


def task_jobs(task: PlanTask) -> list[Job]:
    """Return the checks of a task, then one for each file that it names with an action."""
    checks = [
        Job(key, check.kind, check.text, check.command, task) for key, check in task.keyed_checks()
    ]
    return checks + [
        Job(
            f"{task.id}#{file.path}",
            file.action,
            f"{file.action} {file.path}",
            None,
            task,
            file.path,
        )
        for file in dict.fromkeys(task.files)
        if file.action
    ]


def run_plan_checks(
    plan: Plan | None,
    project: Path,
    ci: dict[str, str],
    timeout: float,
    output: Output,
    *,
    find_shell: Callable[[], str],
    reruns: int = 0,
    variables: Mapping[str, str] | None = None,
    judged: Callable[[Result], Result] = lambda result: result,
) -> list[Result]:
    """Run all checks; return the results in the order of the plan, then of CI.

    Run each distinct command once in the shell that `find_shell` returns, and again up to `reruns`
    times while it fails, several at a time, then look at files, because commands may write them.
    `judged` returns the result that counts for that of a command. If the output raises, end every
    command.
    """
    jobs = _all_jobs(plan, ci)
    found: dict[str, Result] = {}

    def add(result: Result) -> None:
        found[result.key] = result
        what = f"{result.key} {result.kind} {one_line(result.text, 80)}"
        output.say(f"[{len(found)}/{len(jobs)}] {what} … {result.verdict}")

    commands = dict.fromkeys(job.command for job in jobs if job.command is not None)
    shell = find_shell() if commands else ""
    finishing = run_commands(
        commands, project, timeout, output, shell=shell, reruns=reruns, variables=variables
    )
    with closing(finishing) as finished:
        for command, outcome in finished:
            for job in jobs:
                if job.command == command:
                    add(judged(command_result(job, outcome)))
    for job in jobs:
        if job.command is None:
            output.poll()
            add(look(job, project))
    return [found[job.key] for job in jobs]


def runs_commands(plan: Plan) -> bool:
    """Return whether a task of the plan has a check that is a command."""
    return any(job.command is not None for job in _all_jobs(plan, {}))


def file_jobs(plan: Plan) -> list[Job]:
    """Return the checks of a whole plan that look at files.

    Only the last task that names a file decides whether it exists, and when a wave began is not
    known any more.
    """
    jobs = [job for task in plan.tasks for job in task_jobs(task) if job.command is None]
    last = {job.file: job for job in jobs if job.file}
    return [
        job
        for job in jobs
        if not job.file or (last[job.file] is job and job.kind in ("create", "delete"))
    ]


def _all_jobs(plan: Plan | None, ci: dict[str, str]) -> list[Job]:
    tasks = plan.tasks if plan else ()
    jobs = [job for task in tasks for job in task_jobs(task) if not job.file]
    return jobs + [Job(name, "command", command, command, None) for name, command in ci.items()]


def _result(job: Job, finding: Finding, seconds: float) -> Result:
    passed, file, evidence = finding
    return Result(
        job.key,
        job.task.id if job.task else None,
        job.kind,
        redact_and_truncate(job.text, MAX_TEXT),
        passed,
        file,
        redact_and_truncate(evidence, MAX_EVIDENCE),
        round(seconds, 3),
    )


def manual_results(plan: Plan) -> list[Result] | None:
    """Return the checks of a plan as manual ones; None if a machine decides some of them."""
    jobs = _all_jobs(plan, {})
    if not all(job.is_manual for job in jobs):
        return None
    return [_result(job, (None, None, "check by hand"), 0) for job in jobs]


# commands


class _Halted(Exception):
    """Ends a command whose result is no longer needed."""


def run_commands(
    commands: Collection[str],
    project: Path,
    timeout: float,
    output: Output,
    *,
    shell: str,
    reruns: int = 0,
    variables: Mapping[str, str] | None = None,
) -> Generator[tuple[str, Outcome | str], None, None]:
    """Yield each command with its outcome, or why it could not run, as they finish.

    Once the output has raised or the generator was closed, end all commands before returning.
    """
    halt = threading.Event()

    def poll_halt() -> None:
        if halt.is_set():
            raise _Halted

    def run(command: str) -> Outcome | str:
        try:
            return run_check(
                command,
                project,
                timeout,
                poll=poll_halt,
                shell=shell,
                reruns=reruns,
                variables=variables,
            )
        except CheckFailed as error:
            return error.message

    at_once = min(MOST_AT_ONCE, max(LEAST_AT_ONCE, os.cpu_count() or 1))
    pool = ThreadPoolExecutor(at_once)
    try:
        running = {pool.submit(run, command): command for command in commands}
        while running:
            first = islice(running.values(), at_once)  # the pool starts them in this order
            output.running([one_line(command, LONGEST_NAME) for command in first])
            output.poll()
            wait(running, SLICE_SECONDS, FIRST_COMPLETED)
            for future in [future for future in running if future.done()]:
                yield running.pop(future), future.result()
    finally:
        output.running([])
        halt.set()
        pool.shutdown(cancel_futures=True)


def command_result(job: Job, outcome: Outcome | str) -> Result:
    """Return the result of a check from the outcome of its command, or why that could not run."""
    if isinstance(outcome, str):
        return _result(job, (False, None, outcome), 0)
    code = "timed out" if outcome.timed_out else f"exit code {outcome.exit_code}"
    code += f" on rerun {outcome.reruns}" if outcome.reruns else ""
    passed = outcome.exit_code == 0
    evidence = code if passed else f"{code}\n{outcome.tail}".strip()
    result = _result(job, (passed, None, evidence), outcome.seconds)
    return result._replace(outcome=outcome)


# files


def look(job: Job, project: Path, before: Mapping[str, str | None] | None = None) -> Result:
    """Return the result of a check that looks at files.

    `before`: the digests of files to modify from when their wave began.
    """
    begun = time.monotonic()
    finding = _file_finding(job, project, before or {}) if job.file else _finding(job, project)
    return _result(job, finding, time.monotonic() - begun)


def _file_finding(job: Job, project: Path, before: Mapping[str, str | None]) -> Finding:
    path = job.file or ""
    if job.kind != "modify":
        problem = _file_problem(project, path, absent=job.kind == "delete")
        return not problem, path, problem
    if path not in before:  # a killed command could not record it
        problem = _file_problem(project, path, absent=False)
        return not problem, path, problem
    is_changed = digests(project, (path,))[path] != before[path]
    return is_changed, path, "" if is_changed else f"{path}: not changed since its wave began"


def _finding(job: Job, project: Path) -> Finding:
    found = _meant(job, project)
    if found is None:
        why = {"content": "no file name or no quoted text: ", "file": "no file name: "}
        return None, None, f"{why.get(job.kind, '')}check by hand"
    claim, meant = found
    if job.kind == "content":
        problems = _content_problems(project, meant, claim.texts, claim.denied)
    else:
        actions = {file.path: file.action for file in job.task.files} if job.task else {}
        deleted = all(actions.get(path) == "delete" for path in meant) and "exist" not in job.text
        absent = claim.denied or deleted
        problems = [text for path in meant if (text := _file_problem(project, path, absent))]
    return not problems, meant[0] if len(meant) == 1 else None, "\n".join(problems)


def _meant(job: Job, project: Path | None) -> tuple[Claim, list[str]] | None:
    """Return the claim of a check and the files that it means; None if only a human can decide.

    `project`: where named files may exist.
    """
    if job.task is None:
        return None
    exists = partial(is_inside, project) if project else None
    return meant_by(job.task, job.kind, job.text, exists)


def _file_problem(project: Path, path: str, absent: bool) -> str:
    try:
        require_inside(project, path)
    except Missing as error:
        return "" if absent else error.message
    except Unreadable as error:
        return error.message
    return f"{path}: still exists" if absent else ""


def _content_problems(
    project: Path, paths: list[str], texts: tuple[str, ...], absent: bool
) -> list[str]:
    """Return [] if one file contains all texts; or, with `absent`, if no file contains any."""
    problems = []
    for path in paths:
        try:
            content = read_inside(project, path)
        except Unreadable as error:
            problems.append(error.message)
            continue
        present = [text for text in texts if text.encode("utf-8", "surrogatepass") in content]
        if absent:
            problems += [f"{path}: contains {text!r}" for text in present]
        elif len(present) == len(texts):
            return []
        else:
            problems += [f"{path}: {text!r} not found" for text in texts if text not in present]
    return problems
