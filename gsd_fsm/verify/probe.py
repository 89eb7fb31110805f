"""Run the checks of a plan and the commands of the settings, several at once."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gsd_fsm.core.errors import CheckFailed
from gsd_fsm.core.text.sanitize import one_line
from gsd_fsm.documents.journal_text import redact_and_truncate
from gsd_fsm.evidence.checks import Outcome, run_check
from gsd_fsm.evidence.interruption import Poll
from gsd_fsm.verify.gaps import Result
from gsd_fsm.verify.inside import (
    Missing,
    Unreadable,
    is_file,
    read_inside,
    require_file,
)

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan, PlanTask


Finding = tuple[bool | None, str | None, str]
CI = ("lint", "typecheck", "test", "build", "e2e")
MAX_TEXT = 2_000
MAX_EVIDENCE = 3_000
_QUOTES = re.compile(
    r'"([^"]*)"|“([^”]*)”|`([^`]*)`'
    r"|(?<![^\s(])'([^']*)'(?![^\s.,;:!?)])"  # set off by blanks: else it is an apostrophe
)
_QUOTE = "\0"  # stands for a quotation in what is left of the text
_DENIES_CONTENT = re.compile(
    r"\b(?:(?:do(?:es)?|must|should|may|can|will) ?not|(?:do(?:es)?|must|should|wo)n['’]t|never|no longer)"
    r" (?:\w+ )?(?:contains?|includes?|mentions?|references?|uses?|imports?|has|have|holds?)\b"
    r"|\bcontains? no\b",
    re.IGNORECASE,
)
_DENIES_FILE = re.compile(
    r"\bnot exist\b|n['’]t exist\b|\bno longer exists?\b"
    r"|\b(?:is|are|was|were|been|be) (?:removed|deleted|gone|absent)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?:[\w@+.-]*/)*[\w@+.-]*\.[A-Za-z]\w{0,9}/?")
_ARTICLES = ("the", "file", "script", "module")
Key = TypeVar("Key")
Done = TypeVar("Done")
LEAST_AT_ONCE, MOST_AT_ONCE = 2, 4
SLICE_SECONDS = 0.1  # a signal is noticed between two waits


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
    shown = redact_and_truncate(evidence, MAX_EVIDENCE)
    text = redact_and_truncate(job.text, MAX_TEXT)
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


class Claim(NamedTuple):
    """A check's text, taken apart."""

    texts: tuple[str, ...]
    words: tuple[str, ...]  # outside of quotations, and the names of files within
    denied: bool


def read_claim(kind: str, text: str, files: tuple[str, ...]) -> Claim:
    """The claim of a `file` or `content` check of a task that has these files."""
    text = text.replace(_QUOTE, " ")
    quotes = [match[match.lastindex or 0] for match in _QUOTES.finditer(text)]
    rest = " ".join(_QUOTES.sub(_QUOTE, text).split())
    texts: list[str] = []
    words: list[str] = []
    for number, part in enumerate(rest.split(_QUOTE)):
        if number:
            quote = quotes[number - 1]
            # A file may be quoted too: `config.md` contains "loop:".
            named = len(quotes) > 1 and _is_place(words) and _file_of(quote, files)
            (words if kind == "file" or named else texts).append(quote)
        words += _words(part)
    denial = (_DENIES_FILE if kind == "file" else _DENIES_CONTENT).search(rest)
    # What is quoted before the denial is not denied.
    denied = denial is not None and (kind == "file" or _QUOTE not in rest[: denial.start()])
    return Claim(tuple(filter(None, texts)), tuple(filter(None, words)), denied)


def files_meant(
    kind: str, claim: Claim, files: tuple[str, ...], exists: Callable[[str], bool]
) -> list[str]:
    """The file that is named, else those of the task."""
    ways: tuple[Callable[[str], str | None], ...] = (
        lambda word: _file_of(word, files),
        lambda word: word if ".." in word.split("/") else None,
        lambda word: word if _is_path(word) and exists(word) else None,
    )
    for way in ways:
        named = next(filter(None, map(way, claim.words)), None)
        if named:
            return [named]
    # No file is called so; the word may mean one all the same, by where it stands.
    for number, word in enumerate(claim.words):
        if kind == "file" and _is_path(word):
            return [word]
        if (_NAME.fullmatch(word) or word.startswith("/")) and _is_place(claim.words[:number]):
            return [word]
    return list(files)


def _is_place(before: Sequence[str]) -> bool:
    """Whether a file would be named after these words: at the beginning, or after "in"."""
    return all(word.lower() in _ARTICLES for word in before) or before[-1] == "in"


def _is_path(word: str) -> bool:
    return "/" in word or _NAME.fullmatch(word) is not None


def _words(text: str) -> list[str]:
    bare = (word.lstrip("([{<*\"',;:!?").rstrip(")]}>*\"',;:!?.") for word in text.split())
    return [word.removeprefix("./") for word in bare if word]


def _file_of(word: str, files: tuple[str, ...]) -> str | None:
    """The file of the task that is called so: by its path, or by the end of it."""
    if word in files:
        return word
    is_name = "." in word or "/" in word or word[:1].isupper()
    return next((file for file in files if is_name and file.endswith("/" + word)), None)


class Halted(Exception):
    """Report to a function that its result is not needed any more."""


def in_parallel(
    work: Mapping[Key, Callable[[Poll], Done]], poll: Poll
) -> Generator[tuple[Key, Done], None, None]:
    """Yield each key with its result, in the order in which the functions return.

    Call `poll` every SLICE_SECONDS. Each function gets a poll function of its own, which raises Halted
    once `poll` has raised or the generator was closed; wait for all functions before returning.
    """
    halt = threading.Event()

    def poll_halt() -> None:
        if halt.is_set():
            raise Halted

    pool = ThreadPoolExecutor(min(MOST_AT_ONCE, max(LEAST_AT_ONCE, os.cpu_count() or 1)))
    try:
        running = {pool.submit(do, poll_halt): key for key, do in work.items()}
        while running:
            poll()
            wait(running, SLICE_SECONDS, FIRST_COMPLETED)
            for future in [future for future in running if future.done()]:
                yield running.pop(future), future.result()
    finally:
        halt.set()
        pool.shutdown(cancel_futures=True)
