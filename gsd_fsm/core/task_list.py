"""A client's own list of tasks, on disk: what it says, and the events that bring a loop up to it."""

from __future__ import annotations

from gsd_fsm.core.codec import parse_json
from gsd_fsm.core.disk import (
    READ,
    close,
    close_directory,
    is_regular,
    join,
    look_up,
    open_directory,
    open_in,
    read_at,
    system,
)
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.loop import TASK_LIST
from gsd_fsm.core.places import home
from gsd_fsm.core.redact import redact
from gsd_fsm.core.sanitize import clean
from gsd_fsm.core.table import ACTIVE
from gsd_fsm.core.waves import is_undecided

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

    from gsd_fsm.core.disk import Directory
    from gsd_fsm.core.loop import Loop

    Tasks = dict[str, "ClientTask | None"]
    TaskData = dict[str, Any]

_LIST_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_DIGITS = 6
_MOST_FILES = 500
_LARGEST_FILE = 1 << 16
_MOST_BLOCKERS = 50
# Each is synced, and a stop is decided within seconds.
_MOST_EVENTS = 40
_LONGEST_TITLE = 500
_DONE = ("complete", "skipped")
_STATUSES = {"pending": "pending", "in_progress": "running", "completed": "complete"}


class ClientTask:
    """One task as the client keeps it."""

    __slots__ = ("blocked_by", "status", "subject")

    def __init__(self, subject: str, status: str, blocked_by: list[str]) -> None:
        self.subject = subject
        self.status = status
        self.blocked_by = blocked_by


# reading


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
        for number in sorted(filter(_is_number, names), key=int)[:_MOST_FILES]:
            _take(found, number, opened, own)
    except OSError:
        return None
    finally:
        close_directory(opened)
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


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
    if facts["status"] not in _STATUSES or not all(type(name) is str for name in blockers):
        raise TypeError("not a task")
    return ClientTask(facts["subject"], facts["status"], blockers[:_MOST_BLOCKERS])


def _is_foreign(metadata: Any, own: tuple[str, ...]) -> bool:
    """Whether a task belongs to another loop, or to the client alone."""
    if type(metadata) is not dict:
        return False
    named = [metadata[key] for key in ("loopId", "loop") if metadata.get(key)]
    ours = [name for name in named if type(name) is str and {name, _list_name(name)} & set(own)]
    return bool(metadata.get("_internal") or (named and not ours))


# mirroring


def mirror(loop: Loop, tasks: Tasks | None) -> list[TaskData]:
    """The data of the `task` events that bring the loop up to the list, in a legal order.

    What does not fit into one call is left for the next.
    """
    found: list[TaskData] = []
    if tasks is not None and loop.status in ACTIVE:
        for data in _changes(loop, tasks):
            found.append(data)
            if len(found) == _MOST_EVENTS:
                break
    return found


def created(loop: Loop, number: str, subject: str) -> list[TaskData]:
    """The data of the events for a task that the client has just made."""
    if loop.status not in ACTIVE or not _is_number(number):
        return []
    task_id = _id_of(loop, number, subject, done=True)
    return [] if task_id in loop.tasks else [_new(task_id, subject, [])]


def completed(loop: Loop, number: str, subject: str) -> list[TaskData]:
    """The data of the events for a task that the client has just completed."""
    found = created(loop, number, subject)
    if loop.status not in ACTIVE or not _is_number(number):
        return found
    task_id = _id_of(loop, number, subject, done=True)
    status, depends = _standing_of(loop)
    status.setdefault(task_id, "pending")
    return found + list(_moves(loop, task_id, "complete", status, depends))


def _changes(loop: Loop, tasks: Tasks) -> Iterator[TaskData]:
    present = {number: task for number, task in tasks.items() if task is not None}
    ids = {
        number: _id_of(loop, number, task.subject, task.status == "completed")
        for number, task in present.items()
    }
    # What was completed before anybody here knew of it holds nothing up.
    ids = {
        number: task_id
        for number, task_id in ids.items()
        if task_id in loop.tasks or present[number].status != "completed"
    }
    present = {number: present[number] for number in ids}
    status, depends = _standing_of(loop)
    for number, task in present.items():
        task_id = ids[number]
        known = depends.get(task_id, [])
        named = dict.fromkeys(ids[name] for name in task.blocked_by if name in ids)
        blockers = [name for name in named if name not in known]
        if blockers:  # a circle would keep all of it from ever starting
            circle = _waiting_for(task_id, depends)
            blockers = [name for name in blockers if name not in circle]
        if task_id not in loop.tasks:
            yield _new(task_id, task.subject, blockers)
        elif blockers and status[task_id] == "pending":
            yield {"task": task_id, "status": "pending", "depends": blockers}
        else:
            continue
        status[task_id] = "pending"
        depends[task_id] = known + blockers
    kept = set(ids.values())
    unread = {number for number, task in tasks.items() if task is None}
    for task_id, own in loop.tasks.items():
        gone = own["mirrored"] and task_id not in kept and _number_of(task_id) not in unread
        if gone and status[task_id] not in _DONE and not is_undecided(loop, own):
            status[task_id] = "skipped"
            yield {"task": task_id, "status": "skipped"}
    moved = True
    while moved:  # what one task has finished another may have waited for
        moved = False
        for number, task in present.items():
            if task.status != "pending":
                wanted = _STATUSES[task.status]
                for data in _moves(loop, ids[number], wanted, status, depends):
                    moved = True
                    yield data


def _id_of(loop: Loop, number: str, subject: str, done: bool) -> str:
    """The loop's id of this task: the client's number, unless another task has it.

    A list that was begun anew gives its numbers again, to other tasks; and what is done here but not
    in the list is to be done again, as another task.
    """
    task_id, twin, found = number, 1, ""
    while task_id in loop.tasks:
        if _is_same(loop.tasks[task_id], subject):
            if loop.tasks[task_id]["status"] not in _DONE:
                return task_id
            found = task_id
        task_id = "client-%s" % number if twin == 1 else "client-%s-%d" % (number, twin)
        twin += 1
    return found if found and done else task_id


def _is_same(task: dict[str, Any], subject: str) -> bool:
    # Most titles are what they were: the search for secrets is dear.
    title = task["title"] if task["mirrored"] else None
    return bool(title == subject or (title is not None and title == _harmless(subject)))


def _number_of(task_id: str) -> str:
    return task_id.split("-")[1] if task_id.startswith("client-") else task_id


def _harmless(subject: str) -> str:
    return redact(" ".join(clean(subject[: 4 * _LONGEST_TITLE]).split()))[:_LONGEST_TITLE]


def _new(task_id: str, subject: str, depends: list[str]) -> TaskData:
    about = {"title": _harmless(subject), "mirrored": True, "depends": depends}
    return {"task": task_id, "status": "pending", **about}


def _standing_of(loop: Loop) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Of every task its status, and what it waits for."""
    tasks = loop.tasks.items()
    return {name: task["status"] for name, task in tasks}, {n: task["depends"] for n, task in tasks}


def _waiting_for(task_id: str, depends: dict[str, list[str]]) -> set[str]:
    """The task and every other that waits for it, also around corners."""
    found = {task_id}
    size = 0
    while size < len(found):
        size = len(found)
        for name, names in depends.items():
            if not found.isdisjoint(names):
                found.add(name)
    return found


def _moves(
    loop: Loop, task_id: str, wanted: str, status: dict[str, str], depends: dict[str, list[str]]
) -> Iterator[TaskData]:
    """The way of one task to what the client says of it, if it may go there now."""
    now, known = status[task_id], loop.tasks.get(task_id)
    if now in (wanted, *_DONE) or (known is not None and is_undecided(loop, known)):
        return
    if now != "running":
        waits = any(status.get(n, "complete") not in _DONE for n in depends.get(task_id, ()))
        if waits or loop.shape == "blocked":
            return
        yield {"task": task_id, "status": "running"}
    if wanted == "complete":
        yield {"task": task_id, "status": "complete"}
    status[task_id] = wanted
