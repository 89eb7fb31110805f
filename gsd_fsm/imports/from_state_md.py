"""The `loop:` section in the front matter of `STATE.md`: an execute or verify loop."""

from __future__ import annotations

import re
from typing import Any

from gsd_fsm.core.codec import dumps, quote
from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.core.loop.state import MAX_HISTORY
from gsd_fsm.documents.front_matter import FrontMatter, block_lines, load_yaml
from gsd_fsm.imports.findings import EventData, Findings, OldLoop, given
from gsd_fsm.imports.members import MOST, Members, shown

MAX_GAPS = 200  # each becomes an event of its own
# One line of the journal contains the history and everything else of the start.
_LONGEST_LINE = 500
_LONGEST_HISTORY = 24_000
_LOOP = re.compile(r"(?:loop|\"loop\"|'loop')[ \t]*:(?=\s|$)")


def read_state_md(front: FrontMatter, findings: Findings) -> OldLoop:
    """Return the loop; report problems to `findings`."""
    members = _section(front, findings)
    paused = members.flag("paused")
    runs = members.flag("active", default=True, required=True) or paused
    if not runs:
        findings.ended("the loop is neither active nor paused")
    kind = members.choice("type", ("execute", "verify"), required=runs) or "execute"
    # In a verify loop these count the rounds.
    counted, limit = (
        ("round", "max_rounds") if kind == "verify" else ("iteration", "max_iterations")
    )
    start = given(
        kind=kind,
        phase=_phase(members.take("phase"), findings),
        tasks=_tasks(members.inner("task_retries"), findings) or None,
        carried=given(
            **{counted: members.count("iteration") or 0},
            started=members.time("started"),
            last_iteration=members.time("last_iteration"),
            last_error=members.text("last_error", 6_000, shorten=True),
            history=_history(members, findings) or None,
        ),
    )
    limits = given(**{limit: members.count("max_iterations")})
    later = _gaps(members.count("gaps_remaining", most=MAX_GAPS) or 0, findings)
    later += _pause(members, paused, findings)
    members.ignore_rest()
    return OldLoop("state-md", start, limits, later, findings.notes)


def _section(front: FrontMatter, findings: Findings) -> Members:
    # The rest of the front matter need not be valid YAML.
    lines = front.text.split("\n")
    block = block_lines(lines, _LOOP) or range(0)
    if front.keys().count("loop") > 1:
        findings.problem("duplicate key: loop")
    text = "\n".join(lines[block.start : block.stop])
    value = load_yaml(text, findings.file, block.start + 2)
    return Members(value or {}, findings).inner("loop", required=True)


def _phase(phase: Any, findings: Findings) -> int | str | None:
    if isinstance(phase, str):
        return findings.whole("loop.phase", phase, 100)
    if phase is None or (type(phase) is int and 0 <= phase <= MOST):
        return phase
    findings.problem(f"loop.phase must be a number or a name, not {shown(phase)}")
    return None


def _tasks(retries: Members, findings: Findings) -> list[dict[str, Any]]:
    tasks = []
    for task_id in retries.names():
        if not is_id(task_id):
            findings.problem(
                f"{retries.path(task_id)}: a task id has 1 to 64 letters, digits, dots, dashes or "
                "underscores"
            )
        tasks.append({"id": task_id, "retries": retries.count(task_id) or 0})
    if tasks:
        findings.note(
            "loop.task_retries: the file does not contain the status of its tasks, nor tasks that "
            "never failed. All tasks are pending. For a task that is done, run: gsd-fsm task ID "
            "skipped. To add a task, run: gsd-fsm task ID pending"
        )
    return tasks


def _gaps(number: int, findings: Findings) -> list[EventData]:
    if number:
        findings.note(
            "loop.gaps_remaining: the file contains only their number; the next verification "
            f"replaces G1{f' to G{number}' * (number > 1)}."
        )
    return [
        ("gap", {
            "action": "found", "gap": f"G{n}", "kind": "imported",
            "description": f"gap {n} of {number} that {findings.file} counted",
        })
        for n in range(1, number + 1)
    ]  # fmt: skip


def _history(members: Members, findings: Findings) -> list[str]:
    given = members.take("history") or []
    if not isinstance(given, list):
        findings.problem(f"loop.history must be a list, not {shown(given)}")
        return []
    texts = [item if isinstance(item, str) else dumps(item) for item in given[-MAX_HISTORY:]]
    lines = [findings.shortened("loop.history", text, _LONGEST_LINE) for text in texts]
    while sum(len(quote(line)) for line in lines) > _LONGEST_HISTORY:
        del lines[0]
    if len(lines) < len(given):
        findings.note(f"loop.history: the first {len(given) - len(lines)} lines are not imported.")
    return lines


def _pause(members: Members, paused: bool, findings: Findings) -> list[EventData]:
    reason = members.text("pause_reason", 2_000, shorten=True)
    if not paused:
        if reason:
            findings.note("loop.pause_reason: not imported, because the loop is not paused.")
        return []
    return [("pause", given(code="manual", reason=reason))]
