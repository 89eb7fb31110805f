"""Find out quickly whether a client of a project runs the hook; `doctor` checks more.

Every command asks while a loop is live, so this module imports nothing expensive.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.system import home

_MODULE = "gsd_fsm_hook"
_PLUGIN = "gsd-fsm@"
_COMMAND = "gsd-fsm hook"
_COPY_OF_PLUGIN = "plugin"
_MOST_BYTES = 1 << 20
# Loops of other clients may be continued by hooks in settings that are not read here.
_CLIENTS = (None, "", "claude")


def missing_hook(project: str, start: str, live: list[Loop]) -> tuple[str, str]:
    """Return why no client runs the hook for these loops, and the command that fixes it; else "".

    `start`: the current directory, in or below the project.
    """
    if not any(_relies_on_settings(loop) for loop in live):
        return "", ""
    problem, scope = _problem(project, start)
    if not problem:
        return "", ""
    if not scope and os.path.realpath(start) != os.path.realpath(project):
        scope = "user"  # only this scope is read by a client that is started here
    return problem, f"init --scope {scope}" if scope else "init"


def _relies_on_settings(loop: Loop) -> bool:
    """Return whether this loop needs the hook in settings: a session may load the plugin without them."""
    seen = (loop.last_answer, loop.last_signal)
    copies = [it.copy for it in seen if it is not None]
    return loop.client in _CLIENTS and _COPY_OF_PLUGIN not in copies


def _problem(project: str, start: str) -> tuple[str, str]:
    """Return why the hook cannot run, and the scope of the settings that name it."""
    found = ("the hook is not installed", "")
    for scope, path in _settings(project, start):
        text = _read(path)
        if text is None or _PLUGIN in text or _COMMAND in text:
            return "", ""  # only `doctor` examines these
        for hook in _hooks(text) if _MODULE in text else ():
            missing = _missing(hook)
            if not missing:
                return "", ""
            found = (f"the hook needs {missing}, which is missing", scope)
    return found


def _settings(project: str, start: str) -> Iterator[tuple[str, str]]:
    """Yield the settings files of the user, of the project and of this directory, with their scopes."""
    client = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home(), ".claude")
    yield "user", os.path.join(client, "settings.json")
    for directory in dict.fromkeys((project, start)):
        yield "project", os.path.join(directory, ".claude", "settings.json")
        yield "local", os.path.join(directory, ".claude", "settings.local.json")


def _read(path: str) -> str | None:
    """Return the text of a settings file, "" if it does not exist; None if it cannot be read."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read(_MOST_BYTES)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError):
        return None


def _hooks(text: str) -> Iterator[dict[str, Any]]:
    """Yield our hooks that are registered for stops; {} if the settings have an unknown form."""
    try:
        groups = parse_json(text.strip())["hooks"]["Stop"]
        hooks = [hook for group in groups for hook in group["hooks"]]
        yield from (hook for hook in hooks if _MODULE in str(hook))
    except (ValueError, TypeError, KeyError):
        yield {}


def _missing(hook: dict[str, Any]) -> str:
    """Return the interpreter or the hook file that this hook needs, if it does not exist."""
    command, args = hook.get("command"), hook.get("args")
    if not isinstance(command, str) or not isinstance(args, list):
        return ""  # a shell command
    if os.path.isabs(command) and not os.path.isfile(command):
        return command
    folders = [word for word in args[-2:-1] if isinstance(word, str) and os.path.isabs(word)]
    files = [os.path.join(folder, f"{_MODULE}.py") for folder in folders]
    return next((file for file in files if not os.path.isfile(file)), "")
