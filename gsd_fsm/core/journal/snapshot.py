"""A cache of the fold, so that a long journal costs no more than a short one.

It is believed only if its own digest is right, its fold is this fold, and the journal's line that
ends at its offset carries its sum. It may vanish at any moment.
"""

from __future__ import annotations

from gsd_fsm.core.codec import dumps, sha256
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.journal.scan import Position
from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.ended_ids import EndedIds
from gsd_fsm.core.loop.fold import FOLD_VERSION, Loops
from gsd_fsm.core.loop.records import (
    AllowedStop,
    Criterion,
    Failure,
    FrozenPlan,
    Gap,
    HookAnswer,
    Issue,
    Limits,
    Note,
    Record,
    Review,
    Rollback,
    SeenSignal,
    Task,
)
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.syscalls import (
    CREATE,
    EXCLUSIVE,
    READ,
    WRITE,
    close,
    open_in,
    open_regular,
    read_at,
    rename_in,
    unlink_in,
)
from gsd_fsm.core.system import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.syscalls import Directory

SNAPSHOT_NAME = "snapshot.json"
# Larger than any loop within its limits makes it; what is larger is read from the journal.
MAX_SNAPSHOT = 1 << 28
_SEAL = 36
# The fields of a loop that hold records, by how they hold them: under a member of each record,
# under another name, in a list, or one.
_BY_MEMBER: dict[str, tuple[type[Record], str]] = {
    "tasks": (Task, "id"),
    "gaps": (Gap, "id"),
    "criteria": (Criterion, "name"),
    "notes": (Note, "seq"),
}
_BY_NAME: dict[str, type[Record]] = {"reviews": Review}
_IN_LISTS: dict[str, type[Record]] = {
    "errors": Failure,
    "delivered_notes": Note,
    "issues": Issue,
}
_SINGLE: dict[str, type[Record]] = {
    "limits": Limits,
    "plan": FrozenPlan,
    "rollback": Rollback,
    "last_answer": HookAnswer,
    "last_signal": SeenSignal,
    "last_stop": AllowedStop,
}
# Derived from the others when a loop is loaded.
_INDEXES = frozenset((
    "awaited", "criterion_tasks", "dependency_count", "erring", "failed", "gate_tasks", "open_gap_count",
    "proven", "proven_by_tree", "refused_retries", "refuted", "returned_gaps", "transient_tasks",
))  # fmt: skip


# The values of a new record of each kind, by slot.
_new: dict[type[Record], list[tuple[str, Any]]] = {}


def pack(record: Record) -> dict[str, Any]:
    """Return the values of a record that differ from those of a new one, as JSON can hold them."""
    kind = type(record)
    if kind not in _new:
        new = kind()
        names = [name for name in kind.__slots__ if name not in _INDEXES]
        _new[kind] = [(name, getattr(new, name)) for name in names]
    return {
        name: _packed(name, value)
        for name, default in _new[kind]
        if (value := getattr(record, name)) != default
    }


def _packed(name: str, value: Any) -> Any:
    if type(value) in (str, int, bool):
        return value
    if name in _BY_MEMBER:
        return [pack(item) for item in value.values()]
    if name in _BY_NAME:
        return {key: pack(item) for key, item in value.items()}
    if name in _IN_LISTS:
        return [pack(item) for item in value]
    if name in _SINGLE:
        return pack(value)
    return list(value) if name == "depends" else value


def unpack(packed: dict[str, Any]) -> Loop:
    """Return the loop that was packed, with its indexes."""
    loop: Loop = _unpack_record(Loop, packed)
    for name, (kind, member) in _BY_MEMBER.items():
        if name in packed:
            held = {item[member]: _unpack_record(kind, item) for item in packed[name]}
            setattr(loop, name, held)
    for item in packed.get("tasks", ()):
        if "depends" in item:
            loop.tasks[item["id"]].depends = dict.fromkeys(item["depends"])
        if "errors" in item:
            errors = [_unpack_record(Failure, error) for error in item["errors"]]
            loop.tasks[item["id"]].errors = errors
    for name, kind in _BY_NAME.items():
        if name in packed:
            held = {key: _unpack_record(kind, item) for key, item in packed[name].items()}
            setattr(loop, name, held)
    for name, kind in _IN_LISTS.items():
        if name in packed:
            setattr(loop, name, [_unpack_record(kind, item) for item in packed[name]])
    for name, kind in _SINGLE.items():
        if name in packed:
            setattr(loop, name, _unpack_record(kind, packed[name]))
    loop.offsets = {name: (at, last) for name, (at, last) in loop.offsets.items()}
    loop.transcript = tuple(loop.transcript) if loop.transcript else None  # type: ignore[assignment]
    loop.index()
    return loop


def _unpack_record(kind: type[Record], packed: dict[str, Any]) -> Any:
    record = kind()
    for name, value in packed.items():
        setattr(record, name, value)
    return record


def loops_to_dict(loops: Loops) -> dict[str, Any]:
    return {
        "journal_id": loops.journal_id,
        "seq": loops.seq,
        "ts": loops.ts,
        "backwards": loops.backwards,
        "repairs": loops.repairs,
        "loops": [pack(loop) for loop in loops.by_id.values()],
    }


def loops_from_dict(data: dict[str, Any], ended: bytes) -> Loops:
    loops = Loops()
    for name in ("journal_id", "seq", "ts", "backwards", "repairs"):
        setattr(loops, name, data[name])
    loops.ended = EndedIds(ended)
    loops.restore({packed["id"]: unpack(packed) for packed in data["loops"]})
    return loops


def _number(fd: int) -> int:
    """Which file this is: a snapshot that came with a copied or cloned project is not believed."""
    try:
        return int(system.fstat(fd).st_ino)
    except OSError:
        return -1


def _seal_of(rest: bytes | memoryview) -> bytes:
    """How a snapshot begins whose rest is this."""
    return b'{"digest":"%s","body":' % sha256(rest).hexdigest()[:16].encode("ascii")


def save_snapshot(directory: Directory, journal: int, loops: Loops, at: Position) -> None:
    """Best effort: a snapshot that cannot be written is only missing."""
    body = dumps(
        {
            "fold": FOLD_VERSION,
            "file": _number(journal),
            "offset": at.offset,
            "line": at.line,
            "sum": at.sum,
            "loops": loops_to_dict(loops),
        }
    )
    # Behind the first line stand the names that hardly anybody asks for: they are not parsed.
    rest = b"%s}\n%s" % (body.encode("ascii"), bytes(loops.ended))
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


def load_snapshot(directory: Directory, journal: int, size: int) -> tuple[Loops, Position] | None:
    """The cached loops and where it stands in the journal, or None when it is not to be trusted."""
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
        if found["line"] != found["loops"]["seq"] or found["file"] != _number(journal):
            return None
        if read_at(journal, offset - len(mark), len(mark)) != mark.encode("ascii"):
            return None
        return loops_from_dict(found["loops"], ended), Position(offset, found["line"], found["sum"])
    except (ValueError, KeyError, TypeError, OSError):
        return None
