"""`wait`, `pause`, `cancel`: a loop stands still, or ends."""

from __future__ import annotations

from typing import Any

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.core.clock import to_iso, to_ms
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.loop import open_gaps, open_work, unmet, work_of_its_own
from gsd_fsm.texts import keep


@click.command()
@click.argument("question", required=False)
@click.option(
    "--until", metavar="TIME", help="Wait for the client's limit to end (UTC), not for a human."
)
@verb
def wait(call: Call, *, question: str | None, until: str | None) -> None:
    """Wait for a human's answer, or until a throttled client may go on."""
    data: dict[str, Any] = {"for": "throttled" if until else "human"}
    if until:
        data["until"] = parse_time(until)
    elif not (question or "").strip():
        raise UsageError("what must be answered?", "gsd-fsm wait QUESTION")
    if question:
        data["question"] = keep(question, 4_000)
    call.append_one("wait", data, "Waiting.")


def parse_time(text: str) -> str:
    """A time as the journal writes it, from any ISO 8601 text; without a zone it is UTC."""
    from datetime import datetime, timezone

    try:
        return to_iso(to_ms(text))
    except (ValueError, IndexError):
        pass
    try:
        found = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        if found.tzinfo is None:
            found = found.replace(tzinfo=timezone.utc)
        return to_iso(int(found.timestamp() * 1000))
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text!r} is not a time", "2026-11-15T23:00:07Z") from error


@click.command()
@click.option("--reason", metavar="TEXT", help="Why.")
@verb
def pause(call: Call, *, reason: str | None) -> None:
    """Pause a loop: the agent may stop, nothing is lost."""
    reason = reason or f"paused by {'an agent' if call.caller.by == 'agent' else 'hand'}"
    call.append_one("pause", {"code": "manual", "reason": keep(reason, 2_000)}, "Paused.")


@click.command()
@click.option("--reason", metavar="TEXT", help="Why.")
@verb
def cancel(call: Call, *, reason: str | None) -> None:
    """End a loop for good; what was done and what remains is reported."""
    data = {"reason": keep(reason, 2_000)} if reason else {}
    journal, loop = call.append(lambda loop, _world, _now: [call.event("cancel", loop, data)])
    work = [name for name, task in loop.tasks.items() if work_of_its_own(task)]
    left = {
        "tasks": (work, open_work(loop)),
        "gaps": (list(loop.gaps), open_gaps(loop)),
        "criteria": (list(loop.criteria), unmet(loop)),
    }
    facts = {
        what: {"done": [name for name in names if name not in open_], "remaining": open_}
        for what, (names, open_) in left.items()
    }
    report = "".join(
        f" {what.capitalize()} done: {', '.join(found['done']) or 'none'}; "
        f"remaining: {', '.join(found['remaining']) or 'none'}."
        for what, found in facts.items()
        if found["done"] or found["remaining"]
    )
    call.acknowledge(journal, loop, f"Cancelled.{report}", **facts)
