"""Our hooks in the settings of Claude Code: how they are written, found, put in and taken out."""

from __future__ import annotations

from typing import Any, NamedTuple

from gsd_fsm.interpreter import SWITCHES
from gsd_fsm.json_text import NotJson, append, drop, find, place, put, root

EVENTS = (
    "Stop", "SubagentStop", "SessionStart", "UserPromptSubmit", "StopFailure", "PreCompact",
    "SessionEnd", "TaskCreated", "TaskCompleted",
)  # fmt: skip
MODULE = "gsd_fsm_hook"
TIMEOUT = 10
CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
DEFAULT_CAP = 8
# Imported, so that its bytecode is kept; the directory is an argument, so that no path needs quoting.
_IMPORT = f"import sys; sys.path.insert(0, sys.argv.pop(1)); import {MODULE}; "
CODE = f"{_IMPORT}{MODULE}.main()"
# The same, with all of its bytecode made, also that of the part which most calls do not need.
WARM_CODE = f"{_IMPORT}list(map({MODULE}.load, {MODULE}.PARTS)); {MODULE}.main()"


class Found(NamedTuple):
    """One hook of ours in a settings text."""

    event: str
    path: tuple[str | int, ...]
    hook: dict[str, Any]


def entry(python: str, directory: str, name: str) -> dict[str, Any]:
    """The hook as the client reads it: started without a shell, named so that a twin is known."""
    return {
        "type": "command",
        "command": python,
        "args": [*SWITCHES, "-c", CODE, directory, name],
        "timeout": TIMEOUT,
    }


def ours(document: Any) -> list[Found]:
    """Every hook that starts our file, in order; whatever else is there is passed over."""
    found = []
    for event, groups in items_of(document, "hooks"):
        for g, group in enumerate(groups if isinstance(groups, list) else []):
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for h, hook in enumerate(hooks if isinstance(hooks, list) else []):
                if isinstance(hook, dict) and _is_ours(hook):
                    found.append(Found(event, ("hooks", event, g, "hooks", h), hook))
    return found


def items_of(document: Any, key: str) -> list[tuple[str, Any]]:
    """The members of the object under this key; none if there is no such object."""
    inner = document.get(key) if isinstance(document, dict) else None
    return list(inner.items()) if isinstance(inner, dict) else []


def _is_ours(hook: dict[str, Any]) -> bool:
    args = hook.get("args")
    words = [hook.get("command"), *(args if isinstance(args, list) else [])]
    return any(MODULE in word for word in words if isinstance(word, str))


def cap_in(document: Any) -> str | None:
    """How many blocks in a row these settings let the client honour."""
    value = dict(items_of(document, "env")).get(CAP)
    return None if value is None else str(value)


def require_shape(text: str) -> Any:
    """The settings, or NotJson naming the place where they are not what the client reads."""
    document = root(text).value
    _require(text, (), document, dict)
    for key in ("hooks", "env"):
        _require(text, (key,), document.get(key, {}), dict)
    for event in EVENTS:
        _require(text, ("hooks", event), document.get("hooks", {}).get(event, []), list)
    return document


def _require(text: str, path: tuple[str, ...], value: Any, shape: type) -> None:
    part = None if isinstance(value, shape) else find(text, path)
    if part is not None:
        wanted = "an object" if shape is dict else "a list"
        name = ".".join(path) or "the file"
        raise NotJson(f"{place(text, part.value_at)}: {name} must be {wanted}")


def with_us(text: str, hook: dict[str, Any]) -> str:
    """The settings with exactly this hook of ours at every event, and no other of ours."""
    group = {"hooks": [hook]}
    if find(text, ("hooks",)) is None:
        return put(text, ("hooks",), {event: [group] for event in EVENTS})
    for event in EVENTS:
        own = [found for found in ours(root(text).value) if found.event == event]
        if not own:
            text = append(text, ("hooks", event), group)
        elif own[0].hook != hook:
            text = put(text, own[0].path, hook)
        for twin in reversed(own[1:]):
            text = _take_out(text, twin.path, text)
    for found in reversed(ours(root(text).value)):
        if found.event not in EVENTS:
            text = _take_out(text, found.path, "{}")
    return text


def without_us(text: str, original: str = "{}") -> str:
    """The settings without our hooks, nor what they leave empty unless the original had it."""
    for found in reversed(ours(root(text).value)):
        text = _take_out(text, found.path, original)
    return text


def _take_out(text: str, path: tuple[str | int, ...], original: str) -> str:
    text = drop(text, path)
    others = find(text, path[:4])
    if others is None or others.value:
        return text
    text = drop(text, path[:3])
    for outer in (path[:2], path[:1]):
        left = find(text, outer)
        if left is None or left.value or find(original, outer):
            break
        text = drop(text, outer)
    return text


def with_cap(text: str, value: str) -> str:
    return put(text, ("env", CAP), value)


def without_cap(text: str, original: str = "{}") -> str:
    """The settings with the cap that the original had, or none."""
    before = find(original, ("env", CAP))
    if before is not None:
        return put(text, ("env", CAP), before.value)
    text = drop(text, ("env", CAP))
    env = find(text, ("env",))
    if env is not None and not env.value and find(original, ("env",)) is None:
        text = drop(text, ("env",))
    return text
