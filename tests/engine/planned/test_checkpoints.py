"""Checkpoints of tasks, also those that an interrupted call left out."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from gsd_fsm.core.errors import Refused
from gsd_fsm.engine.planned.checkpoints import finish_tasks
from gsd_fsm.engine.planned.report import report_task
from gsd_fsm.engine.tasks import record_task
from gsd_fsm.plans.tdd_files import Copies, tasks_with_copies
from tests.support.command_line import Here
from tests.support.plan_loops import (
    INTERACTIVE,
    PLAN,
    START_QUESTION,
    loop_of,
    ready,
    report_complete,
    start_committing,
    start_plan,
    start_planned,
    tags,
    write_plan,
)
from tests.support.repositories import git


def test_first_checkpoint_is_set_once_the_user_lets_the_loop_begin(repository: Here) -> None:
    start_plan(repository, *INTERACTIVE)
    status = repository.status()
    assert (status["status"], ready(repository), tags(repository)) == ("waiting", [], {})
    assert START_QUESTION in repository.ok("status").out
    repository.ok("answer", "y")
    last = repository.last()
    assert (last["type"], last["data"]["name"]) == ("checkpoint", "gsd/checkpoint/phase-1/pre")
    assert (list(tags(repository)), ready(repository)) == (["pre"], ["T01", "T02"])


def test_loop_without_commit_setting_tags_and_never_commits(repository: Here) -> None:
    before = git(repository.root, "rev-parse", "HEAD")
    start_plan(repository)
    (repository.root / "01.py").write_text("x")
    report_complete(repository, "T01", "T02", "T03", "T04")
    repository.ok("complete")
    assert git(repository.root, "rev-parse", "HEAD") == before
    assert tags(repository).keys() == {"pre", "T01", "T02", "T03", "T04", "post"}
    assert "wait" not in [event["type"] for event in repository.lines()]  # in yolo mode
    (repository.gsd / "config.toml").write_text("checkpoints = false\n")
    write_plan(repository, PLAN.replace("phase: 1", "phase: 2"), ".gsd/plans/phase-2/plan.md")
    repository.ok("start", "execute", "--phase", "2", "--mode", "yolo")
    assert "phase-2" not in git(repository.root, "tag")


def test_finish_tasks_sets_missing_tags_on_their_branch_once_git_can(here: Here) -> None:
    context = start_committing(here)
    with here.patch.context() as patch:
        patch.setattr("gsd_fsm.git.repo.Repository.tag", Mock(side_effect=Refused("git refused")))
        reports = [report_task(context, name, "TASK COMPLETE") for name in ("T01", "T02")]
        finish_tasks(context, loop_of(context))
    assert [(report.tag, report.task) for report in reports] == [(None, "T01"), (None, "T02")]
    tag = "gsd/checkpoint/phase-1"
    notices = [f"checkpoint {tag}/{name} was not set: git refused" for name in ("T01", "T02")]
    assert context.notices == notices * 2
    git(here.root, "checkout", "-q", "-b", "other", "HEAD~2")
    before = here.journal.read_bytes()
    assert finish_tasks(context, loop_of(context)) == {}
    assert (set(tags(here)), here.journal.read_bytes()) == ({"pre"}, before)
    git(here.root, "checkout", "-q", "-")
    made = {report.task: report.commit for report in reports}
    assert finish_tasks(context, loop_of(context)).keys() == made.keys()
    recorded = {event["data"]["task"]: event["data"] for event in here.lines()[-2:]}
    assert {name: data["commit"] for name, data in recorded.items()} == made
    # T01 is an earlier commit; T02 is HEAD, and 03.py is not committed.
    assert tags(here)["T01"] == made["T01"]
    assert tags(here)["T02"] == recorded["T02"]["snapshot"] != made["T02"]
    before = here.journal.read_bytes()
    assert finish_tasks(context, loop_of(context)) == {}
    assert here.journal.read_bytes() == before


@pytest.mark.parametrize(("status", "left"), [("complete", []), ("checkpoint", ["T01"])])
def test_finish_tasks_drops_tdd_copies_of_tasks_that_are_not_in_progress(
    here: Here, status: str, left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = start_planned(here)
    record_task(context, "T01", "running", phase="refactor")
    loop = loop_of(context)
    Copies(context.gsd, loop.id, "T01").save(here.root, ("01.py",))
    with monkeypatch.context() as patch:
        patch.setattr("gsd_fsm.engine.planned.checkpoints.drop_copies", lambda *_: None)
        record_task(context, "T01", status)
    assert tasks_with_copies(context.gsd, loop.id) == ["T01"]
    finish_tasks(context, loop_of(context))
    assert tasks_with_copies(context.gsd, loop.id) == left
