"""Compose the `loop:` section of STATE.md, and put it into the front matter."""

from __future__ import annotations

from gsd_fsm.core.codec import quote
from gsd_fsm.core.loop.state import LIVE, Loop, open_gaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

SECTION = (
    "active", "type", "phase", "iteration", "max_iterations", "task_retries", "gaps_remaining",
    "started", "last_iteration", "paused", "pause_reason", "last_error", "history",
)  # fmt: skip
_MAX_TEXT = 300
# Words that YAML does not read as text.
_NOT_TEXTS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_NAMES = ("loop", '"loop"', "'loop'")
_BOM = "\ufeff"
_BLANKS = " \t\r"


def with_loop(text: str, loop: Loop | None) -> str:
    """Return the text with the section of this loop, or of none; leave the rest as it is.

    Raise ValueError if the section cannot be put into the front matter.
    """
    bom = _BOM if text.startswith(_BOM) else ""
    lines = text[len(bom) :].split("\n")
    end = "\r" if len(lines) > 1 and lines[0].endswith("\r") else ""
    section = [line + end for line in loop_section(loop or Loop())]
    if lines[0].rstrip(_BLANKS) != "---":
        fence = "---" + end
        return bom + "\n".join([fence, *section, fence, *lines])
    start, stop = _place(lines, _closing_fence(lines))
    return bom + "\n".join(lines[:start] + section + lines[stop:])


def shows_other_loop(text: str, known: Iterable[Loop]) -> bool:
    """Return whether the text shows a live loop that is not one of these.

    Raise ValueError as `with_loop` does.
    """
    lines = text[text.startswith(_BOM) :].split("\n")
    if lines[0].rstrip(_BLANKS) != "---":
        return False
    start, stop = _place(lines, _closing_fence(lines))
    section = [line.strip(_BLANKS) for line in lines[start:stop]]
    if not section or ("active: false" in section and "paused: true" not in section):
        return False
    return not any("started: %s" % _scalar(loop.started) in section for loop in known)


def _closing_fence(lines: list[str]) -> int:
    for number in range(1, len(lines)):
        if lines[number].rstrip(_BLANKS) in ("---", "..."):
            return number
    raise ValueError("the front matter has no closing '---' line")


def _place(lines: list[str], fence: int) -> tuple[int, int]:
    """Return the first line of the section, or of its place, and the line after it."""
    for start in range(1, fence):
        if _is_loop_key(lines[start]):
            return start, _end_of_value(lines, start, fence)
    for line in lines[1:fence]:
        if line.strip(_BLANKS)[:1] not in ("", "#"):
            if line[0] in " \t{[-" or ":" not in line:
                raise ValueError("the front matter has no keys at the start of lines")
            break
    return fence, fence


def _is_loop_key(line: str) -> bool:
    name, colon, value = line.partition(":")
    return bool(colon) and name.rstrip(_BLANKS) in _NAMES and value[:1] in ("", " ", "\t", "\r")


def _end_of_value(lines: list[str], start: int, fence: int) -> int:
    """Return the line after the value of a key; blank lines and comments belong to the next key."""
    stop = start + 1
    for number in range(stop, fence):
        line = lines[number].rstrip(_BLANKS)
        # A list, and closing brackets, may be as far left as their key.
        if line[:1] in (" ", "\t", "}", "]") or line == "-" or line.startswith("- "):
            stop = number + 1
        elif line and line[0] != "#":
            break
    value = "\n".join(lines[start:stop]).partition(":")[2].lstrip()
    if value[:1] in ("{", "[") and any(value.count(a) != value.count(b) for a, b in ("{}", "[]")):
        raise ValueError("cannot find the end of the 'loop' value")
    return stop


def loop_section(loop: Loop) -> list[str]:
    """Return the lines of the section; each key has its own, for readers that use grep."""
    paused = loop.status == "paused"
    past = list(loop.imported.get("history", ()))
    # An imported loop shows its old history, not its import.
    here = [it for it in loop.history if not (loop.imported and it[1] == loop.first_ts)]
    # The limit of a verify loop counts rounds.
    verifies = loop.kind == "verify"
    values = (
        _flag(loop.status in LIVE and not paused),
        loop.kind or "null",
        _phase(loop.phase),
        "%d" % (loop.round if verifies else loop.iteration),
        "%d" % (loop.limits.max_rounds if verifies else loop.limits.max_iterations),
        "{%s}" % ", ".join(["%s: %d" % (_key(id_), t.retries) for id_, t in loop.tasks.items()]),
        "%d" % len(open_gaps(loop)),
        _scalar(loop.started),
        _scalar(loop.last_iteration),
        _flag(paused),
        _scalar(loop.pause_reason or loop.pause_code),
        _scalar(loop.last_error),
        "" if past or here else "[]",
    )
    lines = ["loop:"]
    for name, value in zip(SECTION, values):  # noqa: B905 - strict came with Python 3.10
        lines.append("  %s: %s" % (name, value) if value else "  %s:" % name)
    past += [history_line(change) for change in here]
    return lines + ["    - " + _escaped(text) for text in past]


def history_line(change: list[Any]) -> str:
    """Return one change of status, as the fold keeps it, in words."""
    seq, ts, source, dest, event, about = change
    return ("%d %s %s -> %s: %s %s" % (seq, ts, source, dest, event, about)).rstrip()


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _phase(phase: Any) -> str:
    return "%d" % phase if type(phase) is int else _scalar(phase)


def _key(name: str) -> str:
    """Return a task id as a key that YAML reads as text and grep does not confuse with ours."""
    plain = name[0].isalpha() and name.lower() not in _NOT_TEXTS and not name.endswith(SECTION)
    return name if plain else quote(name)


def _scalar(text: str | None) -> str:
    """Return a short text in which nothing looks like one of our keys."""
    if text is None:
        return "null"
    shown = _escaped(text[:_MAX_TEXT])
    for name in SECTION:
        shown = shown.replace(name + ":", name + "\\u003a")
    return shown


def _escaped(text: str) -> str:
    """Return a quoted text on one line, in ASCII, which every YAML reader understands."""
    if text.isascii() and text.isprintable():
        return quote(text)
    # YAML has no surrogate pairs, and requires DEL to be escaped.
    return '"%s"' % "".join([quote(c)[1:-1] if c < "\x7f" else _code(ord(c)) for c in text])


def _code(point: int) -> str:
    return "\\U%08x" % point if point > 0xFFFF else "\\u%04x" % point
