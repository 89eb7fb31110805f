"""Switching, tagging and resetting lose no uncommitted change."""

from __future__ import annotations

import pytest

from gsd_fsm.core.errors import Refused
from tests.support.repositories import commit, git, hook, opened, posix_only, status


def test_switch_creates_branch_and_keeps_local_changes(repo, repository):
    (repo / "kept.txt").write_text("edited")
    repository.switch("gsd/v1", create=True)
    assert repository.branch() == "gsd/v1"
    assert status(repo) == [" M kept.txt"]


def test_switch_checks_out_branch_beside_file_of_same_name(repo, repository):
    base = repository.branch()
    git(repo, "branch", "kept.txt")
    repository.switch("kept.txt", create=False)
    assert repository.branch() == "kept.txt"
    repository.switch(base, create=False)
    assert repository.branch() == base


def test_switch_tracks_remote_branch(repo, tmp_path):
    git(repo, "checkout", "-qb", "gsd/v1")
    there = commit(repo, "there")
    git(repo, "checkout", "-q", "-")
    git(tmp_path, "clone", "-q", str(repo), "clone")
    clone = opened(tmp_path / "clone")
    git(clone.top, "config", "checkout.guess", "false")
    clone.switch("gsd/v1", create=False)
    assert (clone.branch(), clone.head()) == ("gsd/v1", there)


@pytest.mark.parametrize(
    ("name", "ignored"), [("kept.txt", ""), ("secret.env", ""), ("secret.env", "*.env\n")]
)
def test_switch_that_would_lose_changes_is_refused(repo, repository, name, ignored):
    git(repo, "checkout", "-qb", "other")
    commit(repo, name, "theirs")
    git(repo, "checkout", "-q", "-")
    base = repository.branch()
    (repo / ".git" / "info").mkdir(exist_ok=True)
    (repo / ".git" / "info" / "exclude").write_text(ignored)
    (repo / name).write_text("precious")
    with pytest.raises(Refused, match=rf"would be overwritten by checkout[\s\S]*{name}"):
        repository.switch("other", create=False)
    assert repository.branch() == base
    assert (repo / name).read_text() == "precious"


def test_switch_to_missing_branch_is_refused(repo, repository):
    git(repo, "tag", "v1")
    for name in ("none", "--detach", "@{-1}"):
        with pytest.raises(Refused):
            repository.switch(name, create=False)
    with pytest.raises(Refused, match="branch v1 does not exist"):
        repository.switch("v1", create=False)
    assert repository.branch() is not None


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("name", ["-f", "a b", "", "HEAD", "a..b"])
def test_switch_refuses_invalid_branch_name(repository, name, create):
    with pytest.raises(Refused, match="not a valid branch name"):
        repository.switch(name, create=create)


def test_switch_refuses_to_create_existing_branch(repo, repository):
    git(repo, "branch", "twice")
    with pytest.raises(Refused, match="already exists"):
        repository.switch("twice", create=True)


def test_switch_and_tag_before_first_commit(tmp_path):
    git(tmp_path, "init", "-q", "--template=")
    fresh = opened(tmp_path)
    fresh.switch("gsd/v1", create=True)
    assert fresh.branch() == "gsd/v1"
    assert fresh.tag("gsd/x") is None
    assert fresh.tags("gsd/*") == {}


@posix_only
def test_switch_reports_refusal_of_user_hook(repo, repository):
    hook(repo, "post-checkout", "echo not today >&2; exit 1")
    with pytest.raises(Refused, match="git refused: not today"):
        repository.switch("gsd/v1", create=True)


def test_tag_is_lightweight_moves_and_returns_commit(repo, repository):
    for setting in ("tag.gpgSign", "tag.forceSignAnnotated"):
        git(repo, "config", setting, "true")
    git(repo, "config", "gpg.program", "false")
    first = repository.tag("gsd/checkpoint/phase-1/pre")
    assert first == repository.head()
    assert git(repo, "cat-file", "-t", "gsd/checkpoint/phase-1/pre") == "commit"
    second = commit(repo, "second")
    assert repository.tag("gsd/checkpoint/phase-1/pre") == second
    assert repository.tags("gsd/*/*/*") == {"gsd/checkpoint/phase-1/pre": second}
    repository.untag("gsd/checkpoint/phase-1/pre")
    assert repository.tags("gsd/*/*/*") == {}


def test_tag_with_invalid_name_is_refused(repo, repository):
    git(repo, "tag", "gsd")
    with pytest.raises(Refused, match="refs/tags/gsd"):
        repository.tag("gsd/checkpoint/phase-1/pre")


def test_reset_to_moves_branch_and_files(repo, repository):
    first, branch = repository.head(), repository.branch()
    commit(repo, "second")
    commit(repo, "kept.txt", "edited")
    repository.reset_to(first)
    assert (repository.head(), repository.branch()) == (first, branch)
    assert not (repo / "second").exists()
    assert (repo / "kept.txt").read_text() == "kept\n"
    assert status(repo) == []


def test_reset_to_keeps_other_changes_or_refuses(repo, repository):
    first = repository.head()
    second = commit(repo, "kept.txt", "second")
    (repo / "sub" / "deep.txt").write_text("edited")
    (repo / "untracked").write_text("precious")
    repository.reset_to(first)
    assert status(repo) == [" M sub/deep.txt", "?? untracked"]
    git(repo, "merge", "-q", "--ff-only", second)
    (repo / "kept.txt").write_text("precious")
    with pytest.raises(Refused, match=r"kept\.txt"):
        repository.reset_to(first)
    assert repository.head() == second
    assert (repo / "kept.txt").read_text() == "precious"


@pytest.mark.parametrize("listed", [False, True], ids=["untracked", "ignored"])
@pytest.mark.parametrize("shape", ["file", "directory", "above"])
def test_reset_to_never_overwrites_untracked_file(repo, repository, listed, shape):
    place = repo / "way"
    if shape == "above":
        place.mkdir()
        commit(repo, "way/tracked")
    else:
        commit(repo, "way", "tracked")
    back = repository.head()
    git(repo, "rm", "-rq", "way")
    (repo / ".gitignore").write_text("way\n*.log\n" if listed else "")
    git(repo, "add", ".gitignore")
    git(repo, "commit", "-qm", "without it")
    head = repository.head()
    precious = place / "x.log" if shape == "directory" else place
    precious.parent.mkdir(exist_ok=True)
    precious.write_text("precious")
    with pytest.raises(Refused, match="way"):
        repository.reset_to(back)
    assert repository.head() == head
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("during", ["detached", "merge is in progress"])
def test_reset_to_with_detached_head_or_during_merge_is_refused(repo, repository, during):
    first = repository.head()
    git(repo, "checkout", "-qb", "theirs")
    commit(repo, "theirs")
    git(repo, "checkout", "-q", "-")
    second = commit(repo, "second")
    if during == "detached":
        git(repo, "checkout", "-q", "--detach")
    else:
        git(repo, "merge", "-q", "theirs", "--no-commit", "-s", "ours")
    assert status(repo) == []
    with pytest.raises(Refused, match=during):
        repository.reset_to(first)
    assert repository.head() == second


def test_reset_to_leaves_other_work_trees_unchanged(repo, repository, tmp_path):
    first = repository.head()
    second = commit(repo, "second")
    git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    linked = opened(tmp_path / "linked")
    linked.reset_to(first)
    assert (linked.head(), repository.head()) == (first, second)
    assert (repo / "second").exists()


def test_changes_to_lists_paths_that_differ(repo, repository):
    first = repository.head()
    commit(repo, "second")
    git(repo, "mv", "kept.txt", "moved.txt")
    git(repo, "commit", "-qm", "moved")
    assert sorted(repository.changes_to(first)) == ["kept.txt", "moved.txt", "second"]
