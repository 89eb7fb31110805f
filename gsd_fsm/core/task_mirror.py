"""A loop follows the client's own list of tasks: the events that bring it up to what the list says."""

from __future__ import annotations

from gsd_fsm.core.loop import is_unclear
from gsd_fsm.core.redact import redact
from gsd_fsm.core.sanitize import clean
from gsd_fsm.core.table import ACTIVE
from gsd_fsm.core.waves import is_undecided

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from gsd_fsm.core.loop import Loop

    Tasks = dict[str, "ClientTask | None"]
    TaskData = dict[str, Any]

# Each is synced, and a stop is decided within seconds.
_MOST_EVENTS = 40
_LONGEST_TITLE = 500
_DIGITS = 6
_DONE = ("complete", "skipped")
# How the client calls what a task of ours is.
STATUS_OF = {"pending": "pending", "in_progress": "running", "completed": "complete"}


class ClientTask:
    """One task as the client keeps it."""

    __slots__ = ("blocked_by", "status", "subject")

    def __init__(self, subject: str, status: str, blocked_by: list[str]) -> None:
        self.subject = subject
        self.status = status
        self.blocked_by = blocked_by


class TaskList:
    """Which list it is: one that its user has named, or else the own one of a session."""

    __slots__ = ("name", "named")

    def __init__(self, name: str, named: bool) -> None:
        self.name = name
        self.named = named


def is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def mirror(loop: Loop, tasks: Tasks | None, whose: TaskList | None = None) -> list[TaskData]:
    """The data of the `task` events that bring the loop up to the list, in a legal order.

    `whose`: which list it is. What does not fit into one call is left for the next.
    """
    found: list[TaskData] = []
    if tasks is not None and loop.status in ACTIVE:
        for data in _changes(loop, tasks, whose):
            found.append(data)
            if len(found) == _MOST_EVENTS:
                break
    return found


def created(loop: Loop, number: str, subject: str, whose: TaskList | None = None) -> list[TaskData]:
    """The data of the events for a task that the client has just made."""
    if loop.status not in ACTIVE or not is_number(number):
        return []
    task_id = _id_of(loop, number, subject, whose, done=True)
    return [] if task_id in loop.tasks else [_new(task_id, subject, [], whose)]


def completed(
    loop: Loop, number: str, subject: str, whose: TaskList | None = None
) -> list[TaskData]:
    """The data of the events for a task that the client has just completed."""
    found = created(loop, number, subject, whose)
    if loop.status not in ACTIVE or not is_number(number):
        return found
    task_id = _id_of(loop, number, subject, whose, done=True)
    status, depends = _standing_of(loop)
    status.setdefault(task_id, "pending")
    return found + list(_moves(loop, task_id, "complete", status, depends))


def _changes(loop: Loop, tasks: Tasks, whose: TaskList | None) -> Iterator[TaskData]:
    present = {number: task for number, task in tasks.items() if task is not None}
    ids = {
        number: _id_of(loop, number, task.subject, whose, task.status == "completed")
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
            yield _new(task_id, task.subject, blockers, whose)
        elif blockers and status[task_id] == "pending":
            yield {"task": task_id, "status": "pending", "depends": blockers}
        else:
            continue
        status[task_id] = "pending"
        depends[task_id] = known + blockers
    kept = set(ids.values())
    unread = {number for number, task in tasks.items() if task is None}
    for task_id, own in loop.tasks.items():
        gone = task_id not in kept and _number_of(task_id) not in unread
        if (
            gone
            and _is_of(own, whose)
            and status[task_id] not in _DONE
            and not is_undecided(loop, own)
        ):
            status[task_id] = "skipped"
            yield {"task": task_id, "status": "skipped"}
    moved = True
    while moved:  # what one task has finished another may have waited for
        moved = False
        for number, task in present.items():
            if task.status != "pending":
                wanted = STATUS_OF[task.status]
                for data in _moves(loop, ids[number], wanted, status, depends):
                    moved = True
                    yield data


def _id_of(loop: Loop, number: str, subject: str, whose: TaskList | None, done: bool) -> str:
    """The loop's id of this task: the client's number, unless another task has it.

    Another list, and one that was begun anew, give the same numbers to other tasks; and what is done
    here but not in the list is to be done again, as another task.
    """
    task_id, twin, found = number, 1, ""
    while task_id in loop.tasks:
        if _is_of(loop.tasks[task_id], whose) and _is_called(loop.tasks[task_id], subject):
            if loop.tasks[task_id]["status"] not in _DONE:
                return task_id
            found = task_id
        task_id = "client-%s" % number if twin == 1 else "client-%s-%d" % (number, twin)
        twin += 1
    return found if found and done else task_id


def _is_of(task: dict[str, Any], whose: TaskList | None) -> bool:
    """Whether a task is of this list; which one it was of may not be known."""
    known = None if whose is None else whose.name
    return bool(task["mirrored"] and task["list"] in (None, known))


def _is_called(task: dict[str, Any], subject: str) -> bool:
    # Most titles are what they were: the search for secrets is dear.
    return bool(task["title"] == subject or task["title"] == _harmless(subject))


def _number_of(task_id: str) -> str:
    return task_id.split("-")[1] if task_id.startswith("client-") else task_id


def _harmless(subject: str) -> str:
    return redact(" ".join(clean(subject[: 4 * _LONGEST_TITLE]).split()))[:_LONGEST_TITLE]


def _new(task_id: str, subject: str, depends: list[str], whose: TaskList | None) -> TaskData:
    data: TaskData = {"task": task_id, "status": "pending", "title": _harmless(subject)}
    data.update({"mirrored": True, "depends": depends})
    if whose is not None:
        data["list"] = whose.name
        if whose.named:
            data["named"] = True
    return data


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
        if waits or is_unclear(loop):
            return
        yield {"task": task_id, "status": "running"}
    if wanted == "complete":
        yield {"task": task_id, "status": "complete"}
    status[task_id] = wanted
