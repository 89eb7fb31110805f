"""rollback: refusals before anything moves."""

from __future__ import annotations

import pytest

from tests.support import repositories
from tests.support.command_line import AGENT, Here, send_prompt
from tests.support.phases import Work, facts
from tests.support.plan_loops import start_plan
from tests.support.repositories import git, hook, posix_only

_isolated_git = repositories._isolated_git  # a fixture


@pytest.fixture
def work(here: Here) -> Work:
    return Work(here)


def test_rollback_with_uncommitted_changes_is_refused(work: Work) -> None:
    for number in range(12):
        (work.here.root / f"new-{number:02}").write_text("")
    for more in ((), ("--yes",)):
        said = work.here.refused(4, "rollback", "T01", *more).err
        assert "not committed: new-00, new-01" in said
        assert "new-09 and 2 more" in said
        assert "git stash" in said
    assert (work.head(), work.left()) == (work.shas["T02"], [])


def test_rollback_of_detached_head_is_refused(work: Work) -> None:
    git(work.here.root, "checkout", "-q", "--detach")
    assert "detached" in work.here.refused(4, "rollback", "T01", "--yes").err


def test_rollback_to_checkpoint_outside_the_branch_is_refused(work: Work) -> None:
    work.here.ok("rollback", "T01", "--yes")
    assert "(not in the current branch)" in work.here.ok("rollback").out.splitlines()[-1]
    said = work.here.refused(4, "rollback", "T02", "--yes").err
    assert "T02" in said
    assert "is not part of branch main" in said


@pytest.mark.parametrize(
    "target", ["T09", "post", "", "--", "gsd/checkpoint/phase-1/T09", "\n", "*"]
)
def test_rollback_to_unknown_checkpoint_names_the_known_ones(work: Work, target: str) -> None:
    said = work.here.refused(4, "rollback", "--yes", "--", target).err
    assert "has no checkpoint" in said
    assert "pre, T01, T02" in said


def test_rollback_with_wrong_phase_is_refused(work: Work) -> None:
    said = work.here.refused(4, "rollback", "pre", "--phase", "2").err
    assert "Phase 2 has no checkpoints" in said
    whole = "gsd/checkpoint/phase-1/pre"
    assert (
        "not a checkpoint of phase 2" in work.here.refused(2, "rollback", whole, "--phase", "2").err
    )
    work.here.start("execute", "--task", "T1", "--fresh")
    assert "--phase N" in work.here.refused(2, "rollback", "pre").err


def test_rollback_without_git_exits_3(here: Here) -> None:
    here.start("execute", "--phase", "1", "--task", "T01")
    assert "there is no git work tree here" in here.refused(3, "rollback").err
    here.patch.setenv("PATH", str(here.root))
    assert "there is no git work tree here" in here.refused(3, "rollback", "pre", "--yes").err


def test_rollback_by_agent_is_refused_until_the_user_sends_a_message(work: Work) -> None:
    work.here.ok("iterate")
    assert work.here.ok("rollback", "T01", "--json", env=AGENT).json["done"] is False
    said = work.here.refused(4, "rollback", "T01", "--yes", env=AGENT).err
    assert f"agents cannot roll back loop {work.loop} until the user sends a message" in said
    assert (work.head(), work.left()) == (work.shas["T02"], [])
    send_prompt(work.here, work.loop)
    work.here.ok("rollback", "T01", "--yes", env=AGENT)
    assert work.head() == work.shas["T01"]


def test_rollback_by_agent_to_another_phase_is_refused_under_a_live_loop(repository: Here) -> None:
    here = start_plan(repository)
    git(here.root, "tag", "gsd/checkpoint/phase-2/pre")
    git(here.root, "commit", "-q", "--allow-empty", "-m", "more")
    here.ok("iterate", env=AGENT)
    for path in (here.gsd / ".gitignore", here.gsd / "plans"):
        git(here.root, "add", str(path))
    git(here.root, "commit", "-qm", "plan")
    here.refused(4, "rollback", "gsd/checkpoint/phase-2/pre", "--yes", env=AGENT)


def test_rollback_of_untrusted_journal_changes_nothing(work: Work) -> None:
    work.here.patch.setenv("XDG_STATE_HOME", str(work.here.root.parent / "nobody"))
    assert "not trusted" in work.here.refused(6, "rollback", "T01", "--yes").err
    assert (work.head(), work.left()) == (work.shas["T02"], [])


@posix_only
def test_rollback_over_ignored_files_is_refused_and_changes_nothing(work: Work) -> None:
    (work.here.root / ".git" / "info").mkdir()
    (work.here.root / ".git" / "info" / "exclude").write_text("code\n")
    git(work.here.root, "rm", "-q", "--cached", "code")
    git(work.here.root, "commit", "-qm", "code is no longer tracked")
    (work.here.root / "code").write_text("precious")
    head = work.head()
    said = work.here.refused(4, "rollback", "T01", "--yes").err
    assert "git would have to overwrite these ignored files: code" in said
    assert (work.head(), work.left()) == (head, [])
    assert (work.here.root / "code").read_text() == "precious"


def test_rollback_of_tracked_journal_is_refused(work: Work) -> None:
    git(work.here.root, "add", "-f", ".gsd/journal.jsonl")
    git(work.here.root, "commit", "-qm", "the journal too")
    said = work.here.refused(4, "rollback", "T01", "--yes").err
    assert "git tracks .gsd/journal.jsonl" in said
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
