"""The object `loop` in a state file of an execute or verify loop."""

from __future__ import annotations

from typing import Any, NamedTuple

from gsd_fsm.core.codec import dumps, quote
from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.core.loop.state import MAX_HISTORY
from gsd_fsm.imports.findings import EventData, Findings, given
from gsd_fsm.imports.members import MOST, Members, shown

MAX_GAPS = 200  # each becomes an event of its own
# One line of the journal contains the history and everything else of the start.
_LONGEST_LINE = 500
_LONGEST_HISTORY = 24_000


class LoopSection(NamedTuple):
    """The kind of the loop, what it has counted, the limits it sets, and its gaps and pause."""

    kind: str
    phase: int | str | None
    carried: dict[str, Any]
    limits: dict[str, float]
    later: list[EventData]


def read_section(
    members: Members, findings: Findings, *, is_live: bool, paused: bool
) -> LoopSection:
    """Return what every such object has, apart from its tasks; report problems to `findings`."""
    kind = members.choice("type", ("execute", "verify"), required=is_live) or "execute"
    # In a verify loop these count the rounds.
    counted, limit = (
        ("round", "max_rounds") if kind == "verify" else ("iteration", "max_iterations")
    )
    carried = given(
        **{counted: members.count("iteration") or 0},
        started=members.time("started"),
        last_iteration=members.time("last_iteration"),
        last_error=members.text("last_error", 6_000, shorten=True),
        history=_history(members, findings) or None,
    )
    phase = phase_in(members, findings)
    limits = given(**{limit: members.count("max_iterations")})
    later = _gaps(members.count("gaps_remaining", most=MAX_GAPS) or 0, findings)
    later += _pause(members, paused, findings)
    return LoopSection(kind, phase, carried, limits, later)


def phase_in(members: Members, findings: Findings, name: str = "phase") -> int | str | None:
    """Return the phase that this member names."""
    phase = members.take(name)
    if isinstance(phase, str):
        return findings.whole(members.path(name), phase, 100)
    if phase is None or (type(phase) is int and 0 <= phase <= MOST):
        return phase
    problem = f"must be a number or a name, not {shown(phase)}"
    findings.problem(f"{members.path(name)} {problem}")
    return None


def read_retries(retries: Members, findings: Findings) -> dict[str, int]:
    """Return the number of retries by task."""
    for task_id in retries.names():
        if not is_id(task_id):
            findings.problem(
                f"{retries.path(task_id)}: a task id has 1 to 64 letters, digits, dots, dashes or "
                "underscores"
            )
    return {task_id: retries.count(task_id) or 0 for task_id in retries.names()}


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
