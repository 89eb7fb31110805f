"""The `loop:` section in the front matter of `STATE.md`: an execute loop, or a verify loop."""

from __future__ import annotations

import re
from typing import Any

from gsd_fsm.core.codec import dumps, quote
from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.core.loop.state import MAX_HISTORY
from gsd_fsm.imports.findings import EventData, Findings, OldLoop, shown
from gsd_fsm.imports.members import MOST, Members
from gsd_fsm.imports.plain import FrontMatter, value_in

# Each becomes an event of its own.
MOST_GAPS = 200
# One line of the journal holds the history and all else that a start says.
_LONGEST_LINE = 500
_MOST_HISTORY = 24_000
_ID = "an id of 1 to 64 letters, digits, dots, dashes or underscores"
_SECTION = re.compile(
    r"^(?:loop|\"loop\"|'loop')[ \t]*:(?=[ \t\n]|\Z)[^\n]*(?:\n(?:[ \t#}][^\n]*)?)*", re.MULTILINE
)


def read_state_md(front: FrontMatter, findings: Findings) -> OldLoop:
    members = _section(front, findings)
    paused = members.flag("paused")
    runs = members.flag("active", default=True, needed=True) or paused
    if not runs:
        findings.ended("its loop is neither active nor paused")
    kind = members.choice("type", ("execute", "verify"), needed=runs) or "execute"
    start: dict[str, Any] = {"kind": kind}
    phase = members.take("phase")
    if phase is not None:
        start["phase"] = _phase(phase, findings)
    carried: dict[str, Any] = {}
    # Of a verify loop it is the rounds that are counted here.
    counted, limit = (
        ("round", "max_rounds") if kind == "verify" else ("iteration", "max_iterations")
    )
    carried[counted] = members.count("iteration") or 0
    most = members.count("max_iterations")
    tasks = _tasks(members.inner("task_retries"), findings)
    if tasks:
        start["tasks"] = tasks
    later = _gaps(members.count("gaps_remaining", most=MOST_GAPS) or 0, findings)
    for name in ("started", "last_iteration"):
        time = members.time(name)
        if time is not None:
            carried[name] = time
    error = members.text("last_error")
    if error:
        carried["last_error"] = findings.kept("loop.last_error", error, 6_000)
    history = _history(members, findings)
    if history:
        carried["history"] = history
    later += _pause(members, paused, findings)
    members.pass_over_rest()
    start["carried"] = carried
    return OldLoop("state-md", start, {} if most is None else {limit: most}, later, findings.notes)


def _section(front: FrontMatter, findings: Findings) -> Members:
    found = list(_SECTION.finditer(front.text))
    if not found:
        findings.wrong("loop", "it is not written as a section of its own")
        findings.settle()
    if len(found) > 1:
        findings.wrong("loop", "it is named twice")
    line = front.text.count("\n", 0, found[0].start()) + 2
    value = value_in(findings.file, found[0][0], line)
    return Members(value, findings).inner("loop", needed=True)


def _phase(phase: Any, findings: Findings) -> int | str:
    if isinstance(phase, str):
        return findings.whole("loop.phase", phase, 100)
    if type(phase) is not int or not 0 <= phase <= MOST:
        findings.wrong("loop.phase", f"it must be a number or a name, not {shown(phase)}")
        return 0
    return phase


def _tasks(retries: Members, findings: Findings) -> list[dict[str, Any]]:
    tasks = []
    for task_id in retries.names():
        if not is_id(task_id):
            findings.wrong(retries.name_of(task_id), f"its name must be {_ID}")
        tasks.append({"id": task_id, "retries": retries.count(task_id) or 0})
    if tasks:
        findings.note(
            "loop.task_retries: the file does not tell how its tasks stand, so they are pending, "
            "and tasks that never failed may not be in it: 'gsd-fsm task ID skipped' for what is "
            "done, 'gsd-fsm task ID pending' for what is missing."
        )
    return tasks


def _gaps(number: int, findings: Findings) -> list[EventData]:
    if number:
        findings.note(
            f"loop.gaps_remaining: the file only counts them; G1{f' to G{number}' * (number > 1)} "
            "stand for what the next verification finds."
        )
    return [
        ("gap", {
            "action": "found", "gap": f"G{n}", "kind": "imported",
            "description": f"gap {n} of {number} that {findings.file} counted",
        })
        for n in range(1, number + 1)
    ]  # fmt: skip


def _history(members: Members, findings: Findings) -> list[str]:
    given = members.take("history")
    if given is None:
        return []
    if not isinstance(given, list):
        findings.wrong("loop.history", f"it must be a list, not {shown(given)}")
        return []
    told = [item if isinstance(item, str) else dumps(item) for item in given[-MAX_HISTORY:]]
    lines = [findings.kept("loop.history", text, _LONGEST_LINE) for text in told]
    while sum(len(quote(line)) for line in lines) > _MOST_HISTORY:
        del lines[0]
    if len(lines) < len(given):
        findings.note(f"loop.history: the first {len(given) - len(lines)} lines are not carried.")
    return lines


def _pause(members: Members, paused: bool, findings: Findings) -> list[EventData]:
    reason = members.text("pause_reason")
    if reason and not paused:
        findings.note("loop.pause_reason: not carried, as the loop is not paused.")
    if not paused:
        return []
    data = {"code": "manual"}
    if reason:
        data["reason"] = findings.kept("loop.pause_reason", reason, 2_000)
    return [("pause", data)]
