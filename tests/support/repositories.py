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
ROLES = ("AUTHOR", "COMMITTER")
_made: dict[tuple[str, ...], dict[str, bytes | None]] = {}  # the files of `.git` by message
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
    for role in ROLES:
        monkeypatch.setenv(f"GIT_{role}_NAME", "A")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@example.org")


def new_repository(where: Path, *options: str) -> Path:
    """Make a repository with one commit of two files."""
    write(where / "kept.txt", "kept\n")
    write(where / "sub" / "deep.txt", "deep\n")
    commit_all(where, "first", *options)
    return where


def commit_all(where: Path, message: str, *options: str) -> None:
    """Make a repository of the files in this directory, the same for the same message and options.

    After the first time, what git makes of them is copied, which takes less time.
    """
    key = (message, *options, *(os.environ.get(f"GIT_{it}_NAME", "") for it in ROLES))
    place = where / ".git"
    if key in _made:
        place.mkdir()
        for name, content in _made[key].items():
            if content is None:
                (place / name).mkdir()
            else:
                (place / name).write_bytes(content)
    else:
        git(where, "init", "-q", "--template=", *options)
    git(where, "add", "-A")  # the index has times and numbers of the files
    if key not in _made:
        git(where, "commit", "-qm", message)
        paths = [it for it in sorted(place.rglob("*")) if it.name != "index"]
        contents = {it: it.read_bytes() if it.is_file() else None for it in paths}
        _made[key] = {str(it.relative_to(place)): content for it, content in contents.items()}


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
    return head_of(repo)


def head_of(repo: Path) -> str:
    """Return the commit of HEAD, from the files of git where they are simple."""
    with contextlib.suppress(OSError):
        head = (repo / ".git" / "HEAD").read_text().strip()
        return (repo / ".git" / head.removeprefix("ref: ")).read_text().strip()
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
