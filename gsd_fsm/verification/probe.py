"""Run the checks of a plan and the commands of the settings: what holds, and what is missed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gsd_fsm.checks import Outcome, run_check
from gsd_fsm.core.errors import CheckFailed
from gsd_fsm.core.text.quoting import one_line
from gsd_fsm.interruption import Poll
from gsd_fsm.texts import keep
from gsd_fsm.verification.claim import files_meant, read_claim
from gsd_fsm.verification.inside import (
    Missing,
    Unreadable,
    is_file,
    read_inside,
    require_file,
)
from gsd_fsm.verification.parallel import in_parallel
from gsd_fsm.verification.result import Result

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan, PlanTask

    Finding = tuple[bool | None, str | None, str]

CI = ("lint", "typecheck", "test", "build", "e2e")
MAX_TEXT = 2_000
MAX_EVIDENCE = 3_000


class Job(NamedTuple):
    """A check before it is run; without a task it is a command of the settings."""

    key: str
    kind: str
    text: str
    command: str | None
    task: PlanTask | None


def probe(
    plan: Plan | None,
    project: Path,
    ci: dict[str, str],
    timeout: float,
    say: Callable[[str], None],
    *,
    poll: Poll,
) -> list[Result]:
    """Run everything there is to run; the results are in the order of the plan, then of CI.

    A command that occurs several times is run once. Files are looked at when the last command has
    ended, because commands may write them. If `say` or `poll` raises, end every command.
    """
    jobs = jobs_of(plan, ci)
    found: dict[str, Result] = {}

    def tell(result: Result) -> None:
        found[result.key] = result
        what = f"{result.key} {result.kind} {one_line(result.text, 80)}"
        say(f"[{len(found)}/{len(jobs)}] {what} … {result.verdict}")

    commands = dict.fromkeys(job.command for job in jobs if job.command is not None)
    runs = {command: partial(_run, command, project, timeout) for command in commands}
    with closing(in_parallel(runs, poll)) as finished:
        for command, outcome in finished:
            for job in jobs:
                if job.command == command:
                    tell(_judged(job, outcome))
    looks = {job.key: partial(_look, job, project) for job in jobs if job.command is None}
    with closing(in_parallel(looks, poll)) as seen:
        for _, result in seen:
            tell(result)
    return [found[job.key] for job in jobs]


def jobs_of(plan: Plan | None, ci: dict[str, str]) -> list[Job]:
    jobs = [
        Job(f"{task.id}#{number}", check.kind, check.text, check.command, task)
        for task in (plan.tasks if plan else ())
        for number, check in enumerate(task.checks, 1)
    ]
    return jobs + [
        Job(f"ci:{name}", "command", ci[name], ci[name], None) for name in CI if name in ci
    ]


def _run(command: str, project: Path, timeout: float, poll: Poll) -> Outcome | str:
    try:
        return run_check(command, project, timeout, poll=poll)
    except CheckFailed as error:
        return error.message


def _judged(job: Job, outcome: Outcome | str) -> Result:
    if isinstance(outcome, str):
        return _result(job, (False, None, outcome), 0)
    code = "timed out" if outcome.timed_out else f"exit code {outcome.exit_code}"
    passed = outcome.exit_code == 0
    evidence = code if passed else f"{code}\n{outcome.tail}".strip()
    return _result(job, (passed, None, evidence), outcome.seconds)


def _look(job: Job, project: Path, _poll: Poll) -> Result:
    begun = time.monotonic()
    finding = _find(job, project)
    return _result(job, finding, time.monotonic() - begun)


def _result(job: Job, finding: Finding, seconds: float) -> Result:
    passed, file, evidence = finding
    task = job.task.id if job.task else None
    shown = keep(evidence, MAX_EVIDENCE)
    text = keep(job.text, MAX_TEXT)
    return Result(job.key, task, job.kind, text, passed, file, shown, round(seconds, 3))


def _find(job: Job, project: Path) -> Finding:
    if job.kind not in ("file", "content") or job.task is None:
        return None, None, "to be checked by hand"
    actions = {file.path: file.action for file in job.task.files}
    files = tuple(actions)
    claim = read_claim(job.kind, job.text, files)
    meant = files_meant(job.kind, claim, files, partial(is_file, project))
    if job.kind == "content" and not claim.texts:
        return None, None, "quotes no text: to be checked by hand"
    if not meant:
        return None, None, "names no file: to be checked by hand"
    only = meant[0] if len(meant) == 1 else None
    if job.kind == "content":
        return _holds(project, meant, claim.texts, claim.denied, only)
    deleted = all(actions.get(path) == "delete" for path in meant) and "exist" not in job.text
    return _exist(project, meant, claim.denied or deleted, only)


def _exist(project: Path, meant: list[str], denied: bool, only: str | None) -> Finding:
    """Whether all of these files are there, or none of them."""
    trouble = list(filter(None, (_trouble(project, path, denied) for path in meant)))
    return not trouble, only, "\n".join(trouble)


def _trouble(project: Path, path: str, denied: bool) -> str:
    try:
        require_file(project, path)
    except Missing as error:
        return "" if denied else str(error)
    except Unreadable as error:
        return str(error)
    return f"{path}: still there" if denied else ""


def _holds(
    project: Path, meant: list[str], texts: tuple[str, ...], denied: bool, only: str | None
) -> Finding:
    """Whether one of these files holds all the texts, or none holds any of them."""
    trouble = []
    for path in meant:
        try:
            content = read_inside(project, path)
        except Unreadable as error:
            trouble.append(str(error))
            continue
        held = [text for text in texts if text.encode("utf-8", "surrogatepass") in content]
        if denied:
            trouble += [f"{path}: contains {text!r}" for text in held]
        elif len(held) == len(texts):
            return True, only, ""
        else:
            trouble += [f"{path}: {text!r} not found" for text in texts if text not in held]
    return not trouble, only, "\n".join(trouble)
