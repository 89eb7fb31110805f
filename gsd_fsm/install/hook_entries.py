"""Add our hooks and the client's cap to the text of Claude Code's settings, and remove them again.

Removing is the inverse of adding, byte for byte: both touch nothing but our own parts. Only the
text of lists and objects that were empty, and of a cap that was replaced, must be remembered.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from gsd_fsm.core.hook.clients import CAP, block_cap
from gsd_fsm.documents.json_text import append, drop, find, not_json, put, put_text, root
from gsd_fsm.install.hook_file import MODULE
from gsd_fsm.install.interpreter import SWITCHES

EVENTS = (
    "Stop", "SubagentStop", "SessionStart", "UserPromptSubmit", "StopFailure", "PreCompact",
    "SessionEnd", "TaskCreated", "TaskCompleted",
)  # fmt: skip
TIMEOUT = 10
DEFAULT_CAP = block_cap("claude", "")
# The hook is imported so that its bytecode is kept; its directory is an argument, so that no path
# needs quoting.
_PATH = "import sys\nsys.path.insert(0, sys.argv.pop(1))\n"
# In a project that was moved, settings may outlive the hook: then no turn should end in an error.
CODE = f"""{_PATH}try:
    import {MODULE}
except ImportError as error:
    sys.stderr.write("gsd-fsm: %s. Run: gsd-fsm init\\n" % error)
    sys.exit()
{MODULE}.main()"""
# Compiles every part of the hook, also those that most calls do not need.
WARM_CODE = f"{_PATH}import {MODULE}\nlist(map({MODULE}.load, {MODULE}.PARTS))\n{MODULE}.main()"
# The beginning of the code, also as earlier versions wrote it.
_OUR_CODE = re.compile(
    r"import sys(?:\n|; )sys\.path\.insert\(0, sys\.argv\.pop\(1\)\)(?:\n|; )"
    rf"(?:try:\n +)?import {MODULE}(?:\n|; )"
)
_CAP_PATH = ("env", CAP)
SWITCH = "disableAllHooks"


class Found(NamedTuple):
    """A hook of ours in settings."""

    event: str
    path: tuple[str | int, ...]
    hook: dict[str, Any]


class Before(NamedTuple):
    """Facts about settings without our parts that cannot be found once the parts are there."""

    empty: dict[str, str]  # the text of each empty list and object that we add to, by its path
    cap: str | None  # the text of the client's cap


def entry(python: str, directory: str, name: str) -> dict[str, Any]:
    """Return the hook for the settings: run without a shell; `name` tells duplicates apart."""
    return {
        "type": "command",
        "command": python,
        "args": [*SWITCHES, "-c", CODE, directory, name],
        "timeout": TIMEOUT,
    }


def ours(document: Any) -> list[Found]:
    """Return every hook that runs our file, in order; ignore anything else."""
    found = []
    for event, groups in items_of(document, "hooks"):
        for g, group in enumerate(groups if isinstance(groups, list) else []):
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for h, hook in enumerate(hooks if isinstance(hooks, list) else []):
                if isinstance(hook, dict) and _is_ours(hook):
                    found.append(Found(event, ("hooks", event, g, "hooks", h), hook))
    return found


def items_of(document: Any, key: str) -> list[tuple[str, Any]]:
    """Return the members of the object at this key; none if it is not an object."""
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
    """Return the cap that these settings set: how many blocks in a row the client accepts."""
    value = dict(items_of(document, "env")).get(CAP)
    whole = isinstance(value, float) and value.is_integer()
    return None if value is None else str(int(value) if whole else value)


def read_settings(text: str) -> Any:
    """Return the settings; raise NotJson, with line and column, if the client would not read them."""
    document = root(text).value
    _require(text, (), document, dict)
    for key in ("hooks", "env"):
        _require(text, (key,), document.get(key, {}), dict)
    for event in EVENTS:
        _require(text, ("hooks", event), document.get("hooks", {}).get(event, []), list)
    return document


def _require(text: str, path: tuple[str, ...], value: Any, kind: type) -> None:
    part = None if isinstance(value, kind) else find(text, path)
    if part is not None:
        wanted = "an object" if kind is dict else "a list"
        raise not_json(text, part.value_at, f"{'.'.join(path) or 'the file'} is not {wanted}")


def before_us(text: str) -> Before:
    """Return what must be remembered of settings that do not have our parts yet."""
    empty = {}
    places = (("env",), ("hooks",), ("permissions",), ("permissions", "allow"))
    for path in ((), *places, *(("hooks", event) for event in EVENTS)):
        part = find(text, path)
        if part is not None and part.value in ({}, []):
            empty[".".join(path)] = text[part.value_at : part.end]
    cap = find(text, _CAP_PATH)
    return Before(empty, None if cap is None else text[cap.value_at : cap.end])


def add(text: str, hook: dict[str, Any]) -> str:
    """Return the settings with this hook at every event, and no other hook of ours."""
    group = {"hooks": [hook]}
    if find(text, ("hooks",)) is None:
        return put(text, ("hooks",), {event: [group] for event in EVENTS})
    for event in EVENTS:
        own = [found for found in ours(root(text).value) if found.event == event]
        if not own:
            text = append(text, ("hooks", event), group)
        elif own[0].hook != hook:
            text = put(text, own[0].path, hook)
        for duplicate in reversed(own[1:]):
            text = _remove(text, duplicate, {})
    for found in reversed(ours(root(text).value)):
        if found.event not in EVENTS:
            text = _remove(text, found, {})
    return text


def remove(text: str, before: Before) -> str:
    """Return the settings without our hooks, and without lists and objects that this empties."""
    for found in reversed(ours(root(text).value)):
        text = _remove(text, found, before.empty)
    return text


def _remove(text: str, found: Found, empty: dict[str, str]) -> str:
    text = drop(text, found.path)
    others = find(text, found.path[:4])
    if others is None or others.value:
        return text
    return tidy(drop(text, found.path[:3]), [("hooks", found.event), ("hooks",)], empty)


def tidy(text: str, paths: list[tuple[str, ...]], empty: dict[str, str]) -> str:
    """Drop the parts at these paths that are empty; restore the text of one that was empty."""
    for path in paths:
        left = find(text, path)
        if left is None or left.value:
            return text
        if ".".join(path) in empty:
            return put_text(text, path, empty[".".join(path)])
        text = drop(text, path)
    return text


def set_cap(text: str, value: str) -> str:
    return put(text, _CAP_PATH, value)


def restore_cap(text: str, before: Before) -> str:
    """Return the settings with the cap that they had before, or with none."""
    if before.cap is not None:
        return put_text(text, _CAP_PATH, before.cap)
    return tidy(drop(text, _CAP_PATH), [("env",)], before.empty)
