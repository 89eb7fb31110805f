"""The digest with unreadable files, hostile repositories, and without git."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gsd_fsm.core.errors import CheckFailed
from gsd_fsm.git import tree
from gsd_fsm.git.tree import content_tree
from tests.support import repositories as git_rig
from tests.support.repositories import git, new_repository, posix_only

_isolated_git, repo = git_rig._isolated_git, git_rig.repo  # fixtures

NOBODY = 65_534


@posix_only
def test_content_tree_leaves_out_file_that_vanishes(repo):
    # git hashes in the order of names: the filter of the first removes the second
    (repo / ".gitattributes").write_text("a.txt filter=thief\n")
    for name in ("a.txt", "b.txt", "c.txt"):
        (repo / name).write_text(name)
    git(repo, "config", "filter.thief.clean", "rm -f b.txt; cat")
    stolen = content_tree(repo)
    assert not (repo / "b.txt").exists()
    assert content_tree(repo) == stolen
    (repo / "c.txt").write_text("still seen")
    assert content_tree(repo) != stolen


@pytest.fixture
def theirs():
    """A repository of an ordinary user, in a place that anybody may pass through."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield new_repository(Path(folder) / "repo")


@posix_only
def test_content_tree_accepts_unreadable_file(theirs):
    (theirs / "secret.txt").write_text("secret")
    if os.geteuid() == 0:
        for path in (theirs, *theirs.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    # root reads everything, and only root may read the interpreter of some: the child becomes
    # an ordinary user when all it needs is loaded
    source = (
        "import os, pathlib, sys; from gsd_fsm.git.tree import content_tree\n"
        "repo, nobody = pathlib.Path(sys.argv[1]), int(sys.argv[2])\n"
        "if os.geteuid() == 0: os.setgroups([]); os.setgid(nobody); os.setuid(nobody)\n"
        "readable = content_tree(repo)\n"
        "(repo / 'secret.txt').chmod(0)\n"
        "print(readable, content_tree(repo))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", source, str(theirs), str(NOBODY)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    readable, unreadable = done.stdout.split()
    assert "None" not in (readable, unreadable)
    assert unreadable != readable


@posix_only
def test_content_tree_reports_failing_filter(repo):
    (repo / ".gitattributes").write_text("new.txt filter=broken\n")
    git(repo, "config", "filter.broken.clean", "false")
    git(repo, "config", "filter.broken.required", "true")
    (repo / "new.txt").write_text("new")
    with pytest.raises(CheckFailed, match="clean filter 'broken' failed"):
        content_tree(repo)


@posix_only
def test_content_tree_starts_no_program_of_the_repository(repo, tmp_path):
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch '{tmp_path}/sprung'\n")
    trap.chmod(0o755)
    for setting in ("core.fsmonitor", "diff.external", "pager.ls-files", "core.pager"):
        git(repo, "config", setting, str(trap))
    (repo / "kept.txt").write_text("edited")
    assert content_tree(repo)
    assert not (tmp_path / "sprung").exists()


def test_content_tree_ignores_bare_repository_among_files(repo):
    git(repo, "init", "-q", "--template=", "--bare", "bait")
    git(repo / "bait", "config", "core.bare", "false")
    git(repo / "bait", "config", "core.worktree", str(repo / "sub"))
    assert content_tree(repo / "bait") is None


def test_content_tree_ignores_variables_of_surrounding_hook(repo, tmp_path, monkeypatch):
    expected = content_tree(repo)
    other = new_repository(tmp_path / "other")
    (other / "kept.txt").write_text("other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))
    monkeypatch.setenv("GIT_PREFIX", "sub/")
    assert content_tree(repo) == expected


def test_content_tree_without_work_tree_is_none(repo, tmp_path):
    (tmp_path / "plain").mkdir()
    assert content_tree(tmp_path / "plain") is None
    assert content_tree(repo / ".git") is None
    git(tmp_path, "init", "-q", "--template=", "--bare", "bare.git")
    assert content_tree(tmp_path / "bare.git") is None


def test_content_tree_of_empty_repository_exists(tmp_path):
    git(tmp_path, "init", "-q", "--template=")
    assert content_tree(tmp_path)


def test_content_tree_without_git_is_none(repo, monkeypatch):
    monkeypatch.setenv("PATH", str(repo))
    assert content_tree(repo) is None


def test_content_tree_does_not_start_git_program_of_project(repo, monkeypatch):
    name = "git.exe" if sys.platform == "win32" else "git"
    (repo / name).write_text("#!/bin/sh\nexit 1\n")
    (repo / name).chmod(0o755)
    monkeypatch.chdir(repo)
    monkeypatch.setenv("PATH", "." + os.pathsep + os.environ["PATH"])
    assert Path(tree._git_program()).parent != repo
    assert content_tree(repo)


def test_content_tree_reports_broken_index(repo):
    (repo / ".git" / "index").write_bytes(b"no index at all, and long enough to be read")
    with pytest.raises(CheckFailed, match="index"):
        content_tree(repo)


def test_content_tree_reports_dangling_git_file(tmp_path):
    (tmp_path / ".git").write_text("gitdir: /no/such/place\n")
    with pytest.raises(CheckFailed, match="not a git repository"):
        content_tree(tmp_path)
