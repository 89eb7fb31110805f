"""Git repositories for tests, made without the user's settings."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gsd_fsm.git.repo import Repository
from gsd_fsm.git.tree import read_content
from tests.support.events import write

NOBODY = 65_534
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX files")
# No maintenance after a commit, which would outlive the test, and no waiting for the disk.
SETTINGS = (
    "protocol.file.allow=always", "maintenance.auto=false", "core.fsync=none", "user.name=T",
    "user.email=t@example.org", "commit.gpgsign=false",
)  # fmt: skip
RAW = {"encoding": "utf-8", "errors": "surrogateescape"}


def git(where: Path, *arguments: str, **options) -> str:
    """Run git, which must succeed; return what it prints."""
    settings = [word for it in SETTINGS for word in ("-c", it)]
    command = ["git", "-C", str(where), *settings, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, **options)
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def _isolated_git(monkeypatch):
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@example.org")


def new_repository(where: Path, *options: str) -> Path:
    """Make a repository with one commit of two files."""
    where.mkdir(parents=True)
    git(where, "init", "-q", "--template=", *options)
    write(where / "kept.txt", "kept\n")
    write(where / "sub" / "deep.txt", "deep\n")
    git(where, "add", "-A")
    git(where, "commit", "-qm", "first")
    return where


@pytest.fixture
def repo(tmp_path):
    return new_repository(tmp_path / "repo")


def opened(where: Path) -> Repository:
    found = Repository.around(where)
    assert found is not None
    return found


def hook(repo: Path, name: str, script: str) -> None:
    write(repo / ".git" / "hooks" / name, f"#!/bin/sh\n{script}\n").chmod(0o755)


def commit(repo: Path, name: str, content: str = "") -> str:
    """Commit one file, and return the commit, which is named like the file."""
    (repo / name).write_text(content or name)
    git(repo, "add", "--", name)
    git(repo, "commit", "-qm", name)
    return git(repo, "rev-parse", "HEAD")


def files_of(repo: Path, sha: str = "HEAD") -> list[str]:
    """Return the paths that a commit changed."""
    named = git(repo, "show", "-z", "--name-only", "--no-renames", "--format=", sha, **RAW)
    return sorted(name for name in named.split("\0") if name)


def status(repo: Path) -> list[str]:
    """Return the lines of `git status`."""
    records = git(repo, "status", "--porcelain", "-z", "-uall", "--no-renames", "--branch", **RAW)
    return [record for record in records.split("\0") if record][1:]


@contextlib.contextmanager
def without_privileges(*places: Path) -> Iterator[None]:
    """Run as a user who owns these places and cannot read everything, as root can."""
    is_root = sys.platform != "win32" and os.geteuid() == 0
    if is_root:
        for path in (it for place in places for it in (place, *place.rglob("*"))):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        if is_root:
            os.setresuid(0, 0, 0)


def content_tree(root: Path) -> str | None:
    """Return the digest of the content of the work tree around `root`, None without one."""
    content = read_content(root)
    return content.tree if content else None
