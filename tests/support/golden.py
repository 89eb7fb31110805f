"""Golden journals of each version: recorded once, kept byte for byte, replayed by every version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gsd_fsm.core.codec import encode_event

DIRECTORY = Path(__file__).parents[1] / "journals"
NAMES = (
    *("v1/clock", "v1/execute", "v1/goal", "v1/random-1", "v1/random-2", "v1/several", "v1/shape"),
    *("v1/verify", "v2/execute", "v2/goal", "v2/verify"),
)


def write_lines(events: list[dict[str, Any]]) -> bytes:
    """Return the lines of these events, with new sums."""
    lines, previous = [], ""
    for event in events:
        line, previous = encode_event({n: v for n, v in event.items() if n != "sum"}, previous)
        lines.append(line)
    return b"".join(lines)


def journal_bytes(name: str) -> bytes:
    return (DIRECTORY / f"{name}.jsonl").read_bytes()
