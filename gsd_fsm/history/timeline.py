"""Describe events and decisions in words."""

from __future__ import annotations

import re
from typing import Any

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.loop.completion import awaits_complete, latest_tree, missing
from gsd_fsm.core.loop.fold import EVENTS
from gsd_fsm.core.loop.limits import active_minutes
from gsd_fsm.core.loop.spending import spent_of_budget
from gsd_fsm.core.loop.state import Loop

Event = dict[str, Any]
# Events that decide a stop or halt a loop.
DECISIONS = ("iteration", "stop", "pause", "wait", "complete", "cancel")
_AWAITED = {"human": "the user's answer", "throttled": "the end of a rate limit"}

_PART = re.compile(r"\[([^\]]*)\]")
_MEMBER = re.compile(r"\{(\w+)\}")


def _short(text: Any, limit: int = 100) -> str:
    flat = " ".join(str(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def what_changed(event: Event) -> str:
    """Return one event in a few words, from the template of its declaration."""
    data = event["data"]
    declared = EVENTS.get(event["type"])
    if declared is None or not declared.text:
        plain = [str(value) for value in data.values() if not isinstance(value, (dict, list))]
        return _short(" ".join(plain))
    text = declared.text
    return _short(_filled(text, data) if isinstance(text, str) else text(data))


def _filled(template: str, data: dict[str, Any]) -> str:
    """Return the template with its members filled in, without the [parts] whose member is absent."""

    def part(match: re.Match[str]) -> str:
        names = _MEMBER.findall(match[1])
        return match[1] if all(data.get(name) not in (None, "") for name in names) else ""

    shown = _PART.sub(part, template)
    return _MEMBER.sub(lambda match: str(data.get(match[1], "")), shown)


def counts(loop: Loop) -> str:
    """Return the counters and limits that decisions depend on."""
    limits = loop.limits
    parts = [
        f"iteration {loop.iteration}/{limits.max_iterations or 'unlimited'}",
        f"stuck {loop.stuck}/{limits.stuck_limit or 'off'}",
        f"idle {loop.idle}/{limits.idle_limit or 'off'}",
    ]
    if loop.kind == "verify":
        parts.append(f"round {loop.round}/{limits.max_rounds or 'unlimited'}")
    if limits.budget_usd:
        parts.append(f"spent {spent_of_budget(loop)}")
    if limits.max_tokens:
        parts.append(f"used {loop.spent_tokens}/{limits.max_tokens} tokens")
    if limits.max_minutes:
        used = active_minutes(loop, ms_of(loop.last_event))
        parts.append(f"active {used:.1f}/{limits.max_minutes:g} minutes")
    return ", ".join(parts)


def aftermath(event: Event, later: Event | None) -> str:
    """Return whether the client continued after a block, as the next event shows."""
    if event["type"] != "iteration" or event["by"] != "hook":
        return ""
    if later is None:
        return " It is not known yet whether the client continued."
    if later["type"] == "stop" and later["data"]["code"] == "client":
        return f" The client ended the turn (event {later['seq']})."
    return f" The client continued (event {later['seq']})."


def follows(event: Event, later: Event) -> bool:
    """Return whether this later event shows that the client continued after a block."""
    if later["loop"] != event["loop"] or later["seq"] <= event["seq"]:
        return False
    worked = later["by"] == "agent" and later.get("session") == event.get("session")
    return worked or (later["by"] == "hook" and later["type"] in DECISIONS)


def explain_decision(event: Event, loop: Loop, source: str) -> tuple[str, str, str]:
    """Return the decision, its code and the reason; `loop` is the state after the event."""
    data, kind = event["data"], event["type"]
    numbers = f" ({counts(loop)})"
    if kind == "iteration":
        left = [] if awaits_complete(loop) else missing(loop, latest_tree(loop))
        why = "; ".join(left[:5]) or "it needs 'gsd-fsm complete'"
        return "block", data.get("code", "continue"), f"The loop was not done: {why}{numbers}."
    if kind == "complete":
        return "allow", "complete", f"The completion rule held{numbers}."
    if kind == "cancel":
        return "allow", "cancel", f"It was cancelled: {data.get('reason', 'by hand')}{numbers}."
    if kind == "wait":
        about = data.get("question") or data.get("reason") or "no reason given"
        about += f", until {data['until']}" if "until" in data else ""
        awaited = _AWAITED[data["for"]]
        return "allow", data["for"], f"The loop is waiting for {awaited}: {about}{numbers}."
    if kind == "stop":
        return "allow", data["code"], f"{data.get('reason', 'The stop was allowed')}{numbers}."
    if loop.status == "paused" and source != "paused":
        return "allow", str(loop.pause_code), f"The loop paused: {loop.pause_reason}{numbers}."
    return "none", kind, f"Event {kind}: {what_changed(event)}; {source} → {loop.status}{numbers}."
