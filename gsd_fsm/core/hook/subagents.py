"""Record what the end of a subagent brings: a task without a report, and verdicts of a reviewer."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.hook.hook_log import log_failure
from gsd_fsm.core.loop.decisions import due_events
from gsd_fsm.core.loop.events.sessions import is_decided
from gsd_fsm.core.text.redact import redact
from gsd_fsm.core.text.sanitize import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gsd_fsm.core.hook.clients import Signal
    from gsd_fsm.core.journal.journal import Transaction
    from gsd_fsm.core.loop.state import Loop

_WORD = "VERDICT"
_RESULTS = {"PASS": True, "FAIL": False}
_LONGEST = 2_000


def concerns_subagent(loop: Loop, signal: Signal) -> bool:
    """Return whether the end of this subagent may change the loop."""
    if loop.rules is None or not signal.agent:
        return False
    return bool(loop.verdicts) or bool(_unreported(loop, signal.agent))


def append_subagent_end(tx: Transaction, loop: Loop, signal: Signal) -> None:
    """Append the verdicts with which a subagent ended, and the end of its task without a report."""
    if loop.is_active:
        for name in _unreported(loop, signal.agent):
            tx.append(loop, "task", {"task": name, "status": "running", "ended": True})
    refusal: Refused | None = None
    for name, passed, evidence in verdicts_in(signal.message):
        if name not in loop.verdicts:
            continue
        data = {"verdict": name, "passed": passed, "evidence": evidence, "agent": signal.agent}
        try:
            tx.append(loop, "verified", data)
        except Refused as error:
            refusal = refusal or error
    if refusal is not None:  # a hook prints one line
        log_failure(refusal, [tx.path], "ignoring a verdict")
    append_decided(tx, loop)


def append_decided(tx: Transaction, loop: Loop) -> None:
    """End a wait whose questions are all decided, and append what follows from decisions."""
    if is_decided(loop):
        tx.append(loop, "answer", {"text": "all verdicts are given"})
    for kind, data in due_events(loop):
        tx.append(loop, kind, data)


def append_silent_failures(tx: Transaction, loop: Loop) -> None:
    """Fail the tasks whose subagents ended without a report too many stops ago."""
    grace = loop.rules.report_grace if loop.rules else 0
    for name in [name for name, stops in loop.silent_stops.items() if stops >= grace]:
        if loop.is_active:
            error = "the subagent ended without a report"
            tx.append(loop, "failure", {"task": name, "error": error, "class": "logic"})


def verdicts_in(message: str) -> list[tuple[str, bool, str]]:
    """Return the id, result and evidence of the lines `VERDICT ID PASS|FAIL: evidence` at the end."""
    found: list[tuple[str, bool, str]] = []
    for line in reversed(clean(message[-64_000:]).split("\n")):
        text = line.strip().strip("*`- ").strip()
        if not text:
            continue
        verdict = _verdict(text)
        if verdict is None:
            break
        found.append(verdict)
    return found[::-1]


def _verdict(line: str) -> tuple[str, bool, str] | None:
    head, _, evidence = line.partition(":")
    words = head.split()
    if len(words) != 3 or words[0] != _WORD or words[2] not in _RESULTS or not evidence.strip():
        return None
    return words[1], _RESULTS[words[2]], redact(evidence.strip())[:_LONGEST]


def _unreported(loop: Loop, agent: str) -> list[str]:
    return [
        name
        for name, task in loop.tasks.items()
        if task.status == "running" and task.ref == agent and name not in loop.silent_stops
    ]
