"""Order tasks by their dependencies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.loop.waves import find_cycle, start_order


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


@given(
    st.dictionaries(st.sampled_from("ABCDEFGH"), st.lists(st.sampled_from("ABCDEFGHX"), max_size=4))
)
def test_find_cycle_returns_a_cycle_unless_all_tasks_can_start(
    depends: dict[str, list[str]],
) -> None:
    cycle = find_cycle(depends)
    assert bool(cycle) == (len(start_order(depends)) < len(depends))
    for task, following in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True):
        assert following in depends[task]
