"""The report at the end of a phase."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.text.questions import plural
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.documents.markdown import escape_markdown
from gsd_fsm.phase.summary import Commits, in_order, phase_of_loop, phase_title, short
from gsd_fsm.plans.phase_name import phase_number, shortest_name

if TYPE_CHECKING:
    from gsd_fsm.core.loop.state import Loop
    from gsd_fsm.plans.plan import Plan

MINUTE, HOUR, DAY = 60, 3_600, 86_400


def final_report(
    loop: Loop,
    plan: Plan,
    commits: Commits,
    settings: Mapping[str, Any],
    *,
    notes: Sequence[str] = (),
) -> str:
    """Return the result of a phase and the next steps; `settings` maps names to values."""
    target = escape_markdown(settings.get("deploy_target") or "", 60)
    parts = [
        [f"## {phase_title(loop, plan)} Complete!"],
        list(_outcome(loop, plan, commits)),
        list(_found(loop)),
        [f"**Note:** {escape_markdown(note)}" for note in notes],
        *(_offer(target) if target else []),
        ["Next steps:", *_next_steps(loop, plan, push=bool(target))],
        ["State saved. Safe to /compact or start a new session."],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _outcome(loop: Loop, plan: Plan, commits: Commits) -> Iterator[str]:
    tasks = [task for *_, task in in_order(loop, plan)]
    done = [task for task in tasks if task.status == "complete"]
    skipped = sum(task.status == "skipped" for task in tasks)
    made = dict.fromkeys(filter(None, (short(commits.get(task.id)) for task in done)))
    yield f"**Tasks:** {len(done)}/{len(tasks)} completed" + (
        f" ({skipped} skipped)" if skipped else ""
    )
    yield f"**Commits:** {', '.join(made) or 'none'}"
    yield f"**Duration:** {_duration(loop)}"


def _found(loop: Loop) -> Iterator[str]:
    done = [task for task in loop.tasks.values() if task.status == "complete"]
    claimed = sum(task.proof != "proven" for task in done)
    if claimed:
        yield f"**Proven:** {len(done) - claimed}, **claimed:** {claimed}"
    fixes = sum(len(task.fixes) for task in loop.tasks.values())
    if fixes:
        yield f"**Auto-Fixes:** {fixes}"
    if loop.issues:
        yield f"**Issues Found:** {len(loop.issues)}"


def _offer(target: str) -> list[list[str]]:
    return [
        ["### Push for Preview Deployment?"],
        [
            f"Your project is configured to deploy to {target}.",
            "Pushing now will create a preview deployment you can verify against.",
        ],
        ["> Push to trigger preview deployment? (y/n)"],
        ["gsd-fsm never pushes by itself: run `git push`, or tell the agent to run it."],
    ]


def _next_steps(loop: Loop, plan: Plan, push: bool) -> Iterator[str]:
    phase = phase_of_loop(loop, plan)
    name = "" if phase is None else f" --phase {shlex.quote(display(str(shortest_name(phase))))}"
    file = loop.plan.file
    found = file.startswith((".gsd/plans/phase-", ".opti-gsd/plans/phase-"))
    meant = name if found or not file else f" --plan {shlex.quote(display(file))}"
    yield f"→ `gsd-fsm start verify{meant}`, then `gsd-fsm verify` — Verify phase completion"
    if push:
        yield "→ `git push` — Trigger the preview deployment"
    number = phase_number(phase)
    if number is not None:
        yield f"→ `gsd-fsm start execute --phase {number + 1}` — Execute the next phase"
    yield f"→ `gsd-fsm rollback pre{name}` — Go back to before this phase"


def _duration(loop: Loop) -> str:
    """Return the approximate duration in words."""
    if not (loop.started and loop.last_event):
        return "unknown"
    seconds = max(0, ms_of(loop.last_event) - ms_of(loop.started)) // 1000
    if seconds < MINUTE:
        return "less than a minute"
    if seconds < 90 * MINUTE:
        return f"about {plural(round(seconds / MINUTE), 'minute')}"
    if seconds < 36 * HOUR:
        return f"about {plural(round(seconds / HOUR), 'hour')}"
    return f"about {plural(round(seconds / DAY), 'day')}"
