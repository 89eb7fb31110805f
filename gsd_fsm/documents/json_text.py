"""Read JSON strictly, and edit a JSON text in place: bytes outside of the edit stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from gsd_fsm.documents.front_matter import shown_key
from gsd_fsm.documents.read import Malformed, Object

MAX_DEPTH = 100
_SPACE = re.compile(r"[ \t\r\n]*")
_CLOSING = {"{": "}", "[": "]"}
# An unclosed string is a token too: that keeps the scan linear, and the parser refuses it anyway.
_TOKEN = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*(?:"(?P<key>\s*:)?)?|[{}\[\]]|-?Infinity|NaN', re.DOTALL
)
# A path leads from the root to a value: keys of objects and indices of lists.
Path = Sequence[str | int]


class NotJson(Malformed):
    """The text is not one JSON value, or not the value that is expected."""


def read_object(text: str, file: object, hint: str = "") -> Object:
    """Return the JSON object that the text is, or raise NotJson with file and line.

    Refuse duplicate keys, deep nesting and NaN. Integers of more than 19 digits become floats.
    """
    shapes = iter(list(_shapes(text, file, hint)))

    def build(members: list[tuple[str, Any]]) -> Object:
        line, key_lines = next(shapes)
        found = Object(line)
        for (key, value), key_line in zip(members, key_lines, strict=True):
            if key in found:
                raise NotJson(file, key_line, f"duplicate key: {shown_key(key)}", hint)
            found[key] = value
            found.lines[key] = key_line
        return found

    try:
        value = json.loads(text, object_pairs_hook=build, parse_int=_integer)
    except json.JSONDecodeError as error:
        problem = f"not valid JSON: {error.msg}"
        raise NotJson(file, error.lineno, problem, hint, error.colno) from error
    if not isinstance(value, Object):
        raise NotJson(file, 1, "not a JSON object", hint)
    return value


def _shapes(text: str, file: object, hint: str) -> Iterator[tuple[int, list[int]]]:
    """Yield the lines of each object and of its keys, in the order in which the objects end."""
    line, counted = 1, 0
    opened: list[tuple[int, list[int]]] = []
    depth = 0
    for token in _TOKEN.finditer(text):
        sign = token[0][0]
        if sign == '"' and not token["key"]:
            continue
        line += text.count("\n", counted, token.start())
        counted = token.start()
        if sign in "NI-":
            raise NotJson(file, line, f"not valid JSON: {token[0]} is not a JSON value", hint)
        if sign == '"' and opened:
            opened[-1][1].append(line)
        depth += (sign in "{[") - (sign in "}]")
        if depth > MAX_DEPTH:
            raise NotJson(file, line, f"nested more than {MAX_DEPTH} levels deep", hint)
        if sign == "{":
            opened.append((line, []))
        elif sign == "}" and opened:
            yield opened.pop()


def _integer(digits: str) -> float:
    # Python refuses to convert the longest ones.
    return int(digits) if len(digits) < 20 else float(digits)


class Part(NamedTuple):
    """A member of an object or an item of a list: `start` is where its key begins, if it has one."""

    start: int
    value_at: int
    end: int
    key: str | int | None
    value: Any


def _refuse_constant(name: str) -> Any:
    raise NotJson("", 1, f"{name} is not a JSON value")


_DECODER = json.JSONDecoder(parse_int=float, parse_constant=_refuse_constant)


def root(text: str) -> Part:
    """Return the whole text as one value; raise NotJson, with line and column, if it is not one."""
    start = _skip(text, 0)
    value, end = _decode(text, start)
    rest = _skip(text, end)
    if rest != len(text):
        raise not_json(text, rest, "text after the end of the value")
    return Part(start, start, end, None, value)


def not_json(text: str, at: int, problem: str) -> NotJson:
    """Return an error about this position of the text."""
    column = at - text.rfind("\n", 0, at)
    return NotJson("", text.count("\n", 0, at) + 1, problem, column=column)


def _decode(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise not_json(text, error.pos, error.msg) from error
    except RecursionError as error:
        raise not_json(text, at, "nested too deeply") from error


def find(text: str, path: Path) -> Part | None:
    """Return the part at this path, None if there is none; of duplicate keys the last counts."""
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
    """Return the text with this value at the path; create missing objects on the way."""
    old = find(text, path)
    if old is not None:
        in_lines = "\n" in text[old.value_at : old.end]
        written = _Style(text).write(value, _indent_at(text, old.value_at), in_lines)
        return text[: old.value_at] + written + text[old.end :]
    around = find(text, path[:-1])
    if around is None:
        return put(text, path[:-1], {path[-1]: value})
    return _add(text, around, json.dumps(path[-1], ensure_ascii=False), value)


def put_text(text: str, path: Path, written: str) -> str:
    """Return the text with this JSON text as the value at the path, if there is one."""
    old = find(text, path)
    return text if old is None else text[: old.value_at] + written + text[old.end :]


def append(text: str, path: Path, value: Any) -> str:
    """Return the text with this value added to the list at the path."""
    around = find(text, path)
    if around is None:
        return put(text, path, [value])
    return _add(text, around, None, value)


def drop(text: str, path: Path) -> str:
    """Return the text without the part at this path."""
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
    """Return the white space before this position."""
    start = at
    while start and text[start - 1] in " \t\r\n":
        start -= 1
    return text[start:at]


def _indent_at(text: str, at: int) -> str:
    """Return the indent of the line with this position."""
    line = text.rfind("\n", 0, at) + 1
    return text[line : _skip(text, line)] if text[line : line + 1] in " \t" else ""


class _Style:
    """The layout of a text: line ends and indent."""

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
    """Return the text with one more part at the end of this object or list."""
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
