"""Read the text of a `file` or `content` check: which files it means, and what it says of them.

No program can decide a check without such a claim or a command: it is manual.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gsd_fsm.documents.markdown import QUOTED
from gsd_fsm.plans.plan import Check, Plan, PlanTask

_QUOTE = "\0"  # stands for a quotation in the rest of the text
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


class Claim(NamedTuple):
    """The parts of a check's text."""

    texts: tuple[str, ...]  # quoted texts
    words: tuple[str, ...]  # words outside of quotations, and quoted file names
    denied: bool  # whether the file or the texts must be absent


def read_claim(kind: str, text: str, files: tuple[str, ...]) -> Claim:
    """Return the claim of a `file` or `content` check of a task with these files."""
    text = text.replace(_QUOTE, " ")
    quotes = [match[match.lastindex or 0] for match in QUOTED.finditer(text)]
    rest = " ".join(QUOTED.sub(_QUOTE, text).split())
    texts: list[str] = []
    words: list[str] = []
    for number, part in enumerate(rest.split(_QUOTE)):
        if number:
            quote = quotes[number - 1]
            # A file name may be quoted, too: `config.md` contains "loop:".
            is_name = len(quotes) > 1 and _follows_place(words) and _task_file(quote, files)
            (words if kind == "file" or is_name else texts).append(quote)
        words += _words(part)
    denial = (_DENIES_FILE if kind == "file" else _DENIES_CONTENT).search(rest)
    # A denial concerns only quotations after it.
    denied = denial is not None and (kind == "file" or _QUOTE not in rest[: denial.start()])
    return Claim(tuple(filter(None, texts)), tuple(filter(None, words)), denied)


def meant_files(
    kind: str, claim: Claim, files: tuple[str, ...], exists: Callable[[str], bool]
) -> list[str]:
    """Return the file that the claim names, or the files of the task."""
    ways: tuple[Callable[[str], str | None], ...] = (
        lambda word: _task_file(word, files),
        lambda word: word if ".." in word.split("/") else None,
        lambda word: word if _is_path(word) and exists(word) else None,
    )
    for way in ways:
        named = next(filter(None, map(way, claim.words)), None)
        if named:
            return [named]
    # No such file exists; the position of a word may still show that it is a file name.
    for number, word in enumerate(claim.words):
        if kind == "file" and _is_path(word):
            return [word]
        is_name = _NAME.fullmatch(word) or word.startswith("/")
        if is_name and _follows_place(claim.words[:number]):
            return [word]
    return list(files)


class ManualCheck(NamedTuple):
    """A check that no program can decide."""

    check: str  # its key
    line: int
    text: str


def manual_checks(plan: Plan) -> list[ManualCheck]:
    return [
        ManualCheck(key, check.line, check.text)
        for task in plan.tasks
        for key, check in task.keyed_checks()
        if not is_machine_check(task, check)
    ]


def has_machine_check(task: PlanTask) -> bool:
    """Return whether a check of the task, or an action on one of its files, can prove it."""
    if any(file.action for file in task.files):
        return True
    return any(is_machine_check(task, check) for check in task.checks)


def is_machine_check(task: PlanTask, check: Check) -> bool:
    """Return whether a program can decide this check of the task, whichever files exist then."""
    return check.kind == "command" or meant_by(task, check.kind, check.text) is not None


def meant_by(
    task: PlanTask, kind: str, text: str, exists: Callable[[str], bool] | None = None
) -> tuple[Claim, list[str]] | None:
    """Return the claim of a check and the files that it means; None if only a human can decide.

    `exists`: whether the project has a file of this name; by default it has none.
    """
    if kind not in ("file", "content"):
        return None
    files = tuple(dict.fromkeys(file.path for file in task.files))
    claim = read_claim(kind, text, files)
    meant = meant_files(kind, claim, files, exists or (lambda _name: False))
    if not meant or (kind == "content" and not claim.texts):
        return None
    return claim, meant


def _follows_place(before: Sequence[str]) -> bool:
    """Return whether a file name is likely after these words: at the beginning, or after "in"."""
    return all(word.lower() in _ARTICLES for word in before) or before[-1] == "in"


def _is_path(word: str) -> bool:
    return "/" in word or _NAME.fullmatch(word) is not None


def _words(text: str) -> list[str]:
    bare = (word.lstrip("([{<*\"',;:!?").rstrip(")]}>*\"',;:!?.") for word in text.split())
    return [word.removeprefix("./") for word in bare if word]


def _task_file(word: str, files: tuple[str, ...]) -> str | None:
    """Return the file of the task with this path, or whose path ends with it."""
    if word in files:
        return word
    is_name = "." in word or "/" in word or word[:1].isupper()
    return next((file for file in files if is_name and file.endswith("/" + word)), None)
