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
from gsd_fsm.git.run import git_around, read

_SPECIAL = re.compile(r"[\\*?\[]| $")


class Exclusion(NamedTuple):
    """The change that lists files, the text that it adds, and the problem that prevents it."""

    change: Change | None = None
    text: str = ""
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
    git = git_around(root)
    if git is None or not root.is_dir():
        return Exclusion()
    asked = read(git, root, "rev-parse", "--show-toplevel", "--git-path", "info/exclude")
    if asked.returncode:
        return Exclusion()  # not a repository
    top, place = map(os.fsdecode, asked.stdout.splitlines()[:2])
    lines = [_pattern(file, top) for file in files if is_shared(file) and _is_new(file, git)]
    path = Path(os.path.realpath(root / place))
    try:
        before = current_content(path)
        new = [line for line in lines if line and line not in _lines(before or b"")]
        if not new:
            return Exclusion()
        require_writable(path)
    except GsdError as error:
        return Exclusion(problem=error.message)
    text = _text(before or b"", new)
    return Exclusion(Change(path, before, (before or b"") + text), os.fsdecode(text))


def is_shared(file: Path) -> bool:
    """Return whether this file may enter commits: it is in a work tree, and not ignored."""
    above = _directory_above(file)
    git = git_around(above)
    return git is not None and read(git, above, "check-ignore", "-q", str(file)).returncode == 1


def _is_new(file: Path, git: str) -> bool:
    done = read(git, _directory_above(file), "ls-files", "--error-unmatch", "--", str(file))
    return done.returncode != 0


def _directory_above(file: Path) -> Path:
    return next(above for above in file.parents if above.is_dir())


def plan_inclusion(path: Path, texts: Iterable[str]) -> Change:
    """Return the change that removes these texts, and the file if nothing else is in it.

    The file becomes what it was, byte for byte, unless somebody added lines below.
    """
    before = current_content(path)
    if before is None:
        return Change(path, None, None)
    left = before
    for text in map(os.fsencode, reversed([*texts])):
        if left.endswith(text):
            left = left.removesuffix(text)
            continue
        ours = {*text.splitlines()} - {b""}
        kept = [it for it in left.splitlines(keepends=True) if it.rstrip(b"\r\n") not in ours]
        left = b"".join(kept)
    return Change(path, before, left or None)


def _pattern(file: Path, top: str) -> str:
    """Return the pattern that names only this file, "" if it is outside of the work tree."""
    name = Path(os.path.relpath(os.path.realpath(file), os.path.realpath(top))).as_posix()
    if name.startswith("../") or not name.isprintable():
        return ""
    return "/" + _SPECIAL.sub(r"\\\g<0>", name)


def _lines(content: bytes) -> list[str]:
    return [os.fsdecode(line) for line in content.splitlines()]


def _text(before: bytes, new: list[str]) -> bytes:
    """Return what must follow the content of the file to add these lines."""
    end = b"\r\n" if b"\r\n" in before else b"\n"
    glue = end if before and not before.endswith(b"\n") else b""
    return glue + b"".join(os.fsencode(line) + end for line in new)
