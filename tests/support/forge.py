"""A second reader and writer of journals, made from the description of the format alone."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

TS = "2026-11-15T23:00:00.000Z"
HEADER_DATA = {"id": "j-forged", "incompat": [], "compat": []}


def sums_of(raw: bytes) -> list[str]:
    """The sum every line must carry, computed from the bytes before it."""
    sums: list[str] = []
    for line in raw.split(b"\n")[:-1]:
        body = line[: line.rindex(b',"sum":"')]
        previous = sums[-1].encode() if sums else b""
        sums.append(hashlib.sha256(previous + body).hexdigest()[:16])
    return sums


def chain(bodies: list[bytes]) -> bytes:
    """Lines with right sums, whatever they say."""
    raw, last = b"", b""
    for body in bodies:
        last = hashlib.sha256(last + body[:-1]).hexdigest()[:16].encode()
        raw += body[:-1] + b',"sum":"' + last + b'"}\n'
    return raw


def body(seq: int, kind: Any, loop: Any, data: Any, **members: Any) -> bytes:
    event = {"v": 1, "seq": seq, "ts": TS, "loop": loop, "type": kind, "by": "human"}
    return json.dumps({**event, **members, "data": data}, separators=(",", ":")).encode()


def header(**data: Any) -> bytes:
    return body(1, "journal", None, {**HEADER_DATA, **data})


def start(seq: int = 2, loop: str = "lp-1", **data: Any) -> bytes:
    return body(seq, "start", loop, {"kind": "goal", "mode": "yolo", "limits": {}, **data})


def plant(root: Path, raw: bytes) -> Path:
    """A journal that this user neither started nor trusted."""
    gsd = root / ".gsd"
    gsd.mkdir(parents=True, exist_ok=True)
    gsd.joinpath("journal.jsonl").write_bytes(raw)
    return gsd / "journal.jsonl"
