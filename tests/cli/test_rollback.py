"""rollback: go back to a checkpoint, in git and in the loop."""

from __future__ import annotations

import re

import pytest

from tests.support import repositories
from tests.support.command_line import B, Here
from tests.support.phases import Phase, Work, facts
from tests.support.repositories import commit, git

_isolated_git = repositories._isolated_git  # a fixture


@pytest.fixture
def work(here: Here) -> Work:
    return Work(here)


@pytest.fixture
def phase(here: Here) -> Phase:
    return Phase(here)


def test_rollback_without_target_lists_checkpoints_newest_last(work: Work) -> None:
    answer = work.here.ok("rollback")
    lines = answer.out.splitlines()
    assert lines[0] == "Checkpoints of phase 1, newest last:"
    assert lines[1:] == [
        f"  pre  {work.shas['pre'][:7]}  code",
        f"  T01  {work.shas['T01'][:7]}  T01",
        f"  T02  {work.shas['T02'][:7]}  T02",
    ]
    listed = work.here.ok("rollback", "--json").json
    assert listed["phase"] == 1
    assert listed["checkpoints"][1] == {
        "name": "T01",
        "tag": "gsd/checkpoint/phase-1/T01",
        "commit": work.shas["T01"],
        "subject": "T01",
        "contained": True,
    }
    assert work.here.ok("rollback", "--phase", "2").out == "Phase 2 has no checkpoints.\n"


def test_rollback_without_yes_only_shows_what_would_change(work: Work) -> None:
    before = (work.here.journal.read_bytes(), work.head())
    said = work.here.ok("rollback", "T01").out.splitlines()
    assert said == [
        f"Branch main would go back to T01 ({work.shas['T01'][:7]}).",
        "1 commit would be undone and kept by a tag:",
        f"  {work.shas['T02'][:7]} T02",
        "Tasks that would become pending: T02.",
        "Nothing was changed yet.",
        "→ gsd-fsm rollback T01 --yes",
    ]
    answer = work.here.ok("rollback", "pre", "--phase", "1", "--json")
    assert answer.json == {
        "target": "gsd/checkpoint/phase-1/pre",
        "commit": work.shas["pre"],
        "leaves": 2,
        "reset": ["T01", "T02"],
        "done": False,
        "left": None,
    }
    assert (work.here.journal.read_bytes(), work.head()) == before
    assert work.left() == []


def test_rollback_preview_names_at_most_ten_commits(work: Work) -> None:
    for number in range(12):
        commit(work.here.root, f"more-{number}")
    said = work.here.ok("rollback", "T02").out
    assert "12 commits would be undone" in said
    assert "more-11\n" in said
    assert "more-1\n" not in said
    assert "  … and 2 more\n" in said


@pytest.mark.parametrize("target", ["T01", "01", "gsd/checkpoint/phase-1/T01"])
def test_rollback_with_yes_resets_branch_files_and_tasks(work: Work, target: str) -> None:
    answer = work.here.ok("rollback", target, "--yes", "--json")
    assert work.head() == work.shas["T01"]
    assert git(work.here.root, "branch", "--show-current") == "main"
    assert not (work.here.root / "T02").exists()
    (left,) = work.left()
    assert re.fullmatch(r"gsd/rollback/phase-1/\d{8}T\d{6}\.\d{3}Z", left)
    assert git(work.here.root, "rev-parse", left) == work.shas["T02"]
    event = work.here.last()
    assert event["type"] == "checkpoint"
    assert event["data"] == {
        "name": "gsd/checkpoint/phase-1/T01",
        "commit": work.shas["T01"],
        "left": left,
        "head": work.shas["T02"],
        "branch": "main",
        "reset": ["T02"],
    }
    assert answer.json == {
        "loop": work.loop,
        "seq": event["seq"],
        "status": "running",
        "head": f"{event['seq']}:{event['sum']}",
        "target": "gsd/checkpoint/phase-1/T01",
        "commit": work.shas["T01"],
        "leaves": 1,
        "reset": ["T02"],
        "done": True,
        "left": left,
    }
    assert work.tasks() == {"T01": "complete", "T02": "pending", "T03": "pending"}
    assert work.here.ok("fsck").code == 0


def test_rollback_can_be_repeated_after_tasks_are_done_again(work: Work) -> None:
    said = work.here.ok("rollback", "pre", "--yes").out
    (left,) = work.left()
    assert f"is back at pre ({work.shas['pre'][:7]}). 2 commits undone, kept as {left}." in said
    assert "Pending again: T01, T02." in said
    assert set(work.tasks().values()) == {"pending"}
    work.finish("T02")
    again = work.finish("T01")
    assert work.here.ok("rollback", "T02", "--json").json["reset"] == ["T01"]
    assert work.here.ok("rollback", "T02", "--yes", "--json").json["reset"] == ["T01"]
    assert work.tasks()["T02"] == "complete"
    assert work.head() != again
    assert len(work.left()) == 2


def test_rollback_pre_returns_to_before_the_phase_and_loses_nothing(phase: Phase) -> None:
    pre, last = phase.tags()["gsd/checkpoint/phase-1/pre"], phase.head()
    before = phase.here.journal.read_bytes()
    told = phase.here.ok("rollback", "pre").out
    assert "Branch main would go back to pre" in told
    assert "→ gsd-fsm rollback pre --yes" in told
    assert (phase.head(), phase.here.journal.read_bytes()) == (last, before)
    assert phase.tasks() == {"T01": "complete", "T02": "complete"}

    phase.here.ok("rollback", "pre", "--yes")

    assert (phase.head(), phase.git("branch", "--show-current")) == (pre, "main")
    assert phase.subjects() == ["first"]
    assert not list(phase.root.glob("0*.py"))
    assert phase.tasks() == {"T01": "pending", "T02": "pending"}
    assert phase.here.status()["status"] == "running"
    assert phase.here.journal.read_bytes().startswith(before)
    (event,) = phase.rollbacks()
    assert (event["name"], event["commit"]) == ("gsd/checkpoint/phase-1/pre", pre)
    assert phase.git("rev-parse", event["left"]) == last
    phase.git("merge", "-q", "--ff-only", event["left"])
    assert (phase.root / "02.py").read_text() == "02"


def test_rollback_keeps_files_of_gsd(work: Work) -> None:
    (work.here.gsd / "STATE.md").write_text("a view\n")
    lines = work.here.lines()
    work.here.ok("rollback", "pre", "--yes")
    assert work.here.lines()[: len(lines)] == lines
    assert (work.here.gsd / ".gitignore").exists()


def test_rollback_to_current_checkpoint_does_nothing(work: Work) -> None:
    (work.here.root / "dirty").write_text("")
    before = work.here.journal.read_bytes()
    said = work.here.ok("rollback", "T02", "--yes")
    assert said.out == "Nothing to do: already at T02.\n"
    answer = work.here.ok("rollback", "T02", "--json")
    assert facts(answer, "leaves", "reset", "done", "left") == [0, [], False, None]
    assert work.here.journal.read_bytes() == before


def test_rollback_after_the_loop_ended_changes_only_git(work: Work) -> None:
    work.here.ok("cancel")
    before = work.here.journal.read_bytes()
    answer = work.here.ok("rollback", "T01", "--yes", "--json")
    assert facts(answer, "done", "reset", "leaves") == [True, [], 1]
    assert "loop" not in answer.json
    assert work.head() == work.shas["T01"]
    assert work.here.journal.read_bytes() == before
    assert "nothing was recorded" in work.here.ok("rollback", "pre", "--yes").out


def test_rollback_without_journal_needs_a_phase(work: Work) -> None:
    for path in work.here.gsd.iterdir():
        path.unlink()
    work.here.gsd.rmdir()
    work.here.refused(3, "rollback", "pre")
    work.here.ok("rollback", "pre", "--phase", "1", "--yes")
    assert work.head() == work.shas["pre"]


def test_rollback_with_two_loops_of_the_phase_needs_one_named(work: Work) -> None:
    other = work.here.start("verify", "--phase", "1", env=B)
    assert other in work.here.refused(2, "rollback", "T01", "--phase", "1").err
    assert work.here.ok("rollback", "T01", "--phase", "1", "--json", env=B).json["reset"] == []
    named = ("rollback", "T01", "--phase", "1", "--loop", work.loop)
    assert f"--phase 1 --loop {work.loop}" in work.here.ok(*named).out
    assert work.here.ok(*named, "--yes", "--json").json["loop"] == work.loop


def test_rollback_in_subdirectory_resets_the_whole_repository(here: Here) -> None:
    git(here.root, "init", "-q", "--template=", "-b", "main")
    first = commit(here.root, "code")
    git(here.root, "tag", "gsd/checkpoint/phase-beta/pre")
    project = here.root / "sub"
    (project / ".gsd").mkdir(parents=True)
    here.where = project
    here.start("execute", "--phase", "Beta", "--task", "T01")
    commit(here.root, "sub/more")
    answer = here.ok("rollback", "pre", "--yes", "--json")
    assert facts(answer, "commit", "leaves", "done") == [first, 1, True]
    assert not (project / "more").exists()
    assert (project / ".gsd" / "journal.jsonl").stat().st_size
