"""The client's own list of tasks, as it lies on disk."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.system import home
from gsd_fsm.core.usage.task_list import list_directory, read_tasks

LOOP, LIST = "lp-1", "my-list"


class TaskList:
    """A list as the client keeps it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        (directory / ".lock").write_bytes(b"")
        (directory / ".highwatermark").write_text("3")

    def put(self, number: int | str, subject: Any, status: Any = "pending", **more: Any) -> Path:
        task = {"id": str(number), "subject": subject, "description": "d", "status": status}
        task |= {"blocks": [], "blockedBy": [], **more}
        return self.raw(number, json.dumps(task, indent=2).encode())

    def raw(self, number: int | str, content: bytes) -> Path:
        path = self.directory / f"{number}.json"
        path.write_bytes(content)
        return path

    def read(self) -> dict[str, Any] | None:
        found = read_tasks(str(self.directory), LOOP, LIST)
        return found and {
            number: task and (task.subject, task.status, task.blocked_by)
            for number, task in found.items()
        }


@pytest.fixture
def tasks(tmp_path: Path) -> TaskList:
    return TaskList(tmp_path / "tasks" / LIST)


# where it is


def test_a_list_has_a_name_the_session_s_or_the_one_of_the_environment() -> None:
    none = {}.get
    where = list_directory("auto", "6a2b21fd-1", lambda name: none(name, ""))
    assert Path(where) == Path(home()) / ".claude" / "tasks" / "6a2b21fd-1"
    known = {"CLAUDE_CODE_TASK_LIST_ID": "my list/1", "CLAUDE_CONFIG_DIR": "/c"}
    there = Path("/c/tasks")
    assert (
        Path(list_directory("auto", "s", lambda name: known.get(name, ""))) == there / "my-list-1"
    )
    assert (
        Path(list_directory("../ü 😀", "s", lambda name: known.get(name, ""))) == there / "-------"
    )
    assert list_directory("auto", "", lambda name: none(name, "")) == ""
    assert list_directory("", "s", lambda name: known.get(name, "")) == ""


# what it says


def test_tasks_are_read_in_the_order_of_their_numbers(tasks: TaskList) -> None:
    tasks.put(10, "ten", "in_progress", blockedBy=["2", "9"], owner="me", activeForm="x")
    tasks.put(2, "two", "completed")
    tasks.put(1, "one", metadata={"n": 3})
    assert tasks.read() == {
        "1": ("one", "pending", []),
        "2": ("two", "completed", []),
        "10": ("ten", "in_progress", ["2", "9"]),
    }
    assert list(tasks.read() or ()) == ["1", "2", "10"]


def test_a_directory_that_cannot_be_read_is_none(tmp_path: Path, tasks: TaskList) -> None:
    link = tmp_path / "link"
    link.symlink_to(tasks.directory)
    for path in (tmp_path / "missing", tasks.put(1, "one"), link, "", "a\0b"):
        assert read_tasks(str(path), LOOP, LIST) is None


def test_only_numbered_files_are_tasks_and_only_so_many(tasks: TaskList) -> None:
    for name in ("a", "1a", "-1", "1234567", "1.5", "²", ""):
        tasks.put(name, "no task")
    assert tasks.read() == {}
    for number in range(600):
        tasks.put(number, "x")
    assert list(tasks.read() or ()) == [str(number) for number in range(500)]


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b'{"subject":"half', b"[]", b"null", b"\xff", b"\x00" * 99, b"{}" + b" " * (1 << 16),
        b'{"status":"pending"}', b'{"subject":1,"status":"pending"}', b'{"subject":"a"}',
        b'{"subject":"a","status":"deleted"}', b'{"subject":"a","status":["pending"]}',
        b'{"subject":"a","status":"pending","blockedBy":"1"}', b"[" * 60_000,
        b'{"subject":"a","status":"pending","blockedBy":[1]}', b'{"subject":NaN,"status":"pending"}',
    ],
)  # fmt: skip
def test_what_cannot_be_read_now_is_known_to_be_there(tasks: TaskList, content: bytes) -> None:
    tasks.raw(1, content)
    tasks.put(2, "two")
    assert tasks.read() == {"1": None, "2": ("two", "pending", [])}


def test_what_is_no_plain_file_is_not_opened(tasks: TaskList, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"subject":"a","status":"pending"}')
    (tasks.directory / "1.json").symlink_to(tmp_path / "secret.json")
    os.mkfifo(tasks.directory / "2.json")
    (tasks.directory / "3.json").mkdir()
    assert tasks.read() == {"1": None, "2": None, "3": None}


def test_tasks_of_others_are_left_out(tasks: TaskList) -> None:
    ours: list[Any] = [
        {"loopId": LOOP},
        {"loop": LIST},
        {"loop": "my list"},
        {"loop": ""},
        [],
        None,
    ]
    theirs: list[Any] = [{"loopId": "auth"}, {"loop": "L1"}, {"loop": 7}, {"_internal": True}]
    for number, metadata in enumerate(ours + theirs):
        tasks.put(number, "x", metadata=metadata)
    assert list(tasks.read() or ()) == [str(number) for number in range(len(ours))]
