"""Tasks of a goal: what blocks them, the waves that follow from it, and circles that cannot be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.loop.records import Task
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.loop.waves import find_cycle, lay_waves
from tests.support.command_line import Here
from tests.support.events import build
from tests.support.goal_scores import CLEAR, score


def waves(here: Here) -> dict[str, int | None]:
    return {task["id"]: task["wave"] for task in here.status()["tasks"]}


def test_waves_follow_from_what_blocks_each_task(here: Here) -> None:
    names = [x for name in "ABCD" for x in ("--task", name)]
    blocked = ("--blocked-by", "C=A,B", "--blocked-by", "D=C")
    here.start("goal", "g", *names, *blocked)
    assert waves(here) == {"A": 1, "B": 1, "C": 2, "D": 3}
    assert here.status()["wave"] == 1


def test_next_names_all_that_can_be_done_at_the_same_time(here: Here) -> None:
    names = [x for name in "ABC" for x in ("--task", name)]
    here.start("goal", "g", *names, "--blocked-by", "C=A,B")
    assert "Start task A. These can run in parallel: B." in here.ok("next").out


def test_without_blockers_there_are_no_waves(here: Here) -> None:
    here.start("goal", "g", "--task", "A", "--step", "s")
    assert waves(here) == {"A": None, "S1": None}


def test_a_task_can_be_added_and_can_be_blocked_later(here: Here) -> None:
    here.start("goal", "g", "--task", "A")
    here.ok("task", "B", "pending", "--title", "Implement validateToken", "--blocked-by", "A")
    here.ok("task", "C", "pending")
    here.ok("task", "C", "pending", "--blocked-by", "A, B")
    task = here.status()["tasks"][1]
    assert (task["title"], task["depends"]) == ("Implement validateToken", ["A"])
    assert waves(here) == {"A": 1, "B": 2, "C": 3}
    assert "depends on unfinished tasks: A" in here.refused(4, "task", "B", "running").err


def test_circles_are_refused_wherever_they_close(here: Here) -> None:
    circle = ("--task", "A", "--task", "B", "--blocked-by", "A=B", "--blocked-by", "B=A")
    assert "dependency cycle: A → B → A" in here.refused(4, "start", "goal", "g", *circle).err
    here.start("goal", "g", "--task", "A", "--task", "B", "--blocked-by", "B=A")
    assert "dependency cycle" in here.refused(4, "task", "A", "pending", "--blocked-by", "B").err
    here.refused(4, "task", "A", "pending", "--blocked-by", "A")


@pytest.mark.parametrize("wrong", ["B", "B=", "=A", "X=A", "A=X", "A=../x"])
def test_a_blocker_that_is_no_task_is_refused(here: Here, wrong: str) -> None:
    here.refused(2, "start", "goal", "g", "--task", "A", "--task", "B", "--blocked-by", wrong)
    assert not here.journal.exists()


def test_what_blocks_a_task_must_be_known_and_belongs_to_a_pending_one(here: Here) -> None:
    here.start("goal", "g", "--task", "A")
    here.refused(2, "task", "B", "pending", "--blocked-by", "X")
    here.refused(2, "task", "A", "running", "--blocked-by", "A")
    here.refused(2, "task", "A", "running", "--title", "t")
    here.ok("task", "A", "running")
    here.ok("task", "B", "pending")
    here.refused(4, "task", "A", "pending", "--blocked-by", "B")
    assert "already exists" in here.refused(4, "task", "A", "pending").err


def test_a_light_review_is_due_between_waves_of_a_reviewed_goal(here: Here) -> None:
    here.start("goal", "g", "--task", "A", "--task", "B", "--blocked-by", "B=A", "--mode", "yolo")
    score(here, *CLEAR)
    here.ok("task", "A", "running")
    here.ok("task", "A", "complete")
    assert "review light --wave 1" in here.ok("next", "--json").json["command"]
    here.ok("review", "light", "--wave", "1", "--score", "8", "--issues", "2", "--blockers", "0")
    assert here.ok("next", "--json").json["command"].endswith("task B running")


@given(
    st.dictionaries(st.sampled_from("ABCDEFGH"), st.lists(st.sampled_from("ABCDEFGHX"), max_size=4))
)
def test_every_task_comes_after_all_that_it_depends_on(depends: dict[str, list[str]]) -> None:
    tasks = {name: build(Task, id=name, depends=names) for name, names in depends.items()}
    lay_waves(build(Loop, tasks=tasks, waves_due=len(tasks)))
    if find_cycle(depends) or not any(depends.values()):
        return
    for name, names in depends.items():
        before = [tasks[other].wave or 0 for other in names if other in tasks]
        assert tasks[name].wave == max(before, default=0) + 1


def test_a_task_that_comes_later_belongs_to_a_wave_too(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo")
    here.ok("task", "A", "pending")
    here.ok("task", "B", "pending", "--blocked-by", "A")
    here.ok("task", "C", "pending")
    assert [task["wave"] for task in here.status()["tasks"]] == [1, 2, 1]


def test_a_circle_is_refused_with_a_way_out_of_it(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--task", "A", "--task", "B", "--blocked-by", "B=A")
    assert (
        "Remove one of these dependencies"
        in here.refused(4, "task", "A", "pending", "--blocked-by", "B").err
    )


def test_a_decision_is_asked_for_and_then_told(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--step", "a")
    here.ok("task", "S1", "running")
    here.ok("task", "S1", "checkpoint", "--question", "drop the table?")
    said = here.ok("next", "--json").json["text"]
    assert "needs a decision: drop the table? Ask the user" in said


def test_tasks_of_the_gate_belong_to_no_wave(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--task", "A", "--task", "B", "--blocked-by", "B=A")
    for name in ("A", "B"):
        here.ok("task", name, "running")
        here.ok("task", name, "complete")
    assert here.run("complete").code == 4
    assert here.status()["wave"] == 2
    assert here.status()["tasks"][2]["wave"] is None
