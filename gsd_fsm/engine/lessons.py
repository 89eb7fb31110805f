"""Recall what earlier loops learned, and accept or dismiss it for this loop."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

from gsd_fsm.core.errors import NotFound, Refused, UsageError
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.text.sanitize import one_line
from gsd_fsm.documents.journal_text import redact_and_truncate
from gsd_fsm.engine.context import Context, Receipt
from gsd_fsm.history.failures import Failure, read_failures

ALL = "all"
_ERROR = 120
_ENDED = 150
_LINE = 300
# The first pattern that matches a line selects it: a named error, a failure, any word.
_INFORMATIVE = (
    re.compile(r"\b[A-Za-z_][\w.]*(?:Error|Exception)\b|^E\s+\S|\bpanicked at\b|\berror\[\w+\]"),
    re.compile(
        r"\b(?:error|fatal|fail(?:s|ed|ure)?|panic|cannot|denied|undefined)\b", re.IGNORECASE
    ),
    re.compile(r"\w"),
)
# Lines without information: the head of a trace, a ruler, the place where a text was truncated.
_NOISE = re.compile(r"Traceback \(|[=_*─]{3}|…\[|\W*$")
_MARK = re.compile(r"^E\s+")
_CAMEL = re.compile(r"(?<=[a-z\d])(?=[A-Z])")
_WORD = re.compile(r"[^\W\d_]{3,}")
_STOP = frozenset((
    "about", "after", "again", "all", "also", "and", "any", "are", "been", "before", "but",
    "can", "could", "did", "does", "doing", "done", "each", "for", "from", "had", "has",
    "have", "how", "into", "its", "just", "make", "may", "more", "most", "must", "need",
    "not", "now", "off", "once", "one", "only", "other", "our", "out", "over", "own",
    "shall", "should", "some", "such", "than", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "those", "until", "use", "used", "uses", "using",
    "via", "was", "well", "were", "what", "when", "where", "which", "while", "who", "why",
    "will", "with", "without", "would", "you", "your",
))  # fmt: skip
# Words of every project. A lesson must share another word with the goal to be related.
_COMMON = frozenset((
    "add", "app", "assert", "assertion", "attribute", "build", "change", "check", "code",
    "complete", "create", "error", "exception", "expected", "fail", "failed", "failure",
    "false", "feature", "file", "fix", "function", "got", "home", "implement", "improve",
    "index", "init", "key", "lib", "line", "loop", "main", "module", "name", "new", "node",
    "none", "null", "object", "package", "pass", "path", "phase", "project", "python",
    "run", "runtime", "site", "src", "step", "syntax", "task", "test", "tmp", "true",
    "type", "update", "usr", "value", "venv", "work", "write",
))  # fmt: skip


class Recalled(NamedTuple):
    """The lessons for a goal by number; `open` are those not yet accepted or dismissed."""

    loop: Loop | None
    lessons: dict[int, Lesson]
    open: dict[int, Lesson]


class Decided(NamedTuple):
    """The numbers of the lessons that were accepted and dismissed."""

    receipt: Receipt
    accepted: list[int]
    dismissed: list[int]


def recall(context: Context, goal: str | None = None) -> Recalled:
    """Return the lessons of earlier loops for this goal, by default for that of the loop."""
    loop, numbered = _lessons(context, goal, needs_loop=goal is None)
    return Recalled(loop, numbered, _open(loop, numbered))


def decide_lessons(
    context: Context, goal: str | None, accept: list[str], dismiss: list[str]
) -> Decided:
    """Accept and dismiss lessons by number (or "all"); accepted ones reach the agent."""
    loop, numbered = _lessons(context, goal, needs_loop=True)
    left = _open(loop, numbered)
    accepted = _chosen(numbered, left, accept)
    dismissed = _chosen(numbered, left, dismiss)
    both = sorted({*accepted} & {*dismissed})
    if both:
        named = ", ".join(map(str, both))
        raise UsageError(f"lesson {named} is both accepted and dismissed", "Choose one of them.")
    with context.writing(loop) as tx:
        still_open = _open(tx.loop, numbered)  # another process may have been faster
        for number in sorted({*accepted, *dismissed} & {*still_open}):
            lesson = numbered[number]
            data: dict[str, Any] = {"kind": "recall", "text": lesson.text, "source": lesson.loop}
            if number in dismissed:
                data["dismissed"] = True
            tx.append("note", data)
    return Decided(tx.receipt, accepted, dismissed)


def is_number(text: str) -> bool:
    """Return whether this selects lessons: numbers separated by commas, or `all`."""
    parts = text.split(",")
    return all(part == ALL or (part.isdecimal() and len(part) < 10) for part in parts)


def _lessons(
    context: Context, goal: str | None, *, needs_loop: bool
) -> tuple[Loop | None, dict[int, Lesson]]:
    loops, loop = context.read(), None
    try:
        loop = context.loop(loops)
    except NotFound:
        if needs_loop:
            raise
    if goal is None:
        goal = (loop.goal or loop.plan.title) if loop else None
        if not goal:
            raise UsageError("this loop has no goal", "Run: gsd-fsm recall GOAL")
    found = lessons(context.gsd, goal, except_loop=loop.id if loop else None)
    return loop, dict(enumerate(found, 1))


def _open(loop: Loop | None, numbered: dict[int, Lesson]) -> dict[int, Lesson]:
    """Return the lessons that are neither accepted nor dismissed."""
    decided = (*loop.recalled, *loop.dismissed) if loop else ()
    return {number: it for number, it in numbered.items() if it.text not in decided}


def _chosen(numbered: dict[int, Lesson], left: dict[int, Lesson], given: list[str]) -> list[int]:
    """Return the selected numbers; raise if a lesson is unknown or already decided."""
    chosen: list[int] = []
    for part in ",".join(given).split(",") if given else ():
        if part.strip() == ALL:
            chosen += left
            continue
        number = int(part) if is_number(part.strip()) else 0
        if number not in numbered:
            raise UsageError(f"lesson {part.strip()} does not exist", "Run: gsd-fsm recall")
        if number not in left:
            raise Refused(f"lesson {number} is already decided", "Run: gsd-fsm recall")
        chosen.append(number)
    return list(dict.fromkeys(chosen))


class Lesson(NamedTuple):
    """A past failure and how it ended; `text` is both, as the journal stores it."""

    loop: str
    error: str
    ended: str
    text: str


def lessons(gsd: str, goal: str, most: int = 3, except_loop: str | None = None) -> list[Lesson]:
    """Return the lessons of this project that are related to the goal, best first."""
    wanted = words_in(goal)
    if not wanted:
        return []
    known = read_failures(Journal(gsd), except_loop)
    common = _common({failure.goal for alike in known.alike.values() for failure in alike})
    found = []
    for alike in known.alike.values():
        shared = wanted & _words(alike)
        if shared - common:
            last = max(alike, key=lambda failure: (failure.fixed, failure.seq))
            found.append((len(shared), last))
    found.sort(key=lambda scored: (-scored[0], not scored[1].fixed, -scored[1].seq))
    unique = {
        lesson.text: lesson for lesson in (_lesson(failure) for _, failure in reversed(found))
    }
    return [it for it in reversed(unique.values()) if it.text not in known.dismissed][:most]


def words_in(text: str) -> set[str]:
    """Return the significant words of a text, in lower case and singular."""
    found = _WORD.findall(_CAMEL.sub(" ", text).lower())
    return {_singular(word) for word in found if word not in _STOP}


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")) and len(word) > 3:
        return word[:-2]
    if word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _words(alike: list[Failure]) -> set[str]:
    found: set[str] = set()
    for failure in alike:
        files = [part for part in failure.error.split() if "." in part.strip(".,:;!?()'\"")]
        about = [failure.goal, failure.about, informative_line(failure.error), *files]
        found |= words_in("\n".join(about))
    return found


def _common(goals: set[str]) -> set[str]:
    """Return words without meaning here: of every project, and of most goals of this one."""
    counts = Counter(word for goal in goals for word in words_in(goal))
    many = max(3, len(goals) // 2)
    return {word for word, count in counts.items() if count > many} | _COMMON


def informative_line(error: str) -> str:
    """Return the line of an error text that says most about it."""
    lines = [line.strip()[:_LINE] for line in error.splitlines()]
    lines = [line for line in lines if not _NOISE.match(line)]
    for pattern in _INFORMATIVE:
        for line in lines:
            if pattern.search(line):
                return _MARK.sub("", line)
    return " ".join(error.split())[:_LINE]


def _lesson(failure: Failure) -> Lesson:
    error = one_line(informative_line(failure.error), _ERROR)
    ended = one_line(failure.ended, _ENDED)
    how = f"ended by {ended}" if failure.fixed else f"not fixed: {ended}"
    if ended == "never":
        how = "never fixed"
    text = redact_and_truncate(one_line(f'"{error}" (loop {failure.loop}): {how}', _LINE), 2_000)
    return Lesson(failure.loop, error, ended, text)
