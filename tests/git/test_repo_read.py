"""Reading a repository, without starting programs that it names."""

from __future__ import annotations

import pytest

from gsd_fsm.core.errors import Refused
from gsd_fsm.git.repo import Repository
from tests.support.git_commands import commit
from tests.support.repositories import git, new_repository, posix_only


def test_repository_is_found_from_subdirectory(repo):
    found = Repository.around(repo / "sub")
    assert found is not None
    assert (found.top, found.project) == (repo.resolve(), repo / "sub")


def test_repository_without_git_or_work_tree_is_none(repo, tmp_path, monkeypatch):
    (tmp_path / "plain").mkdir()
    assert Repository.around(tmp_path / "plain") is None
    assert Repository.around(repo / ".git") is None
    git(tmp_path, "init", "-q", "--template=", "--bare", "bare.git")
    assert Repository.around(tmp_path / "bare.git") is None
    monkeypatch.setenv("PATH", str(tmp_path / "plain"))
    assert Repository.around(repo) is None


def test_broken_repository_is_refused_with_git_message(tmp_path):
    (tmp_path / ".git").write_text("gitdir: /no/such/place\n")
    with pytest.raises(Refused, match="not a git repository: /no/such/place"):
        Repository.around(tmp_path)


def test_branch_and_head_before_and_after_first_commit(tmp_path):
    git(tmp_path, "init", "-q", "--template=", "-b", "start")
    fresh = Repository.around(tmp_path)
    assert fresh is not None
    assert (fresh.branch(), fresh.head()) == ("start", None)
    assert not fresh.has_branch("start")
    assert not fresh.contains("abcd")
    first = commit(tmp_path, "a")
    assert (fresh.branch(), fresh.head()) == ("start", first)
    assert fresh.has_branch("start")


def test_branch_of_detached_head_is_none(repo, repository):
    git(repo, "checkout", "-q", "--detach")
    assert repository.branch() is None
    assert repository.head() == git(repo, "rev-parse", "HEAD")


def test_branch_beside_tag_of_same_name_keeps_its_name(repo, repository):
    git(repo, "checkout", "-qb", "twice/named")
    git(repo, "tag", "twice/named")
    assert repository.branch() == "twice/named"


def test_has_branch_finds_local_and_remote_branches_only(repo, repository, tmp_path):
    git(repo, "branch", "gsd/one")
    git(repo, "tag", "gsd/tagged")
    assert repository.has_branch("gsd/one")
    assert not repository.has_branch("gsd")
    assert not repository.has_branch("one")
    assert not repository.has_branch("gsd/tagged")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repo), str(clone))
    cloned = Repository.around(clone)
    assert cloned is not None
    assert cloned.has_branch("gsd/one")


@pytest.mark.parametrize(
    "name", ["", "-x", "a b", "a..b", "a~", "x.lock", "a\nb", "a\0b", "HEAD", "a/"]
)
def test_is_branch_name_rejects_invalid_names(repository, name):
    assert not repository.is_branch_name(name)
    assert not repository.has_branch(name)


@pytest.mark.parametrize("name", ["gsd/v1.0", "ü", "a-b_c"])
def test_is_branch_name_accepts_valid_names(repository, name):
    assert repository.is_branch_name(name)


def test_has_commit_accepts_abbreviated_ids(repo, repository):
    first = repository.head()
    second = commit(repo, "second")
    for sha in (first, first[:7], first.upper()):
        assert repository.has_commit(sha)
        assert repository.contains(sha)
    git(repo, "checkout", "-q", first)
    assert repository.has_commit(second)
    assert not repository.contains(second)
    assert repository.is_within(first, second)
    assert not repository.is_within(second, first)


@pytest.mark.parametrize(
    "text", ["", "HEAD", "main", "--help", "-q", "0" * 40, "deadbeef", "x" * 40, "a\0", "../.."]
)
def test_has_commit_rejects_other_texts(repository, text):
    assert not repository.has_commit(text)
    assert not repository.contains(text)


def test_has_commit_rejects_blob_id(repo, repository):
    assert not repository.has_commit(git(repo, "rev-parse", "HEAD:kept.txt"))


def test_commits_returns_subjects_even_if_empty(repo, repository):
    git(repo, "commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
    git(repo, "commit", "-q", "--allow-empty", "-m", "ü: two\n\nbody")
    assert [it.subject for it in repository.commits("HEAD")] == ["ü: two", "", "first"]
    assert [it.subject for it in repository.commits("--max-count=1", "HEAD")] == ["ü: two"]
    assert repository.count("HEAD") == 3


def test_commits_decodes_subject_in_other_encoding(repo, repository):
    git(repo, "-c", "i18n.commitEncoding=latin1", "commit", "-q", "--allow-empty", "-F", "-",
        input="gr\udcfcn", encoding="utf-8", errors="surrogateescape")  # fmt: skip
    assert repository.commits("--max-count=1", "HEAD")[0].subject == "grün"


def test_tags_returns_commits_of_lightweight_and_annotated_tags(repo, repository):
    first = repository.head()
    git(repo, "tag", "gsd/x/light")
    git(repo, "tag", "-am", "words", "gsd/x/annotated")
    git(repo, "tag", "gsd/x/blob", "HEAD:kept.txt")
    git(repo, "tag", "other")
    assert repository.tags("gsd/x/*") == {"gsd/x/light": first, "gsd/x/annotated": first}
    assert repository.tags("nothing/*") == {}


def test_dirty_includes_changed_staged_and_untracked_files(repo, repository):
    assert repository.dirty() == []
    (repo / "kept.txt").write_text("edited")
    (repo / "sub" / "deep.txt").unlink()
    (repo / "new folder").mkdir()
    (repo / "new folder" / "ü new").write_text("")
    (repo / "staged").write_text("")
    git(repo, "add", "staged")
    assert sorted(repository.dirty()) == ["kept.txt", "new folder/ü new", "staged", "sub/deep.txt"]


def test_dirty_includes_both_paths_of_moved_file(repo, repository):
    git(repo, "mv", "kept.txt", "moved.txt")
    assert sorted(repository.dirty()) == ["kept.txt", "moved.txt"]


def test_dirty_leaves_out_ignored_files_and_views(repo, repository):
    (repo / ".gitignore").write_text("*.log\n")
    (repo / "x.log").write_text("")
    for folder in (repo / ".gsd", repo / "sub" / ".gsd"):
        folder.mkdir()
        for name in (".gitignore", "STATE.md", "config.toml"):
            (folder / name).write_text("")
    (repo / "STATE.md").write_text("")
    assert repository.dirty() == [
        ".gitignore",
        ".gsd/config.toml",
        "STATE.md",
        "sub/.gsd/config.toml",
    ]


def test_dirty_ignores_user_settings_that_hide_changes(repo, repository):
    git(repo, "config", "status.showUntrackedFiles", "no")
    git(repo, "config", "status.relativePaths", "true")
    git(repo, "config", "status.renames", "copies")
    (repo / "new").write_text("")
    assert repository.dirty() == ["new"]


@posix_only
@pytest.mark.parametrize(
    "name", [" blank ", "-dash", "new\nline", '"quoted"', "ü", "tab\t", "*", ":(top)"]
)
def test_dirty_returns_odd_paths_verbatim(repo, repository, name):
    (repo / name).write_text("")
    assert repository.dirty() == [name]


def test_linked_work_tree_is_its_own_repository(repo, tmp_path):
    git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    linked = Repository.around(tmp_path / "linked")
    assert linked is not None
    assert linked.branch() == "side"
    (tmp_path / "linked" / "new").write_text("")
    assert linked.dirty() == ["new"]
    assert Repository.around(repo).dirty() == []


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
    assert repository.has_branch("none") is False
    assert repository.changes_to(head) == []
    assert not (tmp_path / "sprung").exists()


def test_bare_repository_among_files_is_not_used(repo):
    git(repo, "init", "-q", "--template=", "--bare", "bait")
    git(repo / "bait", "config", "core.bare", "false")
    git(repo / "bait", "config", "core.worktree", str(repo / "sub"))
    assert Repository.around(repo / "bait") is None


def test_a_repository_with_sha256_ids_works_the_same(tmp_path):
    place = new_repository(tmp_path / "repo", "--object-format=sha256")
    found = Repository.around(place)
    assert found is not None
    assert found.contains(found.head())
    assert found.tag("gsd/x") == found.head()
    assert found.tags("gsd/*") == {"gsd/x": found.head()}
