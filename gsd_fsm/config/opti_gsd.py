"""Read the settings in the planning tool's files: `.opti-gsd/config.json` and `.gsd/config.md`.

Take the members that mean one of our settings; ignore all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gsd_fsm.config.keys import KEY_NAMED
from gsd_fsm.documents.front_matter import (
    block_lines,
    front_matter_lines,
    load_yaml,
    scalar_value,
)
from gsd_fsm.documents.markdown import hidden_at
from gsd_fsm.documents.read import Malformed, Object

LOOP = ("execute_max_retries", "verify_max_iterations", "tdd_max_attempts", "auto_loop")
CI = ("lint", "typecheck", "test", "build", "e2e")
# The spellings of each setting in config.json; the first one that is given counts.
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
    **{f"ci_{name}": (f"ci.{name}",) for name in CI},
    "deploy_target": ("deploy.target", "deploy", "deployment.target", "deployment.platform"),
    "browser": ("browser", "browser.enabled"),
    "base_url": ("base_url", "browser.base_url", "urls.local"),
    "mcps": ("mcps",),
}
_SPELLINGS = {member.replace("_", "") for members in MEMBERS.values() for member in members}
_SECTIONS = {spelling.partition(".")[0] for spelling in _SPELLINGS if "." in spelling}
_HINT = "Fix the file, then run: gsd-fsm config"
MAX_SECTION = 16 * 1024
_SWITCHES = {"yes": True, "on": True, "no": False, "off": False}
_LOOP_IN_YAML = re.compile(r"loop:(?=\s|$)")
_LOOP_IN_TEXT = re.compile(r"loop:\s*(?:\s#.*)?$")  # "loop: see below" is prose


def from_json(path: Path, text: str) -> dict[str, Any]:
    """Return the settings of config.json, or raise UsageError naming file, line and member."""
    from gsd_fsm.documents.json_text import read_object

    found = {}
    for spelling, member, line, value in _members(read_object(text, path, _HINT)):
        found[spelling] = f"{path}:{line}", member, value
        if spelling in _SECTIONS - _SPELLINGS and value is not None:
            raise Malformed(path, line, f"{member} must be an object", _HINT)
    settings = {}
    for name, spellings in MEMBERS.items():
        for spelling in reversed(spellings):
            where, member, given = found.get(spelling.replace("_", ""), ("", "", None))
            value = _translated(name, spelling, given)
            if value is None:
                continue
            if not KEY_NAMED[name].rule.accepts(value):
                raise KEY_NAMED[name].refusal(where, member, given)
            settings[name] = value
    return settings


def _members(document: Object) -> Iterator[tuple[str, str, int, Any]]:
    """Yield each member, also those of sections: normalized, as written, its line, its value."""
    for name, value in document.items():
        section = _normalized(name)
        if isinstance(value, Object) and section in _SECTIONS:
            for inner in value:
                spelling = f"{section}.{_normalized(inner)}"
                yield spelling, f"{name}.{inner}", value.line_of(inner), value[inner]
        else:
            yield section, name, document.line_of(name), value


def _normalized(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _translated(name: str, spelling: str, given: Any) -> Any:
    """Return the value in our words, None if it says nothing; keep what is not understood."""
    if name == "branching" and isinstance(given, bool):
        return "milestone" if given else "none"
    if spelling in ("branching", "git.branching") and isinstance(given, str):
        return "milestone" if _word(given) == "milestone" else "none"
    if name == "mcps" and isinstance(given, dict):
        return [server for server, how in given.items() if _is_on(how)]
    if name == "mcps" and isinstance(given, list):
        return [item.get("name") if isinstance(item, dict) else item for item in given]
    if name.startswith(("ci_", "deploy_", "base_url")) and _word(given) in ("", "none"):
        return None
    return given


def _word(given: Any) -> str | None:
    return given.strip().lower() if isinstance(given, str) else None


def _is_on(how: Any) -> bool:
    enabled = how.get("enabled", True) if isinstance(how, dict) else how
    return enabled is not None and enabled is not False


def from_markdown(path: Path, text: str) -> dict[str, Any]:
    """Return the settings of the `loop:` section, or raise UsageError naming file and line."""
    line, section = _loop_section(text.split("\n"))
    if not section:
        return {}
    if len(section) > MAX_SECTION:
        raise Malformed(path, line, "the loop section is larger than 16 KiB", _HINT)
    loop = load_yaml(section, path, line, _HINT, _scalar)["loop"]
    if loop is None:
        return {}
    if not isinstance(loop, Object):
        raise Malformed(path, line, "loop must be a mapping", _HINT)
    found = {name: loop[name] for name in LOOP if loop.get(name) is not None}
    for name, value in found.items():
        if not KEY_NAMED[name].rule.accepts(value):
            raise KEY_NAMED[name].refusal(f"{path}:{loop.line_of(name)}", f"loop.{name}", value)
    return found


def _scalar(text: str) -> Any:
    return _SWITCHES.get(text.lower(), scalar_value(text))


def _loop_section(lines: list[str]) -> tuple[int, str]:
    """Return line and text of the first section outside of comments and other code, or 0 and ""."""
    for start, end, in_yaml in _regions(lines):
        part = lines[start:end]
        found = (
            block_lines(part, _LOOP_IN_YAML) if in_yaml else block_lines(part, _LOOP_IN_TEXT, " \t")
        )
        if found:
            return start + found.start + 1, "\n".join(part[found.start : found.stop])
    return 0, ""


def _regions(lines: list[str]) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of front matter, YAML fences (True) and runs of other text (False)."""
    front = front_matter_lines(lines)
    if front:
        yield front.start, front.stop, True
    start = at = front.stop + 1 if front else 0
    while at < len(lines):
        hidden = hidden_at(lines, at)
        at = at + 1 if hidden is None else hidden.end
        if hidden:
            yield start, hidden.start, False
            start = at
            if hidden.kind == "code fence" and hidden.language in ("", "yaml", "yml"):
                yield hidden.start + 1, hidden.end - hidden.closed, True
    yield start, len(lines), False
