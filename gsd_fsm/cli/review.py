"""`review`: light after a wave, thorough before the end; blockers become tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from gsd_fsm.cli.call import COUNT, Amount, Call, Event, verb
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.fold import World
from gsd_fsm.core.loop import Loop, open_tasks
from gsd_fsm.gate_tasks import blocker_titles, gate_task
from gsd_fsm.texts import keep, whole

SEVERITIES = ("BLOCKER", "WARNING", "SUGGESTION")
BLOCKER = SEVERITIES[0]


@click.command()
@click.argument("action", type=click.Choice(("begun", "passed", "failed", "light")))
@click.option("--score", type=Amount(), metavar="N", help="The reviewers' score.")
@click.option("--issues", type=COUNT, metavar="N", help="Findings of any severity.")
@click.option("--blockers", type=COUNT, metavar="N", help="Findings that must be resolved.")
@click.option(
    "--finding",
    "findings",
    multiple=True,
    metavar="SEVERITY:TEXT",
    help="A finding, BLOCKER, WARNING or SUGGESTION (repeatable).",
)
@click.option("--wave", type=COUNT, metavar="N", help="The wave of a light review.")
@click.option("--report", metavar="TEXT", help="The findings, in short.")
@verb
def review(
    call: Call,
    *,
    action: str,
    findings: tuple[str, ...],
    report: str | None,
    **numbers: float | None,
) -> None:
    """Record the thorough review (begun, then passed or failed), or a light one of a wave.

    A light review informs. A thorough one decides: each blocker that it leaves becomes a task.
    """
    if action == "light" and numbers["wave"] is None:
        raise UsageError("a light review belongs to a wave", "gsd-fsm review light --wave N")
    found = [_finding(text) for text in findings]
    if action == "begun" and (found or any(numbers.values())):
        raise UsageError("a review that has just begun has found nothing", "gsd-fsm review begun")
    data: dict[str, Any] = {"action": action}
    data.update({name: value for name, value in numbers.items() if value is not None})
    if found:
        blocking = [text for severity, text in found if severity == BLOCKER]
        data["blockers"] = max(data.get("blockers", 0), len(blocking))
        data["issues"] = max(data.get("issues", 0), len(found), data["blockers"])
    if report:
        data["report"] = keep(report)
    made: list[str] = []

    def build(loop: Loop, _world: World, _now: int) -> Iterator[Event]:
        yield call.event("review", loop, data)
        for severity, text in found:
            yield call.event("issue", loop, {"text": text, "severity": severity})
        if action == "failed":
            for task in _blocker_tasks(loop, data.get("blockers", 0), found):
                made.append(task["task"])
                yield call.event("task", loop, task, by="cli")

    journal, loop = call.append(build)
    said = f" To be resolved: {', '.join(made)}." if made else ""
    call.acknowledge(journal, loop, f"Review {action}.{said}", **({"tasks": made} if made else {}))


def _finding(text: str) -> tuple[str, str]:
    severity, colon, words = text.partition(":")
    severity = severity.strip().upper()
    if not colon or severity not in SEVERITIES or not words.strip():
        raise UsageError(
            f"--finding {text!r} is not SEVERITY:TEXT", "--finding 'BLOCKER: tokens never expire'"
        )
    return severity, whole(words, "a finding", 500)


def _blocker_tasks(
    loop: Loop, blockers: int, found: list[tuple[str, str]]
) -> Iterator[dict[str, Any]]:
    """A task for each blocker that has none yet."""
    tasks = [loop.tasks[name] for name in open_tasks(loop)]
    known = [task["title"] for task in tasks if task["condition"] == "blocker"]
    named = [text for severity, text in found if severity == BLOCKER]
    for title in blocker_titles(named, blockers, known):
        yield gate_task(loop.tasks, "B", title, "blocker")
