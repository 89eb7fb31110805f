"""`wait`, `answer`, `pause`, `resume`, `cancel`, `complete`: the course of a loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from gsd_fsm.cli.call import ONE_OR_MORE, Amount, Call, Event, require_trust, verb
from gsd_fsm.core.clock import to_iso, to_ms
from gsd_fsm.core.errors import CannotWrite, Refused, UsageError
from gsd_fsm.core.fold import World
from gsd_fsm.core.loop import Loop, open_gaps, open_tasks, unmet
from gsd_fsm.core.proof import has_tree, stale
from gsd_fsm.core.table import ACTIVE
from gsd_fsm.texts import keep, read_text


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
@click.argument("text", required=False)
@click.option("--file", "file", metavar="FILE|-", help="Read the answer from a file or stdin.")
@verb
def answer(call: Call, *, text: str | None, file: str | None) -> None:
    """Answer the question a loop waits for; it goes on where it was."""
    words = read_text(text, file, "the answer")
    if words is None:
        raise UsageError("an answer needs its text", "gsd-fsm answer TEXT")
    text = keep(words, 4_000)
    declined = (
        text.lower().lstrip().startswith(("n ", "no ", "n,", "no,", "n.", "no.", "no!", "no:"))
    )
    declined = declined or text.lower().strip() in ("n", "no")

    def build(loop: Loop, _world: World, _now: int) -> Iterator[Event]:
        # Only the hook asks questions that a no can answer, and a no must not be overrun.
        refused = f"the user declined: {loop.question}" if loop.asked and declined else ""
        yield call.event("answer", loop, {"text": text})
        if refused:
            yield call.event("pause", loop, {"code": "manual", "reason": refused}, by="cli")

    journal, loop = call.append(build)
    call.acknowledge(journal, loop, "Answered.")


@click.command()
@click.option("--reason", metavar="TEXT", help="Why.")
@verb
def pause(call: Call, *, reason: str | None) -> None:
    """Pause a loop: the agent may stop, nothing is lost."""
    reason = reason or f"paused by {'an agent' if call.caller.by == 'agent' else 'hand'}"
    call.append_one("pause", {"code": "manual", "reason": keep(reason, 2_000)}, "Paused.")


@click.command()
@click.option(
    "--add-iterations",
    "max_iterations",
    type=ONE_OR_MORE,
    metavar="N",
    help="That many more iterations.",
)
@click.option(
    "--add-retries",
    "max_retries",
    type=ONE_OR_MORE,
    metavar="N",
    help="That many more retries of each task.",
)
@click.option(
    "--add-rounds",
    "max_rounds",
    type=ONE_OR_MORE,
    metavar="N",
    help="That many more verification rounds.",
)
@click.option(
    "--add-budget",
    "budget_usd",
    type=Amount(above_zero=True),
    metavar="USD",
    help="That much more money.",
)
@click.option(
    "--add-minutes",
    "max_minutes",
    type=Amount(above_zero=True),
    metavar="N",
    help="That much more active time.",
)
@verb
def resume(call: Call, **more: float | None) -> None:
    """Go on with a loop, in this session; counters and history stay.

    The whole journal is verified and replayed by the state machine first.
    """
    from gsd_fsm.replay import Replay

    replay = Replay(call.journal())
    replay.run()
    replay.compare()
    add = {name: value for name, value in more.items() if value is not None}
    journal, loop = call.append(
        lambda loop, _world, _now: [call.event("resume", loop, {"add": add} if add else {})]
    )
    whose = "" if loop.owner else " The next session that gets a prompt here will own it."
    most = loop.limits["max_iterations"]
    now = f" {most} iterations now." if "max_iterations" in add and most else ""
    call.acknowledge(journal, loop, f"Resumed.{now}{whose}")


@click.command()
@click.option("--reason", metavar="TEXT", help="Why.")
@verb
def cancel(call: Call, *, reason: str | None) -> None:
    """End a loop for good; what was done and what remains is reported."""
    data = {"reason": keep(reason, 2_000)} if reason else {}
    journal, loop = call.append(lambda loop, _world, _now: [call.event("cancel", loop, data)])
    left = {
        "tasks": (len(loop.tasks), open_tasks(loop)),
        "gaps": (len(loop.gaps), open_gaps(loop)),
        "criteria": (len(loop.criteria), unmet(loop)),
    }
    report = "".join(
        f" {what.capitalize()} done: {total - len(names)}; remaining: {', '.join(names) or 'none'}."
        for what, (total, names) in left.items()
        if total
    )
    call.acknowledge(journal, loop, f"Cancelled.{report}")


@click.command()
@verb
def complete(call: Call) -> None:
    """Complete a loop; refused while its completion rule does not hold.

    Evidence counts only for the content it was taken from: after a change, check again.
    """
    tree = _tree_now(call)
    old: list[str] = []

    def build(loop: Loop, _world: World, _now: int) -> list[Event]:
        old[:] = stale(loop, tree) if loop.status in ACTIVE else []
        if old:
            return [
                call.event(
                    "criterion", loop, {"criterion": name, "met": False, "stale": True}, by="cli"
                )
                for name in old
            ]
        return [call.event("complete", loop, {} if tree is None else {"tree": tree})]

    journal, loop = call.append(build)
    if old:
        raise Refused(
            f"loop {loop.id} is {loop.status} and not done: the content changed after the checks of "
            f"{', '.join(old)}, so their evidence is stale",
            f"gsd-fsm --loop {loop.id} check",
        )
    call.acknowledge(journal, loop, "Completed.")


def _tree_now(call: Call) -> str | None:
    """The content of the work tree, if evidence of the chosen loop was bound to one."""
    journal, world = call.glance()
    if not has_tree(call.choose(world)):
        return None
    require_trust(world, journal.path)  # git may run programs that a repository names
    from gsd_fsm.tree import content_tree

    tree = content_tree(Path(journal.path).parent)
    if tree is None:
        raise CannotWrite(
            "the evidence belongs to the content of a git work tree, and git cannot tell it now",
            "make git work here, or check again without it: gsd-fsm check",
        )
    return tree
