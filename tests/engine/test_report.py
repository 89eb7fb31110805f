from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gsd_fsm.core.errors import CannotWrite, Refused
from gsd_fsm.core.journal.journal import Author, Journal
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.planned.checkpoints import finish_tasks
from gsd_fsm.engine.planned.report import report_task
from gsd_fsm.engine.tasks import record_task
from gsd_fsm.plans.tdd_files import Copies, tasks_with_copies
from tests.support.command_line import Here, here
from tests.support.plan_loops import commits, loop_of, start_committing, start_planned, tags
from tests.support.repositories import git

__all__ = ["here"]

UNTAGGED = "checkpoint gsd/checkpoint/phase-1/T01 was not set: git refused"
COMPLETE = "Wrote it.\n\nTASK COMPLETE\n"


@pytest.fixture(autouse=True)
def _git_identity(_own_home: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "T")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@example.org")


@pytest.fixture
def committing(here: Here) -> Context:
    return start_committing(here)


@contextlib.contextmanager
def locked(context: Context, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hold the lock of the journal; do not let others wait for it."""
    writer = Journal(context.gsd)
    with monkeypatch.context() as patch, writer.transaction(Author("cli")):
        patch.setattr(Context, "journal", lambda self: Journal(self.gsd, 0.0))
        yield


def head(context: Context) -> str:
    return git(context.project, "rev-parse", "HEAD")


def test_report_commits_tags_and_returns_both(here: Here, committing: Context) -> None:
    reported = report_task(committing, "T01", COMPLETE)

    assert (reported.task, reported.commit) == ("T01", head(committing))
    assert (reported.tag, committing.notices) == ("gsd/checkpoint/phase-1/T01", [])
    assert commits(here) == ["feat(1-01): Write 01.", "first"]
    assert tags(here)["T01"] == head(committing)
    last = here.last()
    assert reported.receipt.head == f"{last['seq']}:{last['sum']}"


def test_report_that_the_journal_refuses_commits_nothing(here: Here, committing: Context) -> None:
    with pytest.raises(Refused):
        report_task(committing, "T03", COMPLETE)

    assert commits(here) == ["first"]


def test_report_while_lock_is_held_is_repeated_with_the_same_commit(
    here: Here, committing: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locked(committing, monkeypatch), pytest.raises(CannotWrite):
        report_task(committing, "T01", COMPLETE)
    made = head(committing)
    assert loop_of(committing).tasks["T01"].status == "pending"

    assert report_task(committing, "T01", COMPLETE).commit == made
    assert commits(here) == ["feat(1-01): Write 01.", "first"]
    assert loop_of(committing).tasks["T01"].commit == made


def test_report_finds_its_commit_below_that_of_another_task(
    here: Here, committing: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locked(committing, monkeypatch), pytest.raises(CannotWrite):
        report_task(committing, "T01", COMPLETE)
    made = head(committing)
    report_task(committing, "T02", COMPLETE)

    assert report_task(committing, "T01", COMPLETE).commit == made
    assert len(commits(here)) == 3
    assert tags(here)["T01"] == made


def test_report_with_a_given_commit_tags_that_commit(here: Here) -> None:
    context = start_planned_in_repository(here)
    own = commit_file(here, "01.py")
    commit_file(here, "02.py")

    reported = report_task(context, "T01", COMPLETE, own[:12])

    assert reported.commit == own
    assert tags(here)["T01"] == own


def test_report_of_completed_task_records_only_new_issues(here: Here, committing: Context) -> None:
    report_task(committing, "T01", COMPLETE + "NEW ISSUE: [low] one\n")
    before = len(here.lines())

    again = report_task(committing, "T01", COMPLETE + "NEW ISSUE: [low] one\nNEW ISSUE: two\n")

    assert again.repeated
    assert [event["data"].get("text") for event in here.lines()[before:]] == ["two"]


def test_report_warns_if_the_tag_cannot_be_recorded(
    here: Here, committing: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gsd_fsm.git.repo.Repository.tag", refuse)

    reported = report_task(committing, "T01", COMPLETE)

    assert reported.tag is None
    assert committing.notices == [UNTAGGED]
    assert loop_of(committing).tasks["T01"].status == "complete"


# effects that an interrupted call left out


def test_finish_tasks_set_missing_tags_at_the_commits_of_their_tasks(
    here: Here, committing: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("gsd_fsm.git.repo.Repository.tag", refuse)
        made = {name: report_task(committing, name, COMPLETE).commit for name in ("T01", "T02")}
    assert set(tags(here)) == {"pre"}

    assert finish_tasks(committing, loop_of(committing)).keys() == {"T01", "T02"}

    assert {name: tags(here)[name] for name in made} == made
    assert [event["data"]["task"] for event in here.lines()[-2:]] == ["T01", "T02"]


def test_finish_tasks_append_nothing_if_nothing_is_missing(here: Here, committing: Context) -> None:
    report_task(committing, "T01", COMPLETE)
    before = here.journal.read_bytes()

    assert finish_tasks(committing, loop_of(committing)) == {}
    assert here.journal.read_bytes() == before


def test_finish_tasks_return_why_a_tag_is_still_missing(
    here: Here, committing: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gsd_fsm.git.repo.Repository.tag", refuse)
    report_task(committing, "T01", COMPLETE)

    finish_tasks(committing, loop_of(committing))

    assert committing.notices == [UNTAGGED, UNTAGGED]


def test_finish_tasks_on_another_branch_set_no_tag(
    here: Here, committing: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("gsd_fsm.git.repo.Repository.tag", refuse)
        report_task(committing, "T01", COMPLETE)
    git(here.root, "checkout", "-q", "-b", "other", "HEAD~1")
    before = here.journal.read_bytes()

    assert finish_tasks(committing, loop_of(committing)) == {}
    assert here.journal.read_bytes() == before


def test_finish_tasks_without_checkpoints_set_no_tag(here: Here) -> None:
    context = start_committing(here, "checkpoints = false\n")
    report_task(context, "T01", COMPLETE)

    assert finish_tasks(context, loop_of(context)) == {}
    assert tags(here) == {}


@pytest.mark.parametrize(("status", "left"), [("complete", []), ("checkpoint", ["T01"])])
def test_finish_tasks_drop_tdd_copies_of_tasks_that_are_not_in_progress(
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


def refuse(*_: object) -> None:
    raise Refused("git refused")


def start_planned_in_repository(here: Here) -> Context:
    git(here.root, "init", "-q", "--template=")
    git(here.root, "commit", "-q", "--allow-empty", "-m", "first")
    return start_planned(here)


def commit_file(here: Here, name: str) -> str:
    Path(here.root / name).write_text(name)
    git(here.root, "add", name)
    git(here.root, "commit", "-qm", name)
    return git(here.root, "rev-parse", "HEAD")
