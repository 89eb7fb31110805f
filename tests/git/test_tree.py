"""The digest of a work tree changes with its content, and with nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gsd_fsm.git.tree import content_tree
from tests.support import repositories as git_rig
from tests.support.repositories import git, new_repository, posix_only

_isolated_git, repo = git_rig._isolated_git, git_rig.repo  # fixtures


def assert_staging_and_committing_keep(repo: Path) -> str:
    before = content_tree(repo)
    git(repo, "add", "-A")
    assert content_tree(repo) == before
    git(repo, "commit", "-qm", "more", "--allow-empty")
    assert content_tree(repo) == before
    return before


def test_the_digest_is_sixteen_hex_digits_and_the_same_from_every_subdirectory(repo):
    digest = content_tree(repo)
    assert len(digest) == 16
    assert int(digest, 16) >= 0
    assert content_tree(repo / "sub") == digest


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lambda repo: (repo / "kept.txt").write_bytes(b"Kept\n"),
        lambda repo: (repo / "added.txt").write_bytes(b""),
        lambda repo: (repo / "kept.txt").unlink(),
        lambda repo: (repo / "kept.txt").rename(repo / "other.txt"),
    ],
    ids=["edit", "add", "delete", "rename"],
)
def test_a_change_changes_the_digest_and_restoring_restores_it(repo, change, staged):
    before = content_tree(repo)
    change(repo)
    if staged:
        git(repo, "add", "-A")
    assert content_tree(repo) != before
    assert_staging_and_committing_keep(repo)
    git(repo, "rm", "-rq", "--cached", ".")
    for name in ("added.txt", "other.txt"):
        (repo / name).unlink(missing_ok=True)
    (repo / "kept.txt").write_bytes(b"kept\n")
    assert content_tree(repo) == before


def test_two_files_that_swap_content_change_the_digest(repo):
    before = content_tree(repo)
    (repo / "kept.txt").write_bytes(b"deep\n")
    (repo / "sub" / "deep.txt").write_bytes(b"kept\n")
    assert content_tree(repo) != before


def test_touching_a_file_changes_nothing(repo):
    before = content_tree(repo)
    os.utime(repo / "kept.txt", (1, 1))
    assert content_tree(repo) == before


def test_ignored_files_and_everything_under_gsd_do_not_count(repo):
    (repo / ".gitignore").write_text("*.log\n")
    before = content_tree(repo)
    (repo / "x.log").write_text("noise")
    for folder in (repo / ".gsd", repo / "sub" / ".gsd" / "deeper"):
        folder.mkdir(parents=True)
        (folder / "journal").write_text("noise")
    new_repository(repo / ".gsd" / "nested")
    assert assert_staging_and_committing_keep(repo) == before
    (repo / ".gsd" / "journal").write_text("more")
    assert content_tree(repo) == before
    (repo / "x.gsd").mkdir()
    (repo / "x.gsd" / "file").write_text("counts")
    assert content_tree(repo) != before


def test_nothing_inside_the_git_directory_is_written(repo):
    (repo / "new.txt").write_text("new")
    (repo / "sub" / "deep.txt").write_text("edited")
    os.utime(repo / "kept.txt", (1, 1))

    def snapshot():
        places = sorted((repo / ".git").rglob("*"))
        return [(it, it.stat().st_mtime_ns, it.is_file() and it.read_bytes()) for it in places]

    before = snapshot()
    content_tree(repo)
    assert snapshot() == before


@posix_only
def test_paths_of_any_shape_count_like_others(repo):
    names = [
        "new\nline",
        '"quoted"',
        "-dash",
        "--",
        "end\r",
        "back\\slash\\n",
        "tab\t",
        "ü ",
        ":(top)",
        "*",
    ]
    for name in names:
        (repo / name).write_text("one")
    first = assert_staging_and_committing_keep(repo)
    for name in names:
        (repo / name).write_text("two")
        assert content_tree(repo) != first, name
        (repo / name).write_text("one")
        assert content_tree(repo) == first, name


@posix_only
def test_a_symbolic_link_counts_by_its_target_text(repo):
    link = repo / "link"
    link.symlink_to("nowhere")
    first = assert_staging_and_committing_keep(repo)
    link.unlink()
    link.symlink_to("elsewhere")
    assert assert_staging_and_committing_keep(repo) != first
    link.unlink()
    link.write_text("nowhere")
    assert assert_staging_and_committing_keep(repo) != first


@posix_only
def test_files_behind_a_directory_turned_link_are_gone(repo, tmp_path):
    shutil.move(repo / "sub", tmp_path / "moved")
    (repo / "sub").symlink_to(tmp_path / "moved")
    assert_staging_and_committing_keep(repo)


@posix_only
def test_a_pipe_in_the_place_of_a_file_is_not_opened(repo):
    (repo / "kept.txt").unlink()
    without = content_tree(repo)
    os.mkfifo(repo / "kept.txt")
    assert content_tree(repo) == without


@pytest.mark.parametrize("setting", ["true", "input", "false"])
def test_line_end_conversion_gives_the_same_digest_staged_or_not(repo, setting):
    git(repo, "config", "core.autocrlf", "false")
    (repo / "blob-has-crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    assert_staging_and_committing_keep(repo)
    git(repo, "config", "core.autocrlf", setting)
    before = content_tree(repo)
    os.utime(repo / "blob-has-crlf.txt", (1, 1))
    assert content_tree(repo) == before
    (repo / "blob-has-crlf.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    (repo / "new.txt").write_bytes(b"one\r\ntwo\r\n")
    (repo / "kept.txt").write_bytes(b"kept\r\nmore\r\n")
    assert assert_staging_and_committing_keep(repo) != before


def test_a_submodule_counts_by_the_commit_checked_out(repo, tmp_path):
    origin = new_repository(tmp_path / "origin")
    git(repo, "submodule", "--quiet", "add", str(origin), "module")
    before = assert_staging_and_committing_keep(repo)
    (repo / "module" / "kept.txt").write_text("not committed")
    assert content_tree(repo) == before
    git(repo / "module", "commit", "-qam", "second")
    assert assert_staging_and_committing_keep(repo) != before
    git(repo / "module", "checkout", "-q", "HEAD~")
    assert content_tree(repo) == before
    git(repo, "submodule", "--quiet", "deinit", "-f", "--all")
    assert content_tree(repo) is not None


def test_a_repository_inside_counts_by_its_commit_tracked_or_not(repo):
    nested = new_repository(repo / "nested")
    before = assert_staging_and_committing_keep(repo)
    git(nested, "commit", "-qm", "second", "--allow-empty")
    assert content_tree(repo) != before


def test_a_repository_inside_without_a_commit_is_no_trouble(repo):
    (repo / "unborn").mkdir()
    git(repo / "unborn", "init", "-q", "--template=")
    assert content_tree(repo)


def test_unmerged_files_count_as_they_lie_there(repo):
    git(repo, "checkout", "-qb", "theirs")
    (repo / "kept.txt").write_text("theirs")
    (repo / "sub" / "deep.txt").write_text("theirs")
    git(repo, "commit", "-qam", "theirs")
    git(repo, "checkout", "-q", "-")
    (repo / "kept.txt").write_text("ours")
    (repo / "sub" / "deep.txt").unlink()
    git(repo, "commit", "-qam", "ours")
    with pytest.raises(subprocess.CalledProcessError):
        git(repo, "merge", "theirs")
    conflicted = content_tree(repo)
    (repo / "kept.txt").write_text("resolved")
    assert content_tree(repo) != conflicted
    (repo / "sub" / "deep.txt").unlink()
    assert_staging_and_committing_keep(repo)


def test_intent_to_add_counts_like_an_untracked_file(repo):
    (repo / "new.txt").write_text("new")
    before = content_tree(repo)
    git(repo, "add", "-N", "new.txt")
    assert content_tree(repo) == before
    (repo / "new.txt").unlink()
    assert content_tree(repo) != before


def test_files_left_out_by_a_sparse_checkout_count_as_unchanged(repo):
    before = content_tree(repo)
    git(repo, "sparse-checkout", "set", "--no-cone", "/kept.txt")
    assert not (repo / "sub").exists()
    assert content_tree(repo) == before


@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
def test_edits_hidden_from_git_status_are_seen(repo, flag):
    before = content_tree(repo)
    git(repo, "update-index", flag, "kept.txt")
    assert content_tree(repo) == before
    (repo / "kept.txt").write_text("hidden edit")
    assert git(repo, "status", "--porcelain") == ""
    assert content_tree(repo) != before


def test_a_repository_with_sha256_ids_works_the_same(tmp_path):
    repo = new_repository(tmp_path / "repo", "--object-format=sha256")
    (repo / "new.txt").write_text("new")
    if sys.platform != "win32":
        (repo / "link").symlink_to("new.txt")
    assert_staging_and_committing_keep(repo)


def test_a_linked_work_tree_has_a_digest_of_its_own(repo, tmp_path):
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    assert content_tree(tmp_path / "linked") == content_tree(repo)
    (tmp_path / "linked" / "kept.txt").write_text("edited")
    assert content_tree(tmp_path / "linked") != content_tree(repo)
