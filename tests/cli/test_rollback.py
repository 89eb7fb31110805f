"""rollback: go back to a checkpoint, in git and in the loop."""

from __future__ import annotations

import os
import re
import shutil

import pytest

from tests.support import repositories
from tests.support.command_line import AGENT, B, Here, send_prompt
from tests.support.events import write
from tests.support.phases import Phase, Work, facts
from tests.support.repositories import commit, git, hook, posix_only

_isolated_git = repositories._isolated_git  # a fixture


@pytest.fixture
def work(here: Here) -> Work:
    return Work(here)


@pytest.fixture
def uncommitted(here: Here) -> Phase:
    """Return a phase whose work is not committed."""
    found = Phase(here, settings="")
    write(found.root / ".git" / "info" / "exclude", "*.log\n")
    (found.root / "kept.log").write_text("ignored")
    return found


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
    assert f"→ gsd-fsm rollback --loop {work.loop} T01 --yes --phase 1" in work.here.ok(*named).out
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


# checkpoints with uncommitted changes


def changed(phase: Phase) -> str:
    """Return the changed files, without those of gsd-fsm."""
    return phase.git("status", "--porcelain", "--", ".", ":!.gsd")


def test_rollback_without_commits_restores_files_and_keeps_what_it_leaves(
    uncommitted: Phase,
) -> None:
    here, root, head = uncommitted.here, uncommitted.root, uncommitted.head()
    assert here.ok("rollback").out.splitlines()[1:] == [
        f"  pre  {head[:7]}  first",
        f"  T01  {head[:7]}  first  (with uncommitted changes)",
        f"  T02  {head[:7]}  first  (with uncommitted changes)",
    ]
    (root / "01.py").write_text("changed")
    (root / "new").write_text("new")
    uncommitted.git("add", "new")
    before = here.journal.read_bytes()
    assert here.ok("rollback", "T01").out.splitlines() == [
        f"The files would go back to T01 ({head[:7]}).",
        "Files that would be removed: 02.py, new.",
        "Files that would be restored: 01.py.",
        "Uncommitted changes that a tag would keep: 01.py, 02.py, new.",
        "Tasks that would become pending: T02.",
        "Nothing has been changed yet.",
        "→ gsd-fsm rollback T01 --yes",
    ]
    assert (here.journal.read_bytes(), (root / "new").exists()) == (before, True)
    output = here.ok("rollback", "T01", "--yes").out
    (rollback,) = uncommitted.rollbacks()
    left = rollback["left"]
    assert f"The files are back at T01 ({head[:7]}). The state before is kept as {left}." in output
    assert (uncommitted.head(), changed(uncommitted)) == (head, "?? 01.py")
    assert ((root / "01.py").read_text(), (root / "kept.log").read_text()) == ("01", "ignored")
    assert uncommitted.tasks() == {"T01": "complete", "T02": "pending"}
    assert uncommitted.git("rev-parse", left) == rollback["kept"]
    assert uncommitted.git("show", f"{left}:01.py") == "changed"
    assert here.ok("rollback", "T01", "--yes").out == "Nothing to do: already at T01.\n"
    here.ok("rollback", left, "--yes")
    assert (root / "01.py").read_text() == "changed"
    assert changed(uncommitted) == "?? 01.py\n?? 02.py\n?? new"
    here.ok("rollback", "pre", "--yes")
    assert changed(uncommitted) == ""
    assert uncommitted.tasks() == {"T01": "pending", "T02": "pending"}
    assert len(uncommitted.rollbacks()) == 3


def test_rollback_over_commits_keeps_uncommitted_changes_and_restores_those_of_the_target(
    here: Here,
) -> None:
    git(here.root, "init", "-q", "--template=", "-b", "main")
    (here.root / "draft").write_text("before")  # the phase commits it
    phase = Phase(here)
    (here.root / "draft").write_text("changed before T01 was tagged")
    phase.here.ok("rollback", "pre", "--yes")
    assert (here.root / "draft").read_text() == "before"
    for name in ("01", "02"):
        (here.root / "draft").write_text(f"during {name}")
        (here.root / f"{name}.py").write_text(name)
        here.ok("report", f"T{name}", stdin=b"TASK COMPLETE\n")
    last = phase.head()
    (here.root / "draft").unlink()
    answer = here.ok("rollback", "T01", "--yes", "--json")
    assert facts(answer, "leaves", "removed", "restored") == [1, ["02.py"], ["draft"]]
    assert (here.root / "draft").read_text() == "during 01"
    assert changed(phase) == "M draft"
    assert phase.git("log", "-1", "--format=%s") == "feat(1-01): Write 01."
    left = answer.json["left"]
    assert phase.git("rev-parse", f"{left}^") == last
    assert "draft" not in phase.git("ls-tree", "--name-only", left).split()


def test_rollback_after_the_phase_ended_is_not_undone_by_its_effects(uncommitted: Phase) -> None:
    here, root = uncommitted.here, uncommitted.root
    here.ok("complete")
    uncommitted.summary.unlink()  # an effect that would be missing
    assert "nothing was recorded" in here.ok("rollback", "pre", "--yes").out
    assert not (root / "01.py").exists()
    here.ok("start", "goal", "another")
    assert not uncommitted.summary.exists()
    shutil.rmtree(here.gsd)
    answer = here.ok("rollback", "T02", "--phase", "1", "--yes", "--json")
    assert facts(answer, "done", "restored") == [True, ["01.py", "02.py"]]


def test_rollback_of_large_file_or_staged_content_loses_neither(uncommitted: Phase) -> None:
    here, root = uncommitted.here, uncommitted.root
    (root / "big").touch()
    os.truncate(root / "big", 11 << 20)
    (root / "02.py").write_text("staged")
    uncommitted.git("add", "02.py")
    (root / "02.py").write_text("later")
    refused = here.refused(4, "rollback", "T01", "--yes").err
    assert "staged changes differ from the files, and no tag would keep them: 02.py" in refused
    assert uncommitted.git("show", ":02.py") == "staged"
    uncommitted.git("add", "02.py")
    for more in ((), ("--yes",)):
        output = here.ok("rollback", "T01", *more).out
        assert "Neither saved nor changed: big (over 10 MB)." in output
    assert (root / "big").stat().st_size == 11 << 20
    assert not (root / "02.py").exists()


@posix_only
def test_rollback_prints_odd_paths_as_text_and_json(uncommitted: Phase) -> None:
    (uncommitted.root / "\x1b]0;path\udcff").write_text("")
    answer = uncommitted.here.ok("rollback", "T02")
    assert "\x1b" not in answer.out
    assert "path\N{REPLACEMENT CHARACTER}" in answer.out
    found = uncommitted.here.ok("rollback", "T02", "--yes", "--json").json
    assert "path\N{REPLACEMENT CHARACTER}" in found["removed"][0]


def test_rollback_to_checkpoint_of_older_version_refuses_uncommitted_changes(
    uncommitted: Phase,
) -> None:
    uncommitted.here.ok("cancel")
    tag = "gsd/checkpoint/phase-1/T01"
    uncommitted.git("tag", "-f", tag, "HEAD")  # where versions that saved no files set it
    assert "Nothing to do" in uncommitted.here.ok("rollback", "T01", "--yes").out
    commit(uncommitted.root, "more")
    assert "uncommitted changes: 01.py, 02.py" in uncommitted.here.refused(4, "rollback", tag).err
