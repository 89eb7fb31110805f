"""Read JSON, YAML and front matter of other tools, with limits on depth and size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from gsd_fsm.core.errors import UsageError
from gsd_fsm.imports.findings import named

HINT = "mend the file, or let the tool that wrote it write it again"
MAX_DEPTH = 20
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
MOST = 64 * 1024
_FENCE = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_NAME = re.compile(r"^[\"']?([A-Za-z_][\w-]*)[\"']?[ \t]*:(?=[ \t\n]|\Z)", re.MULTILINE | re.ASCII)


def object_in(file: str, text: str) -> dict[str, Any]:
    """The object; UsageError, with its place, for what is no JSON or ambiguous."""
    import json

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise UsageError(f"{file}: {named(twice)}: it is named twice", HINT)
        return found

    def refuse(constant: str) -> None:
        raise UsageError(f"{file}: not valid JSON: {constant} is no number", HINT)

    try:
        found = json.loads(text, object_pairs_hook=members, parse_int=_whole, parse_constant=refuse)
    except json.JSONDecodeError as error:
        what = f"{file}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}"
        raise UsageError(what, HINT) from error
    except RecursionError as error:
        raise UsageError(f"{file}: not valid JSON: nested too deeply", HINT) from error
    if not isinstance(found, dict):
        raise UsageError(f"{file}: not a JSON object", HINT)
    return found


def _whole(digits: str) -> float:
    # A number this long counts nothing, and Python refuses to make the longest of them.
    return int(digits) if len(digits) < 20 else float(digits)


def scalar(text: str) -> Any:
    """What an unquoted scalar means; what is no number, flag or null is the text that stands there.

    A time is a text, and so are the "yes" and the "010" that readers of YAML disagree about.
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return int(text) if _NUMBER.fullmatch(text) else text


def value_in(file: str, text: str, first_line: int) -> Any:
    """The value of a short YAML text; UsageError, with its line, for what is none."""
    import yaml

    def refusal(line: int, what: str) -> UsageError:
        return UsageError(f"{file}:{first_line + line}: {what}", HINT)

    def build(event: yaml.Event, depth: int) -> Any:
        tag = getattr(event, "tag", None)
        if isinstance(event, yaml.AliasEvent) or tag is not None or depth > MAX_DEPTH:
            raise refusal(_line(event), "nested too deeply, an alias, or a tag")
        if isinstance(event, yaml.ScalarEvent):
            return scalar(event.value) if event.implicit[0] else event.value
        if isinstance(event, yaml.SequenceStartEvent):
            return [build(item, depth + 1) for item in _until(events, yaml.SequenceEndEvent)]
        found: dict[Any, Any] = {}
        for key in _until(events, yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent):
                raise refusal(_line(key), "a key that is no text")
            if key.value in found:
                raise refusal(_line(key), f"{named(key.value)}: it is named twice")
            found[key.value] = build(next(events), depth + 1)
        return found

    events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.SafeLoader)
    try:
        for event in events:
            if not isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent):
                return build(event, 0)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", "unreadable")
        line = mark.line if mark else text.count("\n", 0, getattr(error, "position", 0))
        raise refusal(line, f"not valid YAML: {what}") from error
    return None


def _line(event: Any) -> int:
    return int(event.start_mark.line)


def _until(events: Iterator[Any], end: type) -> Iterator[Any]:
    for event in events:
        if isinstance(event, end):
            return
        yield event


class FrontMatter(NamedTuple):
    """Its text begins in the second line of the file."""

    text: str
    body: str

    def names(self) -> list[str]:
        """The keys that begin a line, in their order."""
        return _NAME.findall(self.text)


def split(file: str, text: str) -> FrontMatter | None:
    """The two parts of a file; None if it has no front matter, UsageError if that has no end."""
    begin = _FENCE.match(text)
    if begin is None or not text.startswith("---"):
        return None
    end = _FENCE.search(text, begin.end())
    if end is None:
        raise UsageError(f"{file}: the front matter does not end", HINT)
    front = text[begin.end() : end.start()]
    if len(front) > MOST:
        raise UsageError(f"{file}: the front matter is larger than {MOST >> 10} KiB", HINT)
    return FrontMatter(front, text[end.end() :])
