"""The file of the hook: the one that came with this version, and the copy that settings name."""

from __future__ import annotations

import re
from pathlib import Path

import platformdirs

import gsd_fsm
from gsd_fsm.documents.files import current_content

MODULE = "gsd_fsm_hook"
# Parts of the hook are comments of its file.
_VERSION = re.compile(rb"^(?:# )?HOOK_VERSION = (\d{1,9})$", re.MULTILINE)


def data_directory() -> Path:
    return Path(platformdirs.user_data_dir("gsd-fsm", appauthor=False)).absolute()


def packaged_hook() -> Path:
    """Return the path of the hook that came with this version."""
    return Path(gsd_fsm.__file__).with_name(f"{MODULE}.py")


def installed_hook() -> Path:
    """Return the path of the copy that settings name; it outlives our own environment."""
    return data_directory() / "hook" / f"{MODULE}.py"


def is_outdated() -> bool:
    """Return whether the copy differs from the hook of this version and is not newer."""
    installed = current_content(installed_hook())
    if installed is None:
        return False
    packaged = current_content(packaged_hook())
    return packaged not in (None, installed) and _version(installed) <= _version(packaged or b"")


def _version(hook: bytes) -> int:
    found = _VERSION.search(hook)
    return int(found[1]) if found else 0
