"""Resuming replays the journal, grants retries, and reports the commits of finished tasks."""

from __future__ import annotations

import pytest

from gsd_fsm.core.errors import Corrupt
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.lifecycle import Running, resume
from tests.cli.conftest import Here
from tests.support.phases import Phase


def test_resume_reports_running_tasks_and_verified_commits(phase: Phase) -> None:
    phase.here.ok("rollback", "T01", "--yes")
    phase.here.ok("task", "T02", "running", "--ref", "bg-1")

    done = resume(Context(phase.root), {})

    assert done.running == [Running("T02", "bg-1", None)]
    assert (done.verified_commits, done.missing_commits) == (1, [])


def test_resume_names_tasks_whose_commit_is_not_on_the_branch(phase: Phase) -> None:
    phase.git("reset", "-q", "--hard", "HEAD~1")

    done = resume(Context(phase.root), {})

    assert (done.verified_commits, done.missing_commits) == (1, ["T02"])


def test_resume_with_added_retries_names_tasks_it_retries(here: Here) -> None:
    here.start("execute", "--task", "T1", "--max-retries", "1")
    for _ in range(2):
        here.ok("fail", "T1", "--error", "broken")
    assert here.status()["pause_code"] == "retries"

    done = resume(Context(here.root), {"max_retries": 1})

    assert here.last()["data"]["retry"] == ["T1"]
    assert done.receipt.loop.limits.max_retries == 2


def test_resume_of_damaged_journal_appends_nothing(here: Here) -> None:
    here.start("goal", "x")
    here.ok("note", "one")
    damaged = here.journal.read_bytes().replace(b'"one"', b'"two"')
    here.journal.write_bytes(damaged)

    with pytest.raises(Corrupt):
        resume(Context(here.root), {})

    assert here.journal.read_bytes() == damaged
