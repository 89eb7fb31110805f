"""Facts about gaps: found, closed, opened again, and the conditions that depend on them."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop import is_planned, open_gaps
from gsd_fsm.core.work import is_done, new_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop import Loop


def check_gap(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    action, gap_id = data["action"], data["gap"]
    gap = loop.gaps.get(gap_id)
    if action == "found":
        if gap is not None and gap["status"] == "closed":
            raise Refused("gap %s is closed" % gap_id, "gsd-fsm gap reopen %s" % gap_id)
        return
    if gap is None:
        raise Refused(
            "loop %s has no gap %s" % (loop.id, gap_id),
            "its gaps: %s" % (", ".join(loop.gaps) or "none"),
        )
    if gap["status"] == ("closed" if action == "closed" else "open"):
        raise Refused("gap %s is %s already" % (gap_id, gap["status"]), "gsd-fsm status")


def fact_gap(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    gap = loop.gaps.get(data["gap"])
    if gap is None:
        gap = loop.gaps[data["gap"]] = {
            "id": data["gap"],
            "kind": data.get("kind", "other"),
            "file": data.get("file"),
            "description": data.get("description", ""),
            "evidence": data.get("evidence"),
            "check": data.get("check"),
            "reopened": 0,
            "returns": 0,
            "round": loop.round,
        }
    elif "evidence" in data:
        gap["evidence"] = data["evidence"]
    if data["action"] == "reopened":
        gap["reopened"] += 1
        gap["returns"] += 1
        fix = loop.tasks.get(data["gap"])
        if fix is not None and is_done(fix) and loop.kind == "verify" and is_planned(loop):
            loop.tasks[data["gap"]] = new_task(data["gap"], {})  # it is to be done again
    gap["status"] = "closed" if data["action"] == "closed" else "open"
    loop.verified = False
    loop.moved = True
    if gap["status"] == "open" and not loop.auto_loop:
        loop.pause_code = "manual"
        loop.pause_reason = "Gap %s was found and auto_loop is off" % data["gap"]


def stops_at_gaps(loop: Loop, event: dict[str, Any]) -> bool:
    return not loop.auto_loop


def leaves_gaps(loop: Loop, event: dict[str, Any]) -> bool:
    return any(gap_id != event["data"]["gap"] for gap_id in open_gaps(loop))
