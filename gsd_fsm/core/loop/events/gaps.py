"""Gaps and verification rounds: what was found missing or wrong, and whether it was fixed."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.events.sessions import with_reason
from gsd_fsm.core.loop.events.tasks import PROOF
from gsd_fsm.core.loop.limits import require_room
from gsd_fsm.core.loop.records import Gap, Task, Verdict
from gsd_fsm.core.loop.schema import (
    COUNT,
    ID,
    SAME,
    TEXT_OR_NULL,
    Arrow,
    EventType,
    StatusTable,
    Trigger,
    one_of,
    records,
)
from gsd_fsm.core.loop.state import ACTIVE, LIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import Event, GapData, VerifiedData
    from gsd_fsm.core.loop.state import Loop

GAP_TABLE = StatusTable(
    ("gap.found", ("new", "open"), "open"),
    ("gap.reopened", ("closed",), "open"),
    ("gap.closed", ("open",), "closed"),
)


def stops_at_gaps(loop: Loop, event: Event[GapData]) -> bool:
    """Return whether the user decides what happens to each open gap."""
    return not loop.auto_loop


def leaves_gaps(loop: Loop, event: Event[GapData]) -> bool:
    """Return whether other gaps are open."""
    gap = loop.gaps.get(event["data"]["gap"])
    return loop.open_gap_count > (gap is not None and gap.is_open)


def record_gap(loop: Loop, event: Event[GapData]) -> None:
    """Add the gap, or take newer evidence; open or close it as its table says."""
    data = event["data"]
    gap_id = data["gap"]
    gap = loop.gaps.get(gap_id) if data["action"] == "found" else loop.gap(gap_id)
    loop.record_progress("gap:" + gap_id)
    if gap is None:
        gap = loop.gaps[gap_id] = Gap(data, loop.round)
    else:
        gap.evidence = data.get("evidence", gap.evidence)
    is_open = data["action"] != "closed"
    loop.open_gap_count += is_open - gap.is_open
    gap.is_open = is_open
    loop.verified = False


def reopen_gap(loop: Loop, event: Event[GapData]) -> None:
    """Open a gap again and count it: the oscillation limit is about this count."""
    gap = loop.gap(event["data"]["gap"])
    record_gap(loop, event)
    gap.reopened += 1
    gap.reopened_since_resume += 1
    loop.returned_gaps[gap.id] = None
    fix = loop.tasks.get(gap.id)
    if fix is not None and fix.is_done and loop.kind == "verify" and loop.is_planned:
        loop.put_task(Task(gap.id))  # its fix must be done again


def record_gap_and_pause(loop: Loop, event: Event[GapData]) -> None:
    record_gap(loop, event)
    _pause_at_gap(loop, event)


def reopen_gap_and_pause(loop: Loop, event: Event[GapData]) -> None:
    reopen_gap(loop, event)
    _pause_at_gap(loop, event)


def _pause_at_gap(loop: Loop, event: Event[GapData]) -> None:
    loop.pause_code = "manual"
    loop.pause_reason = "Gap %s was found and auto_loop is off" % event["data"]["gap"]


def require_gap_move(loop: Loop, event: Event[GapData], loops: Loops) -> None:
    """Refuse an action that does not fit the status of the gap."""
    data = event["data"]
    gap = loop.gaps.get(data["gap"]) if data["action"] == "found" else loop.gap(data["gap"])
    status = "new" if gap is None else gap.status
    wanted = "closed" if data["action"] == "closed" else "open"
    if GAP_TABLE.allows("gap." + data["action"], status, wanted):
        return
    if data["action"] == "found":  # reporting it as new would hide that it came back
        raise Refused("gap %s is closed" % data["gap"], "Run: gsd-fsm gap reopen %s" % data["gap"])
    raise Refused("gap %s is already %s" % (data["gap"], status), "Run: gsd-fsm status")


GAP = EventType(
    "gap",
    Trigger(
        "found",
        verb="gap found",
        rules=(require_gap_move, require_room),
        arrows=(
            Arrow(ACTIVE, "paused", record_gap_and_pause, when=stops_at_gaps),
            Arrow(ACTIVE, "fixing", record_gap),
        ),
    ),
    Trigger(
        "reopened",
        verb="gap reopen",
        rules=(require_gap_move,),
        arrows=(
            Arrow(ACTIVE, "paused", reopen_gap_and_pause, when=stops_at_gaps),
            Arrow(ACTIVE, "fixing", reopen_gap),
        ),
    ),
    Trigger(
        "closed",
        verb="gap close",
        rules=(require_gap_move,),
        arrows=(
            Arrow(ACTIVE, "fixing", record_gap, when=leaves_gaps),
            Arrow(ACTIVE, "running", record_gap),
        ),
    ),
    required={"action": one_of("found", "closed", "reopened"), "gap": ID},
    optional={"kind": ID, "file": str, "description": str, "evidence": str, "check": str},
    text="{gap} {action}[ {description}]",
)


VERDICT_KINDS = ("check", "must-have", "gap")
VERDICTS_DUE = records(
    "verdicts", {"id": str, "kind": one_of(*VERDICT_KINDS), "text": str}, ("id", "kind")
)


def record_round(loop: Loop, event: Event[VerifiedData]) -> None:
    """Count the round and what it leaves to a human, or record a verdict or the staleness of it."""
    data = event["data"]
    if "verdict" in data:
        _record_verdict(loop, event)
        return
    if data.get("stale"):
        loop.verified = False
        for verdict_id in loop.verdicts:  # the next round asks for its own
            question = loop.questions.get(verdict_id)
            if question is not None:
                question.answer = "stale"
        return
    if not data.get("continued"):
        loop.round += 1
        loop.verified = data["passed"]
        loop.failed_verifications = 0 if loop.verified else loop.failed_verifications + 1
        loop.round_tree = data.get("tree")
        loop.round_checks = data.get("machine", 0)
        loop.verdicts = {}
    for proof in data.get("checks", ()):
        loop.protection.record_run(proof["check"], proof)
    loop.verdicts.update({spec["id"]: Verdict(spec) for spec in data.get("verdicts", ())})


def _record_verdict(loop: Loop, event: Event[VerifiedData]) -> None:
    data = event["data"]
    verdict = loop.verdicts.get(data["verdict"])
    if verdict is None:
        raise Refused("the last round of loop %s left no %s" % (loop.id, data["verdict"]))
    verdict.passed, verdict.evidence = data["passed"], data.get("evidence")
    verdict.agent = data.get("agent")
    question = loop.questions.get(verdict.id)
    if question is not None:
        question.answer = "pass" if verdict.passed else "fail"
    loop.reach("verdict %s %d" % (verdict.id, loop.round))


def require_reviewer(loop: Loop, event: Event[VerifiedData], loops: Loops) -> None:
    """Refuse a verdict outside of the final round, and that of a subagent on its own fix."""
    data = event["data"]
    if "verdict" in data and not loop.verified:
        raise Refused(
            "loop %s needs a round that passed before verdicts" % loop.id, "Run: gsd-fsm verify"
        )
    fix = loop.tasks.get(data.get("verdict", ""))
    if "agent" in data and fix is not None and fix.ref == data["agent"]:
        raise Refused(
            "subagent %s fixed %s and cannot judge it" % (data["agent"], data["verdict"]),
            "Let another subagent review it.",
        )


def _verified_text(data: Any) -> str:
    passed = "passed" if data["passed"] else "failed"
    if "verdict" not in data:
        passed = "stale" if data.get("stale") else passed
        return with_reason(passed, data.get("report"))
    by = " (reviewed by an agent)" if "agent" in data else ""
    return with_reason("verdict %s %s%s" % (data["verdict"], passed, by), data.get("evidence"))


# What a round ran, and what that returned.
RAN = records("checks", PROOF.members or {}, ("check", "passed"))
VERIFIED = EventType(
    "verified",
    Trigger(
        verb="verified", rules=(require_reviewer,), arrows=(Arrow(LIVE, SAME, record_round),)
    ),
    required={"passed": bool},
    optional={
        "report": str, "tree": TEXT_OR_NULL, "machine": COUNT, "verdicts": VERDICTS_DUE,
        "continued": bool, "stale": bool, "verdict": str, "evidence": str, "agent": str,
        "relayed": bool, "unverified": bool, "shell": str, "checks": RAN,
    },
    text=_verified_text,
    is_newer=lambda _loop, data: any(it in data for it in ("verdict", "continued", "stale")),
)  # fmt: skip
