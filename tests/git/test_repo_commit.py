"""Commits contain exactly the given paths."""

from __future__ import annotations

import pytest

from gsd_fsm.core.errors import Refused
from tests.support.repositories import (
    commit,
    files_of,
    git,
    hook,
    new_repository,
    opened,
    posix_only,
    status,
)


def test_commit_includes_changed_new_and_deleted_files(repo, repository):
    (repo / "kept.txt").write_text("edited")
    (repo / "sub" / "deep.txt").unlink()
    (repo / "empty").write_text("")
    (repo / "sub" / "new").write_text("new")
    sha = repository.commit(["kept.txt", "sub/deep.txt", "empty", repo / "sub" / "new"], "feat: x")
    assert sha == git(repo, "rev-parse", "HEAD")
    assert files_of(repo) == ["empty", "kept.txt", "sub/deep.txt", "sub/new"]
    assert git(repo, "show", "HEAD:kept.txt") == "edited"
    assert status(repo) == []


def test_commit_leaves_other_staged_changes_staged(repo, repository):
    (repo / "kept.txt").write_text("staged by the user")
    (repo / "theirs").write_text("new, staged by the user")
    git(repo, "add", "-A")
    git(repo, "rm", "-q", "--cached", "sub/deep.txt")
    (repo / "kept.txt").write_text("edited after that")
    before = git(repo, "diff", "--cached")
    (repo / "ours").write_text("ours")
    repository.commit(["ours"], "feat: ours")
    assert files_of(repo) == ["ours"]
    assert git(repo, "diff", "--cached") == before
    left = ["?? sub/deep.txt", "A  theirs", "D  sub/deep.txt", "MM kept.txt"]
    assert sorted(status(repo)) == left


def test_commit_takes_current_content_of_partly_staged_path(repo, repository):
    (repo / "kept.txt").write_text("half")
    git(repo, "add", "kept.txt")
    (repo / "kept.txt").write_text("whole")
    repository.commit(["kept.txt"], "feat: whole")
    assert git(repo, "show", "HEAD:kept.txt") == "whole"
    assert status(repo) == []


def test_commit_without_changes_returns_none(repo, repository):
    head = repository.head()
    (repo / ".gitignore").write_text("*.log\n")
    (repo / "x.log").write_text("ignored")
    outside = repo.parent / "outside"
    outside.write_text("outside")
    for paths in (
        [], ["kept.txt"], ["missing"], ["x.log"], [outside], ["../outside"], ["/etc/passwd"],
        [""], ["."], ["sub/.."], [repo], [".git/config"], ["nul\0"], ["lone \ud800"], ["kept.txt/no"],
    ):  # fmt: skip
        assert repository.commit(paths, "feat: nothing") is None, paths
    assert repository.head() == head
    assert status(repo) == ["?? .gitignore"]


def test_commit_skips_unusable_paths_and_commits_others(repo, repository):
    (repo / "ours").write_text("ours")
    assert repository.commit(["missing", "../outside", "ours", "kept.txt"], "feat: ours")
    assert files_of(repo) == ["ours"]


@pytest.mark.parametrize("staged", ["edited", None], ids=["reverted", "removed from index only"])
def test_commit_of_file_equal_to_head_returns_none(repo, repository, staged):
    if staged:
        (repo / "kept.txt").write_text(staged)
        git(repo, "add", "kept.txt")
        (repo / "kept.txt").write_text("kept\n")
    else:
        git(repo, "rm", "-q", "--cached", "kept.txt")
    before = status(repo)
    assert repository.commit(["kept.txt"], "feat: nothing") is None
    assert status(repo) == before == (["MM kept.txt"] if staged else ["D  kept.txt", "?? kept.txt"])


def test_commit_of_directory_includes_its_changes(repo, repository):
    (repo / "sub" / "deep.txt").write_text("edited")
    (repo / "sub" / "more").mkdir()
    (repo / "sub" / "more" / "new").write_text("")
    (repo / "kept.txt").write_text("not asked for")
    repository.commit(["sub/"], "feat: sub")
    assert files_of(repo) == ["sub/deep.txt", "sub/more/new"]
    assert status(repo) == [" M kept.txt"]


@posix_only
def test_commit_takes_odd_paths_literally(repo, repository):
    names = [" blank ", "-dash", "--all", "new\nline", '"quoted"', "ü", "tab\t", "*", "[Ab]", "a\\b",
             ":(top)", ":/", "!x", "\udcff"]  # fmt: skip
    for name in ("A", "b", "x"):
        commit(repo, name)
    for name in (*names, "A", "b", "x"):
        (repo / name).write_text("new")
    repository.commit(names, "feat: odd")
    assert sorted(status(repo)) == [" M A", " M b", " M x"]
    assert len(files_of(repo)) == len(names)


def test_commit_paths_are_relative_to_project_in_subdirectory(repo):
    project = repo / "sub"
    (project / "deep.txt").write_text("edited")
    (repo / "deep.txt").write_text("of the same name, above")
    (repo / "kept.txt").write_text("edited")
    nested = opened(project)
    nested.commit(["deep.txt"], "feat: below")
    assert files_of(repo) == ["sub/deep.txt"]
    nested.commit(["../kept.txt"], "feat: above, in the same work tree")
    assert files_of(repo) == ["kept.txt"]


@posix_only
def test_commit_follows_parent_links_and_commits_a_link_itself(repo, tmp_path):
    (tmp_path / "alias").symlink_to(repo)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("")
    found = opened(tmp_path / "alias")
    (repo / "to-sub").symlink_to("sub")
    (repo / "out").symlink_to(tmp_path / "outside")
    (repo / "sub" / "deep.txt").write_text("edited")
    assert found.commit(["out/f"], "feat: outside") is None
    found.commit(["to-sub/deep.txt"], "feat: through a link")
    assert files_of(repo) == ["sub/deep.txt"]
    found.commit(["to-sub"], "feat: the link")
    assert files_of(repo) == ["to-sub"]


def test_commit_can_be_first_of_its_branch(tmp_path):
    git(tmp_path, "init", "-q", "--template=")
    (tmp_path / "ours").write_text("ours")
    (tmp_path / "theirs").write_text("theirs")
    git(tmp_path, "add", "theirs")
    found = opened(tmp_path)
    assert found.commit(["ours"], "feat: first") == git(tmp_path, "rev-parse", "HEAD")
    assert git(tmp_path, "ls-tree", "--name-only", "HEAD") == "ours"
    assert status(tmp_path) == ["A  theirs"]


def test_commit_in_linked_work_tree_uses_its_branch(repo, tmp_path):
    git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    (tmp_path / "linked" / "new").write_text("new")
    linked = opened(tmp_path / "linked")
    sha = linked.commit(["new"], "feat: side")
    assert git(repo, "rev-parse", "side") == sha
    assert git(repo, "rev-parse", "HEAD") != sha


def test_commit_leaves_files_of_nested_repository(repo, repository):
    new_repository(repo / "nested")
    (repo / "nested" / "new").write_text("new")
    for paths in (["nested/new"], ["nested"], ["nested/new", "nested/"]):
        assert repository.commit(paths, "feat: nested") is None
    assert git(repo, "ls-files", "nested") == ""


def test_commit_message_is_stored_verbatim(repo, repository):
    git(repo, "config", "i18n.commitEncoding", "latin1")
    message = 'feat(1-01): -F über "quotes" $HOME\n\n# kept\n--amend\n\nCo-Authored-By: A <a@b>'
    (repo / "new").write_text("")
    repository.commit(["new"], message)
    assert git(repo, "log", "-1", "--encoding=UTF-8", "--format=%B") == message


@posix_only
def test_commit_runs_user_hooks_and_reports_their_refusal(repo, repository):
    hook(repo, "pre-commit", "git diff --cached --name-only -- '*.txt' > .git/seen; test ! -e stop")
    (repo / "new.txt").write_text("new")
    (repo / "other.txt").write_text("staged by the user")
    git(repo, "add", "other.txt")
    (repo / "stop").write_text("")
    before = status(repo)
    head = repository.head()
    hook(repo, "commit-msg", "printf '\\033[31mno good message\\033[0m' >&2; test ! -e stop")
    with pytest.raises(Refused, match="git refused: "):
        repository.commit(["new.txt"], "feat: new")
    assert (repository.head(), status(repo)) == (head, before)
    hook(repo, "pre-commit", "git diff --cached --name-only -- '*.txt' > .git/seen")
    with pytest.raises(Refused, match=r"git refused: no good message$"):
        repository.commit(["new.txt"], "feat: new")
    assert (repository.head(), status(repo)) == (head, before)
    (repo / "stop").unlink()
    assert repository.commit(["new.txt"], "feat: new")
    assert (repo / ".git" / "seen").read_text() == "new.txt\n"


@posix_only
def test_commit_survives_git_killed_after_committing(repo, repository):
    hook(repo, "post-commit", "kill -9 $PPID")
    (repo / "new").write_text("new")
    with pytest.raises(Refused, match="exit code"):
        repository.commit(["new"], "feat: new")
    assert files_of(repo) == ["new"]
    assert status(repo) == []


@posix_only
def test_commit_is_signed_if_configured_and_reports_failure(repo, repository):
    git(repo, "config", "commit.gpgSign", "true")
    git(repo, "config", "gpg.program", "false")
    (repo / "new").write_text("new")
    with pytest.raises(Refused, match="failed to sign"):
        repository.commit(["new"], "feat: new")
    assert status(repo) == ["?? new"]


def test_commit_without_identity_names_the_command_to_set_it(repo, repository, monkeypatch):
    for role in ("AUTHOR", "COMMITTER"):
        for part in ("NAME", "EMAIL"):
            monkeypatch.delenv(f"GIT_{role}_{part}")
    git(repo, "config", "user.useConfigOnly", "true")
    (repo / "new").write_text("new")
    with pytest.raises(Refused, match="no identity for commits") as caught:
        repository.commit(["new"], "feat: new")
    assert "git config user.name" in caught.value.hint
    git(repo, "config", "user.email", "a@example.org")
    git(repo, "config", "user.name", " ")
    with pytest.raises(Refused, match="no identity for commits"):
        repository.commit(["new"], "feat: new")
    assert status(repo) == ["?? new"]


def test_commit_during_merge_changes_nothing(repo, repository):
    git(repo, "checkout", "-qb", "theirs")
    commit(repo, "kept.txt", "theirs")
    git(repo, "checkout", "-q", "-")
    head = commit(repo, "kept.txt", "ours")
    git(repo, "merge", "-q", "theirs", "--no-commit", "-s", "ours")
    (repo / "new").write_text("new")
    before = status(repo)
    with pytest.raises(Refused, match="during a merge"):
        repository.commit(["new"], "feat: new")
    assert (repository.head(), status(repo)) == (head, before)


def test_commit_reports_lock_of_another_git(repo, repository):
    (repo / ".git" / "index.lock").write_text("")
    (repo / "new").write_text("new")
    with pytest.raises(Refused, match=r"index\.lock"):
        repository.commit(["new"], "feat: new")
