"""`summary.md`: the result of a phase, between two marker lines; text around them stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gsd_fsm.core.loop.records import Task
from gsd_fsm.documents.markdown import escape_markdown, newline_of, split_lines
from gsd_fsm.plans.phase_name import Phase, shortest_name

if TYPE_CHECKING:
    from gsd_fsm.core.loop.state import Loop
    from gsd_fsm.plans.plan import Plan

FILE_NAME = "summary.md"
BEGIN, END = "<!-- gsd-fsm: summary -->", "<!-- /gsd-fsm: summary -->"
RECORD = "Loop: {loop}"
Commits = Mapping[str, str | None]
_HEX = frozenset("0123456789abcdef")


def summary(loop: Loop, plan: Plan, commits: Commits, phase: Phase | None = None) -> str:
    """Return the summary of a phase; the same arguments give the same text."""
    tasks = list(in_order(loop, plan))
    sections = {
        "Completed": [line for it in tasks if (line := _completed(*it, commits))],
        "Auto-Fixes Applied": [escape_markdown(text) for *_, task in tasks for text in task.fixes],
        "Issues Discovered": [
            f"[{escape_markdown(it.severity or 'unknown', 40)}] {escape_markdown(it.text)}"
            for it in loop.issues
        ],
        "Token Usage": [
            f"Estimated: {escape_markdown(plan.estimated_tokens or 'unknown', 40)}",
            f"Actual: {_in_thousands(loop.spent_tokens)}",
        ],
        "Record": [
            RECORD.format(loop=loop.id),
            f"Started: {loop.started}",
            f"Claimed, not proven: {_claimed(tasks) or 'none'}",
            f"Retries: {_retries(tasks) or 'none'}",
        ],
    }
    parts = [f"# {phase_title(loop, plan, phase)} Summary"]
    for title, entries in sections.items():
        parts.append("\n".join([f"## {title}", *(f"- {it}" for it in entries or ["none"])]))
    return "\n\n".join(parts) + "\n"


def merged(before: str, text: str) -> str:
    """Return the file with this summary instead of an older one, else before the old text."""
    newline = newline_of(before)
    ours = newline.join([BEGIN, *text.rstrip("\n").split("\n"), END]) + newline
    lines, begin = split_lines(before), None
    for number, line in enumerate(lines):
        if line.strip() == BEGIN:
            begin = number
        elif line.strip() == END and begin is not None:
            return "".join([*lines[:begin], ours, *lines[number + 1 :]])
    return ours + newline + before if before else ours


def phase_of_loop(loop: Loop, plan: Plan) -> Phase | None:
    return plan.phase if loop.phase is None else loop.phase


def phase_title(loop: Loop, plan: Plan, phase: Phase | None = None) -> str:
    """Return the name of the phase, or "Plan" if the plan belongs to none."""
    known = phase_of_loop(loop, plan) if phase is None else phase
    return "Plan" if known is None else f"Phase {escape_markdown(str(shortest_name(known)), 60)}"


def in_order(loop: Loop, plan: Plan) -> Iterator[tuple[str, str, Task]]:
    """Yield number, title and state of each task: those of the plan first, then the others."""
    planned = [task for task in plan.tasks if task.id in loop.tasks]
    for task in planned:
        yield task.number, task.title, loop.tasks[task.id]
    known = {task.id for task in planned}
    for task_id, state in loop.tasks.items():
        if task_id not in known:
            yield task_id, state.title, state


def short(commit: str | None) -> str:
    """Return the short form of a commit; anything that is not a git digest is only escaped."""
    found = (commit or "").strip()
    is_digest = len(found) >= 7 and _HEX.issuperset(found.lower())
    return found[:7] if is_digest else escape_markdown(found, 40)


def _completed(number: str, title: str, task: Task, commits: Commits) -> str:
    line = f"Task {escape_markdown(number, 60)}: {escape_markdown(title)}".rstrip(": ")
    if task.status == "skipped":
        return f"{line} (skipped)"
    commit = short(commits.get(task.id))
    if task.status != "complete":
        return ""
    return f"{line} (commit: {commit})" if commit else line


def _claimed(tasks: list[tuple[str, str, Task]]) -> str:
    return ", ".join(it.id for *_, it in tasks if it.status == "complete" and it.proof != "proven")


def _retries(tasks: list[tuple[str, str, Task]]) -> str:
    return ", ".join(f"{task.id} {task.retries}" for *_, task in tasks if task.retries)


def _in_thousands(tokens: int) -> str:
    if tokens < 1000:
        return str(tokens) if tokens else "unknown"
    return (
        f"{tokens / 1000:.0f}k" if tokens >= 9_950 else f"{tokens / 1000:.1f}k".replace(".0k", "k")
    )
