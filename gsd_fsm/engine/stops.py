"""Let a loop wait, pause it, or end it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gsd_fsm.core.loop.state import Loop, open_gaps, open_work, unmet
from gsd_fsm.engine.context import Context, Receipt, receipt


@dataclass(frozen=True)
class Share:
    """The done and the remaining parts of a loop, of one kind."""

    done: list[str]
    remaining: list[str]


@dataclass(frozen=True)
class Cancellation:
    """A cancelled loop: how much of its tasks, gaps and criteria was done."""

    receipt: Receipt
    shares: dict[str, Share]


def ask(context: Context, question: str) -> Receipt:
    """Wait for the user's answer to this question."""
    return _append(context, "wait", {"for": "human", "question": question})


def wait_until(context: Context, time: str, question: str | None = None) -> Receipt:
    """Wait until the limit of the client ends."""
    more = {"question": question} if question else {}
    return _append(context, "wait", {"for": "throttled", "until": time, **more})


def pause(context: Context, reason: str | None = None) -> Receipt:
    """Pause a loop until `resume`."""
    by = "an agent" if context.author.by == "agent" else "hand"
    return _append(context, "pause", {"code": "manual", "reason": reason or f"paused by {by}"})


def cancel(context: Context, reason: str | None = None) -> Cancellation:
    """End a loop for good."""
    proof = _append(context, "cancel", {"reason": reason} if reason else {})
    loop = proof.loop
    work = [name for name, task in loop.tasks.items() if task.is_work]
    shares = {
        "tasks": _share(work, open_work(loop)),
        "gaps": _share(list(loop.gaps), open_gaps(loop)),
        "criteria": _share(list(loop.criteria), unmet(loop)),
    }
    return Cancellation(proof, shares)


def _share(names: list[str], remaining: list[str]) -> Share:
    left = set(remaining)
    return Share([name for name in names if name not in left], remaining)


def _append(context: Context, kind: str, data: dict[str, Any]) -> Receipt:
    with context.transaction() as tx:
        loop: Loop = context.loop(tx.loops)
        tx.append(loop, kind, data)
    return receipt(tx, loop)
