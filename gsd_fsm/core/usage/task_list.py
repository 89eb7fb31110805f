"""A client's own list of tasks, as it lies on disk: half-written and foreign files are no harm."""

from __future__ import annotations

from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.state import TASK_LIST
from gsd_fsm.core.syscalls import (
    READ,
    close,
    close_directory,
    is_regular,
    look_up,
    open_directory,
    open_in,
    read_at,
)
from gsd_fsm.core.system import home, join, system
from gsd_fsm.core.usage.task_mirror import STATUS_OF, ClientTask, is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from gsd_fsm.core.syscalls import Directory
    from gsd_fsm.core.usage.task_mirror import Tasks

_LIST_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_MOST_FILES = 500
_LARGEST_FILE = 1 << 18
_MOST_BLOCKERS = 50


def list_directory(name: str, session: str, env: Callable[[str], str]) -> str:
    """Where the client keeps the list of this name, "auto" for the session's own; "" for none."""
    wanted = (env(TASK_LIST) or session) if name == "auto" else name
    base = env("CLAUDE_CONFIG_DIR") or (join(home(), ".claude") if home() else "")
    return join(join(base, "tasks"), _list_name(wanted)) if wanted and base else ""


def _list_name(text: str) -> str:
    """The name as the client writes it; it counts what lies beyond 16 bits as two letters."""
    return "".join(
        letter if letter in _LIST_LETTERS else "-" if ord(letter) < 1 << 16 else "--"
        for letter in text
    )


def read_tasks(directory: str, loop_id: str, list_id: str) -> Tasks | None:
    """The tasks of the list by their numbers, in order; None when it cannot be read.

    A task that is there but cannot be read now is None; one that names another loop is left out.
    """
    try:
        opened = open_directory(directory)
    except (GsdError, OSError, ValueError):
        return None
    own = (loop_id, _list_name(list_id), directory.replace("\\", "/").rpartition("/")[2])
    found: Tasks = {}
    try:
        names = [name[:-5] for name in system.listdir(opened) if name.endswith(".json")]
        for number in sorted(filter(is_number, names), key=int)[:_MOST_FILES]:
            _take(found, number, opened, own)
    except OSError:
        return None
    finally:
        close_directory(opened)
    return found


def _take(found: Tasks, number: str, directory: Directory, own: tuple[str, ...]) -> None:
    try:
        facts = _facts(directory, number + ".json")
        if not _is_foreign(facts.get("metadata"), own):
            found[number] = _client_task(facts)
    except FileNotFoundError:
        pass  # deleted while we looked
    except (OSError, ValueError, TypeError, KeyError):
        found[number] = None


def _facts(directory: Directory, name: str) -> dict[str, Any]:
    if not is_regular(look_up(directory, name)):
        raise ValueError("not a plain file")
    fd = open_in(directory, name, READ)
    try:
        raw = read_at(fd, 0, _LARGEST_FILE + 1)
    finally:
        close(fd)
    facts = parse_json(raw.decode("utf-8").strip()) if len(raw) <= _LARGEST_FILE else None
    if type(facts) is not dict:
        raise ValueError("not an object")
    return facts


def _client_task(facts: dict[str, Any]) -> ClientTask:
    blockers = facts.get("blockedBy", [])
    if type(facts["subject"]) is not str or type(blockers) is not list:
        raise TypeError("not a task")
    if facts["status"] not in STATUS_OF or not all(type(name) is str for name in blockers):
        raise TypeError("not a task")
    return ClientTask(facts["subject"], facts["status"], blockers[:_MOST_BLOCKERS])


def _is_foreign(metadata: Any, own: tuple[str, ...]) -> bool:
    """Whether a task belongs to another loop, or to the client alone."""
    if type(metadata) is not dict:
        return False
    named = [metadata[key] for key in ("loopId", "loop") if metadata.get(key)]
    ours = [name for name in named if type(name) is str and {name, _list_name(name)} & set(own)]
    return bool(metadata.get("_internal") or (named and not ours))
