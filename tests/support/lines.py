"""Lines of journals: hostile and harmless ones, a second reader and writer, JSON values."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.journal.scan import into_fold, load_event
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.history.replay import in_bulk, watching
from tests.support.story import frozen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Values that an attacker could put into a member of `data`.
HOSTILE: dict[str, bytes] = {
    "NaN": b"NaN",
    "Infinity": b"-Infinity",
    "1e999": b"1e999",
    "-1e999": b"-1e999",
    "2^53+1": b"9007199254740993",
    "2^64": b"18446744073709551616",
    "-2^63-1": b"-9223372036854775809",
    "5000 digits": b"1" * 5000,
    "high surrogate": b'"\\ud800"',
    "low surrogate": b'"\\udc00x"',
    "swapped surrogates": b'"\\udc00\\ud800"',
    "surrogate key": b'{"\\ud800":1}',
    "17 deep": b"[" * 17 + b"]" * 17,
    "200,000 deep": b"[" * 200_000 + b"]" * 200_000,
    "200,000 open": b"[" * 200_000,
    "leading zero": b"01",
    "plus": b"+1",
    "dot": b"1.",
    "bare dot": b".5",
    "hex": b"0x10",
    "control": b'"\x01"',
    "raw tab": b'"\t"',
    "raw newline escape": b'"\\q"',
    "short escape": b'"\\u12"',
    "trailing comma": b"[1,]",
    "single quotes": b"'a'",
    "comment": b"1/*x*/",
    "UTF-8": '"é"'.encode(),
    "invalid UTF-8": b'"\xff"',
    "encoded surrogate": b'"\xed\xa0\x80"',
    "NUL": b"\0",
    "vertical tab": b"\x0b1",
    "nothing": b"",
}
HARMLESS: dict[str, bytes] = {
    "-0": b"-0",
    "-0.0": b"-0.0",
    "1E5": b"1E5",
    "tiny": b"1e-400",
    "long fraction": b"0." + b"1" * 3000,
    "duplicate keys": b'{"a":1,"b":2,"a":3}',
    "escaped duplicate": b'{"a":1,"\\u0061":2}',
    "blanks": b" [ 1 , 2 ] ",
    "line end inside": b"[1,\r2]",
    "surrogate pair": b'"\\ud83d\\ude00"',
    "DEL": b'"\x7f"',
    "solidus": b'"\\/"',
    "2^53": b"9007199254740992",
    "16 deep": b"[" * 14 + b"]" * 14,
}
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


def verdicts(*lines: bytes) -> dict[str, Any]:
    return {name: verdict(reader, *lines) for name, reader in READERS.items()}


def decoded(loads: Any, line: bytes) -> str:
    try:
        return dumps(loads(line))
    except ValueError:
        return "refused"


TS = "2026-11-15T23:00:00.000Z"
HEADER_DATA = {"id": "j-forged", "incompat": [], "compat": []}


def sums_of(raw: bytes) -> list[str]:
    """Return the correct sum of every line, computed from the bytes before it."""
    sums: list[str] = []
    for line in raw.split(b"\n")[:-1]:
        body = line[: line.rindex(b',"sum":"')]
        previous = sums[-1].encode() if sums else b""
        sums.append(hashlib.sha256(previous + body).hexdigest()[:16])
    return sums


def chain(bodies: list[bytes]) -> bytes:
    """Return lines with correct sums, whatever their content."""
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
    """Write a journal that this user neither started nor trusted."""
    gsd = root / ".gsd"
    gsd.mkdir(parents=True, exist_ok=True)
    gsd.joinpath("journal.jsonl").write_bytes(raw)
    return gsd / "journal.jsonl"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
json_layouts = st.sampled_from(
    [
        {},
        {"indent": 2},
        {"indent": "\t"},
        {"indent": 0},
        {"separators": (",", ":")},
        {"indent": 4, "ensure_ascii": False},
    ]
)
# Values that an event can contain.
SAFE = st.text(st.characters(exclude_categories=("Cs",)))
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(-1e15, 1e15)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | SAFE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SAFE, inner, max_size=4),
    max_leaves=20,
)
