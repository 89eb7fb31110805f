"""The client's task list: how its files are read, and how a loop follows it, legally and once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gsd_fsm.core.system import home
from gsd_fsm.core.usage.task_list import (
    ClientTask,
    completed_task,
    created_task,
    list_directory,
    mirror,
    read_tasks,
)
from tests.support.story import Story

LOOP, LIST = "lp-1", "my-list"
Tasks = dict[str, ClientTask | None]


class ListFiles:
    """The files of a list, as the client keeps them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        (directory / ".lock").write_bytes(b"")
        (directory / ".highwatermark").write_text("3")

    def put(self, number: int | str, subject: Any, status: Any = "pending", **more: Any) -> Path:
        task = {"id": str(number), "subject": subject, "description": "d", "status": status}
        path = self.directory / f"{number}.json"
        path.write_text(json.dumps({**task, "blocks": [], "blockedBy": [], **more}, indent=2))
        return path

    def read(self) -> dict[str, Any]:
        found = read_tasks(str(self.directory), LOOP, LIST) or {}
        return {
            n: task and (task.subject, task.status, task.blocked_by) for n, task in found.items()
        }


@pytest.fixture
def files(tmp_path: Path) -> ListFiles:
    return ListFiles(tmp_path / "tasks" / LIST)


CONFIGURED = {"CLAUDE_CODE_TASK_LIST_ID": "my list/1", "CLAUDE_CONFIG_DIR": "/c"}


@pytest.mark.parametrize(
    ("name", "session", "variables", "expected"),
    [
        ("auto", "6a2b21fd-1", {}, "HOME/.claude/tasks/6a2b21fd-1"),
        ("auto", "s", CONFIGURED, "/c/tasks/my-list-1"),
        ("../ü 😀", "s", CONFIGURED, "/c/tasks/-------"),
        ("auto", "", {}, ""),
        ("", "s", CONFIGURED, ""),
    ],
)
def test_list_directory_is_named_by_the_user_or_the_session(
    name: str, session: str, variables: dict[str, str], expected: str
) -> None:
    found = list_directory(name, session, lambda variable: variables.get(variable, ""))
    assert Path(found) == Path(expected.replace("HOME", home()))


def test_tasks_are_read_in_the_order_of_their_numbers(files: ListFiles) -> None:
    files.put(10, "ten", "in_progress", blockedBy=["2", "9"], owner="me", activeForm="x")
    files.put(2, "two", "completed")
    files.put(1, "one", metadata={"n": 3})
    ten = ("10", ("ten", "in_progress", ["2", "9"]))
    in_order = [("1", ("one", "pending", [])), ("2", ("two", "completed", [])), ten]
    assert list(files.read().items()) == in_order


def test_list_that_is_not_a_directory_is_not_read(tmp_path: Path, files: ListFiles) -> None:
    link = tmp_path / "link"
    link.symlink_to(files.directory)
    for path in (tmp_path / "missing", files.put(1, "one"), link, "", "a\0b"):
        assert read_tasks(str(path), LOOP, LIST) is None


def test_only_the_first_500_numbered_files_are_tasks(files: ListFiles) -> None:
    for name in ("a", "1a", "-1", "1234567", "1.5", "²", ""):
        files.put(name, "no task")
    assert files.read() == {}
    for number in range(600):
        files.put(number, "x")
    assert list(files.read()) == [str(number) for number in range(500)]


UNREADABLE = (
    b"", b"{", b'{"subject":"half', b"[]", b"null", b"\xff", b"\x00" * 99, b"{}" + b" " * (1 << 16),
    b'{"status":"pending"}', b'{"subject":1,"status":"pending"}', b'{"subject":"a"}',
    b'{"subject":"a","status":"deleted"}', b'{"subject":"a","status":["pending"]}',
    b'{"subject":"a","status":"pending","blockedBy":"1"}', b"[" * 60_000,
    b'{"subject":"a","status":"pending","blockedBy":[1]}', b'{"subject":NaN,"status":"pending"}',
)  # fmt: skip


def test_unreadable_tasks_are_none(files: ListFiles) -> None:
    for number, content in enumerate(UNREADABLE, 1):
        (files.directory / f"{number}.json").write_bytes(content)
    files.put(99, "one")
    none = {str(number): None for number in range(1, len(UNREADABLE) + 1)}
    assert files.read() == {**none, "99": ("one", "pending", [])}


def test_task_that_is_not_a_regular_file_is_none(files: ListFiles, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"subject":"a","status":"pending"}')
    (files.directory / "1.json").symlink_to(tmp_path / "secret.json")
    os.mkfifo(files.directory / "2.json")
    (files.directory / "3.json").mkdir()
    assert files.read() == {"1": None, "2": None, "3": None}


def test_tasks_of_other_loops_are_left_out(files: ListFiles) -> None:
    ours = ({"loopId": LOOP}, {"loop": LIST}, {"loop": "my list"}, {"loop": ""}, [], None)
    theirs = ({"loopId": "auth"}, {"loop": "L1"}, {"loop": 7}, {"_internal": True})
    for number, metadata in enumerate((*ours, *theirs)):
        files.put(number, "x", metadata=metadata)
    assert list(files.read()) == [str(number) for number in range(len(ours))]


# events


def follow(story: Story, tasks: Tasks | None) -> list[str]:
    """Make the loop agree with the list, event by event; none may be refused."""
    changes = []
    for data in mirror(story.loop, tasks):
        story("task", **data, _by="hook")
        changes.append(f"{data['task']} {data['status']}")
    return changes


def listed(**tasks: str) -> Tasks:
    """Return a list: `_1="completed"`, `_2="pending 1 3"` (a status, and its blockers)."""
    found: Tasks = {}
    for name, words in tasks.items():
        status, *blockers = words.split()
        found[name[1:]] = ClientTask(f"do {name[1:]}", status, blockers)
    return found


def statuses(story: Story) -> dict[str, str]:
    return {task_id: task.status for task_id, task in story.loop.tasks.items()}


def test_new_task_depends_on_its_known_blockers() -> None:
    story = Story("goal", criteria=[{"name": "C"}])
    tasks = listed(_1="pending", _2="pending 1 1 7")
    assert mirror(story.loop, tasks) == [
        {"task": "1", "status": "pending", "title": "do 1", "mirrored": True, "depends": []},
        {"task": "2", "status": "pending", "title": "do 2", "mirrored": True, "depends": ["1"]},
    ]
    follow(story, tasks)
    assert [task.wave for task in story.loop.tasks.values()] == [1, 2]
    assert follow(story, listed(_1="pending", _2="pending 1")) == []


def test_loop_follows_the_list_to_its_end() -> None:
    story = Story("goal", tasks=[{"id": "T1"}])
    for tasks, changes in (
        (listed(_1="in_progress", _2="pending 1"), "1 pending, 2 pending, 1 running"),
        ({"1": None, **listed(_2="pending 1")}, ""),  # it cannot be read
        (None, ""),
        (listed(_1="completed", _2="completed 1"), "1 complete, 2 running, 2 complete"),
        (listed(_1="pending", _2="in_progress"),
         "client-1 pending, client-2 pending, client-2 running"),
        (listed(_2="in_progress"), "client-1 skipped"),
        ({}, "client-2 skipped"),
    ):  # fmt: skip
        assert ", ".join(follow(story, tasks)) == changes
        assert follow(story, tasks) == []
    assert statuses(story)["T1"] == "pending"


def test_blocker_that_is_added_later_delays_its_task() -> None:
    story = Story("goal")
    for number in ("1", "2"):
        for data in created_task(story.loop, number, f"do {number}"):
            story("task", **data)
    assert follow(story, listed(_1="pending", _2="pending 1")) == ["2 pending"]
    assert list(story.loop.tasks["2"].depends) == ["1"]
    assert follow(story, listed(_1="pending", _2="in_progress 1")) == []
    assert follow(story, listed(_2="in_progress 1")) == ["1 skipped", "2 running"]


def test_number_that_another_task_has_becomes_a_new_id() -> None:
    story = Story("goal", tasks=[{"id": "1", "title": "our own"}])
    follow(story, listed(_1="in_progress", _2="pending 1"))
    assert list(story.loop.tasks["2"].depends) == ["client-1"]
    again: Tasks = {"1": ClientTask("of a new list", "pending", [])}
    follow(story, again)
    done = {"1": "pending", "client-1": "skipped", "2": "skipped", "client-1-2": "pending"}
    assert statuses(story) == done
    assert follow(story, again) == follow(story, {"1": None}) == []


def test_cycle_is_cut_and_other_dependencies_stay() -> None:
    story = Story("goal")
    cycle = {"_1": "pending 2", "_2": "pending 1", "_3": "pending 3"}
    follow(story, listed(**cycle, _4="pending 5", _5="pending"))
    depends = {name: list(task.depends) for name, task in story.loop.tasks.items()}
    assert depends == {"1": ["2"], "2": [], "3": [], "4": ["5"], "5": []}
    assert follow(story, listed(_4="pending 5", _5="pending 4"))[:1] == ["1 skipped"]
    assert not story.loop.tasks["5"].depends


def test_task_that_awaits_a_decision_of_the_user_does_not_move() -> None:
    story = Story("goal", mode="interactive")
    follow(story, listed(_1="in_progress", _2="in_progress"))
    story.task("1", "checkpoint", question="Which?")
    story.fail("2")
    assert follow(story, listed(_1="completed", _2="completed")) == []
    assert follow(story, {}) == []
    story("resume")
    assert follow(story, listed(_1="completed", _2="completed")) == ["2 running", "2 complete"]


def test_tasks_of_an_unclear_or_paused_goal_do_not_start() -> None:
    story = Story("goal")
    story("score", spec_score=2, shape="blocked")
    assert follow(story, listed(_1="in_progress")) == ["1 pending"]
    story("pause", code="manual")
    assert follow(story, listed(_1="completed", _2="pending")) == []
    assert created_task(story.loop, "3", "x") == completed_task(story.loop, "3", "x") == []


def test_title_is_cleaned_shortened_and_redacted() -> None:
    story = Story("goal")
    secret = "ghp_" + "a1B2" * 9
    subjects = [f"use {secret}", "one\ntwo\t\x1b[31m", "\ud800", "long " * 900, ""]
    tasks: Tasks = {str(n): ClientTask(text, "pending", []) for n, text in enumerate(subjects)}
    follow(story, tasks)
    titles = [task.title for task in story.loop.tasks.values()]
    assert secret not in titles[0]
    assert "\n" not in titles[1]
    assert (titles[2], len(titles[3])) == ("\ufffd" * 3, 500)
    assert follow(story, tasks) == []


def test_many_changes_are_spread_over_several_calls() -> None:
    story = Story("goal")
    many = listed(**{f"_{n}": "in_progress" for n in range(30)})
    assert [len(follow(story, many)) for _ in range(3)] == [40, 20, 0]
    assert set(statuses(story).values()) == {"running"}


def test_created_and_completed_task_is_recorded_once() -> None:
    story = Story("goal")
    for record, number, statuses in (
        (created_task, "1", ["pending"]),
        (completed_task, "1", ["running", "complete"]),
        (completed_task, "7", ["pending", "running", "complete"]),  # it was not known
    ):
        changes = record(story.loop, number, "a")
        assert [(data["task"], data["status"]) for data in changes] == [
            (number, it) for it in statuses
        ]
        for data in changes:
            story("task", **data)
        assert record(story.loop, number, "a") == []
    for record in (created_task, completed_task):
        for number in ("", "x", "1/2", "1234567", "²"):
            assert record(story.loop, number, "a") == []


client_lists = st.dictionaries(st.integers(1, 9).map(str), st.one_of(st.none(), st.builds(
    ClientTask,
    st.sampled_from(["a", "b"]),
    st.sampled_from(["pending", "in_progress", "completed"]),
    st.lists(st.integers(0, 9).map(str), max_size=4),
)))  # fmt: skip
ONE = ClientTask("b", "pending", [])


@example(
    [{"1": ONE}, {}, {"1": ONE}, {"1": ClientTask("b", "completed", []), "2": ClientTask("a", "pending", ["1"])}]
)  # fmt: skip
@given(st.lists(client_lists, max_size=5))
def test_any_list_is_followed_without_refusal_and_without_repetition(lists: list[Tasks]) -> None:
    story = Story("goal", tasks=[{"id": "3"}, {"id": "T1", "depends": ["3"]}])
    for tasks in lists:
        follow(story, tasks)
        assert follow(story, tasks) == []
    follow(story, listed(**{f"_{number}": "completed" for number in range(5)}))
    for task in story.loop.tasks.values():
        assert task.status in (("complete", "skipped") if task.mirrored else ("pending",))
