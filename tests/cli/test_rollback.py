"""rollback: go back to a checkpoint, in git and in the loop."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.support import repositories
from tests.support.command_line import AGENT, B, Here, send_prompt
from tests.support.phases import Work, facts
from tests.support.repositories import commit, git, hook, posix_only

_isolated_git = repositories._isolated_git  # a fixture


@pytest.fixture
def work(here: Here) -> Work:
    return Work(here)


def test_rollback_without_target_lists_checkpoints_newest_last(work: Work) -> None:
    assert work.here.ok("rollback").out.splitlines() == [
        "Checkpoints of phase 1, newest last:",
        f"  pre  {work.shas['pre'][:7]}  code",
        f"  T01  {work.shas['T01'][:7]}  T01",
        f"  T02  {work.shas['T02'][:7]}  T02",
    ]
    listed = work.here.ok("rollback", "--json").json
    assert listed["phase"] == 1
    assert listed["checkpoints"][1] == {
        "name": "T01", "tag": "gsd/checkpoint/phase-1/T01", "commit": work.shas["T01"],
        "subject": "T01", "contained": True, "snapshot": None,
    }  # fmt: skip
    assert work.here.ok("rollback", "--phase", "2").out == "Phase 2 has no checkpoints.\n"


def test_rollback_without_yes_only_shows_at_most_ten_commits_and_tasks(work: Work) -> None:
    before = (work.here.journal.read_bytes(), work.head())
    assert work.here.ok("rollback", "T01").out.splitlines() == [
        f"Branch main would go back to T01 ({work.shas['T01'][:7]}).",
        "1 commit would be undone and kept by a tag:",
        f"  {work.shas['T02'][:7]} T02",
        "Files that would be removed: T02.",
        "Tasks that would become pending: T02.",
        "Nothing has been changed yet.",
        "→ gsd-fsm rollback T01 --yes",
    ]
    answer = work.here.ok("rollback", "pre", "--phase", "1", "--json")
    assert answer.json == {
        "target": "gsd/checkpoint/phase-1/pre", "commit": work.shas["pre"], "leaves": 2,
        "reset": ["T01", "T02"], "done": False, "left": None, "removed": ["T01", "T02"],
        "restored": [], "left_out": [], "submodules": [],
    }  # fmt: skip
    for target in ("01", "gsd/checkpoint/phase-1/T01"):
        assert work.here.ok("rollback", target, "--json").json["commit"] == work.shas["T01"]
    assert (work.here.journal.read_bytes(), work.head()) == before
    assert work.left() == []
    for number in range(12):
        commit(work.here.root, f"more-{number}")
    output = work.here.ok("rollback", "T02").out
    assert "12 commits would be undone" in output
    assert ("more-11\n" in output, "more-1\n" in output) == (True, False)
    assert "  … and 2 more\n" in output


def test_rollback_with_yes_resets_branch_files_and_tasks(work: Work) -> None:
    answer = work.here.ok("rollback", "T01", "--yes", "--json")
    assert work.head() == work.shas["T01"]
    assert git(work.here.root, "branch", "--show-current") == "main"
    assert not (work.here.root / "T02").exists()
    (left,) = work.left()
    assert re.fullmatch(r"gsd/rollback/phase-1/\d{8}T\d{6}\.\d{3}Z", left)
    assert git(work.here.root, "rev-parse", left) == work.shas["T02"]
    event = work.here.last()
    assert (event["type"], event["data"]) == ("checkpoint", {
        "name": "gsd/checkpoint/phase-1/T01", "commit": work.shas["T01"], "left": left,
        "head": work.shas["T02"], "branch": "main", "reset": ["T02"],
    })  # fmt: skip
    assert list(answer.json.items())[4:] == [
        *(("target", "gsd/checkpoint/phase-1/T01"), ("commit", work.shas["T01"]), ("leaves", 1)),
        *(("reset", ["T02"]), ("done", True), ("left", left), ("removed", ["T02"])),
        *(("restored", []), ("left_out", []), ("submodules", [])),
    ]
    assert work.tasks() == {"T01": "complete", "T02": "pending", "T03": "pending"}


def test_rollback_pre_returns_to_before_the_phase_and_loses_nothing(work: Work) -> None:
    before = work.here.journal.read_bytes()
    output = work.here.ok("rollback", "pre", "--yes").out
    (left,) = work.left()
    assert f"is back at pre ({work.shas['pre'][:7]}). 2 commits undone, kept as {left}." in output
    assert "Pending again: T01, T02." in output
    assert (work.head(), set(work.tasks().values())) == (work.shas["pre"], {"pending"})
    assert work.here.journal.read_bytes().startswith(before)
    git(work.here.root, "merge", "-q", "--ff-only", left)
    assert (work.here.root / "T02").exists()


def test_rollback_can_be_repeated_after_tasks_are_done_again(work: Work) -> None:
    work.here.ok("rollback", "pre", "--yes")
    work.finish("T02")
    again = work.finish("T01")
    assert work.here.ok("rollback", "T02", "--yes", "--json").json["reset"] == ["T01"]
    assert work.tasks()["T02"] == "complete"
    assert work.head() != again
    assert len(work.left()) == 2


def test_rollback_to_current_checkpoint_does_nothing(work: Work) -> None:
    (work.here.root / "dirty").write_text("")
    before = work.here.journal.read_bytes()
    assert work.here.ok("rollback", "T02", "--yes").out == "Nothing to do: already at T02.\n"
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
    shutil.rmtree(work.here.gsd)
    work.here.refused(3, "rollback", "pre")
    work.here.ok("rollback", "pre", "--phase", "1", "--yes")
    assert work.head() == work.shas["pre"]


def test_rollback_with_two_loops_of_the_phase_needs_one_named(work: Work) -> None:
    other = work.here.start("verify", "--phase", "1", "--task", "T1", env=B)
    assert other in work.here.refused(2, "rollback", "T01", "--phase", "1").err
    assert work.here.ok("rollback", "T01", "--phase", "1", "--json", env=B).json["reset"] == []
    named = ("rollback", "T01", "--phase", "1", "--loop", work.loop)
    assert f"--phase 1 --loop {work.loop}" in work.here.ok(*named).out
    assert work.here.ok(*named, "--yes", "--json").json["loop"] == work.loop


def test_rollback_in_subdirectory_resets_the_whole_repository(here: Here) -> None:
    git(here.root, "init", "-q", "--template=", "-b", "main")
    first = commit(here.root, "code")
    git(here.root, "tag", "gsd/checkpoint/phase-beta/pre")
    here.where = here.root / "sub"
    (here.where / ".gsd").mkdir(parents=True)
    here.start("execute", "--phase", "Beta", "--task", "T01")
    commit(here.root, "sub/more")
    answer = here.ok("rollback", "pre", "--yes", "--json")
    assert facts(answer, "commit", "leaves", "done") == [first, 1, True]
    assert not (here.where / "more").exists()
    assert (here.where / ".gsd" / "journal.jsonl").stat().st_size


def test_rollback_with_uncommitted_changes_is_refused(work: Work) -> None:
    for number in range(12):
        (work.here.root / f"new-{number:02}").write_text("")
    for more in ((), ("--yes",)):
        refused = work.here.refused(4, "rollback", "T01", *more).err
        assert "uncommitted changes: new-00, new-01" in refused
        assert "new-09 and 2 more" in refused
        assert "git stash" in refused
    assert (work.head(), work.left()) == (work.shas["T02"], [])


def test_rollback_to_another_branch_or_of_detached_head_is_refused(work: Work) -> None:
    work.here.ok("rollback", "T01", "--yes")
    assert "(not in the current branch)" in work.here.ok("rollback").out.splitlines()[-1]
    refused = work.here.refused(4, "rollback", "T02", "--yes").err
    assert "T02" in refused
    assert "is not part of branch main" in refused
    git(work.here.root, "checkout", "-q", "--detach")
    assert "detached" in work.here.refused(4, "rollback", "pre", "--yes").err


def test_rollback_to_unknown_checkpoint_or_phase_is_refused(work: Work) -> None:
    for target in ("T09", "", "gsd/checkpoint/phase-1/T09", "*"):
        refused = work.here.refused(4, "rollback", "--yes", "--", target).err
        assert "has no checkpoint" in refused
        assert "pre, T01, T02" in refused
    wrong = ("--phase", "2")
    assert "Phase 2 has no checkpoints" in work.here.refused(4, "rollback", "pre", *wrong).err
    refused = work.here.refused(2, "rollback", "gsd/checkpoint/phase-1/pre", *wrong).err
    assert "not a checkpoint of phase 2" in refused
    work.here.start("execute", "--task", "T1", "--fresh")
    assert "--phase N" in work.here.refused(2, "rollback", "pre").err


def test_rollback_without_git_exits_3(here: Here) -> None:
    here.start("execute", "--phase", "1", "--task", "T01")
    assert "there is no git work tree here" in here.refused(3, "rollback").err
    here.patch.setenv("PATH", str(here.root))
    assert "there is no git work tree here" in here.refused(3, "rollback", "pre", "--yes").err


def test_rollback_of_untrusted_journal_or_by_agent_without_message_is_refused(work: Work) -> None:
    stranger = {"XDG_STATE_HOME": str(work.here.root.parent / "nobody")}
    assert "not trusted" in work.here.refused(6, "rollback", "T01", "--yes", env=stranger).err
    git(work.here.root, "tag", "gsd/checkpoint/phase-2/pre", "HEAD~1")
    work.here.ok("iterate")
    assert work.here.ok("rollback", "T01", "--json", env=AGENT).json["done"] is False
    for target in ("T01", "gsd/checkpoint/phase-2/pre"):
        refused = work.here.refused(4, "rollback", target, "--yes", env=AGENT).err
        assert f"agents cannot roll back loop {work.loop} until the user sends a mess" in refused
    assert (work.head(), work.left()) == (work.shas["T02"], [])
    send_prompt(work.here, work.loop)
    work.here.ok("rollback", "T01", "--yes", env=AGENT)
    assert work.head() == work.shas["T01"]


@posix_only
def test_rollback_over_ignored_files_or_a_tracked_journal_changes_nothing(work: Work) -> None:
    root = work.here.root
    (root / ".git" / "info").mkdir()
    (root / ".git" / "info" / "exclude").write_text("code\n")
    git(root, "rm", "-q", "--cached", "code")
    git(root, "commit", "-qm", "code is no longer tracked")
    (root / "code").write_text("precious")
    head = work.head()
    refused = work.here.refused(4, "rollback", "T01", "--yes").err
    assert "these files would be overwritten, and no tag has them: code (ignored)" in refused
    assert (work.head(), work.left()) == (head, [])
    assert (root / "code").read_text() == "precious"
    git(root, "add", "-f", ".gsd/journal.jsonl")
    git(root, "commit", "-qm", "the journal too")
    refused = work.here.refused(4, "rollback", "T01", "--yes").err
    assert "git tracks .gsd/journal.jsonl" in refused
    assert work.left() == []


@posix_only
def test_rollback_with_failing_post_checkout_hook_is_done(work: Work) -> None:
    hook(work.here.root, "post-checkout", "exit 1")
    work.here.ok("rollback", "T01", "--yes")
    assert work.head() == work.shas["T01"]
    assert work.tasks()["T02"] == "pending"


def test_rollback_of_older_version_that_was_not_recorded_resets_tasks(work: Work) -> None:
    git(work.here.root, "reset", "-q", "--hard", work.shas["T01"])
    again = work.here.ok("rollback", "T01", "--yes", "--json")
    assert facts(again, "leaves", "reset", "done", "left") == [0, ["T02"], True, None]
    assert work.tasks()["T02"] == "pending"
    assert work.here.ok("rollback", "T01", "--yes").out.startswith("Nothing to do")


@posix_only
def test_rollback_escapes_subjects_and_paths(work: Work) -> None:
    git(work.here.root, "commit", "-q", "--allow-empty", "-m", "\x1b[2Jsubject")
    assert "\\u{1b}[2Jsubject" in work.here.ok("rollback", "T02").out
    (work.here.root / "\x1b]0;path\udcff").write_text("")
    answer = work.here.refused(4, "rollback", "T02", "--json")
    assert "\x1b" not in answer.err
    assert "path\N{REPLACEMENT CHARACTER}" in answer.json["error"]
