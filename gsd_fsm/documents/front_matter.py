"""Read front matter and YAML: bounded in size and depth, without aliases and tags."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from gsd_fsm.core.text.sanitize import clean, display
from gsd_fsm.documents.read import Malformed, Object

MAX_CHARACTERS = 64 * 1024
MAX_DEPTH = 20
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_KEY = re.compile(r"[\"']?([A-Za-z_][\w-]*)[\"']?[ \t]*:(?=\s|\Z)[ \t]*(.*)", re.ASCII)


class FrontMatter(NamedTuple):
    """The two parts of a file; `text` begins in line 2, `body` in line `body_line`."""

    text: str
    body: str
    body_line: int

    def keys(self) -> list[str]:
        """Return the top-level keys in order, even if the text is not valid YAML."""
        return [found[1] for line in self.text.split("\n") if (found := _KEY.match(line))]


def line_value(text: str, *keys: str) -> str | None:
    """Return the value on the line of the first of these top-level keys of the front matter.

    Other lines need not be valid YAML.
    """
    lines = text.split("\n")
    for at in front_matter_lines(lines) or ():
        found = _KEY.match(lines[at])
        if found and found[1] in keys:
            return re.split(r"(?:^|\s)#", found[2])[0].strip().strip("\"'")
    return None


def front_matter_lines(lines: Sequence[str]) -> range | None:
    """Return the indices of the lines between the two markers; None if there is no front matter."""
    if not lines or lines[0].rstrip() != "---":
        return None
    ends = (at for at in range(1, len(lines)) if lines[at].rstrip() in ("---", "..."))
    end = next(ends, None)
    return None if end is None else range(1, end)


def split_front_matter(text: str, file: object = "", hint: str = "") -> FrontMatter | None:
    """Return both parts of a text; None if it has no front matter, Malformed if it has no end."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return None
    within = front_matter_lines(lines)
    if within is None:
        raise Malformed(file, 1, "the front matter has no closing '---' line", hint)
    front = "\n".join(lines[1 : within.stop])
    if len(front) > MAX_CHARACTERS:
        raise Malformed(
            file, 1, f"the front matter is larger than {MAX_CHARACTERS >> 10} KiB", hint
        )
    return FrontMatter(front, "\n".join(lines[within.stop + 1 :]), within.stop + 2)


def block_lines(
    lines: Sequence[str], opening: re.Pattern[str], more: str = " \t#}"
) -> range | None:
    """Return the indices of the first line that matches and of the lines of its block.

    A block goes on with blank lines and lines that begin with one of the characters of `more`.
    """
    start = next((at for at, line in enumerate(lines) if opening.match(line)), None)
    if start is None:
        return None
    ends = (at for at in range(start + 1, len(lines)) if lines[at] and lines[at][0] not in more)
    return range(start, next(ends, len(lines)))


def scalar_value(text: str) -> Any:
    """Return an integer, true, false or null as Python has it, anything else as text.

    Times stay text, and so do "yes" and "010", which YAML readers disagree about.
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return int(text) if _INTEGER.fullmatch(text) else text


def load_yaml(
    text: str,
    file: object = "",
    first_line: int = 1,
    hint: str = "",
    scalar: Callable[[str], Any] = scalar_value,
) -> Any:
    """Return the value of a YAML text whose first line has this number; mappings are `Object`s.

    `scalar` converts unquoted scalars. Raise Malformed for invalid YAML, duplicate keys, aliases,
    tags, deep nesting and a second document.
    """
    import yaml

    def line_of(event: Any) -> int:
        return first_line + int(event.start_mark.line)

    def require(condition: bool, event: Any, problem: str) -> None:
        if not condition:
            raise Malformed(file, line_of(event), problem, hint)

    def build(event: Any, depth: int) -> Any:
        require(not isinstance(event, yaml.AliasEvent), event, "YAML aliases are not supported")
        require(event.tag is None, event, "YAML tags are not supported")
        require(depth <= MAX_DEPTH, event, f"nested more than {MAX_DEPTH} levels deep")
        if isinstance(event, yaml.ScalarEvent):
            return scalar(event.value) if event.implicit[0] else event.value
        if isinstance(event, yaml.SequenceStartEvent):
            return [build(item, depth + 1) for item in until(yaml.SequenceEndEvent)]
        found = Object(line_of(event))
        for key in until(yaml.MappingEndEvent):
            require(isinstance(key, yaml.ScalarEvent), key, "a key must be text")
            require(key.value not in found, key, f"duplicate key: {shown_key(key.value)}")
            found.lines[key.value] = line_of(key)
            found[key.value] = build(next(events), depth + 1)
        return found

    def until(end: type) -> Iterator[Any]:
        return takewhile(lambda event: not isinstance(event, end), events)

    events: Iterator[Any] = yaml.parse(text, Loader=yaml.SafeLoader)
    values: list[Any] = []
    try:
        for event in events:
            if isinstance(event, yaml.NodeEvent):
                require(not values, event, "a second YAML document")
                values.append(build(event, 0))
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line if mark else text.count("\n", 0, getattr(error, "position", 0))
        why = getattr(error, "problem", None) or getattr(error, "reason", "unreadable")
        raise Malformed(file, first_line + line, f"not valid YAML: {why}", hint) from error
    return values[0] if values else None


def shown_key(key: str) -> str:
    """Return a key as a message shows it: short, and without control characters."""
    return display(clean(key[:60])) + ("…" if len(key) > 60 else "")
