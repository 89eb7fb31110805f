"""Mirror the client's own task list: read its files, and compose the `task` events they lead to."""

from __future__ import annotations

from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.completion import completes_from_pause
from gsd_fsm.core.loop.records import DONE
from gsd_fsm.core.loop.state import ACTIVE, TASK_LIST, mirrored_list
from gsd_fsm.core.loop.waves import Dependencies, is_undecided
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
from gsd_fsm.core.system import getenv, home, join, system
from gsd_fsm.core.text.redact import redact
from gsd_fsm.core.text.sanitize import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator, Mapping

    from gsd_fsm.core.loop.records import Task, TaskStatus
    from gsd_fsm.core.loop.state import Loop
    from gsd_fsm.core.syscalls import Directory

    Tasks = dict[str, "ClientTask | None"]
    TaskData = dict[str, Any]

_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_MOST_FILES = 500
_LARGEST_FILE = 1 << 18
_MOST_BLOCKERS = 50
# Each event is synced, and a stop is decided within seconds.
_MOST_EVENTS = 40
_LONGEST_TITLE = 500
_MOST_DIGITS = 6
# Our status for that of the client.
_STATUS: dict[str, TaskStatus] = {
    "pending": "pending",
    "in_progress": "running",
    "completed": "complete",
}


class ClientTask:
    """One task as the client keeps it."""

    __slots__ = ("blocked_by", "status", "subject")

    def __init__(self, subject: str, status: str, blocked_by: list[str]) -> None:
        self.subject = subject
        self.status = status
        self.blocked_by = blocked_by


class TaskList:
    """The identity of a list: a name that the user chose (`named`), or a session."""

    __slots__ = ("name", "named")

    def __init__(self, name: str, named: bool) -> None:
        self.name = name
        self.named = named


def list_of(loop: Loop, session: str) -> TaskList | None:
    """Return the list that this loop mirrors in this session, None for none."""
    name = mirrored_list(loop, getenv(TASK_LIST))
    if name == "auto":
        name = getenv(TASK_LIST)
        return TaskList(name or session, named=bool(name))
    return TaskList(name, named=True) if name else None


def list_changes(loop: Loop, session: str) -> list[TaskData]:
    """Return the data of the `task` events that make the loop agree with the list it mirrors."""
    name = mirrored_list(loop, getenv(TASK_LIST))
    directory = list_directory(name, session, getenv) if name else ""
    list_id = getenv(TASK_LIST) if name == "auto" else name
    tasks = read_tasks(directory, loop.id, list_id) if directory else None
    return mirror(loop, tasks, list_of(loop, session))


# the files of the client


def list_directory(name: str, session: str, env: Callable[[str], str]) -> str:
    """Return the directory of the list with this name, "auto" for the session's own; "" for none."""
    wanted = (env(TASK_LIST) or session) if name == "auto" else name
    base = env("CLAUDE_CONFIG_DIR") or (join(home(), ".claude") if home() else "")
    return join(join(base, "tasks"), _directory_name(wanted)) if wanted and base else ""


def _directory_name(text: str) -> str:
    """Return the name as the client writes it; it counts a character beyond 16 bits as two."""
    return "".join([
        letter if letter in _NAME_CHARACTERS else "-" if ord(letter) < 1 << 16 else "--"
        for letter in text
    ])  # fmt: skip


def read_tasks(directory: str, loop_id: str, list_id: str) -> Tasks | None:
    """Return the tasks of a list by number, in order; None if it cannot be read.

    A task that cannot be read now is None; a task of another loop is left out.
    """
    try:
        opened = open_directory(directory)
    except (GsdError, OSError, ValueError):
        return None
    own = {loop_id, _directory_name(list_id), directory.replace("\\", "/").rpartition("/")[2]}
    found: Tasks = {}
    try:
        names = [name[:-5] for name in system.listdir(opened) if name.endswith(".json")]
        for number in sorted(filter(_is_number, names), key=int)[:_MOST_FILES]:
            try:
                task = _read_task(opened, number + ".json")
                if not _is_foreign(task.get("metadata"), own):
                    found[number] = _client_task(task)
            except FileNotFoundError:  # noqa: PERF203 - one bad file leaves the others
                pass  # deleted meanwhile
            except (OSError, ValueError, TypeError, KeyError):
                found[number] = None
    except OSError:
        return None
    finally:
        close_directory(opened)
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def _read_task(directory: Directory, name: str) -> dict[str, Any]:
    if not is_regular(look_up(directory, name)):
        raise ValueError("not a regular file")
    fd = open_in(directory, name, READ)
    try:
        raw = read_at(fd, 0, _LARGEST_FILE + 1)
    finally:
        close(fd)
    task = parse_json(raw.decode("utf-8").strip()) if len(raw) <= _LARGEST_FILE else None
    if type(task) is not dict:
        raise ValueError("not an object")
    return task


def _client_task(task: dict[str, Any]) -> ClientTask:
    blockers = task.get("blockedBy", [])
    if type(task["subject"]) is not str or type(blockers) is not list:
        raise TypeError("not a task")
    if task["status"] not in _STATUS or not all(type(name) is str for name in blockers):
        raise TypeError("not a task")
    return ClientTask(task["subject"], task["status"], blockers[:_MOST_BLOCKERS])


def _is_foreign(metadata: Any, own: set[str]) -> bool:
    """Return whether a task belongs to another loop, or to the client alone."""
    if type(metadata) is not dict:
        return False
    named = [metadata[key] for key in ("loopId", "loop") if metadata.get(key)]
    ours = [name for name in named if type(name) is str and {name, _directory_name(name)} & own]
    return bool(metadata.get("_internal") or (named and not ours))


# the events that follow


def mirror(loop: Loop, tasks: Tasks | None, whose: TaskList | None = None) -> list[TaskData]:
    """Return the data of the `task` events that make the loop agree with the list, in legal order.

    What does not fit into one call is left for the next.
    """
    found: list[TaskData] = []
    if tasks is not None and (loop.status in ACTIVE or completes_from_pause(loop)):
        for data in _changes(loop, tasks, whose):
            found.append(data)
            if len(found) == _MOST_EVENTS:
                break
    return found


def created_task(
    loop: Loop, number: str, subject: str, whose: TaskList | None = None
) -> list[TaskData]:
    """Return the data of the events for a task that the client has just created."""
    if loop.status not in ACTIVE or not _is_number(number):
        return []
    task_id = _id_of(loop, number, subject, whose, done=True)
    return [] if task_id in loop.tasks else [_new(task_id, subject, [], whose)]


def completed_task(
    loop: Loop, number: str, subject: str, whose: TaskList | None = None
) -> list[TaskData]:
    """Return the data of the events for a task that the client has just completed."""
    found = created_task(loop, number, subject, whose)
    if loop.status not in ACTIVE or not _is_number(number):
        return found
    task_id = _id_of(loop, number, subject, whose, done=True)
    task = loop.tasks.get(task_id)
    depends = {task_id: task.depends if task is not None else {}}
    status = {name: loop.tasks[name].status for name in depends[task_id] if name in loop.tasks}
    status[task_id] = task.status if task is not None else "pending"
    return found + list(_moves(loop, task_id, "complete", status, depends))


def _changes(loop: Loop, tasks: Tasks, whose: TaskList | None) -> Iterator[TaskData]:
    ids: dict[str, str] = {}
    present: dict[str, ClientTask] = {}
    for number, task in tasks.items():
        if task is not None:
            done = task.status == "completed"
            task_id = _id_of(loop, number, task.subject, whose, done)
            if task_id in loop.tasks or not done:  # tasks completed before the loop do not count
                ids[number], present[number] = task_id, task
    status = {name: task.status for name, task in loop.tasks.items()}
    graph = Dependencies(loop)
    blockers_of = graph.add({
        ids[number]: [ids[name] for name in dict.fromkeys(task.blocked_by) if name in ids]
        for number, task in present.items()
        if status.get(ids[number], "pending") == "pending"
    })  # fmt: skip
    for number, task in present.items():
        task_id = ids[number]
        blockers = blockers_of.get(task_id, [])
        if task_id not in loop.tasks:
            yield _new(task_id, task.subject, blockers, whose)
        elif blockers:
            yield {"task": task_id, "status": "pending", "depends": blockers}
        else:
            continue
        status[task_id] = "pending"
    kept = {*ids.values()}
    unread = {number for number, task in tasks.items() if task is None}
    for task_id, own in loop.tasks.items():
        gone = task_id not in kept and _number_of(task_id) not in unread
        is_open = status[task_id] not in DONE and not is_undecided(loop, own)
        if gone and is_open and _is_of(own, whose):
            status[task_id] = "skipped"
            yield {"task": task_id, "status": "skipped"}
    wanted = {
        ids[number]: _STATUS[task.status]
        for number, task in present.items()
        if task.status != "pending"
    }
    place = {task_id: position for position, task_id in enumerate(wanted)}
    due = list(wanted)
    while due:
        freed: set[str] = set()  # a finished task may have been the last that others waited for
        for task_id in due:
            for data in _moves(loop, task_id, wanted[task_id], status, graph.depends):
                yield data
                freed.update(graph.dependents.get(task_id, ()))
        due = sorted([name for name in freed if name in wanted], key=place.__getitem__)


def _id_of(loop: Loop, number: str, subject: str, whose: TaskList | None, done: bool) -> str:
    """Return the loop's id for a task of the list: its number, unless another task has that id.

    Other lists, and new ones in the place of old ones, use the same numbers for other tasks. A task
    that is done in the loop but open in the list is another task.
    """
    task_id, duplicates, found = number, 0, ""
    titles: tuple[str, ...] = (subject,)
    while task_id in loop.tasks:
        task = loop.tasks[task_id]
        if _is_of(task, whose):
            if task.title not in titles and len(titles) == 1:
                titles = (subject, _title(subject))  # only where needed: redaction is slow
            if task.title in titles:
                if task.status not in DONE:
                    return task_id
                found = task_id
        duplicates += 1
        suffix = "" if duplicates == 1 else "-%d" % duplicates
        task_id = "client-%s%s" % (number, suffix)
    return found if found and done else task_id


def _is_of(task: Task, whose: TaskList | None) -> bool:
    """Return whether a task is of this list; old events do not name the list."""
    known = None if whose is None else whose.name
    return bool(task.mirrored and task.list_name in (None, known))


def _number_of(task_id: str) -> str:
    return task_id.split("-")[1] if task_id.startswith("client-") else task_id


def _title(subject: str) -> str:
    return redact(" ".join(clean(subject[: 4 * _LONGEST_TITLE]).split()))[:_LONGEST_TITLE]


def _new(task_id: str, subject: str, depends: list[str], whose: TaskList | None) -> TaskData:
    data: TaskData = {"task": task_id, "status": "pending", "title": _title(subject)}
    data.update({"mirrored": True, "depends": depends})
    if whose is not None:
        data["list"] = whose.name
        if whose.named:
            data["named"] = True
    return data


def _moves(
    loop: Loop,
    task_id: str,
    wanted: TaskStatus,
    status: dict[str, TaskStatus],
    depends: Mapping[str, Iterable[str]],
) -> Iterator[TaskData]:
    """Yield the events that bring a task to `wanted`; nothing while a dependency is open."""
    now, known = status[task_id], loop.tasks.get(task_id)
    if now in (wanted, "reported", *DONE) or (known is not None and is_undecided(loop, known)):
        return
    if now != "running":
        waits = any(status.get(n, "complete") not in DONE for n in depends.get(task_id, ()))
        if waits or loop.is_unclear:
            return
        yield {"task": task_id, "status": "running"}
    if wanted == "complete":
        if known is not None and known.checks and loop.proves_tasks:
            wanted = "reported"
            yield {"task": task_id, "status": "reported", "verdict": "complete"}
        else:
            yield {"task": task_id, "status": "complete"}
    status[task_id] = wanted
