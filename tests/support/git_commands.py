"""What tests of repositories do again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.repositories import git

if TYPE_CHECKING:
    from pathlib import Path


def hook(repo: Path, name: str, script: str) -> None:
    place = repo / ".git" / "hooks" / name
    place.parent.mkdir(exist_ok=True)
    place.write_text("#!/bin/sh\n" + script + "\n")
    place.chmod(0o755)


def commit(repo: Path, name: str, content: str = "") -> str:
    """Commit one file, named like its commit; the commit."""
    (repo / name).write_text(content or name)
    git(repo, "add", "--", name)
    git(repo, "commit", "-qm", name)
    return git(repo, "rev-parse", "HEAD")


RAW = {"encoding": "utf-8", "errors": "surrogateescape"}


def files_of(repo: Path, sha: str = "HEAD") -> list[str]:
    """The paths that a commit has changed."""
    named = git(repo, "show", "-z", "--name-only", "--no-renames", "--format=", sha, **RAW)
    return sorted(name for name in named.split("\0") if name)


def status(repo: Path) -> list[str]:
    """What `git status` tells of each path."""
    told = git(repo, "status", "--porcelain", "-z", "-uall", "--no-renames", "--branch", **RAW)
    return [record for record in told.split("\0") if record][1:]
