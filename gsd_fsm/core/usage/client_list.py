"""Mirror the client's task list: which list a loop follows, and what it changed there."""

from __future__ import annotations

from gsd_fsm.core.loop.state import TASK_LIST, mirrored_list
from gsd_fsm.core.system import getenv
from gsd_fsm.core.usage.task_list import list_directory, read_tasks
from gsd_fsm.core.usage.task_mirror import TaskList, mirror

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop.state import Loop


def list_changes(loop: Loop, session: str) -> list[dict[str, Any]]:
    """The data of the `task` events that bring the loop up to the list it mirrors."""
    name = mirrored_list(loop, getenv(TASK_LIST))
    directory = list_directory(name, session, getenv) if name else ""
    list_id = getenv(TASK_LIST) if name == "auto" else name
    tasks = read_tasks(directory, loop.id, list_id) if directory else None
    return mirror(loop, tasks, list_of(loop, session))


def list_of(loop: Loop, session: str) -> TaskList | None:
    """The list that this loop mirrors in this session; None if it mirrors none."""
    name = mirrored_list(loop, getenv(TASK_LIST))
    if name == "auto":
        name = getenv(TASK_LIST)
        return TaskList(name or session, named=bool(name))
    return TaskList(name, named=True) if name else None
