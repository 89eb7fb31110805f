"""A JSON text edited in place: whatever is not touched keeps its bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from gsd_fsm.core.errors import UsageError

_SPACE = re.compile(r"[ \t\r\n]*")
_CLOSING = {"{": "}", "[": "]"}
# A path leads from the root to a value: keys of objects and places in lists.
Path = Sequence[str | int]


class NotJson(UsageError):
    """The text is not one JSON value; the message names line and column."""


class Part(NamedTuple):
    """A member of an object or an item of a list: `start` is where its key begins, if it has one."""

    start: int
    value_at: int
    end: int
    key: str | int | None
    value: Any


def _no_number(name: str) -> Any:
    raise NotJson(f"{name} is not a JSON value")


# As float a number may have any length; nobody here counts with one.
_DECODER = json.JSONDecoder(parse_int=float, parse_constant=_no_number)


def root(text: str) -> Part:
    """The whole text as one value; NotJson if it is none."""
    start = _skip(text, 0)
    value, end = _decode(text, start)
    rest = _skip(text, end)
    if rest != len(text):
        raise NotJson(f"{place(text, rest)}: something follows the end")
    return Part(start, start, end, None, value)


def _decode(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise NotJson(f"{place(text, error.pos)}: {error.msg}") from error
    except RecursionError as error:
        raise NotJson("it is nested too deeply") from error


def place(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"


def find(text: str, path: Path) -> Part | None:
    """What stands at the end of the path; of a key given twice the last, as every reader has it."""
    found = root(text)
    for step in path:
        if not isinstance(found.value, dict if isinstance(step, str) else list):
            return None
        matching = [part for part in _parts(text, found) if part.key == step]
        if not matching:
            return None
        found = matching[-1]
    return found


def put(text: str, path: Path, value: Any) -> str:
    """The text with this value there; what is missing on the way is made, behind what there is."""
    old = find(text, path)
    if old is not None:
        in_lines = "\n" in text[old.value_at : old.end]
        written = _Style(text).write(value, _indent_at(text, old.value_at), in_lines)
        return text[: old.value_at] + written + text[old.end :]
    around = find(text, path[:-1])
    if around is None:
        return put(text, path[:-1], {path[-1]: value})
    return _add(text, around, json.dumps(path[-1], ensure_ascii=False), value)


def copy(text: str, path: Path, source: str) -> str:
    """The text with the source's value there, letter by letter, if both have one."""
    wanted, old = find(source, path), find(text, path)
    if wanted is None or old is None:
        return text
    return text[: old.value_at] + source[wanted.value_at : wanted.end] + text[old.end :]


def append(text: str, path: Path, value: Any) -> str:
    """The text with this value at the end of the list there."""
    around = find(text, path)
    if around is None:
        return put(text, path, [value])
    return _add(text, around, None, value)


def drop(text: str, path: Path) -> str:
    """The text without what stands there."""
    around, gone = find(text, path[:-1]), find(text, path)
    if around is None or gone is None:
        return text
    parts = _parts(text, around)
    number = next(n for n, part in enumerate(parts) if part.start == gone.start)
    if number:
        return text[: parts[number - 1].end] + text[gone.end :]
    if len(parts) > 1:
        return text[: gone.start] + text[parts[1].start :]
    return text[: around.value_at + 1] + text[around.end - 1 :]


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _parts(text: str, around: Part) -> list[Part]:
    opening = text[around.value_at]
    found: list[Part] = []
    at = _skip(text, around.value_at + 1)
    while text[at] != _CLOSING[opening]:
        start, key = at, len(found)
        if opening == "{":
            key, at = _decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        value, end = _decode(text, at)
        found.append(Part(start, at, end, key, value))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _lead(text: str, at: int) -> str:
    """The white space before this place."""
    start = at
    while start and text[start - 1] in " \t\r\n":
        start -= 1
    return text[start:at]


def _indent_at(text: str, at: int) -> str:
    """How far the line with this place is indented."""
    line = text.rfind("\n", 0, at) + 1
    return text[line : _skip(text, line)] if text[line : line + 1] in " \t" else ""


class _Style:
    """How this text is laid out."""

    def __init__(self, text: str) -> None:
        self.newline = "\r\n" if "\r\n" in text else "\n"
        whole = root(text)
        parts = _parts(text, whole) if isinstance(whole.value, dict) else []
        lead = _lead(text, parts[0].start) if parts else "\n  "
        self.in_lines = "\n" in lead
        self.unit = lead.rpartition("\n")[2] if self.in_lines else ""

    def write(self, value: Any, indent: str, in_lines: bool) -> str:
        if not in_lines:
            return json.dumps(value, ensure_ascii=False)
        written = json.dumps(value, ensure_ascii=False, indent=self.unit or "  ")
        return written.replace("\n", self.newline + indent)


def _add(text: str, around: Part, key: str | None, value: Any) -> str:
    """The text with one more part at the end of this object or list."""
    style, parts = _Style(text), _parts(text, around)
    lead = _lead(text, parts[-1].start) if parts else ""
    in_lines = "\n" in lead if parts else style.in_lines
    if parts:
        indent = lead.rpartition("\n")[2]
        glue, tail = ("," + style.newline + indent if in_lines else ", "), ""
        start, end = parts[-1].end, parts[-1].end
    else:
        outer = _indent_at(text, around.value_at)
        indent = outer + (style.unit or "  ")
        glue, tail = (style.newline + indent, style.newline + outer) if in_lines else ("", "")
        start, end = around.value_at + 1, around.end - 1
    label = "" if key is None else f"{key}: "
    written = style.write(value, indent, in_lines)
    return text[:start] + glue + label + written + tail + text[end:]
