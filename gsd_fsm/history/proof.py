"""Collect what was asked of a loop, what proved it, and what was claimed, altered and accepted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.loop.completion import missing
from gsd_fsm.core.loop.state import FINAL, Loop

if TYPE_CHECKING:
    from gsd_fsm.core.loop.fold import Loops

Event = dict[str, Any]
Record = dict[str, Any]

# What a proof shows of the evidence of a check.
_SHOWN = (
    "command", "exit_code", "digest", "tree", "shell", "seconds", "reruns", "flaky", "programs",
    "variables", "tests", "doubts", "changed", "altered", "accepted", "clean", "outside", "rewritten",
)  # fmt: skip


class Evidence:
    """The events of one loop that its proof rests on; `see` takes them one by one."""

    def __init__(self, loop_id: str) -> None:
        self.loop_id = loop_id
        self.start: Event = {}
        self.end: Event = {}
        # By check, the last evidence; by criterion, the last declaration; by task, its completion.
        self.checks: dict[str, Record] = {}
        self.declared: dict[str, Event] = {}
        self.tasks: dict[str, Event] = {}
        self.review: Event = {}
        self.round: Event = {}
        self.verdicts: dict[str, Event] = {}
        self.exit: Event = {}
        self.changes: list[Record] = []
        self.clean: dict[str, Record] = {}
        self.relayed: list[Record] = []
        self.watched: Record = {}

    def see(self, event: Event, _source: str, _loops: Loops) -> None:
        """Take an event of the journal."""
        if event["loop"] != self.loop_id:
            return
        take = getattr(self, f"_take_{event['type']}", None)
        if take is not None:
            take(event)
        if event["data"].get("relayed"):
            unverified = bool(event["data"].get("unverified"))
            self.relayed.append({**_about(event), "type": event["type"], "unverified": unverified})

    def _take_start(self, event: Event) -> None:
        self.start = event

    def _take_complete(self, event: Event) -> None:
        self.end = event
        self.watched = event["data"].get("watched", self.watched)

    def _take_cancel(self, event: Event) -> None:
        self.end = event

    def _take_criterion(self, event: Event) -> None:
        data = event["data"]
        if "evidence" in data and not data.get("baseline"):
            self._record(event, data["criterion"], data["evidence"])
        elif data["met"]:
            self.declared[data["criterion"]] = event

    def _take_task(self, event: Event) -> None:
        data = event["data"]
        if "proof" in data:
            self._record(event, data["proof"]["check"], data["proof"])
        elif data["status"] == "complete":
            self.tasks[data["task"]] = event

    def _take_verified(self, event: Event) -> None:
        data = event["data"]
        if "verdict" in data:
            self.verdicts[data["verdict"]] = event
        elif not data.get("stale"):
            if not data.get("continued"):
                self.round = event
                self.verdicts = {}
            for proof in data.get("checks", ()):
                self._record(
                    event, proof["check"], {**proof, "tree": self.round["data"].get("tree")}
                )

    def _take_review(self, event: Event) -> None:
        if event["data"]["action"] != "light":
            self.review = event

    def _take_exit(self, event: Event) -> None:
        self.exit = event

    def _take_plan(self, event: Event) -> None:
        data = event["data"]
        for name in ("altered", "accepted", "restored", "command"):
            if name in data:
                detail = {"check": data["check"]} if "check" in data else {}
                self.changes.append({**_about(event), "what": name, **detail, name: data[name]})
        if "clean" in data:
            self.clean[data["clean"]["check"]] = {**_about(event), **data["clean"]}

    def _record(self, event: Event, check: str, evidence: Record) -> None:
        if evidence.get("accepted") and check in self.checks:
            self.checks[check]["accepted"] = _about(event)
            return
        shown = {name: evidence[name] for name in _SHOWN if name in evidence}
        self.checks[check] = {"check": check, **_about(event), **shown}
        self.watched = evidence.get("watched", {})


def proof_facts(loop: Loop, found: Evidence, head: str) -> Record:
    """Return the proof of a loop, as JSON holds it; what is absent is empty, never missing."""
    proven, failed = _checked(loop, found)
    end = found.end.get("data", {})
    return {
        "loop": loop.id,
        "kind": loop.kind,
        "status": loop.status,
        "head": head,
        "asked": _asked(loop, found),
        "started": _about(found.start),
        "ended": _about(found.end) if loop.status in FINAL else None,
        "tree": end.get("tree"),
        "variables": end.get("variables", []),
        "programs": _compared(loop, end.get("programs", ())),
        "proven": proven,
        "unproven": failed,
        "claimed": _claimed(loop, found),
        "missing": missing(loop) if not found.end else [],
        "altered": [
            {"path": it.path, "digest": it.digest, "checks": it.checks}
            for it in loop.protection.altered
        ],
        "changes": found.changes,
        "protected": sorted({file.path for file in loop.protection.files}),
        "may_change": loop.protection.may_change,
        "watched": found.watched,
        "clean": list(found.clean.values()),
        "prompts": found.relayed,
    }


def _about(event: Event) -> Record:
    """Return which event this is, and who caused it."""
    if not event:
        return {}
    more = {"session": event["session"]} if "session" in event else {}
    return {"seq": event["seq"], "ts": event["ts"], "by": event["by"], **more}


def _asked(loop: Loop, found: Evidence) -> Record:
    criteria = [
        {"name": it.name, "check": it.check, "met": it.met} for it in loop.criteria.values()
    ]
    tasks = [
        {"id": it.id, "title": it.title, "status": it.status, "proof": it.proof}
        for it in loop.tasks.values()
        if it.is_work
    ]
    return {
        "goal": loop.goal,
        "plan": loop.plan.file or None,
        "criteria": criteria,
        "tasks": tasks,
        "must_not": list(loop.must_not),
    }


def _checked(loop: Loop, found: Evidence) -> tuple[list[Record], list[Record]]:
    """Return the checks that prove something, and those whose last run does not."""
    proven: list[Record] = []
    failed: list[Record] = []
    for name, check in found.checks.items():
        criterion = loop.criteria.get(name)
        task = loop.tasks.get(name.partition("#")[0]) if "#" in name else None
        counts = check["exit_code"] == 0
        if criterion is not None:
            counts = counts and criterion.met
        elif task is not None and loop.kind == "execute":
            counts = counts and task.proof == "proven"
        else:
            counts = counts and loop.verified
        if "programs" in check:
            check = {**check, "programs": _compared(loop, check["programs"])}  # noqa: PLW2901
        (proven if counts else failed).append(check)
    return proven, failed


def _compared(loop: Loop, programs: Iterable[Record]) -> list[Record]:
    """Return programs, each that differs with the one of the start as `was`, null if there was none."""
    known = {it["name"]: it for it in loop.protection.programs}
    is_frozen = bool(loop.protection.environment)
    return [
        {**it, "was": known.get(it["name"])} if is_frozen and known.get(it["name"]) != it else it
        for it in programs
    ]


def _claimed(loop: Loop, found: Evidence) -> list[Record]:
    """Return what counts although no check proved it: who claimed it, or reviewed it."""
    claims = [
        {"what": f"criterion: {name}", **_about(event)}
        for name, event in found.declared.items()
        if name in loop.criteria and loop.criteria[name].met and not loop.criteria[name].check
    ]
    claims += [
        {"what": f"task {name}", **_about(event)}
        for name, event in found.tasks.items()
        if name in loop.tasks and loop.tasks[name].proof == "claimed" and loop.tasks[name].is_work
    ]
    if found.review and loop.reviews.get("thorough") and loop.reviews["thorough"].passed:
        claims.append({"what": "thorough review", **_about(found.review)})
    for name, event in found.verdicts.items():
        reviewer = " (reviewed by an agent)" if "agent" in event["data"] else ""
        verdict = "passed" if event["data"]["passed"] else "failed"
        evidence = event["data"].get("evidence", "")
        what = f"verdict on {name}: {verdict}{reviewer}"
        claims.append({"what": what, "evidence": evidence, **_about(event)})
    if loop.kind == "verify" and loop.verified and not loop.round_checks and found.round:
        claims.append({"what": "verification without a check", **_about(found.round)})
    if found.exit and loop.exit_signal and not loop.criteria:
        claims.append({"what": "exit signal", **_about(found.exit)})
    return claims
