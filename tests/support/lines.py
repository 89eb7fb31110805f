"""Lines of journals: hostile and harmless ones, a second reader and writer, JSON values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.journal.scan import into_fold, load_event
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.history.replay import in_bulk, watching
from tests.support.events import NOW, write
from tests.support.story import frozen


def _named(*values: bytes) -> dict[str, bytes]:
    return {f"{value[:12]!r} of {len(value)}": value for value in values}


# Values that an attacker could put into a member of `data`.
HOSTILE = _named(
    # numbers
    b"NaN", b"-Infinity", b"1e999", b"-1e999", b"9007199254740993", b"18446744073709551616",
    b"-9223372036854775809", b"1" * 5000, b"01", b"+1", b"1.", b".5", b"0x10", b"",
    # strings
    b'"\\ud800"', b'"\\udc00x"', b'"\\udc00\\ud800"', b'{"\\ud800":1}', b'"\x01"', b'"\t"', b'"\\q"',
    b'"\\u12"', '"é"'.encode(), b'"\xff"', b'"\xed\xa0\x80"', b"'a'", b"\0",
    # lists and blanks
    b"[" * 17 + b"]" * 17, b"[" * 200_000 + b"]" * 200_000, b"[" * 200_000, b"[1,]", b"1/*x*/",
    b"\x0b1",
)  # fmt: skip
HARMLESS = _named(
    b"-0", b"-0.0", b"1E5", b"1e-400", b"0." + b"1" * 3000, b"9007199254740992",
    b'{"a":1,"b":2,"a":3}', b'{"a":1,"\\u0061":2}', b" [ 1 , 2 ] ", b"[1,\r2]",
    b'"\\ud83d\\ude00"', b'"\x7f"', b'"\\/"', b"[" * 14 + b"]" * 14,
)  # fmt: skip
PREFIX = b'{"v":1,"seq":1,"ts":"2026-11-15T23:00:00.000Z","loop":null,"type":"journal","by":"cli",'


def closed(body: bytes, previous: str = "") -> bytes:
    """Return a line: this body with its sum."""
    digest = hashlib.sha256(previous.encode() + body).hexdigest()[:16]
    return body + b',"sum":"' + digest.encode() + b'"}'


def in_data(value: bytes) -> bytes:
    return closed(PREFIX + b'"data":{"id":"j","x":' + value + b"}")


def in_envelope(value: bytes) -> bytes:
    return closed(PREFIX + b'"x":' + value + b',"data":{"id":"j"}')


def one_by_one(loops: Loops) -> Callable[[bytes], None]:
    """Return the reference reader, which keeps no state between lines."""
    return lambda line: loops.fold(load_event(line))


READERS: dict[str, Any] = {
    "one_by_one": one_by_one,
    "into_fold": into_fold,
    "watching": watching(lambda event: None),
    "in_bulk": in_bulk,
}


def verdict(reader: Any, *lines: bytes) -> Any:
    """Return the loops after these lines, or the number of the refused line."""
    loops = Loops()
    take = reader(loops)
    for number, line in enumerate(lines):
        before = frozen(loops)
        try:
            take(line)
        except (ValueError, Refused):
            assert frozen(loops) == before
            return number
    loops.settle()
    return frozen(loops)


def agreed(*lines: bytes) -> Any:
    """Require that all readers give the same verdict on these lines; return it."""
    found = {name: verdict(reader, *lines) for name, reader in READERS.items()}
    assert len(set(found.values())) == 1, found
    return found["one_by_one"]


def decoded(loads: Any, line: bytes) -> str:
    try:
        return dumps(loads(line))
    except ValueError:
        return "refused"


def sums_of(raw: bytes) -> list[str]:
    """Return the correct sum of every line, computed from the bytes before it."""
    bodies = [line[: line.rindex(b',"sum":"')] + b"}" for line in raw.split(b"\n")[:-1]]
    return [line[-18:-2].decode() for line in chain(bodies).splitlines()]


def chain(bodies: list[bytes]) -> bytes:
    """Return lines with correct sums, whatever their content."""
    lines: list[bytes] = []
    for body in bodies:
        lines.append(closed(body[:-1], lines[-1][-18:-2].decode() if lines else ""))
    return b"".join(line + b"\n" for line in lines)


def body(seq: int, kind: Any, loop: Any, data: Any, **members: Any) -> bytes:
    event = {"v": 1, "seq": seq, "ts": to_iso(NOW), "loop": loop, "type": kind, "by": "human"}
    return json.dumps({**event, **members, "data": data}, separators=(",", ":")).encode()


def header(**data: Any) -> bytes:
    return body(1, "journal", None, {"id": "j-forged", "incompat": [], "compat": [], **data})


def start(seq: int = 2, loop: str = "lp-1", **data: Any) -> bytes:
    return body(seq, "start", loop, {"kind": "goal", "mode": "yolo", "limits": {}, **data})


def plant(root: Path, raw: bytes) -> Path:
    """Write a journal that this user neither started nor trusted."""
    return write(root / ".gsd" / "journal.jsonl", raw)


def _json(numbers: Any, leaves: int) -> Any:
    return st.recursive(
        st.none() | st.booleans() | numbers | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=leaves,
    )


json_values = _json(st.integers() | st.floats(allow_nan=False, allow_infinity=False), 12)
json_layouts = st.sampled_from([
    {}, {"indent": 2}, {"indent": "\t"}, {"indent": 0}, {"separators": (",", ":")},
    {"indent": 4, "ensure_ascii": False},
])  # fmt: skip
# Values that an event can contain.
VALUES = _json(st.integers(-(2**53), 2**53) | st.floats(-1e15, 1e15), 20)
