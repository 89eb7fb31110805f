"""Find out quickly whether a client of a project runs the hook; `doctor` checks more.

Every command asks while a loop is live, so this module imports nothing expensive.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.system import home

_MODULE = "gsd_fsm_hook"
_PLUGIN = "gsd-fsm"
_COMMAND = "gsd-fsm hook"
_MOST_BYTES = 1 << 20
# Loops of other clients may be continued by hooks in settings that are not read here.
_CLIENTS = (None, "", "claude")
# How `init` names the copies of the hook in settings.
_IN_SETTINGS = "settings-"


def relies_on_settings(loop: Loop) -> bool:
    """Return whether this loop continues only if settings that are read here name the hook.

    A paused loop does not continue. A session may also load the hook as a plugin, or from other
    settings: the name of the copy that was called shows it.
    """
    seen = (loop.last_answer, loop.last_signal)
    copies = [it.copy for it in seen if it is not None]
    is_elsewhere = any(not copy.startswith(_IN_SETTINGS) for copy in copies)
    continues = loop.is_active or loop.status == "waiting"
    return continues and loop.client in _CLIENTS and not is_elsewhere


def missing_hook(project: str, start: str) -> tuple[str, str]:
    """Return why no client of this project runs the hook, and the command that fixes it; else "".

    `start`: the directory in or below the project where the client is started.
    """
    found = ("the hook is not installed", "")
    for scope, path in _settings(project, start):
        settings = _read(path)
        if _object(settings, "disableAllHooks"):
            return f"{path} disables all hooks", "init --enable-hooks"
        if any(_plugins(settings)):
            return "", ""  # `doctor` examines it
        for words in _commands(settings):
            missing = _missing(words)
            if not missing:
                return "", ""
            found = (f"the hook needs {missing}", scope)
    problem, scope = found
    if not scope and os.path.realpath(start) != os.path.realpath(project):
        scope = "user"  # only this scope is read by a client that is started here
    return problem, f"init --scope {scope}" if scope else "init"


def _settings(project: str, start: str) -> Iterator[tuple[str, str]]:
    """Yield the settings files of the user, of the project and of this directory, with their scopes."""
    client = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home(), ".claude")
    yield "user", os.path.join(client, "settings.json")
    for directory in dict.fromkeys((project, start)):
        yield "project", os.path.join(directory, ".claude", "settings.json")
        yield "local", os.path.join(directory, ".claude", "settings.local.json")


def _read(path: str) -> Any:
    """Return the settings in this file; None if it does not exist or the client would not read it."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            return parse_json(file.read(_MOST_BYTES).strip())
    except (OSError, ValueError):
        return None


def _object(settings: Any, key: str) -> Any:
    return settings.get(key) if isinstance(settings, dict) else None


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _plugins(settings: Any) -> Iterator[bool]:
    """Yield for each name of our plugin in these settings whether they enable it."""
    enabled = _object(settings, "enabledPlugins")
    for name, on in enabled.items() if isinstance(enabled, dict) else ():
        if name.partition("@")[0] == _PLUGIN:
            yield bool(on)


def _commands(settings: Any) -> Iterator[list[str]]:
    """Yield the words of each command that runs our hook at stops."""
    for group in _items(_object(_object(settings, "hooks"), "Stop")):
        for hook in _items(_object(group, "hooks")):
            command, args = _object(hook, "command"), _object(hook, "args")
            if not isinstance(command, str):
                continue
            words = [command, *(word for word in _items(args) if isinstance(word, str))]
            if any(_MODULE in word or _COMMAND in word for word in words):
                yield (
                    words if isinstance(args, list) else re.split(r"[\s\"']+", command.strip("\"'"))
                )


def _missing(words: list[str]) -> str:
    """Return the program or the hook file that a command needs and that is not there, else ""."""
    program = words[0] if words else ""
    if os.path.isabs(program) and not os.access(program, os.X_OK):
        return f"{program}, which cannot be run"
    # The command imports the file from a folder, its last argument but one, or names it.
    files = [os.path.join(words[-2], f"{_MODULE}.py")] if len(words) > 2 else []
    files += [word for word in words if word.endswith(f"{_MODULE}.py")]
    named = [file for file in files if os.path.isabs(file)]
    is_there = not named or any(os.path.isfile(file) for file in named)
    return "" if is_there else f"{named[-1]}, which is missing"
