"""`summary.md`: what a phase brought, between two marks; what others wrote around them stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gsd_fsm.core.loop.records import Task
from gsd_fsm.phase.markdown import lines_of, newline_of, plain
from gsd_fsm.phase.name import Phase, plainly

if TYPE_CHECKING:
    from gsd_fsm.core.loop.state import Loop
    from gsd_fsm.plans.plan import Plan

FILE_NAME = "summary.md"
BEGIN, END = "<!-- gsd-fsm: summary -->", "<!-- /gsd-fsm: summary -->"
RECORD = "Loop: {loop}"
Commits = Mapping[str, str | None]
_HEX = frozenset("0123456789abcdef")


def summary(loop: Loop, plan: Plan, commits: Commits, phase: Phase | None = None) -> str:
    """The summary of a phase: made from these alone, so that it can be made again."""
    tasks = list(in_order(loop, plan))
    sections = {
        "Completed": [line for it in tasks if (line := _completed(*it, commits))],
        "Auto-Fixes Applied": [plain(text) for *_, task in tasks for text in task.fixes],
        "Issues Discovered": [
            f"[{plain(it.severity or 'unknown', 40)}] {plain(it.text)}" for it in loop.issues
        ],
        "Token Usage": [
            f"Estimated: {plain(plan.estimated_tokens or 'unknown', 40)}",
            f"Actual: {_in_thousands(loop.spent_tokens)}",
        ],
        "Record": [
            RECORD.format(loop=loop.id),
            f"Started: {loop.started}",
            f"Retries: {_retries(tasks) or 'none'}",
        ],
    }
    parts = [f"# {called(loop, plan, phase)} Summary"]
    for title, entries in sections.items():
        parts.append("\n".join([f"## {title}", *(f"- {it}" for it in entries or ["none"])]))
    return "\n\n".join(parts) + "\n"


def merged(before: str, text: str) -> str:
    """The file with this summary in the place of an older one, else before all that is there."""
    newline = newline_of(before)
    ours = newline.join([BEGIN, *text.rstrip("\n").split("\n"), END]) + newline
    lines, begin = lines_of(before), None
    for number, line in enumerate(lines):
        if line.strip() == BEGIN:
            begin = number
        elif line.strip() == END and begin is not None:
            return "".join([*lines[:begin], ours, *lines[number + 1 :]])
    return ours + newline + before if before else ours


def phase_of(loop: Loop, plan: Plan) -> Phase | None:
    return plan.phase if loop.phase is None else loop.phase


def called(loop: Loop, plan: Plan, phase: Phase | None = None) -> str:
    """The phase by its name; a plan may belong to none."""
    known = phase_of(loop, plan) if phase is None else phase
    return "Plan" if known is None else f"Phase {plain(str(plainly(known)), 60)}"


def in_order(loop: Loop, plan: Plan) -> Iterator[tuple[str, str, Task]]:
    """Number, title and state of each task: those of the plan as it has them, then the others."""
    planned = [task for task in plan.tasks if task.id in loop.tasks]
    for task in planned:
        yield task.number, task.title, loop.tasks[task.id]
    known = {task.id for task in planned}
    for task_id, state in loop.tasks.items():
        if task_id not in known:
            yield task_id, state.title, state


def short(commit: str | None) -> str:
    """A commit as people read it; what is no digest of git's is only made harmless."""
    found = (commit or "").strip()
    is_digest = len(found) >= 7 and _HEX.issuperset(found.lower())
    return found[:7] if is_digest else plain(found, 40)


def _completed(number: str, title: str, task: Task, commits: Commits) -> str:
    line = f"Task {plain(number, 60)}: {plain(title)}".rstrip(": ")
    if task.status == "skipped":
        return f"{line} (skipped)"
    commit = short(commits.get(task.id))
    told = f" (commit: {commit})" if commit else ""
    return line + told if task.status == "complete" else ""


def _retries(tasks: list[tuple[str, str, Task]]) -> str:
    return ", ".join(f"{task.id} {task.retries}" for *_, task in tasks if task.retries)


def _in_thousands(tokens: int) -> str:
    if tokens < 1000:
        return str(tokens) if tokens else "unknown"
    return (
        f"{tokens / 1000:.0f}k" if tokens >= 9_950 else f"{tokens / 1000:.1f}k".replace(".0k", "k")
    )
