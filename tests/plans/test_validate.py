"""Plans that hold together, and those that only look so."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.loop.limits import MOST_DEPENDENCIES, MOST_TASKS
from gsd_fsm.plans.validate import in_order
from tests.plans.test_load import broken, loaded, task

names = st.integers(0, 12).map(str)
graphs = st.dictionaries(names, st.lists(names, max_size=4), max_size=12)


@given(graphs)
def test_every_task_comes_after_what_it_needs_unless_there_is_a_circle(
    depends: dict[str, list[str]],
) -> None:
    order, circles = in_order(depends)
    assert sorted(order) == sorted(depends)
    for circle in circles:
        assert len(set(circle)) == len(circle)
        for name, needed in zip(circle, circle[1:] + circle[:1], strict=True):
            assert needed in depends[name]
    if not circles:
        place = {name: number for number, name in enumerate(order)}
        for name, needs in depends.items():
            assert all(place[other] < place[name] for other in needs if other in depends)


def test_a_circle_is_named_in_its_order_from_its_first_task(tmp_path: Path) -> None:
    text = "## Wave 1 (Sequential)\n" + "".join(
        task(number, 1, depends)
        for number, depends in (("01", "03"), ("02", "03"), ("03", "04"), ("04", "02"), ("05", ""))
    )
    assert broken(tmp_path, text) == [
        (8, "tasks 02 → 03 → 04 → 02 wait for each other in a circle")
    ]


def test_a_circle_over_several_waves_is_told_once(tmp_path: Path) -> None:
    ((line, what),) = broken(tmp_path, task("01", 1, "02") + task("02", 2, "01"))
    assert (line, what) == (1, "tasks 01 → 02 → 01 wait for each other in a circle")


def test_a_task_that_depends_on_itself_is_refused(tmp_path: Path) -> None:
    assert broken(tmp_path, task("01", 1, "T01")) == [(1, "task 01 depends on itself")]


def test_the_same_id_in_two_spellings_is_the_same_task(tmp_path: Path) -> None:
    assert broken(tmp_path, task("01") + task("T01")) == [(7, "task T01 stands at line 1 already")]


def test_unknown_dependencies_are_named_together(tmp_path: Path) -> None:
    what = "task 01 depends on 08, 09, which are not in the plan"
    assert broken(tmp_path, task("01", 1, "08,09")) == [(1, what)]


@pytest.mark.parametrize("number", ["..", "a..b", "a/b", "-x", ".x", "a b", "é", "1" * 64, "{id}"])
def test_an_id_that_is_none_is_refused(tmp_path: Path, number: str) -> None:
    problems = broken(tmp_path, task("01").replace('id="01"', f'id="{number}"'))
    assert (1, f"{number!r} is not the id of a task") in problems


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x",
        "a/../../x",
        "..\\x",
        "C:\\x",
        "c:x",
        "\\x",
        "\\\\host\\x",
        "~/x",
        "a\x1bb",
    ],
)
def test_a_path_that_leaves_the_project_is_refused(tmp_path: Path, path: str) -> None:
    for text in (
        task("01").replace(">01.py</file>", f">{path}</file>"),
        task("01").replace("<files>", f"<test_files><file>{path}</file></test_files><files>"),
    ):
        what = f"task 01: {path!r} is not a path inside the project"
        assert broken(tmp_path, text) == [(1, what)]


@pytest.mark.parametrize(
    "path", ["a/b.c", ".gsd/x", "app/[id]/page.tsx", "a..b", "x y", "…/é", "./a"]
)
def test_a_path_inside_may_be_strange(tmp_path: Path, path: str) -> None:
    text = task("01").replace(">01.py</file>", f">{path}</file>")
    assert loaded(tmp_path, text).tasks[0].files[0].path == path


def test_a_sequential_wave_may_depend_on_itself(tmp_path: Path) -> None:
    plan = loaded(tmp_path, "## Wave 1 (Sequential)\n" + task("01", 1, "02") + task("02"))
    assert plan.tasks[0].depends == ("T02",)


def test_a_dependency_named_twice_counts_once(tmp_path: Path) -> None:
    assert loaded(tmp_path, task("01") + task("02", 2, "01,T01,01")).tasks[1].depends == ("T01",)


def test_waves_follow_from_dependencies_in_any_order(tmp_path: Path) -> None:
    def bare(number: str, depends: str = "") -> str:
        return task(number, depends=depends).replace(' wave="1"', "")

    text = bare("03", "02") + bare("02", "01,05") + bare("01") + task("05", 4)
    waves = {it.number: it.wave for it in loaded(tmp_path, text).tasks}
    assert waves == {"03": 6, "02": 5, "01": 1, "05": 4}
    long = "".join(bare(str(n), str(n + 1) if n < 2_000 else "") for n in range(1, 2_001))
    assert loaded(tmp_path, long).tasks[-1].wave == 2_000


def test_what_is_odd_is_a_warning(tmp_path: Path) -> None:
    same = "".join(task(number).replace(f">{number}.py<", ">same.py<") for number in ("01", "02"))
    plan = loaded(tmp_path, same + task("03", 3) + "## Wave 4\n")
    assert plan.warnings == (
        "no task belongs to wave 2, 4",
        "tasks 01, 02 of wave 1 run at once, and all change same.py",
    )
    assert loaded(tmp_path, "## Wave 1 (Sequential)\n" + same).warnings == ()
    far = loaded(tmp_path, task("01", 999_999)).warnings
    assert far == ("no task belongs to wave 1, 2, 3, 4, 5, 6, 7, 8, 9, 10",)


def test_plan_with_more_tasks_than_a_loop_may_have_is_refused(tmp_path: Path) -> None:
    line = '<task id="{}" wave="1"><action>a</action><verify>v</verify><done>d</done></task>\n'
    most = "".join(map(line.format, range(MOST_TASKS)))
    assert len(loaded(tmp_path, most).tasks) == MOST_TASKS
    for text in (most + task("x"), '{"tasks": [' + ", ".join(["{}"] * (MOST_TASKS + 1)) + "]}"):
        ((_, what),) = broken(tmp_path, text)
        assert what == "a plan has at most 25,000 tasks"


def test_plan_with_more_dependencies_than_a_loop_may_have_is_refused(tmp_path: Path) -> None:
    many = ",".join(f"{number:04d}" for number in range(MOST_DEPENDENCIES + 1))
    found = broken(tmp_path, task("x", 2, many))
    assert "task x has more than 1,000 dependencies" in [what for _, what in found]
    crowd = "".join(task(f"x{number}", 2, many) for number in range(100))
    ((line, what),) = broken(tmp_path, crowd)
    assert (line, what) == (1, "the tasks of a plan have at most 100,000 dependencies in all")
