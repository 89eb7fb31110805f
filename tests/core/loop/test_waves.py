"""Order tasks by their dependencies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.loop.records import Task
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.loop.waves import find_cycle, lay_waves, start_order
from tests.support.events import build


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
def test_find_cycle_returns_only_tasks_of_the_cycle(
    depends: dict[str, list[str]], cycle: list[str]
) -> None:
    assert find_cycle(depends) == cycle


DEPENDENCIES = st.dictionaries(
    st.sampled_from("ABCDEFGH"), st.lists(st.sampled_from("ABCDEFGHX"), max_size=4)
)


@given(DEPENDENCIES)
def test_find_cycle_returns_a_cycle_unless_all_tasks_can_start(
    depends: dict[str, list[str]],
) -> None:
    cycle = find_cycle(depends)
    assert bool(cycle) == (len(start_order(depends)) < len(depends))
    for task, following in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True):
        assert following in depends[task]


@given(DEPENDENCIES)
def test_lay_waves_places_each_task_after_its_dependencies(depends: dict[str, list[str]]) -> None:
    tasks = {name: build(Task, id=name, depends=names) for name, names in depends.items()}
    lay_waves(build(Loop, tasks=tasks, waves_due=len(tasks)))
    if find_cycle(depends) or not any(depends.values()):
        return
    for name, names in depends.items():
        before = [tasks[other].wave or 0 for other in names if other in tasks]
        assert tasks[name].wave == max(before, default=0) + 1
