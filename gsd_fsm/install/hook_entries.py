"""Our hooks in the settings of Claude Code: how they are written, found, put in and taken out."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from gsd_fsm.core.hook.clients import CAP, block_cap
from gsd_fsm.documents.json_text import append, copy, drop, find, not_json, put, root
from gsd_fsm.install.interpreter import SWITCHES

EVENTS = (
    "Stop", "SubagentStop", "SessionStart", "UserPromptSubmit", "StopFailure", "PreCompact",
    "SessionEnd", "TaskCreated", "TaskCompleted",
)  # fmt: skip
MODULE = "gsd_fsm_hook"
TIMEOUT = 10
DEFAULT_CAP = block_cap("claude", "")
# Imported, so that its bytecode is kept; the directory is an argument, so that no path needs quoting.
_PATH = "import sys\nsys.path.insert(0, sys.argv.pop(1))\n"
# Settings may outlive the hook, in a project that was moved: then no turn should end in an error.
CODE = f"""{_PATH}try:
    import {MODULE}
except ImportError as error:
    sys.stderr.write("gsd-fsm: %s; run 'gsd-fsm init' to mend this\\n" % error)
    sys.exit()
{MODULE}.main()"""
# The same, with all of its bytecode made, also that of the part which most calls do not need.
WARM_CODE = f"{_PATH}import {MODULE}\nlist(map({MODULE}.load, {MODULE}.PARTS))\n{MODULE}.main()"
# How this version and those before it begin.
_OUR_CODE = re.compile(
    r"import sys(?:\n|; )sys\.path\.insert\(0, sys\.argv\.pop\(1\)\)(?:\n|; )"
    rf"(?:try:\n +)?import {MODULE}(?:\n|; )"
)


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
    command, args = hook.get("command"), hook.get("args")
    # Without arguments the command is a line for a shell.
    line = re.split(r"[\s\"']+", command) if isinstance(command, str) else []
    words = [word for word in args if isinstance(word, str)] if isinstance(args, list) else line
    return any(
        re.split(r"[/\\]", word)[-1] == f"{MODULE}.py" or _OUR_CODE.match(word) for word in words
    )


def cap_in(document: Any) -> str | None:
    """How many blocks in a row these settings let the client honour."""
    value = dict(items_of(document, "env")).get(CAP)
    whole = isinstance(value, float) and value.is_integer()
    return None if value is None else str(int(value) if whole else value)


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
        raise not_json(text, part.value_at, f"{name} must be {wanted}")


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
    if find(original, ("env", CAP)) is not None:
        return copy(text, ("env", CAP), original)
    text = drop(text, ("env", CAP))
    env = find(text, ("env",))
    if env is not None and not env.value and find(original, ("env",)) is None:
        text = drop(text, ("env",))
    return text
