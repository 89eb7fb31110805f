"""Which gap is which: what a missed check becomes, and how it is known again in the next round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gsd_fsm.core.loop import Loop
from gsd_fsm.texts import keep
from gsd_fsm.verification.result import Result

MAX_DESCRIPTION = 4_000
MAX_EVIDENCE = 4_000


def gap_of(result: Result) -> dict[str, Any]:
    """What a gap event says of this check: the words of the plan, never what was found this time."""
    what = result.task or f"CI {result.key.partition(':')[2]}"
    data = {
        "kind": "ci_failure" if result.kind == "command" else "stub",
        "description": keep(f"{what}: {result.text}", MAX_DESCRIPTION),
        "check": result.key,
    }
    return {**data, "file": keep(result.file, MAX_DESCRIPTION)} if result.file else data


def identity(gap: dict[str, Any]) -> tuple[Any, ...]:
    return gap["kind"], gap.get("file"), gap.get("description")


def known_gaps(loop: Loop, results: list[Result]) -> dict[str, str]:
    """The gaps that these checks opened before, by the keys of the checks; no gap has two checks.

    A gap is known by its words and its key, else by its words, else by its key: a plan may have
    been renumbered or reworded meanwhile.
    """
    found: dict[str, str] = {}
    details = {result.key: gap_of(result) for result in results}
    for alike in (_same_in_all, _same_words, _same_key):
        for key, data in details.items():
            if key not in found:
                taken = set(found.values())
                free = (gap for gap_id, gap in loop.gaps.items() if gap_id not in taken)
                same = next((gap["id"] for gap in free if alike(gap, data)), None)
                found.update({key: same} if same else {})
    return found


def _same_in_all(gap: dict[str, Any], data: dict[str, Any]) -> bool:
    return _same_words(gap, data) and _same_key(gap, data)


def _same_words(gap: dict[str, Any], data: dict[str, Any]) -> bool:
    return identity(gap) == identity(data)


def _same_key(gap: dict[str, Any], data: dict[str, Any]) -> bool:
    return bool(gap["check"] == data["check"] and gap["kind"] == data["kind"])


def same_gap(loop: Loop, data: dict[str, Any], gap_id: str | None = None) -> str | None:
    """The gap that is reported again: the one of this id, else of this kind, file and description."""
    if gap_id in loop.gaps:
        return gap_id
    return next((known for known, gap in loop.gaps.items() if _same_words(gap, data)), None)


def free_id(loop: Loop) -> str:
    number = len(loop.gaps) + 1
    while f"G{number}" in loop.gaps:
        number += 1
    return f"G{number}"


def opening(loop: Loop, known: str | None, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The data of the event that opens a gap, or opens it again, or tells its new evidence."""
    if known is None:
        yield {"action": "found", "gap": free_id(loop), **data}
    elif loop.gaps[known]["status"] == "closed":
        yield {"action": "reopened", "gap": known, **data}
    elif data.get("evidence", loop.gaps[known]["evidence"]) != loop.gaps[known]["evidence"]:
        yield {"action": "found", "gap": known, **data}
