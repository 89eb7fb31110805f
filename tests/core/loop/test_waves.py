"""Order of tasks by their dependencies and waves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.loop.records import Task
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.loop.waves import find_cycle, lay_waves, start_order
from gsd_fsm.engine.status import status_view
from tests.support.events import build
from tests.support.story import Story

Depends = dict[str, list[str]]


@pytest.mark.parametrize(
    ("depends", "cycle"),
    [
        ({"A": [], "B": ["A"], "C": ["A", "B"]}, []),
        ({"A": ["A"]}, ["A"]),
        ({"A": ["B"], "B": ["C"], "C": ["B"], "D": ["C"]}, ["B", "C"]),
        ({"X": ["C"], "C": ["A"], "B": ["C"], "A": ["X", "B"]}, ["X", "C", "A"]),
        ({"A": ["unknown"], "B": ["A"]}, []),
    ],
)
def test_find_cycle_returns_only_tasks_of_the_cycle(depends: Depends, cycle: list[str]) -> None:
    assert find_cycle(depends) == cycle


DEPENDENCIES = st.dictionaries(
    st.sampled_from("ABCDEFGH"), st.lists(st.sampled_from("ABCDEFGHX"), max_size=4)
)


@given(DEPENDENCIES)
def test_find_cycle_returns_a_cycle_unless_all_tasks_can_start(depends: Depends) -> None:
    cycle = find_cycle(depends)
    assert bool(cycle) == (len(start_order(depends)) < len(depends))
    for task, following in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True):
        assert following in depends[task]


@given(DEPENDENCIES)
def test_lay_waves_places_each_task_after_its_dependencies(depends: Depends) -> None:
    tasks = {name: build(Task, id=name, depends=names) for name, names in depends.items()}
    lay_waves(build(Loop, tasks=tasks, waves_due=len(tasks)))
    if find_cycle(depends) or not any(depends.values()):
        return
    for name, names in depends.items():
        before = [tasks[other].wave or 0 for other in names if other in tasks]
        assert tasks[name].wave == max(before, default=0) + 1


def test_wave_is_first_with_open_tasks_else_last_and_explicit_ones_stay() -> None:
    tasks = [{"id": "A", "wave": 1}, {"id": "B", "wave": 2}, {"id": "C", "wave": 2}]
    story = Story("execute", tasks=tasks)
    waves = []
    for name in ("A", "B", "C"):
        waves.append(status_view(story.loop, "")["wave"])
        story.task(name, "skipped")
    assert [*waves, status_view(story.loop, "")["wave"]] == [1, 2, 2, 2]
    assert status_view(Story("goal").loop, "")["wave"] is None
    story = Story("goal", tasks=[{"id": "A", "wave": 3}, {"id": "B", "wave": 1, "depends": ["A"]}])
    assert [task.wave for task in story.loop.tasks.values()] == [3, 1]
    story.task("C", "pending", depends=["A"], wave=7)
    assert [task.wave for task in story.loop.tasks.values()] == [3, 1, 7]
