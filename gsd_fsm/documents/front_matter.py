"""Read front matter and YAML: bounded in size and depth, without aliases and tags."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
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

    Other lines need not be valid YAML; the end marker may be missing.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return None
    for line in lines[1:]:
        if line.rstrip() in ("---", "..."):
            break
        found = _KEY.match(line)
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
        raise Malformed(file, 1, "the front matter has no end: a second line '---'", hint)
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

    try:
        events = yaml.parse(text, Loader=yaml.SafeLoader)
        return _Builder(events, file, first_line, hint, scalar).document()
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line if mark else text.count("\n", 0, getattr(error, "position", 0))
        why = getattr(error, "problem", None) or getattr(error, "reason", "unreadable")
        raise Malformed(file, first_line + line, f"not valid YAML: {why}", hint) from error


class _Builder:
    def __init__(
        self,
        events: Iterator[Any],
        file: object,
        first_line: int,
        hint: str,
        scalar: Callable[[str], Any],
    ) -> None:
        self.events = events
        self.file = file
        self.first_line = first_line
        self.hint = hint
        self.scalar = scalar

    def document(self) -> Any:
        import yaml

        found: list[Any] = []
        for event in self.events:
            if isinstance(event, yaml.NodeEvent):
                if found:
                    raise self.malformed(event, "a second YAML document")
                found.append(self.build(event, 0))
        return found[0] if found else None

    def build(self, event: Any, depth: int) -> Any:
        import yaml

        if isinstance(event, yaml.AliasEvent):
            raise self.malformed(event, "YAML aliases are not supported")
        if event.tag is not None:
            raise self.malformed(event, "YAML tags are not supported")
        if depth > MAX_DEPTH:
            raise self.malformed(event, f"nested more than {MAX_DEPTH} levels deep")
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event.value) if event.implicit[0] else event.value
        if isinstance(event, yaml.SequenceStartEvent):
            return [self.build(item, depth + 1) for item in self.until(yaml.SequenceEndEvent)]
        found = Object(self.line(event))
        for key in self.until(yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent):
                raise self.malformed(key, "a key must be text")
            if key.value in found:
                raise self.malformed(key, f"duplicate key: {shown_key(key.value)}")
            found.lines[key.value] = self.line(key)
            found[key.value] = self.build(next(self.events), depth + 1)
        return found

    def until(self, end: type) -> Iterator[Any]:
        for event in self.events:
            if isinstance(event, end):
                return
            yield event

    def line(self, event: Any) -> int:
        return self.first_line + int(event.start_mark.line)

    def malformed(self, event: Any, problem: str) -> Malformed:
        return Malformed(self.file, self.line(event), problem, self.hint)


def shown_key(key: str) -> str:
    """Return a key as a message shows it: short, and without control characters."""
    return display(clean(key[:60])) + ("…" if len(key) > 60 else "")
