"""Reading a repository, without starting programs that it names."""

from __future__ import annotations

import pytest

from gsd_fsm.core.errors import Refused
from gsd_fsm.git.repo import Repository
from tests.support.repositories import commit, git, new_repository, opened, posix_only


def test_repository_is_found_from_subdirectory(repo):
    found = opened(repo / "sub")
    assert (found.top, found.project) == (repo.resolve(), repo / "sub")


def test_broken_repository_is_refused_with_git_message(tmp_path):
    (tmp_path / ".git").write_text("gitdir: /no/such/place\n")
    with pytest.raises(Refused, match="not a git repository: /no/such/place"):
        Repository.around(tmp_path)


def test_branch_and_head_before_and_after_first_commit(tmp_path):
    git(tmp_path, "init", "-q", "--template=", "-b", "start")
    fresh = opened(tmp_path)
    assert (fresh.branch(), fresh.head()) == ("start", None)
    assert fresh.branch_commit("start") is None
    assert not fresh.contains("abcd")
    first = commit(tmp_path, "a")
    assert (fresh.branch(), fresh.head()) == ("start", first)
    assert fresh.branch_commit("start") == first


def test_branch_of_detached_head_is_none(repo, repository):
    git(repo, "checkout", "-q", "--detach")
    assert repository.branch() is None
    assert repository.head() == git(repo, "rev-parse", "HEAD")


def test_branch_beside_tag_of_same_name_keeps_its_name(repo, repository):
    git(repo, "checkout", "-qb", "twice/named")
    git(repo, "tag", "twice/named")
    assert repository.branch() == "twice/named"


def test_branch_commit_finds_local_and_remote_branches_only(repo, repository, tmp_path):
    git(repo, "branch", "gsd/one")
    git(repo, "tag", "gsd/tagged")
    assert repository.branch_commit("gsd/one") == repository.head()
    for name in ("gsd", "one", "gsd/tagged"):
        assert repository.branch_commit(name) is None
    git(tmp_path, "clone", "-q", str(repo), "clone")
    assert opened(tmp_path / "clone").branch_commit("gsd/one") == repository.head()


@pytest.mark.parametrize(
    ("valid", "names"),
    [
        (False, ["", "-x", "a b", "a..b", "a~", "x.lock", "a\nb", "a\0b", "HEAD", "a/"]),
        (True, ["gsd/v1.0", "ü", "a-b_c"]),
    ],
)
def test_is_branch_name_accepts_valid_names_only(repository, valid, names):
    for name in names:
        assert repository.is_branch_name(name) is valid, name
        assert repository.branch_commit(name) is None


def test_has_commit_accepts_abbreviated_ids(repo, repository):
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


@pytest.mark.parametrize(
    "text", ["", "HEAD", "main", "--help", "-q", "0" * 40, "deadbeef", "x" * 40, "a\0", "../.."]
)
def test_has_commit_rejects_other_texts(repository, text):
    assert not repository.has_commit(text)
    assert not repository.contains(text)


def test_has_commit_rejects_blob_id(repo, repository):
    assert not repository.has_commit(git(repo, "rev-parse", "HEAD:kept.txt"))


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


def test_dirty_includes_changed_moved_staged_and_untracked_files(repo, repository):
    assert repository.dirty() == []
    for setting, value in (
        ("showUntrackedFiles", "no"),
        ("relativePaths", "true"),
        ("renames", "copies"),
    ):
        git(repo, "config", f"status.{setting}", value)
    git(repo, "mv", "kept.txt", "moved.txt")
    (repo / "sub" / "deep.txt").unlink()
    (repo / "new folder").mkdir()
    (repo / "new folder" / "ü new").write_text("")
    (repo / "staged").write_text("")
    git(repo, "add", "staged")
    changed = ["kept.txt", "moved.txt", "new folder/ü new", "staged", "sub/deep.txt"]
    assert sorted(repository.dirty()) == changed
    (repo / "moved.txt").write_text("edited")
    assert sorted(repository.dirty()) == changed


def test_dirty_leaves_out_ignored_files_and_views(repo, repository):
    (repo / ".gitignore").write_text("*.log\n")
    (repo / "x.log").write_text("")
    for folder in (repo / ".gsd", repo / "sub" / ".gsd"):
        folder.mkdir()
        for name in (".gitignore", "STATE.md", "config.toml"):
            (folder / name).write_text("")
    (repo / "STATE.md").write_text("")
    kept = [".gitignore", ".gsd/config.toml", "STATE.md", "sub/.gsd/config.toml"]
    assert repository.dirty() == kept


@posix_only
def test_dirty_returns_odd_paths_verbatim(repo, repository):
    names = [" blank ", "-dash", "new\nline", '"quoted"', "ü", "tab\t", "*", ":(top)"]
    for name in names:
        (repo / name).write_text("")
    assert sorted(repository.dirty()) == sorted(names)


def test_linked_work_tree_is_its_own_repository(repo, repository, tmp_path):
    git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    linked = opened(tmp_path / "linked")
    (tmp_path / "linked" / "new").write_text("")
    assert (linked.branch(), linked.dirty()) == ("side", ["new"])
    assert repository.dirty() == []


@posix_only
def test_reading_starts_no_program_of_the_repository(repo, repository, trap, tmp_path):
    for setting in (
        "core.fsmonitor", "core.pager", "pager.status", "pager.rev-list", "diff.external",
        "gpg.program", "core.editor", "core.sshCommand", "interactive.diffFilter",
    ):  # fmt: skip
        git(repo, "config", setting, str(trap))
    for alias in ("status", "rev-list", "for-each-ref", "symbolic-ref", "merge-base"):
        git(repo, "config", f"alias.{alias}", f"!{trap}")
    git(repo, "config", "log.showSignature", "true")
    git(repo, "config", "core.hooksPath", str(tmp_path))
    (tmp_path / "post-index-change").symlink_to(trap)
    (repo / "kept.txt").write_text("edited")
    head = repository.head()
    assert repository.branch()
    assert repository.dirty() == ["kept.txt"]
    assert repository.commits("HEAD")
    assert repository.tags("*") == {}
    assert repository.contains(head)
    assert repository.branch_commit("none") is None
    assert repository.changes_to(head) == []
    assert not (tmp_path / "sprung").exists()


def test_repository_with_sha256_ids_works_the_same(tmp_path):
    found = opened(new_repository(tmp_path / "repo", "--object-format=sha256"))
    assert found.contains(found.head())
    assert found.tag("gsd/x") == found.head()
    assert found.tags("gsd/*") == {"gsd/x": found.head()}
