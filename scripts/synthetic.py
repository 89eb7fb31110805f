"""Write long, legal journals for benchmarks and torture tests, without fsync."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.codec import encode_event

START = 1_794_783_600_000
ERROR = "AssertionError: expected 200, got 500 in tests/test_api.py::test_login"


def draft(
    kind: str, loop: str | None, by: str, data: dict[str, Any], **more: str
) -> dict[str, Any]:
    """Return an event without its place in a journal."""
    return {"loop": loop, "type": kind, "by": by, **more, "data": data}


def _loop(number: int) -> Iterator[dict[str, Any]]:
    """Yield an execute loop of 20 tasks, each of which fails once."""
    name = f"lp-{number:06d}"
    tasks = [{"id": f"T{n:02d}", "title": f"Task number {n}"} for n in range(1, 21)]
    limits = {"max_iterations": 0, "stuck_limit": 0, "idle_limit": 3, "max_retries": 3}
    data = {"kind": "execute", "mode": "yolo", "limits": limits, "goal": "Carry out phase 1"}
    yield draft("start", name, "human", {**data, "tasks": tasks}, session=f"s-{number}")
    iteration = draft("iteration", name, "hook", {"activity": True, "code": "continue"})
    for task in tasks:
        about = {"task": task["id"]}
        yield draft("task", name, "agent", {**about, "status": "running"})
        yield iteration
        yield iteration
        yield draft("failure", name, "agent", {**about, "error": ERROR, "class": "logic"})
        yield iteration
        yield draft("task", name, "agent", {**about, "status": "running", "ref": "b1c2"})
        yield draft("stop", name, "hook", {"code": "background", "reason": "a subagent runs"})
        yield iteration
        yield iteration
        yield draft("task", name, "agent", {**about, "status": "complete", "commit": "0a1b2c3"})
    yield draft("complete", name, "hook", {})


def events(count: int) -> Iterator[dict[str, Any]]:
    """Yield this many events; the last loop is still live."""
    made = 1
    yield draft("journal", None, "cli", {"id": "j-synthetic", "incompat": [], "compat": []})
    number = 0
    while made < count:
        number += 1
        for fields in _loop(number):
            if made == count:
                return
            made += 1
            yield fields


def ended_loops(count: int) -> Iterator[dict[str, Any]]:
    """Yield this many loops that were started and cancelled."""
    yield draft("journal", None, "cli", {"id": "j-synthetic", "incompat": [], "compat": []})
    data = {"kind": "goal", "mode": "yolo", "goal": "Be fast", "limits": {}}
    for number in range(count):
        yield draft("start", f"lp-{number:06d}", "human", data, session=f"s-{number}")
        yield draft("cancel", f"lp-{number:06d}", "human", {})


def write_journal(path: Path, history: Iterable[dict[str, Any]]) -> None:
    last = ""
    with path.open("wb") as file:
        for seq, fields in enumerate(history, 1):
            event = {"v": 1, "seq": seq, "ts": to_iso(START + seq * 250), **fields}
            line, last = encode_event(event, last)
            file.write(line)


if __name__ == "__main__":
    write_journal(Path(sys.argv[1]), events(int(sys.argv[2])))
