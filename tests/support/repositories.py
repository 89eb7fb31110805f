"""Repositories for tests, made by a git that knows no settings of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX files")


# Nothing here outlives its test: no upkeep after a commit, no waiting for the disk.
SETTINGS = ("protocol.file.allow=always", "maintenance.auto=false", "core.fsync=none")


def git(where: Path, *arguments: str, **options) -> str:
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
    where.mkdir(parents=True)
    git(where, "init", "-q", "--template=", *options)
    (where / "kept.txt").write_bytes(b"kept\n")
    (where / "sub").mkdir()
    (where / "sub" / "deep.txt").write_bytes(b"deep\n")
    git(where, "add", "-A")
    git(where, "commit", "-qm", "first")
    return where


@pytest.fixture
def repo(tmp_path):
    return new_repository(tmp_path / "repo")
