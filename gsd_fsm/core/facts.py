"""Facts that leave the status as it is: mode, plan, money, notes, issues, stops, checkpoints."""

from __future__ import annotations

from gsd_fsm.core.flow import MAX_TALK
from gsd_fsm.core.proof import new_criterion
from gsd_fsm.core.work import new_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop import Loop


def fact_mode(loop: Loop, event: dict[str, Any]) -> None:
    loop.mode = event["data"]["mode"]


def fact_plan(loop: Loop, event: dict[str, Any]) -> None:
    data = dict(event["data"])
    for spec in data.pop("tasks", ()):
        known = loop.tasks.get(spec["id"])
        if known is None or known["status"] == "pending":
            loop.tasks[spec["id"]] = new_task(spec["id"], spec)
    joins = data.pop("joins", False)
    for spec in data.pop("criteria", ()):
        known = loop.criteria.get(spec["name"])
        if known is None or (joins and known["check"] is None and "check" in spec):
            loop.criteria[spec["name"]] = new_criterion(spec)
            loop.exit_signal = False
            loop.moved = True
    wanted = data.pop("must_not", ())
    loop.must_not = [*loop.must_not, *(text for text in wanted if text not in loop.must_not)]
    loop.plan = {**(loop.plan or {}), **data} if data else loop.plan
    if "count" in data:
        loop.plan["tasks"] = loop.plan.pop("count")


def fact_spend(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    usd = data.get("usd", 0)
    if "meter" in data:
        # A figure that only grows: the first one is where it is counted from, a smaller one is new.
        total = data.get("total_usd", 0)
        before = loop.meters.get(data["meter"], total)
        if data["meter"] in loop.anew:
            loop.anew = [name for name in loop.anew if name != data["meter"]]
            before = total
        usd += total - before if total >= before else total
        loop.meters[data["meter"]] = total
    if "counted" in data:
        source = data.get("source", "")
        loop.counted.pop(source, None)
        loop.counted[source] = [data["counted"], data.get("messages", [])]
        if len(loop.counted) > MAX_TALK:
            del loop.counted[next(name for name in loop.counted if name != loop.owner)]
        if "usd" in data and "meter" not in data:
            session = event.get("session", "")
            loop.priced[session] = round(loop.priced.get(session, 0) + data["usd"], 6)
    # Cents do not add up in binary: six digits are kept, as they are written.
    loop.spent_usd = round(loop.spent_usd + usd, 6)
    loop.spent_tokens += data.get("tokens", 0)


def fact_note(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    if data.get("kind") == "recall":
        kept = "dismissed" if data.get("dismissed") else "recalled"
        setattr(loop, kept, [*getattr(loop, kept), data["text"]][-MAX_TALK:])
    else:
        # Never cut: each was promised to be delivered.
        loop.notes = [*loop.notes, {"seq": event["seq"], "text": data["text"], "by": event["by"]}]


def fact_issue(loop: Loop, event: dict[str, Any]) -> None:
    loop.issues = [*loop.issues, {**event["data"], "seq": event["seq"]}][-MAX_TALK:]


def fact_stop(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    loop.last_stop = {"seq": event["seq"], "code": data["code"], "reason": data.get("reason", "")}
    loop.background = data.get("background", loop.background)
    if loop.unconfirmed and data["code"] == "client":
        # The model never saw that block: what it delivered is delivered again.
        loop.notes = [*loop.told_notes, *loop.notes]
        loop.answer = loop.answer or loop.told_answer
    loop.told_notes, loop.told_answer = [], None
    loop.unconfirmed = 0


def fact_checkpoint(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    loop.checkpoints.pop(data["name"], None)  # the order is that of the last time
    loop.checkpoints[data["name"]] = data.get("commit")
    for task_id in data.get("reset", ()):
        task = loop.tasks.get(task_id)
        if task is not None:
            loop.failed -= task["status"] == "failed"
            loop.tasks[task_id] = new_task(task_id, task)
