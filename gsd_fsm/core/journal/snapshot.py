"""Cache the fold, so that a long journal costs no more than a short one.

A snapshot is used only if its own digest is right, its fold is this fold, and the journal's line
that ends at its offset carries its sum. It may vanish at any moment.
"""

from __future__ import annotations

from gsd_fsm.core.codec import dumps, sha256
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.journal.scan import Cursor
from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.fold import FOLD_VERSION, Loops
from gsd_fsm.core.loop.protection import Altered, Protected, Protection
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
    Prompt,
    Question,
    Record,
    Review,
    Rollback,
    Rules,
    SeenSignal,
    Task,
    Verdict,
)
from gsd_fsm.core.loop.spending import Usage
from gsd_fsm.core.loop.state import INDEXES, Loop
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
# The fields that hold records: one, a list, or a dictionary by a member of each or by another name.
_RECORDS: dict[str, type[Record]] = {
    "limits": Limits,
    "plan": FrozenPlan,
    "rules": Rules,
    "usage": Usage,
    "protection": Protection,
    "files": Protected,
    "altered": Altered,
    "rollback": Rollback,
    "last_answer": HookAnswer,
    "last_signal": SeenSignal,
    "last_stop": AllowedStop,
    "errors": Failure,
    "delivered_notes": Note,
    "prompts": Prompt,
    "issues": Issue,
    "tasks": Task,
    "gaps": Gap,
    "criteria": Criterion,
    "notes": Note,
    "reviews": Review,
    "verdicts": Verdict,
    "questions": Question,
}
_KEYS = {
    "tasks": "id",
    "gaps": "id",
    "criteria": "name",
    "notes": "seq",
    "verdicts": "id",
    "questions": "id",
}
_NESTED: dict[type[Record], tuple[str, ...]] = {
    Loop: tuple(_RECORDS),
    Protection: ("files", "altered"),
    Task: ("depends", "errors"),
}
# The values of a new record of each kind, by field.
_new: dict[type[Record], list[tuple[str, Any]]] = {}
_OF_LOOPS = ("journal_id", "seq", "ts", "backwards", "repairs")


def pack(record: Record) -> dict[str, Any]:
    """Return the values of a record that differ from those of a new one, as JSON can hold them."""
    kind = type(record)
    if kind not in _new:
        new = kind()
        names = [name for name in new.fields() if name not in INDEXES]
        _new[kind] = [(name, getattr(new, name)) for name in names]
    packed = {}
    for name, first in _new[kind]:
        value = getattr(record, name)
        if value != first:
            packed[name] = value if type(value) in (str, int, bool) else _packed(name, value)
    return packed


def _packed(name: str, value: Any) -> Any:
    if name == "depends":
        return list(value)
    if name not in _RECORDS:
        return value
    if isinstance(value, Record):
        return pack(value)
    if isinstance(value, list) or name in _KEYS:
        return [pack(item) for item in (value if isinstance(value, list) else value.values())]
    return {key: pack(item) for key, item in value.items()}


def unpack(packed: dict[str, Any]) -> Loop:
    """Return the loop that was packed, with its indexes."""
    loop: Loop = _fill(Loop(), packed)
    offsets = loop.usage.offsets
    loop.usage.offsets = {name: (at, last) for name, (at, last) in offsets.items()}
    loop.transcript = tuple(loop.transcript) if loop.transcript else None  # type: ignore[assignment]
    loop.index()
    return loop


def _fill(record: Record, packed: dict[str, Any]) -> Any:
    for name, value in packed.items():
        setattr(record, name, value)
    for name in _NESTED.get(type(record), ()):
        if name in packed:
            setattr(record, name, _unpacked(name, packed[name]))
    return record


def _unpacked(name: str, value: Any) -> Any:
    if name == "depends":
        return dict.fromkeys(value)
    kind = _RECORDS[name]
    if name in _KEYS:
        key = _KEYS[name]
        return {item[key]: _fill(kind(), item) for item in value}
    if isinstance(value, list):
        return [_fill(kind(), item) for item in value]
    if name == "reviews":
        return {key: _fill(kind(), item) for key, item in value.items()}
    return _fill(kind(), value)


def loops_to_dict(loops: Loops) -> dict[str, Any]:
    known = {name: getattr(loops, name) for name in _OF_LOOPS}
    return {**known, "loops": [pack(loop) for loop in loops.by_id.values()]}


def loops_from_dict(data: dict[str, Any], ended_ids: bytes) -> Loops:
    loops = Loops()
    for name in _OF_LOOPS:
        setattr(loops, name, data[name])
    loops.restore({packed["id"]: unpack(packed) for packed in data["loops"]}, ended_ids)
    return loops


def _number(fd: int) -> int:
    """Return which file this is: a snapshot that came with a copied project is not used."""
    try:
        return int(system.fstat(fd).st_ino)
    except OSError:
        return -1


def _seal_of(rest: bytes | memoryview) -> bytes:
    """Return the beginning of a snapshot whose rest is this."""
    return b'{"digest":"%s","body":' % sha256(rest).hexdigest()[:16].encode("ascii")


def save_snapshot(directory: Directory, journal: int, loops: Loops, at: Cursor) -> None:
    """Write the snapshot. Best effort: on failure there is no snapshot."""
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
    # Below the first line are the ids that hardly anybody asks for: they are not parsed.
    rest = b"%s}\n%s" % (body.encode("ascii"), loops.ended_ids())
    data = _seal_of(rest) + rest
    temporary = SNAPSHOT_NAME + ".new"
    _drop(directory, temporary)
    try:
        fd = open_in(directory, temporary, WRITE | CREATE | EXCLUSIVE)
        try:
            whole = system.write(fd, data) == len(data)
        finally:
            close(fd)
        if whole:
            rename_in(directory, temporary, SNAPSHOT_NAME)
    except OSError:
        whole = False
    if not whole:
        _drop(directory, temporary)


def _drop(directory: Directory, name: str) -> None:
    try:
        unlink_in(directory, name)
    except OSError:
        pass


def load_snapshot(directory: Directory, journal: int, size: int) -> tuple[Loops, Cursor] | None:
    """Return the cached loops and how far they go, or None if the snapshot cannot be used."""
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
    head, _, ended_ids = data.partition(b"\n")
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
        loops = loops_from_dict(found["loops"], ended_ids)
        return loops, Cursor(offset, found["line"], found["sum"])
    except (ValueError, KeyError, TypeError, OSError):
        return None
