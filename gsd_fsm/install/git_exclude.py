"""List machine-specific files in `.git/info/exclude`, so that only this clone ignores them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.config.settings import load
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.system import GSD
from gsd_fsm.core.views.loop_json import LOOP_FILES
from gsd_fsm.core.views.write import LOOP_NAME
from gsd_fsm.documents.files import Change, current_content, require_writable
from gsd_fsm.git.run import git_program, read

_SPECIAL = re.compile(r"[\\*?\[]| $")


class Exclusion(NamedTuple):
    """The change that lists files, the lines that it adds, and the problem that prevents it."""

    change: Change | None = None
    lines: tuple[str, ...] = ()
    problem: str = ""


def generated_views(root: Path) -> list[Path]:
    """Return the views of loops that the settings of this project enable."""
    try:
        views = load(root / GSD)["views"].value
    except GsdError:
        return []
    return [root / LOOP_NAME / name for view, (name, _) in LOOP_FILES.items() if view in views]


def plan_exclusion(root: Path, files: list[Path]) -> Exclusion:
    """Return the change that makes git ignore those of the files that it could commit."""
    git = git_program(root)
    if git is None or not root.is_dir():
        return Exclusion()
    asked = read(git, root, "rev-parse", "--show-toplevel", "--git-path", "info/exclude")
    if asked.returncode:
        return Exclusion()  # not a repository
    top, place = map(os.fsdecode, asked.stdout.splitlines()[:2])
    lines = [_pattern(file, top) for file in files if is_addable(file, git)]
    path = Path(os.path.realpath(root / place))
    try:
        before = current_content(path)
        new = tuple(line for line in lines if line and line not in _lines(before or b""))
        if not new:
            return Exclusion()
        require_writable(path)
    except GsdError as error:
        return Exclusion(problem=error.message)
    return Exclusion(Change(path, before, _with(before or b"", new)), new)


def is_addable(file: Path, git: str | None = None) -> bool:
    """Return whether git would add this file: it is in a work tree, new, and not ignored."""
    above = next(folder for folder in file.parents if folder.is_dir())
    git = git or git_program(above)
    if git is None or read(git, above, "check-ignore", "-q", str(file)).returncode != 1:
        return False
    return bool(read(git, above, "ls-files", "--error-unmatch", "--", str(file)).returncode)


def plan_inclusion(path: Path, lines: Iterable[str]) -> Change:
    """Return the change that removes these lines, and the file if nothing else is in it."""
    before = current_content(path)
    if before is None:
        return Change(path, None, None)
    ours = {os.fsencode(line) for line in lines}
    left = [it for it in before.splitlines(keepends=True) if it.rstrip(b"\r\n") not in ours]
    return Change(path, before, b"".join(left) or None)


def _pattern(file: Path, top: str) -> str:
    """Return the pattern that names only this file, "" if it is outside of the work tree."""
    name = Path(os.path.relpath(os.path.realpath(file), os.path.realpath(top))).as_posix()
    if name.startswith("../") or not name.isprintable():
        return ""
    return "/" + _SPECIAL.sub(r"\\\g<0>", name)


def _lines(content: bytes) -> list[str]:
    return [os.fsdecode(line) for line in content.splitlines()]


def _with(before: bytes, new: tuple[str, ...]) -> bytes:
    end = b"\r\n" if b"\r\n" in before else b"\n"
    glue = end if before and not before.endswith(b"\n") else b""
    return before + glue + b"".join(os.fsencode(line) + end for line in new)
