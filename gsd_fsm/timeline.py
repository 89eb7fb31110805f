"""Events and decisions in words."""

from __future__ import annotations

from typing import Any

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.guards import active_minutes
from gsd_fsm.core.loop import Loop
from gsd_fsm.core.proof import latest_tree, missing

Event = dict[str, Any]
# Events in which a stop was decided, or a loop came to stand still.
DECISIONS = ("iteration", "stop", "pause", "wait", "complete", "cancel")


def _short(text: Any, limit: int = 100) -> str:
    flat = " ".join(str(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def what_changed(event: Event) -> str:
    """One event in a few words, for the timeline."""
    data = event["data"]
    kind = event["type"]
    if kind == "start":
        return _short(f"{data['kind']}, {data['mode']}: {data.get('goal', '')}".rstrip(": "))
    if kind == "failure":
        return _short(f"{data.get('task', 'loop')} ({data['class']}): {data['error']}")
    if kind == "task":
        extra = "".join(
            f" {name} {data[name]}" for name in ("phase", "ref", "commit") if name in data
        )
        about = f": {data['title']}" if data.get("title") else ""
        return _short(f"{data['task']} {data['status']}{extra}{about}")
    if kind == "gap":
        return _short(f"{data['gap']} {data['action']} {data.get('description', '')}")
    if kind == "criterion":
        proof = data.get("evidence")
        shown = f", exit code {proof['exit_code']}" if proof else ""
        state = "stale" if data.get("stale") else "met" if data["met"] else "unmet"
        return _short(f"{data['criterion']} {state}{shown}")
    if kind == "iteration" and "reason" in data:
        return _short(data["reason"].split("\n", 1)[0])
    if kind in ("pause", "stop"):
        return _short(f"{data['code']}: {data.get('reason', '')}".rstrip(": "))
    if kind == "wait":
        return _short(
            f"{data['for']}: {data.get('question') or data.get('reason') or ''}".rstrip(": ")
        )
    if kind == "complete":
        return _short(data.get("summary", "the completion rule held"))
    if kind == "session":
        return _short(
            " ".join(data[name] for name in ("action", "source", "reason") if data.get(name))
        )
    if kind == "score" and "shape" in data:
        return f"spec {data.get('spec_score')}/10, fit {data.get('fit_score')}: {data['shape']}"
    if kind == "review":
        found = [f"{name} {data[name]}" for name in ("score", "issues", "blockers") if name in data]
        wave = f" wave {data['wave']}" if "wave" in data else ""
        return _short(f"{data['action']}{wave} {', '.join(found)} {data.get('report', '')}".strip())
    if kind == "spend":
        return _short(", ".join(_amounts(data)) + f" {data.get('what', '')}")
    if kind == "resume":
        return ", ".join(f"+{extra} {name}" for name, extra in data.get("add", {}).items())
    return _short(
        " ".join(str(value) for value in data.values() if not isinstance(value, (dict, list)))
    )


def _amounts(data: dict[str, Any]) -> list[str]:
    said = [f"{data['usd']:.2f} USD"] if "usd" in data else []
    said += [f"{data['tokens']} tokens"] if "tokens" in data else []
    return said + ([f"{data['total_usd']:.2f} USD in all"] if "total_usd" in data else [])


def counts(loop: Loop) -> str:
    """The numbers that every decision rests on."""
    limits = loop.limits
    parts = [
        f"iteration {loop.iteration}/{limits['max_iterations'] or 'unlimited'}",
        f"stuck {loop.still}/{limits['stuck_limit'] or 'off'}",
        f"idle {loop.idle}/{limits['idle_limit'] or 'off'}",
    ]
    if loop.kind == "verify":
        parts.append(f"round {loop.round}/{limits['max_rounds'] or 'unlimited'}")
    if limits.get("budget_usd"):
        parts.append(f"spent {loop.spent_usd:.2f}/{limits['budget_usd']:.2f} USD")
    if limits.get("max_tokens"):
        parts.append(f"used {loop.spent_tokens}/{limits['max_tokens']} tokens")
    if limits.get("max_minutes"):
        used = active_minutes(loop, ms_of(loop.last_event))
        parts.append(f"active {used:.1f}/{limits['max_minutes']:g} minutes")
    return ", ".join(parts)


def aftermath(event: Event, later: Event | None) -> str:
    """What became of a block, seen at the next signal of its session."""
    if event["type"] != "iteration" or event["by"] != "hook":
        return ""
    if later is None:
        return " Whether the client went on is not known yet."
    if later["type"] == "stop" and later["data"]["code"] == "client":
        return f" The client, not the loop, ended the turn (seen at event {later['seq']})."
    return f" The client went on (seen at event {later['seq']})."


def follows(event: Event, later: Event) -> bool:
    """Whether this later event shows what became of a block."""
    if later["loop"] != event["loop"] or later["seq"] <= event["seq"]:
        return False
    worked = later["by"] == "agent" and later.get("session") == event.get("session")
    return worked or (later["by"] == "hook" and later["type"] in DECISIONS)


def explain_decision(event: Event, loop: Loop, source: str) -> tuple[str, str, str]:
    """The decision, its code, and why: `loop` is the state after the event."""
    data, kind = event["data"], event["type"]
    numbers = f" ({counts(loop)})"
    if kind == "iteration":
        left = missing(loop, latest_tree(loop))
        why = "; ".join(left[:5]) or "the completion needs 'gsd-fsm complete'"
        return "block", data.get("code", "continue"), f"The loop was not done: {why}{numbers}."
    if kind == "complete":
        return "allow", "complete", f"The completion rule held{numbers}."
    if kind == "cancel":
        return "allow", "cancel", f"It was cancelled: {data.get('reason', 'by hand')}{numbers}."
    if kind == "wait":
        about = data.get("question") or data.get("reason") or "no reason is known"
        about += f", until {data['until']}" if "until" in data else ""
        return "allow", data["for"], f"The loop waits for {data['for']}: {about}{numbers}."
    if kind == "stop":
        return "allow", data["code"], f"{data.get('reason', 'The stop was allowed')}{numbers}."
    if loop.status == "paused" and source != "paused":
        return "allow", str(loop.pause_code), f"The loop paused: {loop.pause_reason}{numbers}."
    return "none", kind, f"Event {kind}: {what_changed(event)}; {source} → {loop.status}{numbers}."


def undecided(log: str, since: str) -> str:
    """What the hook could not decide since this time, by the last line of its log; "" for nothing."""
    last = log.rstrip("\n").rpartition("\n")[2]
    return (
        f" The hook could not decide a later stop (.gsd/hook.log): {last}" if last > since else ""
    )
