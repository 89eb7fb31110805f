"""Reading starts no programs, commits contain exactly the given paths, and no change is lost."""

from __future__ import annotations

import pytest

from gsd_fsm.core.errors import Refused
from gsd_fsm.git.repo import Repository
from tests.support.repositories import (
    commit,
    content_tree,
    files_of,
    git,
    hook,
    new_repository,
    opened,
    posix_only,
    status,
)
from tests.support.verification import lay


def begin_merge(repo):
    git(repo, "checkout", "-qb", "theirs")
    commit(repo, "kept.txt", "theirs")
    git(repo, "checkout", "-q", "-")
    commit(repo, "kept.txt", "ours")
    git(repo, "merge", "-q", "theirs", "--no-commit", "-s", "ours")


def test_broken_repository_is_refused_with_git_message(tmp_path):
    lay(tmp_path, {".git": "gitdir: /no/such/place\n"})
    with pytest.raises(Refused, match="not a git repository: /no/such/place"):
        Repository.around(tmp_path)


def test_repository_before_first_commit_has_a_branch_but_no_head_or_tag(tmp_path):
    git(tmp_path, "init", "-q", "--template=", "-b", "start")
    fresh = opened(tmp_path)
    assert (fresh.branch(), fresh.head()) == ("start", None)
    assert fresh.branch_commit("start") is None
    assert not fresh.contains("abcd")
    fresh.switch("gsd/v1", create=True)
    assert fresh.branch() == "gsd/v1"
    assert fresh.tag("gsd/x") is None
    assert fresh.tags("gsd/*") == {}
    first = commit(tmp_path, "a")
    assert (fresh.branch(), fresh.head()) == ("gsd/v1", first)
    assert fresh.branch_commit("gsd/v1") == first


def test_branch_has_its_own_name_beside_a_tag_and_none_if_detached(repo, repository):
    git(repo, "checkout", "-qb", "twice/named")
    git(repo, "tag", "twice/named")
    assert repository.branch() == "twice/named"
    git(repo, "checkout", "-q", "--detach")
    assert repository.branch() is None
    assert repository.head() == git(repo, "rev-parse", "HEAD")


def test_local_and_remote_branches_are_found_and_remote_ones_tracked(repo, repository, tmp_path):
    git(repo, "checkout", "-qb", "gsd/one")
    there = commit(repo, "there")
    git(repo, "checkout", "-q", "-")
    git(repo, "tag", "gsd/tagged")
    assert repository.branch_commit("gsd/one") == there
    for name in ("gsd", "one", "gsd/tagged"):
        assert repository.branch_commit(name) is None
    git(tmp_path, "clone", "-q", str(repo), "clone")
    clone = opened(tmp_path / "clone")
    assert clone.branch_commit("gsd/one") == there
    git(clone.top, "config", "checkout.guess", "false")
    clone.switch("gsd/one", create=False)
    assert (clone.branch(), clone.head()) == ("gsd/one", there)


def test_is_branch_name_accepts_valid_names_only(repository):
    for name in ("gsd/v1.0", "ü", "a-b_c"):
        assert repository.is_branch_name(name), name
    for name in ("", "-x", "a b", "a..b", "a~", "x.lock", "a\nb", "a\0b", "HEAD", "a/"):
        assert not repository.is_branch_name(name), name
        assert repository.branch_commit(name) is None


def test_has_commit_accepts_abbreviated_ids_of_commits_only(repo, repository):
    first = repository.head()
    second = commit(repo, "second")
    for sha in (first, first[:7], first.upper()):
        assert repository.has_commit(sha)
        assert repository.contains(sha)
    git(repo, "checkout", "-q", first)
    assert repository.has_commit(second)
    assert not repository.contains(second)
    assert repository.contains(first, second)
    assert not repository.contains(second, first)
    assert not repository.has_commit(git(repo, "rev-parse", "HEAD:kept.txt"))
    for text in (
        "", "HEAD", "main", "--help", "-q", "0" * 40, "deadbeef", "x" * 40, "a\0", "../..",
    ):  # fmt: skip
        assert not repository.has_commit(text), text
        assert not repository.contains(text), text


def test_commits_returns_decoded_subjects_even_if_empty(repo, repository):
    empty = ("commit", "-q", "--allow-empty")
    git(repo, *empty, "--allow-empty-message", "-m", "")
    git(repo, *empty, "-m", "ü: two\n\nbody")
    git(repo, "-c", "i18n.commitEncoding=latin1", *empty, "-F", "-",
        input="gr\udcfcn", encoding="utf-8", errors="surrogateescape")  # fmt: skip
    assert [it.subject for it in repository.commits("HEAD")] == ["grün", "ü: two", "", "first"]
    assert [it.subject for it in repository.commits("--max-count=1", "HEAD")] == ["grün"]
    assert repository.count("HEAD") == 4


def test_tags_returns_commits_of_lightweight_and_annotated_tags(repo, repository):
    first = repository.head()
    git(repo, "tag", "gsd/x/light")
    git(repo, "tag", "-am", "words", "gsd/x/annotated")
    git(repo, "tag", "gsd/x/blob", "HEAD:kept.txt")
    git(repo, "tag", "other")
    assert repository.tags("gsd/x/*") == {"gsd/x/light": first, "gsd/x/annotated": first}
    assert repository.tags("nothing/*") == {}


def test_changes_lists_differences_with_modes_and_without_renames(repo, repository):
    first = repository.head()
    commit(repo, "second")
    git(repo, "mv", "kept.txt", "moved.txt")
    git(repo, "update-index", "--chmod=+x", "sub/deep.txt")
    git(repo, "commit", "-qm", "moved")
    found = {it.path: (it.status, it.old_mode, it.mode) for it in repository.changes(first, "HEAD")}
    assert found == {
        "kept.txt": ("D", "100644", "000000"), "moved.txt": ("A", "000000", "100644"),
        "second": ("A", "000000", "100644"), "sub/deep.txt": ("M", "100644", "100755"),
    }  # fmt: skip


def test_staged_only_lists_staged_content_that_is_nowhere_else(repo, repository):
    lay(repo, dict.fromkeys(("kept.txt", "same", "differs", "gone", "new"), "staged"))
    git(repo, "add", "kept.txt", "same", "differs", "gone")
    git(repo, "rm", "-q", "--cached", "sub/deep.txt")
    lay(repo, {"kept.txt": "kept\n", "differs": "later"})
    (repo / "gone").unlink()
    assert sorted(repository.staged_only()) == ["differs", "gone", "kept.txt"]


@posix_only
def test_reading_starts_no_program_of_the_repository(repo, repository, tmp_path):
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch '{tmp_path}/sprung'\ncat\n")
    trap.chmod(0o755)
    for setting in (
        "core.fsmonitor", "core.pager", "pager.status", "pager.rev-list", "pager.ls-files",
        "diff.external", "gpg.program", "core.editor", "core.sshCommand", "interactive.diffFilter",
    ):  # fmt: skip
        git(repo, "config", setting, str(trap))
    for alias in ("status", "rev-list", "for-each-ref", "symbolic-ref", "merge-base"):
        git(repo, "config", f"alias.{alias}", f"!{trap}")
    git(repo, "config", "log.showSignature", "true")
    git(repo, "config", "core.hooksPath", str(tmp_path))
    (tmp_path / "post-index-change").symlink_to(trap)
    lay(repo, {"kept.txt": "edited"})
    head = repository.head()
    assert repository.branch()
    assert repository.uncommitted(["kept.txt"]) == ["kept.txt"]
    assert repository.commits("HEAD")
    assert repository.tags("*") == {}
    assert repository.contains(head)
    assert repository.branch_commit("none") is None
    assert repository.changes(head, head) == []
    assert content_tree(repo)
    assert not (tmp_path / "sprung").exists()


def test_repository_with_sha256_ids_works_the_same(tmp_path):
    found = opened(new_repository(tmp_path / "repo", "--object-format=sha256"))
    assert found.contains(found.head())
    assert found.tag("gsd/x") == found.head()
    assert found.tags("gsd/*") == {"gsd/x": found.head()}


def test_linked_work_tree_is_its_own_repository(repo, repository, tmp_path):
    first = repository.head()
    second = commit(repo, "second")
    git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    linked = opened(tmp_path / "linked")
    lay(tmp_path, {"linked/new": ""})
    assert (linked.branch(), linked.uncommitted(["new"])) == ("side", ["new"])
    assert repository.uncommitted(["new"]) == []
    assert linked.commit(["new"], "feat: side") == git(repo, "rev-parse", "side")
    linked.move_branch(first)
    assert (linked.head(), repository.head()) == (first, second)
    assert (repo / "second").exists()


def test_commit_includes_changed_new_and_deleted_files_and_directories(repo, repository):
    lay(repo, {"kept.txt": "half"})
    git(repo, "add", "kept.txt")
    (repo / "sub" / "deep.txt").unlink()
    lay(repo, {"kept.txt": "whole", "empty": "", "all/of/it": "new", "other": "not asked for"})
    sha = repository.commit(["kept.txt", "sub/deep.txt", repo / "empty", "all/"], "feat: x")
    assert sha == git(repo, "rev-parse", "HEAD")
    assert files_of(repo) == ["all/of/it", "empty", "kept.txt", "sub/deep.txt"]
    assert git(repo, "show", "HEAD:kept.txt") == "whole"
    assert status(repo) == ["?? other"]


def test_commit_leaves_other_staged_changes_staged(repo, repository):
    lay(repo, {"kept.txt": "staged by the user", "theirs": "new, staged by the user"})
    git(repo, "add", "-A")
    git(repo, "rm", "-q", "--cached", "sub/deep.txt")
    lay(repo, {"kept.txt": "edited after that", "ours": "ours"})
    before = git(repo, "diff", "--cached")
    repository.commit(["ours"], "feat: ours")
    assert files_of(repo) == ["ours"]
    assert git(repo, "diff", "--cached") == before
    left = ["?? sub/deep.txt", "A  theirs", "D  sub/deep.txt", "MM kept.txt"]
    assert sorted(status(repo)) == left


def test_commit_skips_unusable_paths_and_without_others_returns_none(repo, repository):
    head = repository.head()
    outside = repo.parent / "outside"
    lay(repo, {".gitignore": "*.log\n", "x.log": "ignored", "../outside": "outside"})
    for paths in (
        [], ["kept.txt"], ["missing"], ["x.log"], [outside], ["../outside"], ["/etc/passwd"],
        [""], ["."], ["sub/.."], [repo], [".git/config"], ["nul\0"], ["lone \ud800"], ["kept.txt/no"],
    ):  # fmt: skip
        assert repository.commit(paths, "feat: nothing") is None, paths
    assert repository.head() == head
    assert status(repo) == ["?? .gitignore"]
    lay(repo, {"ours": "ours"})
    assert repository.commit(["missing", "../outside", "ours", "kept.txt"], "feat: ours")
    assert files_of(repo) == ["ours"]


def test_commit_of_file_equal_to_head_returns_none(repo, repository):
    lay(repo, {"kept.txt": "edited"})
    git(repo, "add", "kept.txt")
    lay(repo, {"kept.txt": "kept\n"})
    assert repository.commit(["kept.txt"], "feat: reverted") is None
    assert status(repo) == ["MM kept.txt"]
    git(repo, "rm", "-qf", "--cached", "kept.txt")
    assert repository.commit(["kept.txt"], "feat: removed from the index only") is None
    assert status(repo) == ["D  kept.txt", "?? kept.txt"]


@posix_only
def test_commit_takes_odd_paths_literally(repo, repository):
    names = [" blank ", "-dash", "--all", "new\nline", '"quoted"', "ü", "tab\t", "*", "[Ab]", "a\\b",
             ":(top)", ":/", "!x", "\udcff"]  # fmt: skip
    for name in ("A", "b", "x"):
        commit(repo, name)
    lay(repo, dict.fromkeys((*names, "A", "b", "x"), "new"))
    repository.commit(names, "feat: odd")
    assert sorted(status(repo)) == [" M A", " M b", " M x"]
    assert len(files_of(repo)) == len(names)


def test_commit_paths_are_relative_to_project_in_subdirectory(repo):
    lay(repo, {"sub/deep.txt": "edited", "deep.txt": "same name, above", "kept.txt": "edited"})
    nested = opened(repo / "sub")
    assert (nested.top, nested.project) == (repo.resolve(), repo / "sub")
    nested.commit(["deep.txt"], "feat: below")
    assert files_of(repo) == ["sub/deep.txt"]
    nested.commit(["../kept.txt"], "feat: above, in the same work tree")
    assert files_of(repo) == ["kept.txt"]


@posix_only
def test_commit_follows_parent_links_and_commits_a_link_itself(repo, tmp_path):
    lay(tmp_path, {"outside/f": "", "repo/sub/deep.txt": "edited"})
    (tmp_path / "alias").symlink_to(repo)
    found = opened(tmp_path / "alias")
    (repo / "to-sub").symlink_to("sub")
    (repo / "out").symlink_to(tmp_path / "outside")
    assert found.commit(["out/f"], "feat: outside") is None
    found.commit(["to-sub/deep.txt"], "feat: through a link")
    assert files_of(repo) == ["sub/deep.txt"]
    found.commit(["to-sub"], "feat: the link")
    assert files_of(repo) == ["to-sub"]


def test_commit_can_be_first_of_its_branch(tmp_path):
    git(tmp_path, "init", "-q", "--template=")
    lay(tmp_path, {"ours": "ours", "theirs": "theirs"})
    git(tmp_path, "add", "theirs")
    assert opened(tmp_path).commit(["ours"], "feat: first") == git(tmp_path, "rev-parse", "HEAD")
    assert git(tmp_path, "ls-tree", "--name-only", "HEAD") == "ours"
    assert status(tmp_path) == ["A  theirs"]


def test_commit_leaves_files_of_nested_repository(repo, repository):
    new_repository(repo / "nested")
    lay(repo, {"nested/new": "new"})
    for paths in (["nested/new"], ["nested"], ["nested/new", "nested/"]):
        assert repository.commit(paths, "feat: nested") is None
    assert git(repo, "ls-files", "nested") == ""


def test_commit_message_is_stored_verbatim(repo, repository):
    git(repo, "config", "i18n.commitEncoding", "latin1")
    message = 'feat(1-01): -F über "quotes" $HOME\n\n# kept\n--amend\n\nCo-Authored-By: A <a@b>'
    lay(repo, {"new": ""})
    repository.commit(["new"], message)
    assert git(repo, "log", "-1", "--encoding=UTF-8", "--format=%B") == message


def require_refusal(repository, message):
    """Assert that a commit of `new` is refused with this message and changes nothing."""
    before = repository.head(), status(repository.top)
    with pytest.raises(Refused, match=message) as caught:
        repository.commit(["new"], "feat: new")
    assert (repository.head(), status(repository.top)) == before
    return caught.value


@posix_only
def test_commit_runs_user_hooks_and_reports_their_refusal(repo, repository):
    seen = "git diff --cached --name-only > .git/seen"
    hook(repo, "pre-commit", f"{seen}; test ! -e .git/stop")
    lay(repo, {"new": "new", "other": "staged by the user", ".git/stop": ""})
    git(repo, "add", "other")
    hook(repo, "commit-msg", "printf '\\033[31mno good message\\033[0m' >&2; test ! -e .git/stop")
    require_refusal(repository, "git refused: ")
    hook(repo, "pre-commit", seen)
    require_refusal(repository, r"git refused: no good message$")
    (repo / ".git" / "stop").unlink()
    assert repository.commit(["new"], "feat: new")
    assert (repo / ".git" / "seen").read_text() == "new\n"


@posix_only
def test_commit_survives_git_killed_after_committing(repo, repository):
    hook(repo, "post-commit", "kill -9 $PPID")
    lay(repo, {"new": "new"})
    with pytest.raises(Refused, match="exit code"):
        repository.commit(["new"], "feat: new")
    assert files_of(repo) == ["new"]
    assert status(repo) == []


def test_commit_without_identity_names_the_command_to_set_it(repo, repository, monkeypatch):
    for role in ("AUTHOR", "COMMITTER"):
        for part in ("NAME", "EMAIL"):
            monkeypatch.delenv(f"GIT_{role}_{part}")
    git(repo, "config", "user.useConfigOnly", "true")
    lay(repo, {"new": "new"})
    assert "git config user.name" in require_refusal(repository, "no identity for commits").hint
    git(repo, "config", "user.email", "a@example.org")
    git(repo, "config", "user.name", " ")
    require_refusal(repository, "no identity for commits")


@posix_only
def test_commit_that_git_refuses_changes_nothing(repo, repository):
    lay(repo, {"new": "new", ".git/index.lock": ""})
    require_refusal(repository, r"index\.lock")
    (repo / ".git" / "index.lock").unlink()
    begin_merge(repo)
    require_refusal(repository, "during a merge")
    git(repo, "merge", "--abort")
    git(repo, "config", "commit.gpgSign", "true")
    git(repo, "config", "gpg.program", "false")
    require_refusal(repository, "failed to sign")


def test_switch_checks_out_branches_and_keeps_local_changes(repo, repository):
    base = repository.branch()
    lay(repo, {"kept.txt": "edited"})
    git(repo, "branch", "kept.txt")
    for name, create in (("gsd/v1", True), ("kept.txt", False), (base, False)):
        repository.switch(name, create=create)
        assert repository.branch() == name
        assert status(repo) == [" M kept.txt"]


@pytest.mark.parametrize(
    ("name", "ignored"), [("kept.txt", ""), ("secret.env", ""), ("secret.env", "*.env\n")]
)
def test_switch_that_would_lose_changes_is_refused(repo, repository, name, ignored):
    git(repo, "checkout", "-qb", "other")
    commit(repo, name, "theirs")
    git(repo, "checkout", "-q", "-")
    base = repository.branch()
    lay(repo, {".git/info/exclude": ignored, name: "precious"})
    with pytest.raises(Refused, match=rf"would be overwritten by checkout[\s\S]*{name}"):
        repository.switch("other", create=False)
    assert repository.branch() == base
    assert (repo / name).read_text() == "precious"


def test_switch_refuses_unknown_branch_and_creating_an_existing_one(repo, repository):
    base = repository.branch()
    git(repo, "tag", "v1")
    git(repo, "branch", "twice")
    for name, create, message in (
        *((name, False, "not a valid branch name") for name in ("-f", "a b", "", "HEAD", "@{-1}")),
        ("--detach", True, "not a valid branch name"),
        *((name, False, f"branch {name} does not exist") for name in ("none", "v1")),
        ("twice", True, "already exists"),
    ):
        with pytest.raises(Refused, match=message):
            repository.switch(name, create=create)
    assert repository.branch() == base


def test_tag_is_lightweight_moves_and_returns_commit(repo, repository):
    for setting in ("tag.gpgSign", "tag.forceSignAnnotated"):
        git(repo, "config", setting, "true")
    git(repo, "config", "gpg.program", "false")
    tag = "gsd/checkpoint/phase-1/pre"
    assert repository.tag(tag) == repository.head()
    assert git(repo, "cat-file", "-t", tag) == "commit"
    second = commit(repo, "second")
    assert repository.tag(tag) == second
    assert repository.tags("gsd/*/*/*") == {tag: second}
    git(repo, "tag", "-d", tag)
    git(repo, "tag", "--no-sign", "gsd")
    with pytest.raises(Refused, match="refs/tags/gsd"):
        repository.tag(tag)


def test_move_branch_leaves_files_and_runs_no_hook(repo, repository, tmp_path):
    first, branch = repository.head(), repository.branch()
    commit(repo, "second")
    lay(repo, {"sub/deep.txt": "edited"})
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        hook(repo, name, f"touch '{tmp_path}/sprung'")
    repository.move_branch(first)
    assert (repository.head(), repository.branch()) == (first, branch)
    assert not (tmp_path / "sprung").exists()
    assert status(repo) == [" M sub/deep.txt", "?? second"]


def test_move_branch_with_detached_head_or_during_merge_is_refused(repo, repository):
    first = repository.head()
    begin_merge(repo)
    second = repository.head()
    assert status(repo) == []
    with pytest.raises(Refused, match="merge is in progress"):
        repository.move_branch(first)
    git(repo, "merge", "--abort")
    git(repo, "checkout", "-q", "--detach")
    with pytest.raises(Refused, match="detached"):
        repository.move_branch(first)
    assert repository.head() == second
