"""YAML of other tools: mappings, lists and scalars, without aliases, tags or surprises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gsd_fsm.core.errors import UsageError
from gsd_fsm.imports.findings import named
from gsd_fsm.imports.plain_json import HINT

MAX_DEPTH = 20
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


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
