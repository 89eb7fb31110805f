"""Find the pinned client, or install it once into the user's cache."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from platformdirs import user_cache_dir

PACKAGE = "@anthropic-ai/claude-code"
VERSION = "2.1.325"
# SHA-256 of the native binary, by platform.
SHA256 = {"linux-x64": "0dc4f4a9a165fc60746d7ae8489712e5fc352f1e7ad4eb22e7141bd0812eb0cf"}
VARIABLE = "GSD_E2E_CLIENT"


class NoClient(Exception):
    """There is no client to test with; the message says what to do."""


def find_client() -> Path:
    """Return the binary of GSD_E2E_CLIENT, else the pinned one, installed if it is missing."""
    named = os.environ.get(VARIABLE)
    if named and Path(named).is_file():
        return Path(named).resolve()
    root = Path(named) if named else Path(user_cache_dir("gsd-fsm")) / "clients" / VERSION
    binary = root / "node_modules" / f"{PACKAGE}-{platform_name()}" / "claude"
    if not binary.is_file():
        _install(root)
    if not binary.is_file():
        raise NoClient(f"npm installed {PACKAGE}@{VERSION}, but {binary} is not there")
    _verify(binary)
    return binary


def platform_name() -> str:
    system = "darwin" if sys.platform == "darwin" else "linux"
    arm = platform.machine().lower() in ("arm64", "aarch64")
    return f"{system}-{'arm64' if arm else 'x64'}"


def _install(root: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NoClient(
            f"npm is missing: it installs {PACKAGE}@{VERSION}. "
            f"Install Node.js, or let {VARIABLE} name the client's binary"
        )
    root.mkdir(parents=True, exist_ok=True)
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--save-exact"]
    done = subprocess.run(
        [npm, "install", "--prefix", str(root), *options, f"{PACKAGE}@{VERSION}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NoClient(f"npm could not install {PACKAGE}@{VERSION}:\n{done.stderr}")


def _verify(binary: Path) -> None:
    wanted = SHA256.get(platform_name())
    if wanted is None:
        return
    with binary.open("rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    if digest.hexdigest() != wanted:
        raise NoClient(
            f"{binary} is not {PACKAGE} {VERSION}: its SHA-256 is {digest.hexdigest()}. "
            f"Remove {binary.parents[3]}, and it is installed again"
        )
