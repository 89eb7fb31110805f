"""Find the evidence for a decision: the output of failed checks, and recorded errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.loop.state import FINAL

if TYPE_CHECKING:
    from gsd_fsm.core.loop.records import Criterion, Task
    from gsd_fsm.core.loop.state import Loop

Event = dict[str, Any]


class Evidence(NamedTuple):
    """The output of a check, or without a command the text of an error, gap or report.

    `seq` is None if its event is unknown.
    """

    about: str
    seq: int | None
    command: str | None
    exit_code: int | None
    output: str


def evidence_of(event: Event, loop: Loop) -> list[Evidence]:
    """Return the evidence of this event, else that of open items after it, the latest first."""
    own = _own(event)
    if own is not None:
        return [own]
    return [] if event["type"] in ("complete", "cancel") else failing(loop)


def failing(loop: Loop) -> list[Evidence]:
    """Return the last evidence against each open criterion, task and gap, the latest first."""
    if loop.status in FINAL:
        return []
    found = [*_of_criteria(loop), *_of_tasks(loop), *_of_gaps(loop), *_of_loop(loop)]
    return sorted(found, key=lambda it: -(it.seq or 0))


def evidence_against(event: Event) -> Evidence | None:
    """Return the evidence that this event carries, unless it shows a success."""
    own, data = _own(event), event["data"]
    is_success = data.get("passed") or data.get("action") == "closed"
    return None if own is None or own.exit_code == 0 or is_success else own


def _own(event: Event) -> Evidence | None:
    """Return the evidence that this event carries."""
    data, kind, seq = event["data"], event["type"], event["seq"]
    if kind == "criterion" and "evidence" in data:
        proof = data["evidence"]
        about = f"check {data['criterion']}"
        return Evidence(about, seq, proof["command"], proof["exit_code"], proof.get("tail", ""))
    if kind == "failure":
        about = f"error of task {data['task']}" if "task" in data else "error of the loop"
        return Evidence(about, seq, None, None, data["error"])
    if kind == "gap" and data.get("evidence"):
        return Evidence(f"gap {data['gap']}", seq, None, None, data["evidence"])
    if kind == "verified" and data.get("report"):
        return Evidence("report of the round", seq, None, None, data["report"])
    proof = data.get("proof") if kind == "task" else None
    if proof and not proof["passed"]:
        return _of_proof(data["task"], proof, seq)
    return None


def _of_criteria(loop: Loop) -> Iterator[Evidence]:
    return (_of_check(it) for it in loop.criteria.values() if not it.met and _has_failed(it))


def _has_failed(criterion: Criterion) -> bool:
    return bool(criterion.evidence and criterion.evidence["exit_code"])


def _of_check(criterion: Criterion) -> Evidence:
    proof = criterion.evidence or {}
    when = " before any work" if proof.get("baseline") else ""
    about = f"check {criterion.name}{when}"
    seq, output = proof.get("seq"), proof.get("tail", "")
    return Evidence(about, seq, proof.get("command"), proof.get("exit_code"), output)


def _of_tasks(loop: Loop) -> Iterator[Evidence]:
    for task in loop.tasks.values():
        if not task.is_done:
            yield from _of_task(task)


def _of_task(task: Task) -> Iterator[Evidence]:
    failed = [proof for proof in task.proofs.values() if not proof["passed"]]
    if task.errors and not (failed and task.status == "reported"):
        last = task.errors[-1]
        yield Evidence(f"error of task {task.id}", last.seq, None, None, last.text)
        return
    yield from (_of_proof(task.id, proof, None) for proof in failed)


def _of_proof(task_id: str, proof: Any, seq: int | None) -> Evidence:
    about = f"check {proof['check']} of task {task_id}"
    output = proof.get("evidence", "")
    return Evidence(about, seq, proof.get("command"), proof.get("exit_code"), output)


def _of_gaps(loop: Loop) -> Iterator[Evidence]:
    for gap in loop.gaps.values():
        if gap.is_open and gap.evidence:
            yield Evidence(f"gap {gap.id}", None, None, None, gap.evidence)


def _of_loop(loop: Loop) -> Iterator[Evidence]:
    """Yield the last error if no task has it and the loop has not continued since."""
    if not loop.errors or loop.status not in ("retrying", "paused"):
        return
    last = loop.errors[-1]
    if not any(error.seq == last.seq for name in loop.erring for error in loop.tasks[name].errors):
        yield Evidence("error of the loop", last.seq, None, None, last.text)
