"""Checkpoints of tasks, also those that an interrupted call left out."""

from __future__ import annotations

import os
import shutil
from unittest.mock import Mock

import pytest

from gsd_fsm.core.errors import Refused
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.planned.checkpoints import finish_tasks, rewritten_tasks
from gsd_fsm.engine.planned.report import report_task
from gsd_fsm.engine.tasks import record_task
from gsd_fsm.plans.tdd_files import Copies, tasks_with_copies
from tests.support.command_line import Here, install_hook
from tests.support.phases import kill_after
from tests.support.plan_loops import (
    INTERACTIVE,
    PLAN,
    START_QUESTION,
    YOLO,
    deliver,
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
    assert git(repository.root, "show", f"{tags(repository)['post']}:01.py") == "x"
    assert "wait" not in [event["type"] for event in repository.lines()]  # in yolo mode
    (repository.gsd / "config.toml").write_text("checkpoints = false\n")
    write_plan(repository, PLAN.replace("phase: 1", "phase: 2"), ".gsd/plans/phase-2/plan.md")
    repository.ok("start", "execute", "--phase", "2", "--mode", "yolo")
    assert "phase-2" not in git(repository.root, "tag")


def test_checkpoints_without_commits_differ_and_have_the_files(repository: Here) -> None:
    (repository.root / ".gitignore").write_text("*.log\n")
    (repository.root / "x.log").write_text("ignored")
    start_plan(repository)
    for number in ("01", "02"):
        (repository.root / f"{number}.py").write_text(number)
        (repository.root / "big").touch()
        os.truncate(repository.root / "big", 11 << 20)
        errors = repository.ok("report", f"T{number}", stdin=b"TASK COMPLETE\n").err
        left_out = f"checkpoint gsd/checkpoint/phase-1/T{number} leaves out big (over 10 MB)"
        assert left_out in errors
    files = {
        name: git(repository.root, "ls-tree", "-r", "--name-only", commit).split()
        for name, commit in tags(repository).items()
    }
    assert files == {
        "pre": [".gitignore", "code.py"],
        "T01": [".gitignore", "01.py", "code.py"],
        "T02": [".gitignore", "01.py", "02.py", "code.py"],
    }
    recorded = [it["data"] for it in repository.lines() if it["type"] == "checkpoint"]
    head, branch = (
        git(repository.root, "rev-parse", "HEAD"),
        git(repository.root, "branch", "--show-current"),
    )
    assert {(data["commit"], data["branch"]) for data in recorded} == {(head, branch)}


@pytest.mark.parametrize("mark", ['"status":"complete"', '"type":"checkpoint"'])
def test_task_without_commit_that_was_killed_before_its_tag_gets_it_later(
    repository: Here, mark: str
) -> None:
    start_plan(repository)
    (repository.root / "01.py").write_text("first")
    report_complete(repository, "T01")
    repository.ok("rollback", "pre", "--yes")
    old = tags(repository)["T01"]
    (repository.root / "01.py").write_text("second")
    written = mark.startswith('"status"')
    kill_after(lambda: report_complete(repository, "T01"), mark.encode(), is_written=written)
    for _ in range(2):
        repository.ok("note", "hello")
    assert git(repository.root, "show", f"{tags(repository)['T01']}:01.py") == "second"
    named = [it["data"].get("task") for it in repository.lines() if it["type"] == "checkpoint"]
    assert (named.count("T01"), tags(repository)["T01"] != old) == (2, True)


def test_repository_without_commits_has_no_checkpoints_and_says_so(here: Here) -> None:
    install_hook()
    git(here.root, "init", "-q", "--template=")
    write_plan(here)
    assert "No checkpoint was set: the repository has no commits yet." in here.ok(*YOLO).out
    assert here.ok("status").err == ""
    deliver(here, "T01")
    errors = here.ok("report", "T01", stdin=b"TASK COMPLETE\n").err
    assert "phase-1/T01 was not set: the repository has no commits yet" in errors
    git(here.root, "commit", "-q", "--allow-empty", "-m", "first")
    report_complete(here, "T02")
    assert set(tags(here)) == {"T02"}


def test_rewritten_tasks_are_those_whose_commit_is_not_in_head(here: Here) -> None:
    context = start_committing(here)
    report_complete(here, "T01", "T02")
    assert rewritten_tasks(context, loop_of(context)) == []
    git(here.root, "commit", "-q", "--amend", "-m", "reworded")
    assert rewritten_tasks(context, loop_of(context)) == ["T02"]
    git(here.root, "checkout", "-q", "--orphan", "unborn")
    assert rewritten_tasks(context, loop_of(context)) == ["T01", "T02"]
    shutil.rmtree(here.root / ".git")
    assert rewritten_tasks(Context(here.root), loop_of(context)) == []


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
