"""Plans that a loop can follow, and plans that it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_fsm.core.loop.limits import MOST_DEPENDENCIES, MOST_TASKS
from gsd_fsm.plans import plan, validate
from tests.support.plan_texts import broken, loaded, require_problem, task, task_without_wave

SEQUENTIAL = "## Wave 1 (Sequential)\n"


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (task("01", 1, "T01"), [(1, "task T01 depends on itself")]),
        (task("01", depends="09"), [(1, "task T01 depends on T09, which is not in the plan")]),
        (task("01", 1, "08,09"), [(1, "task T01 depends on T08, T09, which are not in the plan")]),
        (task("01", 1, "02") + task("02", 2), [(1, "task T01 of wave 1 depends on task T02 of wave 2")]),
        (task("01") + task("02", 1, "01"),
         [(7, "task T02 depends on T01, but both are in wave 1, which runs in parallel")]),
        (task("01").replace("<done>It is there.</done>", ""), [(1, "task T01 has no <done>")]),
        (task("01").replace('wave="1"', 'wave="none"'), [(1, "task T01: its wave is not a positive integer")]),
    ],
)  # fmt: skip
def test_problem_is_reported_with_the_line_of_its_task(tmp_path: Path, text, problems) -> None:
    assert broken(tmp_path, text) == problems


def test_invalid_task_id_is_refused(tmp_path: Path) -> None:
    for number in ("..", "a..b", "a/b", "-x", ".x", "a b", "é", "1" * 64, "{id}", "../x"):
        text = task("01").replace('id="01"', f'id="{number}"')
        require_problem(tmp_path, text, 1, f"{number!r} is not a task id")


def test_cycle_is_reported_once_with_only_its_own_tasks(tmp_path: Path) -> None:
    text = task("01", 1, "02") + task("02", 2, "01")
    assert broken(tmp_path, text) == [(1, "dependency cycle: T01 → T02 → T01")]
    text = task("01", 1, "03") + task("02", 1, "03") + task("03", 1, "04") + task("04", 1, "02")
    assert broken(tmp_path, SEQUENTIAL + text) == [(8, "dependency cycle: T02 → T03 → T04 → T02")]
    text = task("1", 1, "2") + task("2", 1, "1") + task("3", 1, "4") + task("4", 1, "3")
    assert broken(tmp_path, SEQUENTIAL + text) == [
        (2, "dependency cycle: T1 → T2 → T1"),
        (14, "dependency cycle: T3 → T4 → T3"),
    ]


def test_path_outside_the_project_is_refused(tmp_path: Path) -> None:
    for path in ("/etc/x", "../x", "a/../../x", "..\\x", "C:\\x", "c:x", "\\x", "~/x", "a\x1bb"):
        listed = task("01").replace(">01.py</file>", f">{path}</file>")
        tests = f"<test_files><file>{path}</file></test_files><files>"
        what = f"task T01: {path!r} is not a path inside the project"
        assert broken(tmp_path, listed) == [(1, what)]
        assert broken(tmp_path, task("01").replace("<files>", tests)) == [(1, what)]
    for path in ("a/b.c", ".gsd/x", "app/[id]/page.tsx", "a..b", "x y", "…/é", "./a"):
        text = task("01").replace(">01.py</file>", f">{path}</file>")
        assert loaded(tmp_path, text).tasks[0].files[0].path == path


def test_task_without_wave_follows_its_heading_or_its_dependencies(tmp_path: Path) -> None:
    bare = task_without_wave
    same = loaded(tmp_path, SEQUENTIAL + bare("01", "02,T02,02") + bare("02"))
    assert [(it.depends, it.wave) for it in same.tasks] == [(("T02",), 1), ((), 1)]
    assert loaded(tmp_path, "## Wave 4: Late\n" + bare("01")).tasks[0].wave == 4
    text = bare("03", "02") + bare("02", "01,05") + bare("01") + task("05", 4)
    waves = {it.number: it.wave for it in loaded(tmp_path, text).tasks}
    assert waves == {"03": 6, "02": 5, "01": 1, "05": 4}
    long = "".join(bare(str(n), str(n + 1) if n < 2_000 else "") for n in range(1, 2_001))
    assert loaded(tmp_path, long).tasks[-1].wave == 2_000


def test_wrong_counts_empty_waves_and_shared_files_are_warnings(tmp_path: Path) -> None:
    counts = "---\ntask_count: 5\nwave_count: 3\n---\n"
    assert loaded(tmp_path, counts + task("01") + task("02", 3)).warnings == (
        "task_count is 5, but the plan has 2",
        "wave_count is 3, but the plan has 2",
        "no task belongs to wave 2",
    )
    same = "".join(task(number).replace(f">{number}.py<", ">same.py<") for number in ("01", "02"))
    assert loaded(tmp_path, same + task("03", 3) + "## Wave 4\n").warnings == (
        "no task belongs to wave 2, 4",
        "tasks T01, T02 of wave 1 run in parallel and change the same file: same.py",
    )
    assert loaded(tmp_path, SEQUENTIAL + same).warnings == ()
    far = loaded(tmp_path, task("01", 999_999)).warnings
    assert far == ("no task belongs to wave 1, 2, 3, 4, 5, 6, 7, 8, 9, 10",)


def test_command_whose_exit_code_is_masked_is_a_warning(tmp_path: Path) -> None:
    check = '<check type="file">01.py exists</check>'
    more = (
        '<check type="test">make || true</check>\n<check cmd="make | tee log">It is built</check>'
    )
    text = task("01").replace(check, f"{check}{more}<check type='run'>grep '|| true' a</check>")
    assert loaded(tmp_path, text).warnings == (
        "check T01#2 (line 4) cannot fail: '|| true' masks its exit code",
        "check T01#3 (line 5) cannot fail: '| tee log' masks its exit code",
    )


def test_plan_with_more_tasks_than_a_loop_may_have_is_refused(tmp_path: Path, monkeypatch) -> None:
    assert (plan.MOST_TASKS, validate.MOST_TASKS) == (MOST_TASKS, 25_000)
    flood = '{"tasks": [' + ", ".join(["{}"] * (MOST_TASKS + 1)) + "]}"
    ((_, what),) = broken(tmp_path, flood)
    assert what == "a plan has at most 25,000 tasks"
    for module in (plan, validate):
        monkeypatch.setattr(module, "MOST_TASKS", 30)
    most = "".join(task(f"{number:02d}") for number in range(30))
    assert len(loaded(tmp_path, most).tasks) == 30
    # Reading ends with the first task too many: the broken markup after it is not reported.
    ((_, what),) = broken(tmp_path, most + task("x") + "</task>\n")
    assert what == "a plan has at most 30 tasks"


def test_plan_with_more_dependencies_than_a_loop_may_have_is_refused(tmp_path: Path) -> None:
    many = ",".join(f"{number:04d}" for number in range(MOST_DEPENDENCIES + 1))
    require_problem(tmp_path, task("x", 2, many), 1, "task x has more than 1,000 dependencies")
    crowd = "".join(task(f"x{number}", 2, many) for number in range(100))
    assert broken(tmp_path, crowd) == [(1, "a plan has at most 100,000 dependencies")]
