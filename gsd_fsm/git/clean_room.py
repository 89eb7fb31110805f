"""Lay out the files of the work tree in a temporary git worktree of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from gsd_fsm.core.errors import CheckFailed, Refused
from gsd_fsm.core.syscalls import stopped_by, try_lock
from gsd_fsm.git.repo import Repository, refused
from gsd_fsm.git.run import HARMLESS, WorkTree, output
from gsd_fsm.git.snapshots import IDENTITY, listed, take_snapshot
from gsd_fsm.git.tree import COMMIT, FILE, KINDS, LINK, UNREADABLE, ContentFiles, is_written

PREFIX, NAME, LOCK = "gsd-fsm-room-", "clean-room", "lock"
ABOUT = "Files for checks in a clean room"
# A registration without a directory may belong to a run in a container with another /tmp.
LONGEST_RUN = 24 * 60 * 60.0  # seconds
TRIES, PAUSE = 3, 0.1  # on Windows, programs that end hold their files a little longer


@contextlib.contextmanager
def clean_room(repository: Repository, files: Mapping[str, bytes]) -> Iterator[Path]:
    """Yield a temporary git worktree with exactly the files that are tracked or not ignored.

    They are as on disk, also those of submodules and nested repositories; views and journals are as
    in HEAD. `files`, by path in the work tree, replace them, and keep their executable bits.
    Branch, index, stash and files of the user stay as they are, and no hook runs. Afterwards the
    worktree is removed; if this process is killed, the next call removes it. Raise CheckFailed if a
    file cannot be read.
    """
    given = [(_parts(path), content) for path, content in files.items()]
    asked = repository.look("rev-parse", "--git-common-dir")
    common = repository.top / os.fsdecode(output(asked, refused)).removesuffix("\n")
    _remove_abandoned(common)
    folder = _new_folder(repository.top)
    try:
        with _locked(folder):
            yield _laid_out(repository, folder / NAME, given)
    finally:
        _remove(common, folder)


# laying out


def _laid_out(repository: Repository, room: Path, given: list[tuple[Sequence[str], bytes]]) -> Path:
    present = _present(repository)
    head = repository.head() or _empty_commit(repository)
    commit = take_snapshot(repository, head, ABOUT).commit
    repository.act(*HARMLESS, "worktree", "add", "--detach", str(room), commit)
    try:
        _complete(repository, room, commit, present)
        for parts, content in given:
            _write(_place(room, parts), content)
    except OSError as error:
        raise stopped_by(error, f"{room} cannot be written") from error
    return room


def _present(repository: Repository) -> dict[bytes, bytes]:
    """Return the entries of all files that can be copied; raise CheckFailed if one cannot."""
    tree = WorkTree(repository.program, repository.top, repository.algorithm)
    entries = ContentFiles(tree).entries()
    unreadable = [os.fsdecode(path) for path, entry in entries.items() if entry == UNREADABLE]
    if unreadable:
        raise CheckFailed(
            f"cannot be read: {listed(sorted(unreadable))}", "Check their permissions."
        )
    return {path: entry for path, entry in entries.items() if not entry.startswith(COMMIT)}


def _empty_commit(repository: Repository) -> str:
    """Return a commit without parents and files, for a repository that has none yet."""
    tree = output(repository.look("mktree"), refused).decode("ascii").strip()
    command = (*IDENTITY, "commit-tree", "--no-gpg-sign", "-m", ABOUT, tree)
    return output(repository.look(*command), refused).decode("ascii").strip()


def _complete(repository: Repository, room: Path, commit: str, present: dict[bytes, bytes]) -> None:
    """Make the files of this commit those on disk: a snapshot lacks some, others just changed."""
    saved = _entries_of(repository, commit)
    for path in saved.keys() - present.keys():
        if not saved[path].startswith(COMMIT) and not is_written(path):
            (room / os.fsdecode(path)).unlink(missing_ok=True)
    for path, entry in present.items():
        name = os.fsdecode(path)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # deleted, or sparse
            if entry != saved.get(path):
                _copy(repository.top / name, _place(room, name.split("/")))
            elif not entry.startswith(LINK + b" ") and os.name != "nt":
                _copy_bit(repository.top / name, room / name)


def _entries_of(repository: Repository, commit: str) -> dict[bytes, bytes]:
    """Return kind and id of each file of this commit, as `ContentFiles` has them."""
    records = output(repository.look("ls-tree", "-r", "-z", commit), refused).split(b"\0")[:-1]
    entries = {}
    for record in records:
        facts, path = record.split(b"\t", 1)
        mode, _, blob = facts.split(b" ")
        entries[path] = b"%b %b" % (KINDS.get(mode, FILE), blob)
    return entries


def _copy(source: Path, target: Path) -> None:
    _clear(target)
    shutil.copy(source, target, follow_symlinks=False)


def _copy_bit(source: Path, target: Path) -> None:
    """Give a file the executable bit of another, which git may be set to ignore."""
    wanted, mode = source.lstat().st_mode & stat.S_IXUSR, target.lstat().st_mode
    if wanted != mode & stat.S_IXUSR:
        target.chmod(stat.S_IMODE(mode) ^ stat.S_IXUSR)


def _write(place: Path, content: bytes) -> None:
    """Write a file with the permissions of the one that it replaces."""
    mode = place.lstat().st_mode if os.path.lexists(place) else 0
    _clear(place)
    place.write_bytes(content)
    if stat.S_ISREG(mode):
        place.chmod(stat.S_IMODE(mode))


def _parts(path: str) -> Sequence[str]:
    """Return the names in a path of the work tree; raise Refused if it is not one."""
    pure = PurePath(path)
    names = {name.lower().rstrip(". ") or name for name in pure.parts}
    is_inside = not (pure.is_absolute() or pure.drive or names & {"..", ".git"})
    has_stream = os.name == "nt" and ":" in path
    if not (names and is_inside) or has_stream or "\0" in path:
        raise Refused(f"not a path in the work tree: {path!r}", "Name a file in the work tree.")
    return pure.parts


def _place(room: Path, parts: Sequence[str]) -> Path:
    """Return the place of this path in the room, in a directory that exists.

    A file in the place of a directory is removed, and so is a link that leads out of the room.
    """
    place = room
    for part in parts[:-1]:
        place /= part
        real = Path(os.path.realpath(place)) if place.is_symlink() else place
        if real.is_dir() and real.is_relative_to(room):
            place = real
        else:
            place.unlink(missing_ok=True)
            place.mkdir()
    return place / parts[-1]


def _clear(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        _delete(place)
    else:
        place.unlink(missing_ok=True)


# folders and registrations


def _new_folder(top: Path) -> Path:
    """Return a new private directory outside the work tree."""
    parent = Path(os.path.realpath(tempfile.gettempdir()))
    if parent.is_relative_to(os.path.realpath(top)):
        raise Refused(
            f"the directory for temporary files is in the work tree: {parent}",
            "Set TMPDIR to a directory outside of it.",
        )
    try:
        return Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    except OSError as error:
        raise stopped_by(error, f"{parent} cannot be written") from error


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock that says that this process uses the folder."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise stopped_by(error, f"{folder} cannot be written") from error
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            try_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _remove_abandoned(common: Path) -> None:
    """Remove the rooms of processes that were killed."""
    for record, folder in _registrations(common):
        if _is_abandoned(record, folder):
            _remove(common, folder)


def _is_abandoned(record: Path, folder: Path) -> bool:
    try:
        if not folder.exists():
            return time.time() - record.stat().st_mtime > LONGEST_RUN
        descriptor = os.open(folder / LOCK, os.O_RDWR)
    except OSError:
        return False  # removed meanwhile, or not ours
    try:
        return try_lock(descriptor)
    except OSError:
        return False  # a file system without locks
    finally:
        os.close(descriptor)


def _registrations(common: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the registration of each room in this repository, and the folder of the room."""
    for pointer in common.glob("worktrees/*/gitdir"):
        with contextlib.suppress(OSError):
            room = (pointer.parent / os.fsdecode(pointer.read_bytes()).strip("\n")).parent
            folder = Path(os.path.realpath(room.parent))
            if room.name == NAME and folder.name.startswith(PREFIX):
                yield pointer.parent, folder


def _remove(common: Path, folder: Path) -> None:
    """Remove a room with its registration; its lock last, so that this can be repeated."""
    _delete(folder / NAME)
    for record, owner in [*_registrations(common)]:
        if owner == folder:
            _delete(record)
    _delete(folder)


def _delete(place: Path) -> None:
    """Delete what is there, read-only files and directories as well; follow no links."""
    for pause in (0.0, *[PAUSE] * TRIES):
        time.sleep(pause)
        shutil.rmtree(place, ignore_errors=True)
        if not os.path.lexists(place):
            return
        with contextlib.suppress(OSError):
            _make_writable(place)


def _make_writable(place: Path) -> None:
    if place.is_symlink() or not place.is_dir():
        place.unlink()
        return
    place.chmod(stat.S_IRWXU)
    for parent, folders, names in os.walk(place):
        for name in (*folders, *(names if os.name == "nt" else ())):
            below = Path(parent, name)
            if not below.is_symlink():
                below.chmod(stat.S_IRWXU)
