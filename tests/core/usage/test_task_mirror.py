"""A loop follows the client's own list of tasks: legally, up to its end, and nothing twice."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from gsd_fsm.core.usage.task_list import ClientTask, mirror
from gsd_fsm.core.usage.task_list import completed_task as completed
from gsd_fsm.core.usage.task_list import created_task as created
from tests.support.story import Story


def follow(story: Story, listed: dict[str, ClientTask | None] | None) -> list[str]:
    """Bring the loop up to the list, event by event; none may be refused."""
    told = []
    for data in mirror(story.loop, listed):
        story("task", **data, _by="hook")
        told.append(f"{data['task']} {data['status']}")
    return told


def listed(**tasks: str) -> dict[str, ClientTask | None]:
    """`_1="completed"`, `_2="pending 1 3"`: a status, and what it is blocked by."""
    found: dict[str, ClientTask | None] = {}
    for name, words in tasks.items():
        status, *blockers = words.split()
        found[name[1:]] = ClientTask(f"do {name[1:]}", status, blockers)
    return found


def statuses(story: Story) -> dict[str, str]:
    return {task_id: task.status for task_id, task in story.loop.tasks.items()}


def test_a_new_task_comes_with_what_it_waits_for() -> None:
    story = Story("goal", criteria=[{"name": "C"}])
    data = mirror(story.loop, listed(_1="pending", _2="pending 1 1 7"))
    assert data == [
        {"task": "1", "status": "pending", "title": "do 1", "mirrored": True, "depends": []},
        {"task": "2", "status": "pending", "title": "do 2", "mirrored": True, "depends": ["1"]},
    ]
    follow(story, listed(_1="pending", _2="pending 1 1 7"))
    assert [task.wave for task in story.loop.tasks.values()] == [1, 2]
    assert follow(story, listed(_1="pending", _2="pending 1")) == []


def test_the_loop_follows_the_list_to_its_end() -> None:
    story = Story("goal")
    assert follow(story, listed(_1="in_progress", _2="pending 1")) == [
        "1 pending", "2 pending", "1 running",
    ]  # fmt: skip
    assert follow(story, listed(_1="in_progress", _2="pending 1")) == []
    assert follow(story, listed(_1="completed", _2="completed 1")) == [
        "1 complete", "2 running", "2 complete",
    ]  # fmt: skip
    assert follow(story, listed(_1="pending", _2="in_progress")) == [
        "client-1 pending", "client-2 pending", "client-2 running",
    ]  # fmt: skip
    assert follow(story, {}) == ["client-1 skipped", "client-2 skipped"]


def test_what_is_deleted_is_skipped_and_what_is_unreadable_stays() -> None:
    story = Story("goal", tasks=[{"id": "T1"}])
    follow(story, listed(_1="completed", _2="in_progress", _3="pending", _4="pending"))
    assert follow(story, {"2": None, **listed(_3="pending")}) == ["4 skipped"]
    assert follow(story, None) == []
    assert follow(story, {}) == ["2 skipped", "3 skipped"]
    assert statuses(story)["T1"] == "pending"


def test_what_is_told_later_to_wait_waits() -> None:
    story = Story("goal")
    for number in ("1", "2"):
        for data in created(story.loop, number, f"do {number}"):
            story("task", **data)
    assert follow(story, listed(_1="pending", _2="pending 1")) == ["2 pending"]
    assert list(story.loop.tasks["2"].depends) == ["1"]
    assert follow(story, listed(_1="pending", _2="in_progress 1")) == []
    assert follow(story, {**listed(_2="in_progress 1")}) == ["1 skipped", "2 running"]


def test_a_number_that_another_task_has_is_given_a_name() -> None:
    story = Story("goal", tasks=[{"id": "1", "title": "our own"}])
    follow(story, listed(_1="in_progress", _2="pending 1"))
    assert list(story.loop.tasks["2"].depends) == ["client-1"]
    assert statuses(story) == {"1": "pending", "client-1": "running", "2": "pending"}
    # The client has begun a list anew: its numbers mean other tasks now.
    again: dict[str, ClientTask | None] = {"1": ClientTask("something else", "pending", [])}
    follow(story, again)
    assert statuses(story)["client-1-2"] == "pending"
    assert statuses(story)["client-1"] == "skipped"
    assert follow(story, again) == []
    assert follow(story, {"1": None}) == []


def test_a_circle_is_cut_and_the_rest_keeps_its_order() -> None:
    story = Story("goal")
    follow(
        story, listed(_1="pending 2", _2="pending 1", _3="pending 3", _4="pending 5", _5="pending")
    )
    depends = {name: list(task.depends) for name, task in story.loop.tasks.items()}
    assert depends == {"1": ["2"], "2": [], "3": [], "4": ["5"], "5": []}
    assert follow(story, listed(_4="pending 5", _5="pending 4"))[:1] == ["1 skipped"]
    assert not story.loop.tasks["5"].depends


def test_a_human_s_word_is_not_anticipated() -> None:
    story = Story("goal", mode="interactive")
    follow(story, listed(_1="in_progress", _2="in_progress"))
    story.task("1", "checkpoint", question="Which?")
    story.fail("2")
    assert follow(story, listed(_1="completed", _2="completed")) == []
    assert follow(story, {}) == []
    story("resume")
    assert follow(story, listed(_1="completed", _2="completed")) == ["2 running", "2 complete"]


def test_a_blocked_goal_and_a_loop_that_stands_still_move_nothing() -> None:
    story = Story("goal")
    story("score", spec_score=2, shape="blocked")
    assert follow(story, listed(_1="in_progress")) == ["1 pending"]
    story("pause", code="manual")
    assert follow(story, listed(_1="completed", _2="pending")) == []
    assert created(story.loop, "3", "x") == completed(story.loop, "3", "x") == []


def test_much_is_followed_in_several_calls() -> None:
    story = Story("goal")
    many = listed(**{f"_{n}": "in_progress" for n in range(30)})
    assert [len(follow(story, many)) for _ in range(3)] == [40, 20, 0]
    assert set(statuses(story).values()) == {"running"}


def test_a_title_is_clean_short_and_without_secrets() -> None:
    story = Story("goal")
    secret = "ghp_" + "a1B2" * 9
    subjects = [f"use {secret}", "one\ntwo\t\x1b[31m", "\ud800", "long " * 900, ""]
    tasks: dict[str, ClientTask | None] = {
        str(n): ClientTask(subject, "pending", []) for n, subject in enumerate(subjects)
    }
    follow(story, tasks)
    titles = [task.title for task in story.loop.tasks.values()]
    assert secret not in titles[0]
    assert "\n" not in titles[1]
    assert titles[2] == "\ufffd" * 3
    assert len(titles[3]) == 500
    assert follow(story, tasks) == []


# the hooks


def test_a_second_copy_of_the_hook_adds_nothing() -> None:
    story = Story("goal")
    expected = {"task": "1", "status": "pending", "title": "a", "mirrored": True, "depends": []}
    assert created(story.loop, "1", "a") == [expected]
    story("task", **expected)
    assert created(story.loop, "1", "a") == []
    assert [data["status"] for data in completed(story.loop, "1", "a")] == ["running", "complete"]
    for data in completed(story.loop, "1", "a"):
        story("task", **data)
    assert completed(story.loop, "1", "a") == []
    unknown = [(data["task"], data["status"]) for data in completed(story.loop, "7", "b")]
    assert unknown == [("7", "pending"), ("7", "running"), ("7", "complete")]
    for number in ("", "x", "1/2", "1234567", "²"):
        assert created(story.loop, number, "a") == completed(story.loop, number, "a") == []


client_lists = st.dictionaries(
    st.integers(1, 9).map(str),
    st.one_of(
        st.none(),
        st.builds(
            ClientTask,
            st.sampled_from(["a", "b"]),
            st.sampled_from(["pending", "in_progress", "completed"]),
            st.lists(st.integers(0, 9).map(str), max_size=4),
        ),
    ),
)


@example(
    [
        {"1": ClientTask("b", "pending", [])},
        {},
        {"1": ClientTask("b", "pending", [])},
        {"1": ClientTask("b", "completed", []), "2": ClientTask("a", "pending", ["1"])},
    ]
)
@given(st.lists(client_lists, max_size=5))
def test_whatever_the_client_says_nothing_is_refused_and_nothing_is_said_twice(
    told: list[dict[str, ClientTask | None]],
) -> None:
    story = Story("goal", tasks=[{"id": "3"}, {"id": "T1", "depends": ["3"]}])
    for tasks in told:
        follow(story, tasks)
        assert follow(story, tasks) == []
    end = listed(**{f"_{number}": "completed" for number in range(5)})
    follow(story, end)
    for task in story.loop.tasks.values():
        assert task.status in (("complete", "skipped") if task.mirrored else ("pending",))
