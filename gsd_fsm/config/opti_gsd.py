"""Settings in the words of a planning tool: `.opti-gsd/config.json` and `.gsd/config.md`.

Only members that mean a setting of ours are taken; the rest is for the tool that wrote it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.config.keys import KEY_NAMED
from gsd_fsm.core.errors import UsageError

if TYPE_CHECKING:
    import yaml


LOOP = ("execute_max_retries", "verify_max_iterations", "tdd_max_attempts", "auto_loop")
# How each setting may be spelled in config.json; the first member that stands there counts.
MEMBERS = {
    "mode": ("mode", "loop.mode"),
    **{name: (f"loop.{name}", name) for name in LOOP},
    "branching": ("branching", "branching.enabled", "git.branching"),
    "base_branch": (
        *("base_branch", "base", "branching.base_branch", "branching.base"),
        *("git.base_branch", "git.base"),
    ),
    "branch_prefix": (
        *("branch_prefix", "prefix", "branching.branch_prefix", "branching.prefix"),
        *("git.branch_prefix", "git.prefix"),
    ),
    **{f"ci_{name}": (f"ci.{name}",) for name in ("lint", "typecheck", "test", "build", "e2e")},
    "deploy_target": ("deploy.target", "deploy", "deployment.target", "deployment.platform"),
    "browser": ("browser", "browser.enabled"),
    "base_url": ("base_url", "browser.base_url", "urls.local"),
    "mcps": ("mcps",),
}
_SPELLINGS = {member.replace("_", "") for members in MEMBERS.values() for member in members}
_SECTIONS = {spelling.partition(".")[0] for spelling in _SPELLINGS if "." in spelling}
_HINT = "mend it, then look at 'gsd-fsm config'"
# Both bound the work that a hostile text can make for the parser.
MAX_SECTION = 16 * 1024
MAX_DEPTH = 20
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


def from_markdown(path: Path, text: str) -> dict[str, Any]:
    """The settings in the `loop:` section, or UsageError naming file and line."""
    settings = {}
    for name, value, line in entries(path, text):
        if name not in LOOP or value is None:
            continue
        if not KEY_NAMED[name].rule.accepts(value):
            raise KEY_NAMED[name].refusal(f"{path}:{line}", f"loop.{name}", value)
        settings[name] = value
    return settings


def from_json(path: Path, text: str) -> dict[str, Any]:
    """The settings in this object, or UsageError naming file, line and member."""
    found = {}
    for spelling, steps, value in _members(_document(path, text)):
        found[spelling] = steps, value
        if spelling in _SECTIONS - _SPELLINGS and value is not None:
            raise UsageError(f"{_place(path, text, steps)}: {steps[0]} must be an object", _HINT)
    settings = {}
    for name, members in MEMBERS.items():
        for member in reversed(members):
            steps, given = found.get(member.replace("_", ""), ((), None))
            value = _meant(name, member, given)
            if value is None:
                continue
            if not KEY_NAMED[name].rule.accepts(value):
                raise KEY_NAMED[name].refusal(_place(path, text, steps), ".".join(steps), given)
            settings[name] = value
    return settings


def _document(path: Path, text: str) -> dict[str, Any]:
    import json

    def refuse(constant: str) -> None:
        raise json.JSONDecodeError(f"{constant} is no JSON value", text, _constant_at(text))

    try:
        document = json.loads(text, parse_int=_whole, parse_constant=refuse)
    except json.JSONDecodeError as error:
        what = f"{path}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}"
        raise UsageError(what, _HINT) from error
    except RecursionError as error:
        raise UsageError(f"{path}: not valid JSON: nested too deeply", _HINT) from error
    if not isinstance(document, dict):
        raise UsageError(f"{path}:1: not a JSON object", _HINT)
    return document


def _whole(digits: str) -> float:
    # A number this long means no setting, and Python refuses to make the longest of them.
    return int(digits) if len(digits) < 20 else float(digits)


def _constant_at(text: str) -> int:
    import re

    found = re.finditer(r'"(?:\\.|[^"\\])*"|-?Infinity|NaN', text)
    return next(constant.start() for constant in found if not constant[0].startswith('"'))


def _members(document: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """Every member that may be known: how it is spelled, the names that lead to it, its value."""
    for name, value in document.items():
        if isinstance(value, dict) and _plain(name) in _SECTIONS:
            for inner in value:
                yield f"{_plain(name)}.{_plain(inner)}", (name, inner), value[inner]
        else:
            yield _plain(name), (name,), value


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _meant(name: str, member: str, given: Any) -> Any:
    """The value in our words, None if nothing is said; what is not understood stays as it is."""
    if name == "branching" and isinstance(given, bool):
        return "milestone" if given else "none"
    if name == "branching" and isinstance(given, str) and member != "branching.enabled":
        return "milestone" if given.strip().lower() == "milestone" else "none"
    if name == "mcps" and isinstance(given, dict):
        return [server for server, how in given.items() if _is_on(how)]
    if name == "mcps" and isinstance(given, list):
        return [item.get("name") if isinstance(item, dict) else item for item in given]
    if name.startswith(("ci_", "deploy_", "base_url")) and isinstance(given, str):
        return None if given.strip().lower() in ("", "none") else given
    return given


def _is_on(how: Any) -> bool:
    enabled = how.get("enabled", True) if isinstance(how, dict) else how
    return enabled is not None and enabled is not False


def _place(path: Path, text: str, steps: tuple[str, ...]) -> str:
    from gsd_fsm.documents import json_text

    try:
        part = json_text.find(text, steps)
    except json_text.NotJson:  # nested so deeply that it was only just read
        part = None
    return f"{path}:{text.count(chr(10), 0, part.start) + 1}" if part else str(path)


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
