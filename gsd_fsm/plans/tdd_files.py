"""The files of a TDD task: which ones a TDD phase may change, and copies to undo a refactoring."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from base64 import b64decode, b64encode
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.core.codec import digest_of
from gsd_fsm.core.project import real_path, state_directory
from gsd_fsm.documents.files import Change, current_content, write_change
from gsd_fsm.documents.read import Unreadable, open_to_read, read_bytes
from gsd_fsm.plans.plan import PlanTask

GOALS = {
    "red": ("Write a failing test for: {done}", "the tests fail"),
    "green": ("Write minimal code to make the tests pass", "the tests pass"),
    "refactor": ("Clean up the implementation while the tests stay green", "the tests still pass"),
}
_SUFFIX = ".json"
_MOST_BYTES = 1 << 30
_NOT_RUN = (126, 127)  # exit codes of a shell for a command that it could not start


class Rules(NamedTuple):
    """The rules of one TDD phase: red, green or refactor."""

    phase: str
    allowed: tuple[str, ...]
    locked: tuple[str, ...]
    goal: str
    success: str


def rules_of(task: PlanTask, phase: str) -> Rules:
    """Return the rules of this phase: only tests change in red, only the implementation later."""
    files = tuple(file.path for file in task.files if file.path not in task.test_files)
    goal, success = GOALS[phase]
    allowed, locked = (task.test_files, files) if phase == "red" else (files, task.test_files)
    return Rules(phase, allowed, locked, goal.format(done=task.done), success)


def first_phase(task: PlanTask) -> str:
    """Return the first phase: red, or green if the tests already exist."""
    return "green" if task.test_required == "existing" else "red"


def was_run(exit_code: int) -> bool:
    return exit_code not in _NOT_RUN


def digests(project: Path, paths: tuple[str, ...]) -> dict[str, str | None]:
    """Return the digest of each file; None if missing or not a regular file."""
    return {path: _digest(project / path) for path in paths}


def _digest(path: Path) -> str | None:
    digest = hashlib.sha256()
    try:
        with open_to_read(path) as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
    except (Unreadable, OSError):
        return None
    return digest.hexdigest()[:16]


def _content(path: Path) -> bytes | None:
    try:
        return read_bytes(path, _MOST_BYTES)
    except Unreadable:
        return None


def changed(project: Path, locked: dict[str, str | None]) -> list[str]:
    """Return the locked files that were changed."""
    return [path for path, known in locked.items() if _digest(project / path) != known]


class Copies:
    """Copies of the implementation with which the tests last passed, to undo a refactoring."""

    def __init__(self, gsd: str, loop_id: str, task_id: str) -> None:
        self.path = _directory() / f"{_prefix(gsd, loop_id)}{task_id}{_SUFFIX}"

    def save(self, project: Path, paths: tuple[str, ...]) -> None:
        import json

        # In one step: a copy of half of the files would delete the other half when restored.
        kept = json.dumps({path: _copy(project / path) for path in paths})
        write_change(
            Change(self.path, current_content(self.path), kept.encode("ascii"), private=True)
        )

    def restore(self, project: Path) -> list[str] | None:
        """Restore every file; return those that differed, None if there is no copy."""
        import json

        try:
            kept = json.loads(read_bytes(self.path, _MOST_BYTES))
        except (Unreadable, ValueError):
            return None
        real = os.path.realpath(project)
        inside = [
            name
            for name in kept
            # A link may point outside the project.
            if Path(os.path.realpath((project / name).parent)).is_relative_to(real)
        ]
        return [name for name in inside if _put_back(project / name, kept[name])]

    def drop(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink()
            self.path.parent.rmdir()


def tasks_with_copies(gsd: str, loop_id: str) -> list[str]:
    """Return the tasks of this loop for which copies are on disk."""
    try:
        names = [path.name for path in _directory().iterdir()]
    except OSError:
        return []
    prefix = _prefix(gsd, loop_id)
    return [
        name.removeprefix(prefix).removesuffix(_SUFFIX)
        for name in names
        if name.startswith(prefix) and name.endswith(_SUFFIX)
    ]


def _directory() -> Path:
    return Path(state_directory()) / "tdd"


def _prefix(gsd: str, loop_id: str) -> str:
    return f"{digest_of(real_path(gsd))}-{loop_id}-"


def _copy(path: Path) -> tuple[int, str] | None:
    """Return mode and content; None if missing or not a regular file."""
    content = _content(path)
    if content is None:
        return None
    return stat.S_IMODE(path.stat().st_mode), b64encode(content).decode("ascii")


def _put_back(path: Path, copy: tuple[int, str] | None) -> bool:
    """Restore one file; return whether it differed."""
    content = None if copy is None else b64decode(copy[1])
    if content == _content(path) or path.is_symlink():
        return False  # a link may point outside the project
    if copy is None or content is None:
        path.unlink()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(copy[0])
    return True
