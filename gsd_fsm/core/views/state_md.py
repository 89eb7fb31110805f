"""The `loop:` section in the front matter of STATE.md: what it says, and where it stands."""

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
# Letters that YAML does not take for a text.
_NOT_TEXTS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_NAMES = ("loop", '"loop"', "'loop'")
_BOM = "\ufeff"
_BLANKS = " \t\r"


def with_loop(text: str, loop: Loop | None) -> str:
    """The text with a section that tells of this loop, or of none; all else as it was.

    ValueError if the text has front matter in which such a section has no place.
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
    raise ValueError("the front matter does not end")


def _place(lines: list[str], fence: int) -> tuple[int, int]:
    """From where to where the section stands, or is to stand."""
    for start in range(1, fence):
        if _is_loop_key(lines[start]):
            return start, _end_of_value(lines, start, fence)
    for line in lines[1:fence]:
        if line.strip(_BLANKS)[:1] not in ("", "#"):
            if line[0] in " \t{[-" or ":" not in line:
                raise ValueError("the front matter is not made of keys that begin a line")
            break
    return fence, fence


def _is_loop_key(line: str) -> bool:
    name, colon, value = line.partition(":")
    return bool(colon) and name.rstrip(_BLANKS) in _NAMES and value[:1] in ("", " ", "\t", "\r")


def _end_of_value(lines: list[str], start: int, fence: int) -> int:
    """The line after the value of a key; blank lines and comments belong to the next one."""
    stop = start + 1
    for number in range(stop, fence):
        line = lines[number].rstrip(_BLANKS)
        # A list, and the end of braces, may stand below the very beginning of their key.
        if line[:1] in (" ", "\t", "}", "]") or line == "-" or line.startswith("- "):
            stop = number + 1
        elif line and line[0] != "#":
            break
    value = "\n".join(lines[start:stop]).partition(":")[2].lstrip()
    if value[:1] in ("{", "[") and any(value.count(a) != value.count(b) for a, b in ("{}", "[]")):
        raise ValueError("where the value of loop ends is not to be seen")
    return stop


def loop_section(loop: Loop) -> list[str]:
    """The section, line by line. Each key has its line, so that line-oriented readers find it."""
    paused = loop.status == "paused"
    past = list(loop.imported.get("history", ()))
    # What was imported is shown as it was: its beginning here is no part of it.
    here = [it for it in loop.history if not (loop.imported and it[1] == loop.first_ts)]
    # Of a verify loop it is the rounds that its limit counts.
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
    """One change of status, as the fold keeps it, for people."""
    seq, ts, source, dest, event, about = change
    return ("%d %s %s -> %s: %s %s" % (seq, ts, source, dest, event, about)).rstrip()


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _phase(phase: Any) -> str:
    return "%d" % phase if type(phase) is int else _scalar(phase)


def _key(name: str) -> str:
    """The id of a task as a key that is a text to YAML, and no key of ours to anybody."""
    plain = name[0].isalpha() and name.lower() not in _NOT_TEXTS and not name.endswith(SECTION)
    return name if plain else quote(name)


def _scalar(text: str | None) -> str:
    """A text, cut, in which nothing looks like one of our keys."""
    if text is None:
        return "null"
    shown = _escaped(text[:_MAX_TEXT])
    for name in SECTION:
        shown = shown.replace(name + ":", name + "\\u003a")
    return shown


def _escaped(text: str) -> str:
    """On one line, in ASCII, and the same to every reader of YAML."""
    if text.isascii() and text.isprintable():
        return quote(text)
    # YAML knows no pairs of surrogates, and wants DEL escaped.
    return '"%s"' % "".join([quote(c)[1:-1] if c < "\x7f" else _code(ord(c)) for c in text])


def _code(point: int) -> str:
    return "\\U%08x" % point if point > 0xFFFF else "\\u%04x" % point
