"""A cache of the fold, so that a long journal costs no more than a short one.

It is believed only if its own digest is right, its fold is this fold, and the journal's line that
ends at its offset carries its sum. It may vanish at any moment.
"""

from __future__ import annotations

from gsd_fsm.core.codec import dumps, parse_json, sha256
from gsd_fsm.core.disk import (
    CREATE,
    EXCLUSIVE,
    READ,
    WRITE,
    close,
    open_in,
    open_regular,
    read_at,
    rename_in,
    system,
    unlink_in,
)
from gsd_fsm.core.ended import Ended
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.fold import FOLD_VERSION, World
from gsd_fsm.core.loop import Loop, loop_to_dict
from gsd_fsm.core.scan import Position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.disk import Directory

SNAPSHOT_NAME = "snapshot.json"
MAX_SNAPSHOT = 8 << 20
_SEAL = 36


def world_to_dict(world: World) -> dict[str, Any]:
    return {
        "journal": world.journal,
        "seq": world.seq,
        "ts": world.ts,
        "backwards": world.backwards,
        "repairs": world.repairs,
        "loops": [loop_to_dict(loop) for loop in world.loops.values()],
    }


def world_from_dict(data: dict[str, Any], ended: bytes) -> World:
    world = World()
    for name in ("journal", "seq", "ts", "backwards", "repairs"):
        setattr(world, name, data[name])
    world.ended = Ended(ended)
    world.loops = {known["id"]: Loop(**known) for known in data["loops"]}
    return world


def _number(fd: int) -> int:
    """Which file this is: a snapshot that came with a copied or cloned project is not believed."""
    try:
        return int(system.fstat(fd).st_ino)
    except OSError:
        return -1


def _seal_of(rest: bytes | memoryview) -> bytes:
    """How a snapshot begins whose rest is this."""
    return b'{"digest":"%s","body":' % sha256(rest).hexdigest()[:16].encode("ascii")


def save_snapshot(directory: Directory, journal: int, world: World, at: Position) -> None:
    """Best effort: a snapshot that cannot be written is only missing."""
    body = dumps(
        {
            "fold": FOLD_VERSION,
            "file": _number(journal),
            "offset": at.offset,
            "line": at.line,
            "sum": at.sum,
            "world": world_to_dict(world),
        }
    )
    # Behind the first line stand the names that hardly anybody asks for: they are not parsed.
    rest = b"%s}\n%s" % (body.encode("ascii"), bytes(world.ended))
    data = _seal_of(rest) + rest
    temporary = SNAPSHOT_NAME + ".new"
    try:
        unlink_in(directory, temporary)
    except OSError:
        pass
    try:
        fd = open_in(directory, temporary, WRITE | CREATE | EXCLUSIVE)
    except OSError:
        return
    try:
        try:
            whole = system.write(fd, data) == len(data)
        finally:
            close(fd)
        if whole:
            rename_in(directory, temporary, SNAPSHOT_NAME)
            return
    except OSError:
        pass
    try:
        unlink_in(directory, temporary)
    except OSError:
        pass


def load_snapshot(directory: Directory, journal: int, size: int) -> tuple[World, Position] | None:
    """The cached world and where it stands in the journal, or None when it is not to be trusted."""
    try:
        fd = open_regular(directory, SNAPSHOT_NAME, READ)
    except (OSError, GsdError):
        return None
    try:
        data = read_at(fd, 0, min(system.fstat(fd).st_size, MAX_SNAPSHOT))
    except OSError:
        return None
    finally:
        close(fd)
    if data[:_SEAL] != _seal_of(memoryview(data)[_SEAL:]):
        return None
    head, _, ended = data.partition(b"\n")
    try:
        found = parse_json(head[_SEAL:-1].decode("ascii"))
        offset = found["offset"]
        mark = ',"sum":"%s"}\n' % found["sum"]
        if found["fold"] != FOLD_VERSION or not 0 < offset <= size:
            return None
        if found["line"] != found["world"]["seq"] or found["file"] != _number(journal):
            return None
        if read_at(journal, offset - len(mark), len(mark)) != mark.encode("ascii"):
            return None
        return world_from_dict(found["world"], ended), Position(offset, found["line"], found["sum"])
    except (ValueError, KeyError, TypeError, OSError):
        return None
