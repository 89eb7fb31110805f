"""A rollback is recorded first; git follows, and a later call can finish it."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.planned.rollback import roll_back
from tests.support.faults import wired
from tests.support.phases import Impatient, Phase, held_lock
from tests.support.repositories import commit

AFTER = '"left":"gsd/rollback/'
PENDING = {"T01": "complete", "T02": "pending"}


@pytest.fixture
def killed(phase: Phase) -> Phase:
    """Return a phase whose rollback to T01 was killed after its event."""
    phase.killed("rollback", "T01", "--yes", after=AFTER)
    return phase


def _target(phase: Phase) -> str:
    return phase.tags()["gsd/checkpoint/phase-1/T01"]


def test_rollback_killed_after_event_keeps_files_and_later_commits(killed: Phase) -> None:
    assert killed.tasks() == PENDING
    assert (killed.root / "02.py").exists()
    recorded = killed.here.last()["data"]
    assert recorded["head"] == killed.head()
    assert recorded["left"] not in killed.tags()
    assert "unfinished: rollback to T01" in killed.here.ok("status").err
    killed.git("commit", "-q", "--allow-empty", "-m", "more")  # of files that the tag would keep
    new = killed.head()
    killed.here.ok("note", "hello")
    assert killed.head() == new


@pytest.mark.parametrize(
    ("call", "command"),
    [("repo.Repository.set_ref", "rollback T01 --yes"), ("repo.Repository.tag", "resume"),
     ("snapshots.restore_files", "pause"), ("repo.Repository.move_branch", "note x"),
     ("repo.Repository.drop_ref", "note x")],
)  # fmt: skip
def test_killed_rollback_is_finished_by_next_command(phase: Phase, call: str, command: str) -> None:
    phase.killed_at(call, "rollback", "T01", "--yes")
    answer = phase.here.ok(*command.split())
    assert f"loop {phase.loop}: finished rollback to T01" in answer.err
    assert phase.head() == _target(phase)
    assert not (phase.root / "02.py").exists()
    assert phase.tasks() == PENDING
    assert phase.git("branch", "--show-current") == "main"
    (rollback,) = phase.rollbacks()
    assert phase.git("rev-parse", rollback["left"]) == rollback["head"]
    assert phase.git("for-each-ref", "refs/worktree") == ""


def test_rollback_with_uncommitted_changes_killed_at_any_step_is_finished_later(
    phase: Phase, tmp_path: Path
) -> None:
    (phase.root / "01.py").write_text("changed")
    (phase.root / "new").write_text("new")
    phase.git("add", "new")
    head, target = phase.head(), _target(phase)
    # The state directory of the user remembers the head of the journal.
    places = [phase.root, Path(os.environ["HOME"])]
    for place in places:
        shutil.copytree(place, tmp_path / "before" / place.name)
    killed_after_event = 0
    for number in itertools.count(0, 2):
        if not phase.killed_at_step(number, "rollback", "T01", "--yes"):
            break
        is_recorded = bool(phase.rollbacks())
        killed_after_event += is_recorded
        assert (phase.tasks() == PENDING) == is_recorded
        command = ["note", "hello"] if is_recorded and number % 4 else ["rollback", "T01", "--yes"]
        phase.here.ok(*command)
        phase.here.ok("note", "later")
        (rollback,) = phase.rollbacks()
        assert (phase.head(), phase.tasks()) == (target, PENDING), number
        assert (phase.root / "01.py").read_text() == "01", number
        assert not {"02.py", "new"} & {it.name for it in phase.root.iterdir()}, number
        kept = phase.git("ls-tree", "-r", "--name-only", rollback["left"]).split()
        assert {"01.py", "02.py", "new"} < {*kept}, number
        assert phase.git("show", f"{rollback['left']}:01.py") == "changed", number
        assert phase.git("rev-parse", f"{rollback['left']}^") == head, number
        assert phase.git("for-each-ref", "refs/worktree") == "", number
        for place in places:
            shutil.rmtree(place)
            shutil.copytree(tmp_path / "before" / place.name, place)
    assert killed_after_event > 2


def test_rollback_killed_after_files_were_restored_leaves_later_changes(phase: Phase) -> None:
    phase.killed_at("repo.Repository.move_branch", "rollback", "T01", "--yes")
    (phase.root / "01.py").write_text("later")
    assert "finished rollback to T01" in phase.here.ok("note", "hello").err
    assert (phase.head(), (phase.root / "01.py").read_text()) == (_target(phase), "later")


def test_killed_rollback_is_finished_on_its_branch_only(killed: Phase) -> None:
    head = killed.head()
    killed.git("checkout", "-q", "-b", "backup")
    answer = killed.here.ok("note", "hello")
    assert "branch main is not checked out" in answer.err
    assert killed.head() == head
    killed.git("checkout", "-q", "main")
    killed.here.ok("note", "hello")
    assert killed.head() == _target(killed)
    assert killed.git("rev-parse", "backup") == head


def test_rollback_interrupted_after_its_event_is_finished_by_next_command(phase: Phase) -> None:
    written: list[bool] = []

    def interrupt(name: str, real: Any, *args: Any, **more: Any) -> Any:
        if written and name != "fsync":
            written.clear()
            raise KeyboardInterrupt  # while snapshot and views are brought up to date
        if name == "write" and AFTER.encode() in args[1]:
            written.append(True)
        return real(*args, **more)

    with wired(interrupt), pytest.raises(KeyboardInterrupt):
        roll_back(Context(phase.root), "T01", None)
    assert len(phase.rollbacks()) == 1
    phase.here.ok("note", "hello")
    assert phase.head() == _target(phase)


def test_report_over_killed_rollback_that_cannot_be_finished_is_refused(killed: Phase) -> None:
    head = killed.head()
    (killed.root / "mine").write_text("mine")
    errors = killed.here.ok("note", "hello").err
    assert "unfinished: rollback to T01" in errors
    assert "uncommitted changes: mine" in errors
    (killed.root / "01.py").write_text("changed")
    errors = killed.here.refused(4, "report", "T02", stdin=b"TASK COMPLETE\n").err
    assert "unfinished rollback to T01" in errors
    assert "uncommitted changes: 01.py" in errors
    assert killed.head() == head


def test_rollback_killed_before_its_event_leaves_an_earlier_one_alone(phase: Phase) -> None:
    phase.here.ok("rollback", "T01", "--yes")
    new = commit(phase.root, "more")
    before = (phase.tags(), phase.here.journal.read_bytes())
    phase.killed_before("rollback", "pre", "--yes", event=AFTER)
    assert (phase.tags(), phase.here.journal.read_bytes()) == before
    phase.here.ok("note", "hello")
    assert phase.head() == new


def test_killed_rollback_is_finished_before_report_commits(killed: Phase) -> None:
    before = killed.head()
    answer = killed.here.run("report", "T02", "--json", stdin=b"TASK COMPLETE\n")
    assert (answer.code, answer.json["failed"]) == (7, ["T02"])  # its file is gone
    assert killed.git("merge-base", "HEAD", before) == _target(killed)


def test_rollback_is_not_repeated_after_user_took_it_back_or_work_continued(phase: Phase) -> None:
    head = phase.head()
    done = roll_back(Context(phase.root), "T01", None)
    assert (done.step.leaves, done.step.reset) == (1, ["T02"])
    last = phase.here.last()
    assert done.receipt
    assert done.receipt.seq == last["seq"]
    phase.git("merge", "-q", "--ff-only", last["data"]["left"])
    phase.here.ok("note", "hello")
    assert phase.head() == head
    phase.here.ok("rollback", "T01", "--yes")
    (phase.root / "02.py").write_text("again")
    phase.here.ok("report", "T02", stdin=b"TASK COMPLETE\n")
    head = phase.head()
    phase.here.ok("note", "hello")
    assert phase.head() == head != last["data"]["head"]


def test_rollback_whose_event_cannot_be_written_leaves_no_tag(phase: Phase) -> None:
    before = (phase.head(), phase.tags(), phase.tasks(), phase.here.journal.read_bytes())

    def full(name: str, real: Any, *args: Any, **more: Any) -> Any:
        if name == "write" and AFTER.encode() in args[1]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*args, **more)

    with wired(full), pytest.raises(CannotWrite):
        roll_back(Context(phase.root), "T01", None)
    with held_lock(phase.here), pytest.raises(CannotWrite) as error:
        roll_back(Impatient(phase.root), "T01", None)
    assert error.value.exit_code == 6
    assert (phase.head(), phase.tags(), phase.tasks(), phase.here.journal.read_bytes()) == before
    assert phase.git("for-each-ref", "refs/worktree") == ""


def test_rollback_that_git_refuses_after_event_says_what_to_run(phase: Phase) -> None:
    head = phase.head()
    lock = phase.root / ".git" / "index.lock"
    lock.touch()
    answer = phase.here.run("rollback", "T01", "--yes")
    assert answer.code == 6
    assert f"loop {phase.loop} records the rollback to T01, but it is not finished" in answer.err
    assert "run the same command again" in answer.err
    assert (phase.head(), phase.tasks()) == (head, PENDING)
    lock.unlink()
    phase.here.ok("rollback", "T01", "--yes")
    assert phase.head() == _target(phase)
