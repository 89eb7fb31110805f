"""What an execute loop takes over of the position of another tool: commits decide, not counters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.errors import UsageError
from gsd_fsm.git.repo import Repository
from gsd_fsm.imports.findings import Findings
from gsd_fsm.imports.position import BackgroundTask, Facts, Position, task_facts
from gsd_fsm.plans.plan import Plan
from tests.support.plan_texts import loaded, task
from tests.support.repositories import git, opened

TEST_DRIVEN = "<test_required>true</test_required>\n</task>"


def a_plan(tmp_path: Path) -> Plan:
    text = task("01") + task("02").replace("</task>", TEST_DRIVEN) + task("03", 2) + task("04", 2)
    return loaded(tmp_path, f"---\nphase: 1\ntitle: T\n---\n{text}")


def committed(repo: Path, *subjects: str) -> list[str]:
    """Make a commit with each of these subjects; return their names."""
    for subject in subjects:
        git(repo, "commit", "-q", "--allow-empty", "-m", subject)
    return git(repo, "log", f"-{len(subjects)}", "--reverse", "--format=%H").split()


def at(
    counter: int, *background: tuple[Any, str], wave: int | None = None, **retries: int
) -> Position:
    tasks = [BackgroundTask(f"background[{n}]", *it, "running") for n, it in enumerate(background)]
    return Position(counter, tasks, retries, wave)


def taken(
    position: Position, plan: Plan | None, repository: Repository | None
) -> tuple[Facts, list[str]]:
    """Return the facts and the notes; raise what `import` raises."""
    findings = Findings("FILE")
    facts = task_facts(position, 1, plan, repository, findings)
    findings.finish()
    return facts, findings.notes


def test_counted_tasks_are_reported_if_their_commits_are_on_the_branch(
    repo: Path, tmp_path: Path
) -> None:
    old, first, second, *_ = committed(
        repo, "feat(1-01): before", "feat(1-01): again", "test(phase-1-02)!: it",
        "feat(01-3): ahead", "feat(2-04): of another phase",
    )  # fmt: skip
    facts, notes = taken(at(2, T02=1), a_plan(tmp_path), opened(repo))
    assert facts == {
        "T01": {"status": "reported", "commit": first},
        "T02": {"status": "reported", "commit": second, "phase": "refactor", "retries": 1},
    }
    assert notes == [
        "Reported with their commits: T01, T02. To prove them, run: gsd-fsm check",
        "Not counted by the file, so pending despite a commit: T03.",
    ]
    git(repo, "reset", "-q", "--hard", old)
    facts, notes = taken(at(2), a_plan(tmp_path), opened(repo))
    assert facts == {"T01": {"status": "reported", "commit": old}}
    assert notes[0] == (
        "No commit such as 'feat(1-02): …' is on this branch, so these tasks are pending, although "
        "the file counts them: T02."
    )
    facts, notes = taken(at(1), a_plan(tmp_path), None)
    assert facts == {}
    assert "without a git repository" in notes[0]


def test_background_tasks_run_with_their_reference_whatever_the_counter_says(
    repo: Path, tmp_path: Path
) -> None:
    (first,) = committed(repo, "feat(1-01): it")
    facts, notes = taken(at(1, (1, "abc"), ("02", "def"), T03=2), a_plan(tmp_path), opened(repo))
    assert facts == {
        "T01": {"status": "running", "ref": "abc"}, "T02": {"status": "running", "ref": "def"},
        "T03": {"retries": 2},
    }  # fmt: skip
    assert notes[0] == (
        "T01 is under way as abc. Get its result (TaskOutput), then run: gsd-fsm report T01"
    )
    facts, _ = taken(at(2, (2, "abc"), wave=3, setup=1), None, opened(repo))
    assert facts == {
        "T01": {"status": "reported", "commit": first},
        "T02": {"status": "running", "ref": "abc", "wave": 3}, "setup": {"retries": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("position", "problem"),
    [
        (at(5), "task must be at most 4, the tasks of the plan"),
        (at(0, (9, "abc")), "background[0]: the plan has no task 9"),
        (at(0, T07=1), "loop.task_retries.T07: the plan has no such task"),
    ],
)
def test_task_that_the_plan_lacks_is_reported(
    position: Position, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as error:
        taken(position, a_plan(tmp_path), None)
    assert error.value.message == f"FILE: {problem}"
