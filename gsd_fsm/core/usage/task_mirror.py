"""A loop follows the client's own list of tasks: the events that bring it up to what the list says."""

from __future__ import annotations

from gsd_fsm.core.loop.records import DONE
from gsd_fsm.core.loop.state import ACTIVE
from gsd_fsm.core.loop.waves import Dependencies, is_undecided
from gsd_fsm.core.text.redact import redact
from gsd_fsm.core.text.sanitize import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, Mapping

    from gsd_fsm.core.loop.records import Task, TaskStatus
    from gsd_fsm.core.loop.state import Loop

    Tasks = dict[str, "ClientTask | None"]
    TaskData = dict[str, Any]

# Each is synced, and a stop is decided within seconds.
_MOST_EVENTS = 40
_LONGEST_TITLE = 500
_DIGITS = 6
# How the client calls what a task of ours is.
STATUS_OF: dict[str, TaskStatus] = {
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
    task = loop.tasks.get(task_id)
    depends = {task_id: task.depends if task is not None else {}}
    status = {name: loop.tasks[name].status for name in depends[task_id] if name in loop.tasks}
    status[task_id] = task.status if task is not None else "pending"
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
    status = {name: task.status for name, task in loop.tasks.items()}
    graph = Dependencies(loop)
    named = {
        ids[number]: [ids[name] for name in dict.fromkeys(task.blocked_by) if name in ids]
        for number, task in present.items()
        if status.get(ids[number], "pending") == "pending"
    }
    blockers_of = graph.add(named)
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
    kept = set(ids.values())
    unread = {number for number, task in tasks.items() if task is None}
    for task_id, own in loop.tasks.items():
        gone = task_id not in kept and _number_of(task_id) not in unread
        if (
            gone
            and _is_of(own, whose)
            and status[task_id] not in DONE
            and not is_undecided(loop, own)
        ):
            status[task_id] = "skipped"
            yield {"task": task_id, "status": "skipped"}
    wanted = {
        ids[number]: STATUS_OF[task.status]
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
    """The loop's id of this task: the client's number, unless another task has it.

    Another list, and one that was begun anew, give the same numbers to other tasks; and what is done
    here but not in the list is to be done again, as another task.
    """
    task_id, twin, found = number, 1, ""
    titles: tuple[str, ...] = (subject,)
    while task_id in loop.tasks:
        task = loop.tasks[task_id]
        if _is_of(task, whose) and task.title not in titles and len(titles) == 1:
            titles = (subject, _harmless(subject))  # most titles are as they were; this is slow
        if _is_of(task, whose) and task.title in titles:
            if task.status not in DONE:
                return task_id
            found = task_id
        task_id = "client-%s" % number if twin == 1 else "client-%s-%d" % (number, twin)
        twin += 1
    return found if found and done else task_id


def _is_of(task: Task, whose: TaskList | None) -> bool:
    """Whether a task is of this list; which one it was of may not be known."""
    known = None if whose is None else whose.name
    return bool(task.mirrored and task.list_name in (None, known))


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


def _moves(
    loop: Loop,
    task_id: str,
    wanted: TaskStatus,
    status: dict[str, TaskStatus],
    depends: Mapping[str, Iterable[str]],
) -> Iterator[TaskData]:
    """The way of one task to what the client says of it, if it may go there now."""
    now, known = status[task_id], loop.tasks.get(task_id)
    if now in (wanted, *DONE) or (known is not None and is_undecided(loop, known)):
        return
    if now != "running":
        waits = any(status.get(n, "complete") not in DONE for n in depends.get(task_id, ()))
        if waits or loop.is_unclear:
            return
        yield {"task": task_id, "status": "running"}
    if wanted == "complete":
        yield {"task": task_id, "status": "complete"}
    status[task_id] = wanted
