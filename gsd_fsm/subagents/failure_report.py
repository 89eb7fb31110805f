"""Write the reports for the user: after the last failure of a task, and at a checkpoint."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.loop.records import Failure
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.core.text.sanitize import fenced, one_line

if TYPE_CHECKING:
    from gsd_fsm.subagents.report_parser import Report

_ERROR, _DETAILS, _LINE, _LISTED = 4_000, 4_000, 600, 50


def failure_report(loop: Loop, task_id: str, nonce: str) -> str:
    """Return everything known about a failed task, as Markdown; `nonce` fences its errors."""
    task = loop.tasks[task_id]
    errors = task.errors
    last = errors[-1].text if errors else ""
    reason, blocker, steps = _reported(last)
    why = one_line(loop.pause_reason) or f"Task {task_id} failed"
    fixes = [one_line(error.fix, _LINE) for error in errors if error.fix]
    parts = [
        f"## Task {task_id} Failed",
        f"**Reason:** {reason or 'not reported'} ({why})",
        "\n".join(["**Progress:**", *steps, _progress(loop)]),
        f"**Blocker:** {blocker or one_line(last, _LINE) or 'not reported'}",
        f"**Suggested Fix:** {fixes[-1] if fixes else 'none'}",
        f"**Attempts:** {task.retries} of {loop.limits.max_retries} retries used",
        *(_error(error, number, len(errors), nonce) for number, error in enumerate(errors, 1)),
        f"Execution paused. Fix the issue, then: {_remedy(loop)}",
    ]
    return "\n\n".join(parts)


def checkpoint_report(loop: Loop, task_id: str, report: Report, nonce: str) -> str:
    """Return the decision that a task needs, as Markdown; `nonce` fences what its subagent wrote."""
    done = [name for name, task in loop.tasks.items() if task.status in ("complete", "skipped")]
    named = ", ".join(done[:_LISTED]) + (" …" if len(done) > _LISTED else "")
    parts = [
        f"## Checkpoint: {one_line(report.reason)}",
        f"**Completed:** {named or 'none yet'} ({len(done)} of {len(loop.tasks)} tasks)",
        fenced(
            f"**Decision Needed:** (task {task_id})",
            report.details or report.reason,
            nonce,
            _DETAILS,
        ),
    ]
    if report.options:
        options = [one_line(option, _LINE) for option in report.options[:_LISTED]]
        parts.append("\n".join(["**Options:**", *options]))
    if report.recommendation:
        parts.append(f"**Recommendation:** {one_line(report.recommendation, _LINE)}")
    run = command_line("answer", loop.id, "TEXT")
    parts.append(f"Reply with your choice to continue. To answer for the loop, run: {run}")
    return "\n\n".join(parts)


def _reported(error: str) -> tuple[str, str, list[str]]:
    """Return reason, blocker and steps of the last error text."""
    reason = next((line for line in error.splitlines() if line.strip()), "")
    blocker = re.search(r"^\W*blocker\W*?:\W*(.+)$", error, re.IGNORECASE | re.MULTILINE)
    steps = re.findall(r"^\s*[-*] \[[ xX]\] .+$", error, re.MULTILINE)[:_LISTED]
    blocking = one_line(blocker[1], _LINE) if blocker else ""
    return one_line(reason, _LINE), blocking, [one_line(step, _LINE) for step in steps]


def _progress(loop: Loop) -> str:
    lines = []
    for task in list(loop.tasks.values())[:_LISTED]:
        done = task.status in ("complete", "skipped")
        title = f": {one_line(task.title, 120)}" if task.title else ""
        state = "" if task.status in ("complete", "pending") else f" ({task.status})"
        lines.append(f"- [{'x' if done else ' '}] {task.id}{title}{state}")
    if len(loop.tasks) > _LISTED:
        more = len(loop.tasks) - _LISTED
        lines.append(f"- and {more} more: {command_line('status', loop.id)}")
    return "\n".join(lines)


def _error(error: Failure, number: int, count: int, nonce: str) -> str:
    what = f"### Error {number} of {count} (event {error.seq}, {error.error_class})"
    lines = [fenced(what, error.text, nonce, _ERROR)]
    for label, text in (("Analysis", error.analysis), ("Suggested fix", error.fix)):
        if text:
            lines.append(f"- {label}: {one_line(text, _LINE)}")
    if error.attempts:
        lines.append(f"- Test attempts: {error.attempts}")
    return "\n".join(lines)


def _remedy(loop: Loop) -> str:
    if loop.status == "paused":
        return next_step(loop)[1]
    return command_line("resume", loop.id, "--add-retries 1")
