"""Tasks and failures: allowed changes, retries and the classes of errors."""

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.core.loop.events.lifecycle import used_up_tasks
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.text.questions import pending_question
from tests.support.story import Story


def execute(**more: object) -> Story:
    return Story("execute", **{"tasks": [{"id": "T1"}, {"id": "T2"}], **more})


@pytest.mark.parametrize("most", [0, 1, 3])
def test_retry_limit_allows_exactly_n_then_pauses(most: int) -> None:
    story = execute(limits={"max_retries": most})
    for count in range(1, most + 1):
        assert story.fail("T1").status == "retrying"
        assert story.loop.tasks["T1"].retries == count
        assert story.task("T1", "running").status == "running"
    assert story.fail("T1").status == "paused"
    assert (story.loop.pause_code, str(most) in story.loop.pause_reason) == ("retries", True)
    assert (story.loop.tasks["T1"].retries, story.loop.tasks["T1"].status) == (most, "failed")


def test_retries_are_counted_for_each_task_alone() -> None:
    story = execute()
    for _ in range(3):
        story.fail("T1")
        assert story.fail("T2").status == "retrying"
    assert [task.retries for task in story.loop.tasks.values()] == [3, 3]
    assert story.fail("T2").status == "paused"


def test_completed_task_keeps_retry_count_and_clears_its_errors() -> None:
    story = execute()
    story.fail("T1")
    story.task("T1", "running")
    story.task("T1", "complete")
    assert (story.loop.tasks["T1"].retries, story.loop.tasks["T1"].errors) == (1, [])
    assert story.loop.last_error == "it broke"


def test_unfinished_task_can_fail_and_unknown_one_only_without_task_list() -> None:
    story = execute()
    assert story.fail("T1").tasks["T1"].status == "failed"
    story.task("T1", "running")
    story.task("T1", "complete")
    story.task("T2", "skipped")
    failure = {"error": "e", "class": "logic"}
    for task, status in (("T1", "complete"), ("T2", "skipped")):
        assert status in story.refused("failure", task=task, **failure).message
    refusal = story.refused("failure", task="T9", **failure)
    assert "T9" in refusal.message
    assert "T1, T2" in refusal.hint
    assert Story("execute").fail("T7").tasks["T7"].retries == 1


@pytest.mark.parametrize("task", ["T1", None])
def test_blocking_and_unknown_errors_pause_at_once(task: str | None) -> None:
    for class_ in ("blocking", "unknown"):
        story = execute()
        assert story.fail(task, class_).status == "paused"
        assert story.loop.pause_code == class_
        assert story.loop.tasks["T1"].retries == 0


@pytest.mark.parametrize("task", ["T1", None])
def test_transient_error_is_retried_once(task: str | None) -> None:
    story = execute()
    assert story.fail(task, "transient").status == "retrying"
    assert story.fail(task, "transient").status == "paused"
    assert story.loop.pause_code == "retries"
    assert "transient" in story.loop.pause_reason
    assert story.loop.tasks["T1"].retries == (1 if task else 0)


@pytest.mark.parametrize("task", ["T1", None])
def test_transient_error_is_retried_again_after_success_or_resume(task: str | None) -> None:
    story = execute()
    story.fail(task, "transient")
    story.fail(task, "logic")
    assert story.fail(task, "transient").status == "paused"
    story("resume", add={"max_retries": 3})
    assert story.fail(task, "transient").status == "retrying"
    if task is None:
        story.task("T1", "running")
        story.task("T1", "complete")
        assert story.fail(None, "transient").status == "retrying"


@pytest.mark.parametrize("most", [0, 3])
def test_retries_that_are_used_up_are_not_called_transient(most: int) -> None:
    story = execute(limits={"max_retries": most})
    for class_ in ("transient", *["logic"] * most):
        story.fail("T1", class_)
    reason = f"Task T1 failed after {most} retries"
    assert (story.loop.pause_code, story.loop.pause_reason) == ("retries", reason)


def test_failure_without_auto_loop_pauses_with_report() -> None:
    story = execute(auto_loop=False)
    assert story.fail("T1").status == "paused"
    assert (story.loop.pause_code, story.loop.last_error) == ("manual", "it broke")
    story("resume")
    assert story.fail("T1", "blocking").pause_code == "blocking"


def test_loop_runs_again_when_last_failed_task_restarts() -> None:
    story = execute()
    story.fail("T1")
    story.fail("T2")
    assert story.task("T1", "running").status == "retrying"
    assert story.task("T2", "running").status == "running"
    story.fail("T1")
    assert story.task("T1", "skipped").status == "running"
    story.gap("G1")
    story.fail("T2")
    assert story.task("T2", "running").status == "fixing"


@pytest.mark.parametrize(("retries", "kept"), [(0, "cbd"), (2, "cbd"), (3, "acbd"), (99, "acbd")])
def test_task_keeps_error_of_every_attempt_and_loop_its_last_three(retries: int, kept: str) -> None:
    story = execute()
    for text in "abcbd":
        story.loop.limits.max_retries = 99 if text != "d" else retries
        story.fail("T1", error=text)
    assert "".join(error.text for error in story.loop.tasks["T1"].errors) == kept
    assert "".join(error.text for error in story.loop.errors) == "cbd"


def test_errors_with_same_signature_are_equal() -> None:
    story = execute()
    story.fail("T1", error="at 10:00", signature="at T")
    story.fail("T1", error="at 10:01", signature="at T", analysis="why", fix="how")
    (error,) = story.loop.errors
    assert (error.text, error.analysis, error.fix) == ("at 10:01", "why", "how")


def grant(story: Story, count: int, **words: Any) -> Loop:
    """Resume with more retries, as the command does it."""
    retried = used_up_tasks(story.loop)
    words.update({"retry": retried} if retried else {})
    return story("resume", add={"max_retries": count}, **words)


def attempts_until_pause(story: Story, task: str = "T1") -> list[int]:
    """Let a task fail until the loop pauses; return the retry number of each attempt."""
    numbers = []
    while story.status != "paused":
        story.task(task, "running")
        numbers.append(story.loop.tasks[task].retries)
        story.fail(task)
    return numbers


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("most", [0, 1, 3])
def test_added_retries_grant_as_many_attempts_with_new_numbers(most: int, count: int) -> None:
    story = execute(limits={"max_retries": most})
    assert attempts_until_pause(story) == list(range(most + 1))
    for first in (most + 1, most + 1 + count):
        grant(story, count)
        assert attempts_until_pause(story) == list(range(first, first + count))


@pytest.mark.parametrize(("class_", "attempts"), [("", [1, 2]), ("logic", [2]), ("blocking", [2])])
def test_added_retry_is_granted_whatever_the_pause(class_: str, attempts: list[int]) -> None:
    story = execute(limits={"max_retries": 1})
    story.fail("T1")
    if class_:
        story.fail("T1", class_)
    else:  # a retry is unused
        story("pause", code="manual")
    grant(story, 1)
    assert attempts_until_pause(story) == attempts


def test_added_retry_counts_only_tasks_without_a_retry_left() -> None:
    story = execute(limits={"max_retries": 1})
    story.fail("T2")
    attempts_until_pause(story)
    grant(story, 1)
    assert {name: task.retries for name, task in story.loop.tasks.items()} == {"T1": 2, "T2": 1}


@pytest.mark.parametrize("by", ["human", "agent"])
@pytest.mark.parametrize("task", ["T1", None])
def test_loop_asks_after_a_failure_but_not_after_added_retries(by: str, task: str | None) -> None:
    story = execute(mode="interactive", limits={"max_retries": 0} if task else {})
    for class_ in ["logic"] if task else ["transient", "transient"]:
        story.fail(task, class_)
    assert story.loop.pause_code == "retries"
    story("session", action="prompt", _by="hook", _session="s-1")
    grant(story, 1, _by=by, _session="s-1")
    assert story.status == ("running" if task else "retrying")
    assert pending_question(story.loop) is None
    if task:
        story.task(task, "running")
        story.fail(task)
        assert story.loop.pause_code == "retries"
        grant(story, 2)
        story.task(task, "running")
        story.fail(task)
        asked = pending_question(story.loop)
        assert asked[1] == "Task T1 failed. Retry? (2/3 attempts used) [Y/n]"


@pytest.mark.parametrize(
    ("before", "allowed"),
    [
        ("pending", {"running", "skipped"}),
        ("running", {"running", "complete", "checkpoint", "skipped"}),
        ("failed", {"running", "skipped"}),
        ("checkpoint", {"running", "complete", "skipped"}),
        ("complete", set()),
        ("skipped", set()),
    ],
)
def test_task_status_changes_along_its_arrows_only(before: str, allowed: set[str]) -> None:
    for wanted in ("pending", "running", "complete", "checkpoint", "skipped"):
        story = execute()
        if before == "failed":
            story.fail("T1")
        for status in {"pending": [], "failed": []}.get(before, ["running", before]):
            story.task("T1", status)
        if wanted in allowed:
            assert story.task("T1", wanted).tasks["T1"].status == wanted
        else:
            story.refused("task", task="T1", status=wanted)


def test_task_with_checks_completes_only_as_proven_where_rules_ask_for_proofs() -> None:
    tasks = [{"id": "T1", "checks": 1}, {"id": "T2"}]
    story = execute(tasks=tasks, rules={"prove": True})
    for name in ("T1", "T2"):
        story.task(name, "running")
        story.task(name, "reported", verdict="complete")
    message = story.refused("task", task="T1", status="complete").message
    assert "task T1 has checks and is complete only when they pass" in message
    assert story.task("T1", "complete", proven=True).tasks["T1"].proof == "proven"
    assert story.task("T2", "complete").tasks["T2"].proof == "claimed"
    for rules in ({"rules": {"prove": False}}, {}):
        story = execute(tasks=tasks, **rules)
        story.task("T1", "running")
        assert story.task("T1", "complete").tasks["T1"].proof == "claimed"


def test_task_keeps_reference_commit_and_question() -> None:
    story = execute(tasks=[{"id": "T1", "title": "Login"}])
    story.task("T1", "running", ref="bg-1")
    story.task("T1", "checkpoint", question="Which port?")
    task = story.task("T1", "complete", commit="abc").tasks["T1"]
    kept = (task.title, task.ref, task.question, task.commit)
    assert kept == ("Login", "bg-1", "Which port?", "abc")


def test_task_cannot_start_before_its_dependencies_and_started_one_ignores_new_ones() -> None:
    story = execute(tasks=[{"id": "T1"}, {"id": "T2", "depends": ["T1"]}])
    assert "T1" in story.refused("task", task="T2", status="running").message
    story.task("T1", "running")
    story.refused("task", task="T2", status="running")
    story.task("T1", "complete")
    story.task("T2", "running")
    story = Story("goal", tasks=[{"id": "T1"}, {"id": "T2"}])
    assert not story.task("T1", "running", depends=["T2"]).tasks["T1"].depends
    story.task("T1", "complete")


def test_green_attempts_are_counted_from_one_each_time_green_is_entered_anew() -> None:
    story = execute()
    seen = []
    for phase in ("red", "green", "green", "green", "refactor", "red", "green"):
        task = story.task("T1", "running", phase=phase).tasks["T1"]
        assert task.phase == phase
        seen.append(task.attempts)
    assert seen == [0, 1, 2, 3, 3, 3, 1]
    story.refused("task", task="T1", status="complete", phase="green")
