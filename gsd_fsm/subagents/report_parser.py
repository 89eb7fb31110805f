"""Parse the report of a subagent: one verdict, and the facts beside it.

Every line of a report goes into exactly one field of the result; other text goes into `details`. A
report without a verdict, or with two, is refused: a guess could complete a task that has failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.documents.markdown import closes_fence, heading_of, item_of, opening_fence

MAX_REPORT = 4 << 20
UNSPECIFIED = "unspecified"
FORMS = (
    "Write exactly one of these at the beginning of a line and outside of code fences: "
    "TASK COMPLETE, TASK FAILED: reason, CHECKPOINT: decision. "
    "You may add any number of lines: NEW ISSUE: [severity] text"
)
_LISTED = 5
_NOTHING = ("", "none", "nothing", "n/a", "no", "nil")
_SEVERITY = re.compile(r"\[([^\[\]\n]{0,40})\][ \t]*(?:[:—–-][ \t]*)?")
_HASH = re.compile(r"[0-9a-f]{7,64}")
_REMARK = re.compile(r"[ \t]\([^()\n]*\)")
_AFTER_PATH = re.compile(r"[ \t](?:[(—–-]|→)|:(?:[ \t]|\Z)")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
VERDICTS = {"TASK COMPLETE": "complete", "TASK FAILED": "failed", "CHECKPOINT": "checkpoint"}
ISSUE, FIX, OPTION = "NEW ISSUE", "AUTO-FIX", "option"
DETAIL = "detail"  # a label whose line belongs to the details, but ends the part before it
LABELS = {
    "files": "files",
    "files modified": "files",
    "files changed": "files",
    "tests": "tests",
    "test status": "tests",
    "commit": "commit",
    "commit message": "commit",
    "blocker": DETAIL,
    "analysis": "analysis",
    "root cause": "analysis",
    "suggested fix": "suggested_fix",
    "fix": "suggested_fix",
    "attempts": DETAIL,
    "attempts made": DETAIL,
    "options": "options",
    "recommendation": "recommendation",
}
_DECORATION = " \t\xa0#*->_`"
_EMPHASIS = "*_`"
_NUMBER = re.compile(r"\d{1,9}[.)](?=[ \t\xa0*_`])")
_MARK = re.compile(f"({'|'.join([*VERDICTS, ISSUE, FIX])})(?![^\\W_])")
_LABEL = re.compile(f"({'|'.join(sorted(LABELS, key=len, reverse=True))})(?!\\w)", re.IGNORECASE)
_OPTION = re.compile(r"\(?([A-Z])\)|[Oo]ption ([A-Z]|\d{1,2})(?=[:.)*_`]| [—–-] )")
_SEPARATOR = re.compile(r"[ \t]*(?::|[—–-](?=\s))[ \t]*")


class Issue(NamedTuple):
    """An unrelated problem that the subagent found; its severity is in lower case."""

    severity: str
    text: str


class Report(NamedTuple):
    """A parsed report. Files are as the subagent wrote them, and not checked."""

    verdict: str  # "complete" | "failed" | "checkpoint"
    reason: str
    details: str = ""
    issues: tuple[Issue, ...] = ()
    fixes: tuple[str, ...] = ()
    commit_message: str | None = None
    files: tuple[str, ...] = ()
    tests: str | None = None
    analysis: str | None = None
    suggested_fix: str | None = None
    options: tuple[str, ...] = ()
    recommendation: str | None = None


def parse_report(text: str) -> Report:
    """Return the parsed report; raise UsageError unless it has exactly one verdict."""
    lines = _lines(text)
    parts = _parts(lines)
    verdicts = [part for part in parts if part.name in VERDICTS]
    if len(verdicts) != 1:
        raise UsageError(_miscount(verdicts, lines), FORMS)
    reason = verdicts[0].value()
    reason = reason if re.search(r"\w", reason) else ""
    verdict = VERDICTS[verdicts[0].name]
    if not reason and verdict != "complete":
        where = f"{verdicts[0].name} at line {verdicts[0].line}"
        raise UsageError(f"{where} has no text after it", FORMS)
    plain = [part for part in parts if _is_plain(part, verdict)]
    fields = [part for part in parts if not _is_plain(part, verdict)]
    found = {
        name: "\n".join(part.value() for part in fields if part.name == name) or None
        for name in LABELS.values()
    }
    details = "\n".join(line for part in plain for line in part.raw)
    return Report(
        verdict,
        reason,
        re.sub(r"\n{3,}", "\n\n", details).strip(),
        issues=tuple(_issues(fields)),
        fixes=tuple(part.value() for part in fields if part.name == FIX and _says(part.value())),
        commit_message=_unquoted(found["commit"]),
        files=tuple(dict.fromkeys(_files(found["files"] or ""))),
        tests=found["tests"],
        analysis=found["analysis"],
        suggested_fix=found["suggested_fix"],
        options=tuple(_options(fields)),
        recommendation=found["recommendation"],
    )


def _lines(text: str) -> list[str]:
    if len(text) > MAX_REPORT:
        raise UsageError(
            "the report is larger than 4 MiB", "Pass only the last part, including the verdict."
        )
    text = clean(text).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise UsageError(f"the report is not text: NUL byte at line {line}", "Pass plain text.")
    if not text.strip():
        raise UsageError("the report is empty", FORMS)
    return text.split("\n")


def _miscount(verdicts: list[_Part], lines: list[str]) -> str:
    if not verdicts:
        for number, line in enumerate(lines, 1):
            for words in VERDICTS:
                if words in line:
                    why = "it is in a code fence, inside a line or part of a longer word"
                    return (
                        f"the report has no verdict: {words} at line {number} does not count, {why}"
                    )
        return "the report has no verdict"
    listed = [f"{part.name} at line {part.line}" for part in verdicts[:_LISTED]]
    more = f" and {len(verdicts) - _LISTED} more" if len(verdicts) > _LISTED else ""
    return f"the report has {len(verdicts)} verdicts: {', '.join(listed)}{more}"


# parts


class _Part:
    """Consecutive lines of one field; without a name, plain text."""

    __slots__ = ("emphasis", "line", "name", "raw", "texts")

    def __init__(self, name: str, line: int = 0, emphasis: str = "") -> None:
        self.name = name
        self.line = line
        self.emphasis = emphasis
        self.texts: list[str] = []
        self.raw: list[str] = []

    def add(self, raw: str, text: str = "", *, code: bool = False) -> None:
        self.raw.append(raw)
        if text or code:
            self.texts.append(raw if code else text)

    def value(self) -> str:
        return _without_end("\n".join(self.texts).strip(), self.emphasis).strip()

    def continues_with(self, line: str) -> bool:
        """Return whether a line without a mark belongs to this part."""
        if not self.name or heading_of(_unquote(line)):
            return False
        if self.name == "files" and not self.raw[-1]:  # after a blank line only a list is files
            return bool(_item(line))
        return self.name not in (ISSUE, FIX) or not _item(line)

    def expects_text(self) -> bool:
        """Return whether this is a label whose text may follow after a blank line or in a fence."""
        return self.name in LABELS.values() and self.name != DETAIL and not self.texts


def _parts(lines: list[str]) -> list[_Part]:
    """Return the parts in order; every line is in one of them."""
    parts = [_Part("")]
    fence = ""
    listing = False  # below "Options:", where every item is one
    for number, line in enumerate(lines, 1):
        current = parts[-1]
        if fence and not closes_fence(_unquote(line), fence):
            current.add(line, code=True)
        elif fence:
            fence = ""
            if current.name:
                parts.append(_Part(""))
            else:
                current.add(line)
        elif fence := opening_fence(_unquote(line)):
            if not current.expects_text():
                parts.append(_Part(""))
                parts[-1].add(line)
        elif not line.strip():
            if current.name and not current.expects_text():
                parts.append(_Part(""))
            parts[-1].add("")
        elif mark := _mark(line):
            parts.append(_Part(mark.name, number, mark.emphasis))
            parts[-1].add(line, mark.text)
            listing = mark.name == "options"
        elif listing and _item(line) and not (current.name == OPTION and line[0] in " \t"):
            parts.append(_Part(OPTION, number))
            parts[-1].add(line, line.strip())
        elif current.continues_with(line):
            current.add(line, line.strip())
        else:
            listing = False
            if current.name:
                parts.append(_Part(""))
            parts[-1].add(line)
    return parts


def _unquote(line: str) -> str:
    return line.lstrip(" \t>")


def _item(line: str) -> str:
    """Return the text of a list item, "" for any other line."""
    found = item_of(_unquote(line))
    return found.text if found else ""


# marks


class _Mark(NamedTuple):
    """The field that a line begins, the text after it, and the emphasis that is still open."""

    name: str
    text: str
    emphasis: str = ""


def _mark(line: str) -> _Mark | None:
    """Return the verdict, label or option that this line begins with; None for text."""
    rest = line.lstrip(_DECORATION)
    number = _NUMBER.match(rest)
    if number:
        rest = rest[number.end() :].lstrip(_DECORATION)
    before = line[: len(line) - len(rest)]
    emphasis = before[len(before.rstrip(_EMPHASIS)) :][::-1]
    found = _MARK.match(rest)
    if found:
        mark, separator = _after(found[1], rest[found.end() :], emphasis, before)
        if separator or mark.name in ("TASK COMPLETE", "TASK FAILED"):
            return mark
        # Without a colon these words may also begin a sentence.
        is_mark = not mark.text if mark.name == "CHECKPOINT" else mark.text.startswith("[")
        return mark if is_mark else None
    found = _LABEL.match(rest)
    if found:
        mark, separator = _after(LABELS[found[1].lower()], rest[found.end() :], emphasis, before)
        alone = not mark.text and bool("#" in before or emphasis)
        return mark if separator == ":" or alone else None
    found = _OPTION.match(rest)
    if found:
        mark, _ = _after(OPTION, rest[found.end() :].lstrip(").: \t"), emphasis, before)
        text = _without_end(mark.text, mark.emphasis)
        return _Mark(OPTION, f"{found[1] or found[2]}) {text}") if text else None
    return None


def _after(name: str, rest: str, emphasis: str, before: str) -> tuple[_Mark, str]:
    """Return the mark with the text after it, and the separator between them."""
    rest = rest.strip()
    if "#" in before:
        bare = rest.rstrip("#")
        rest = bare.rstrip() if not bare or bare[-1] in " \t" else rest
    rest, emphasis = _close(rest, emphasis)
    separator = _SEPARATOR.match(rest)
    if separator:
        rest, emphasis = _close(rest[separator.end() :], emphasis)
    return _Mark(name, rest, emphasis), separator[0].strip() if separator else ""


def _close(text: str, emphasis: str) -> tuple[str, str]:
    if emphasis and text.startswith(emphasis):
        return text[len(emphasis) :].lstrip(), ""
    return text, emphasis


def _without_end(text: str, emphasis: str) -> str:
    """Return the text without the end of an emphasis that began before it."""
    if emphasis and text.endswith(emphasis):
        return text[: -len(emphasis)].rstrip()
    return text.replace(emphasis, "", 1) if emphasis else text


# fields


def _is_plain(part: _Part, verdict: str) -> bool:
    """Return whether a part is text; so are a commit hash, and options without a checkpoint."""
    if part.name in (OPTION, "options"):
        return verdict != "checkpoint"
    return part.name in ("", DETAIL) or (
        part.name == "commit" and bool(_HASH.fullmatch(part.value()))
    )


def _says(text: str) -> bool:
    return text.strip(" \t\n!*-.…—–:;_`'\"()[]").lower() not in _NOTHING


def _issues(parts: list[_Part]) -> Iterator[Issue]:
    for part in parts:
        if part.name == ISSUE:
            text = part.value()
            found = _SEVERITY.match(text)
            text = text[found.end() :].strip() if found else text
            if _says(text):
                yield Issue((found and found[1].strip().lower()) or UNSPECIFIED, text)


def _unquoted(text: str | None) -> str | None:
    """Return the text without quotes or backticks around all of it."""
    if text and len(text) > 2 and text[0] == text[-1] and text[0] in "`\"'":
        return text[1:-1].strip() if text[0] not in text[1:-1] else text
    return text


def _files(text: str) -> Iterator[str]:
    """Yield the paths of a list, separated by commas or lines, without remarks."""
    for line in _REMARK.sub("", text).split("\n"):
        for item in (_item(line) or line).split(","):
            bare = item.strip(" \t*")
            quoted = re.match(r"`([^`]+)`", bare)
            path = quoted[1] if quoted else _AFTER_PATH.split(bare, maxsplit=1)[0]
            path = path.strip(" \t\"'`").rstrip(".;")
            if _says(path):
                yield path


def _options(parts: list[_Part]) -> Iterator[str]:
    """Yield every option with its letter or number, or the next free letter."""
    number = 0
    for part in parts:
        text = part.value()
        if part.name not in (OPTION, "options") or not text:
            continue
        digit = re.match(r"\d+(?=[.)])", text)
        if digit or _item(text) or part.name == "options":
            name = digit[0] if digit else _LETTERS[number % len(_LETTERS)]
            text = f"{name}) {_item(text) or text}"
        number += 1
        yield text
