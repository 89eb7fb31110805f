"""Find, place and create the `.gsd` of a project."""

from __future__ import annotations

from gsd_fsm.core.errors import NotFound
from gsd_fsm.core.paths import GSD, exists, nearest_gsd, walk_up
from gsd_fsm.core.syscalls import (
    CREATE,
    WRITE,
    close_directory,
    open_directory,
    open_regular,
    read_at,
    stopped_by,
    sync_parent,
)
from gsd_fsm.core.system import join, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gsd_fsm.core.syscalls import Directory

IGNORED = (
    "journal.jsonl", "journal.jsonl.new", "journal.lock", "journal.broken-*", "snapshot.json",
    "snapshot.json.new", "hook.log", "STOP",
)  # fmt: skip


def find_gsd(start: str) -> str:
    """Return the nearest `.gsd` at or above `start`; NotFound if there is none."""
    found = nearest_gsd(start)
    if not found:
        raise NotFound("there is no gsd-fsm project at or above %s" % start, "gsd-fsm start --help")
    return found


def new_gsd(start: str) -> str:
    """Return the path for a new `.gsd`: at the git root, else in `start`; never HOME or the root."""
    above = list(walk_up(start))
    if not above:
        raise NotFound(
            "%s is no place for a project: it is your home or the root directory" % start,
            "change into a project, or name it with --project DIR",
        )
    top = above[-1] if exists(join(above[-1], ".git")) else start
    return join(top, GSD)


def make_gsd(path: str) -> None:
    """Create the directory, private if it is new, and list our own files in its .gitignore."""
    try:
        try:
            system.mkdir(path, 0o700)
        except FileExistsError:
            pass
        else:
            sync_parent(path)
        directory = open_directory(path)
        try:
            _ignore_our_files(directory)
        finally:
            close_directory(directory)
    except OSError as error:
        raise stopped_by(error, "%s cannot be made" % path) from error


def _ignore_our_files(directory: Directory) -> None:
    fd = open_regular(directory, ".gitignore", WRITE | CREATE)
    try:
        kept = read_at(fd, 0, 1 << 20)
        lines = kept.decode("utf-8", "replace").splitlines()
        new = [name for name in IGNORED if name not in lines]
        if new:
            glue = "\n" if kept and not kept.endswith(b"\n") else ""
            system.write(fd, (glue + "\n".join(new) + "\n").encode("ascii"))
    finally:
        system.close(fd)
