"""The `loop:` section of a Markdown file: YAML in its front matter, in a fence, or in the text."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.errors import UsageError

if TYPE_CHECKING:
    import yaml

# Both bound the work that a hostile text can make for the parser.
MAX_SECTION = 16 * 1024
MAX_DEPTH = 20
_HINT = "mend it, then look at 'gsd-fsm config'"

_PARTS = re.compile(
    r"""
    \A---[ \t]*\n (?P<front>.*?) ^(?:---|\.\.\.)[ \t]*$
  | ^[ ]{0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[^\n`]*)\n
    (?P<fenced>.*?) (?:^[ ]{0,3}(?P=fence)[`~]*[ \t]*$|\Z)
  | `[^`\n]*`
  | <!--.*?(?:-->|\Z)
  | ^loop:(?:[ \t]+\#[^\n]*|[ \t]*)$ (?:\n(?:[ \t][^\n]*)?$)*
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
# In YAML a number sign begins a comment, not a heading, and a value may stand on the same line.
_IN_YAML = re.compile(r"^loop:(?=[ \t\n]|\Z)[^\n]*(?:\n(?:[ \t#}][^\n]*)?$)*", re.MULTILINE)


class Entry(NamedTuple):
    """A scalar of the section as YAML reads it; anything else is the text that stands there."""

    name: str
    value: Any
    line: int


def entries(path: Path, text: str) -> list[Entry]:
    """The entries of the first loop section outside of comments and of code that is not YAML."""
    text = text.replace("\r\n", "\n")
    section = _find(text)
    if section is None:
        return []
    import yaml

    def line(at: int) -> int:
        return text.count("\n", 0, section.start() + at) + 1

    def refusal(at: int, what: str) -> UsageError:
        return UsageError(f"{path}:{line(at)}: {what}", _HINT)

    block = section[0]
    if len(block) > MAX_SECTION:
        raise refusal(0, "the loop section is larger than 16 KiB")
    try:
        for at in _tricks(yaml.parse(block, Loader=yaml.SafeLoader)):
            raise refusal(at, "the loop section is too deep, or has an alias or a tag")
        loader = yaml.SafeLoader(block)
        root: Any = loader.get_single_node()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", "unreadable")
        at = mark.index if mark else getattr(error, "position", 0)
        raise refusal(at, f"not valid YAML: {what}") from error

    def value(node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode):
            # YAML sees dates and times of day, but not every one of them exists.
            with contextlib.suppress(yaml.YAMLError, ValueError, OverflowError):
                return loader.construct_object(node)
        return block[node.start_mark.index : node.end_mark.index]

    loop = root.value[0][1]
    if isinstance(loop, yaml.MappingNode):
        return [
            Entry(key.value, value(node), line(key.start_mark.index))
            for key, node in loop.value
            if isinstance(key, yaml.ScalarNode)
        ]
    if value(loop) is not None:
        raise refusal(0, "loop must be a mapping")
    return []


def _find(text: str) -> re.Match[str] | None:
    for part in _PARTS.finditer(text):
        if part[0].startswith("loop:"):
            return part
        if part["front"] is not None:
            found = _IN_YAML.search(text, *part.span("front"))
        elif part["fence"] and part["language"].strip().lower() in ("", "yaml", "yml"):
            found = _IN_YAML.search(text, *part.span("fenced"))
        else:
            continue
        if found:
            return found
    return None


def _tricks(events: Iterable[Any]) -> Iterator[int]:
    """Where something stands that makes little text into much work, or into strange objects."""
    import yaml

    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        is_alias, tag = isinstance(event, yaml.AliasEvent), getattr(event, "tag", None)
        if is_alias or tag is not None or depth > MAX_DEPTH:
            yield event.start_mark.index
