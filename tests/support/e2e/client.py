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

NAME = "@anthropic-ai/claude-code"
VERSION = "2.1.325"
# SHA-256 of the native binary, by platform.
SHA256 = {"linux-x64": "0dc4f4a9a165fc60746d7ae8489712e5fc352f1e7ad4eb22e7141bd0812eb0cf"}
VARIABLE = "GSD_E2E_CLIENT"


class NoClient(Exception):
    """There is no client to test with; the message says what to do."""


def find_client() -> Path:
    """Return the binary of GSD_E2E_CLIENT, else the pinned one, installed if it is missing."""
    if named := os.environ.get(VARIABLE):
        return Path(named).resolve()
    root = Path(user_cache_dir("gsd-fsm")) / "clients" / VERSION
    arm = platform.machine().lower() in ("arm64", "aarch64")
    system = f"{'darwin' if sys.platform == 'darwin' else 'linux'}-{'arm64' if arm else 'x64'}"
    binary = root / "node_modules" / f"{NAME}-{system}" / "claude"
    if not binary.is_file():
        _install(root)
    if not binary.is_file():
        raise NoClient(f"npm installed {NAME}@{VERSION}, but {binary} is missing")
    digest = hashlib.sha256(binary.read_bytes()).hexdigest()
    if digest != SHA256.get(system, digest):
        raise NoClient(f"{binary} is not {NAME} {VERSION}. Remove {root} to install it again.")
    return binary


def _install(root: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NoClient(
            f"npm is missing. Install Node.js, or set {VARIABLE} to the client's binary."
        )
    root.mkdir(parents=True, exist_ok=True)
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--save-exact"]
    command = [npm, "install", "--prefix", str(root), *options, f"{NAME}@{VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoClient(f"npm could not install {NAME}@{VERSION}:\n{done.stderr}")
