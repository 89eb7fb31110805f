"""A list of tasks that the client keeps itself: what is open there holds the loop that mirrors it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from gsd_fsm.core.journal.journal import Journal
from tests.support.events import append, draft
from tests.support.hook_agent import Agent, start


def home() -> Path:
    return Path(os.environ["HOME"])


def put(number: str, status: str, name: str = "my-loop", **more: Any) -> Path:
    place = home() / ".claude" / "tasks" / name
    place.mkdir(parents=True, exist_ok=True)
    task = {"id": number, "subject": f"subject {number}", "description": "d", "status": status}
    path = place / f"{number}.json"
    path.write_text(json.dumps({**task, "blocks": [], "blockedBy": [], **more}, indent=2))
    return path


def tasks(agent: Agent) -> dict[str, tuple[str, str]]:
    return {t["id"]: (t["title"], t["status"]) for t in agent.here.status()["tasks"]}


def test_pending_tasks_of_the_list_keep_the_loop_going_until_they_are_done(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my loop")
    put("1", "completed")
    put("2", "in_progress", blockedBy=["1"])
    put("3", "pending", blockedBy=["2"])
    agent.here.ok("exit-signal", env=agent.shell)
    folder = put("3", "pending", blockedBy=["2"]).parent
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    text = agent.blocked()
    assert "task 2 is running; task 3 is pending" in text
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    # What was done before anybody here knew of it holds nothing up.
    assert tasks(agent) == {"2": ("subject 2", "running"), "3": ("subject 3", "pending")}
    assert [task["wave"] for task in agent.here.status()["tasks"]] == [1, 2]
    put("2", "completed")
    put("3", "completed")
    assert "completed" in agent.allowed()


def test_a_task_that_is_opened_again_holds_the_loop_again(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my-loop")
    agent.here.ok("exit-signal", env=agent.shell)
    for status in ("pending", "completed"):
        put("1", status)
        put("2", "pending")
        agent.blocked()
    put("1", "pending")
    put("2", "completed")
    assert "task client-1 is pending" in agent.blocked()
    put("1", "completed")
    agent.allowed()


def test_many_completed_tasks_are_no_reason_to_be_held(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my-loop")
    agent.here.ok("exit-signal", env=agent.shell)
    for number in range(1, 90):
        put(str(number), "completed")
    assert "completed" in agent.allowed()


def test_the_command_that_completes_looks_at_the_list_too(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "auto")
    agent.here.ok("exit-signal", env=agent.shell)
    put("1", "pending", name=agent.session)
    answer = agent.here.run("complete", env=agent.shell)
    assert (answer.code, "task 1 is pending" in answer.err) == (4, True)
    put("1", "completed", name=agent.session)
    agent.here.ok("complete", env=agent.shell)


def test_an_agent_settles_no_task_of_the_list_anywhere_else(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my-loop")
    put("1", "pending")
    text = agent.blocked()
    assert "Do task 1 (subject 1) of your task list and mark it completed there." in text
    for status in ("running", "complete", "skipped"):
        answer = agent.here.refused(4, "task", "1", status, env=agent.shell)
        assert "belongs to the client's task list" in answer.err
    agent.here.ok("task", "1", "skipped")


def test_a_task_that_was_deleted_no_longer_holds_the_loop(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my-loop")
    path = put("1", "pending")
    agent.here.ok("exit-signal", env=agent.shell)
    agent.blocked()
    path.unlink()
    agent.allowed()
    assert tasks(agent) == {"1": ("subject 1", "skipped")}


def test_tasks_of_another_loop_and_damaged_files_are_left_alone(agent: Agent) -> None:
    loop = start(agent, "goal", "g", "--task-list", "my-loop")
    put("1", "pending", metadata={"loopId": "another"})
    put("2", "pending").write_text('{"id": "2", "subj')
    put("3", "pending").write_text("[]")
    put("4", "dreaming")
    put("5", "pending", metadata={"loopId": loop})
    (home() / ".claude/tasks/my-loop/6.json").symlink_to("/etc/hostname")
    os.mkfifo(home() / ".claude/tasks/my-loop/7.json")
    agent.blocked()
    assert list(tasks(agent)) == ["5"]


def test_a_half_written_file_does_not_undo_what_was_known_of_it(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my-loop")
    path = put("1", "pending")
    agent.blocked()
    path.write_text("")
    agent.uses_a_tool()
    agent.blocked()
    assert tasks(agent) == {"1": ("subject 1", "pending")}


def test_made_and_completed_tasks_are_journalled_at_once_and_once(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "auto")
    facts = {"task_id": "1", "task_subject": "alpha", "task_description": "d"}
    agent.context("TaskCreated", **facts)
    agent.twin("two").context("TaskCreated", **facts)
    assert tasks(agent) == {"1": ("alpha", "pending")}
    agent.context("TaskCompleted", **facts)
    before = agent.here.journal.read_bytes()
    agent.twin("two").context("TaskCompleted", **facts)
    assert tasks(agent) == {"1": ("alpha", "complete")}
    assert agent.new(before) == []


def test_tasks_of_a_list_that_is_not_mirrored_are_not_journalled(agent: Agent) -> None:
    facts = {"task_id": "1", "task_subject": "alpha", "task_description": "d"}
    start(agent, "goal", "g", "--task-list", "my-loop")
    before = agent.here.journal.read_bytes()
    agent.context("TaskCreated", **facts)
    assert agent.new(before) == []
    agent.context("TaskCreated", env={"CLAUDE_CODE_TASK_LIST_ID": "my loop"}, **facts)
    assert [event["type"] for event in agent.new(before)] == ["task"]


def test_a_list_that_the_user_has_named_is_mirrored_by_itself_unless_it_is_not_wanted(
    agent: Agent,
) -> None:
    named = {"CLAUDE_CODE_TASK_LIST_ID": "my loop"}
    put("1", "pending")
    start(agent, "goal", "g")
    agent.here.ok("exit-signal", env=agent.shell)
    assert "task 1 is pending" in agent.blocked(env=named)
    agent.here.ok("cancel")
    start(agent, "goal", "g", "--task-list", "none")
    agent.here.ok("exit-signal", env=agent.shell)
    assert "completed" in agent.allowed(env=named)


def test_open_tasks_of_an_earlier_session_hold_the_loop_until_they_are_settled(
    agent: Agent,
) -> None:
    start(agent, "goal", "g", "--task-list", "auto")
    put("1", "in_progress", name=agent.session)
    put("2", "pending", name=agent.session)
    agent.blocked()
    later = agent.other("s-later")
    agent.here.ok("resume", env=later.shell)
    put("1", "pending", name=later.session, subject="subject 1")
    agent.here.ok("exit-signal", env=later.shell)
    text = later.blocked()
    assert "task 1 is running; task 2 is pending; task client-1 is pending" in text
    # Its client cannot reach them any more: it settles them here.
    assert "Finish task 1 (subject 1)." in text
    for task_id, status in (("1", "complete"), ("2", "running"), ("2", "complete")):
        agent.here.ok("task", task_id, status, env=later.shell)
    put("1", "pending", name=agent.session)
    assert "of your task list" in later.blocked()
    put("1", "completed", name=later.session)
    assert "completed" in later.allowed()


def test_a_number_that_the_loop_has_already_is_told_apart(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my-loop", "--task", "1:ours")
    put("1", "pending")
    agent.blocked()
    assert tasks(agent) == {"1": ("ours", "pending"), "client-1": ("subject 1", "pending")}


def test_secrets_in_subjects_do_not_reach_the_journal(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my-loop")
    secret = "ghp_" + "a1B2" * 9
    put("1", "pending", subject=f"use {secret}")
    agent.blocked()
    assert secret not in agent.here.journal.read_text()
    assert "use " in tasks(agent)["1"][0]


def test_tasks_of_a_goal_that_is_unclear_are_known_and_not_begun(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my-loop")
    points = ("--outcome", "0", "--scope", "0", "--constraints", "2", "--success", "2", "--done")
    agent.here.ok("score", *points, "0", env=agent.shell)
    agent.here.ok("answer", "more words")
    put("1", "in_progress")
    agent.blocked()
    assert agent.err == ""
    assert tasks(agent) == {"1": ("subject 1", "pending")}


def test_tasks_of_which_the_list_was_not_recorded_are_those_of_the_list_now(agent: Agent) -> None:
    loop = start(agent, "goal", "g", "--task-list", "auto")
    agent.here.ok("exit-signal", env=agent.shell)
    old = {"task": "1", "status": "pending", "title": "subject 1", "mirrored": True, "depends": []}
    event = draft("task", loop, "hook", old, session=agent.session)
    append(Journal(str(agent.here.gsd)), event)
    put("1", "pending", name=agent.session)
    agent.blocked()
    agent.here.refused(4, "task", "1", "complete", env=agent.shell)
    put("1", "completed", name=agent.session)
    agent.allowed()


def test_tasks_of_a_list_that_the_client_no_longer_keeps_are_settled_here(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "auto")
    put("1", "pending", name=agent.session)
    agent.blocked()
    named = {"CLAUDE_CODE_TASK_LIST_ID": "team"}
    put("1", "pending", name="team")
    assert "task client-1 is pending" in agent.blocked(env=named)
    shell = {**agent.shell, **named}
    agent.here.refused(4, "task", "client-1", "skipped", env=shell)
    agent.here.ok("task", "1", "skipped", env=shell)
