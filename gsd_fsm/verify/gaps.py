"""Results of checks, and the gaps that missed checks open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.loop.decisions import free_gap_id
from gsd_fsm.core.loop.records import Gap
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.documents.journal_text import redact_and_truncate

if TYPE_CHECKING:
    from gsd_fsm.evidence.checks import Outcome

MAX_DESCRIPTION = 4_000
MAX_EVIDENCE = 4_000


class Result(NamedTuple):
    """The result of one check; `passed` is None for a manual check.

    `outcome` is that of its command. `altered`: it passed, and does not count because a file was
    changed that it depends on.
    """

    key: str  # "T01#2" is the second check of T01, "ci:test" a command of the settings
    task: str | None
    kind: str
    text: str
    passed: bool | None
    file: str | None
    evidence: str
    seconds: float
    outcome: Outcome | None = None
    altered: bool = False

    @property
    def shell(self) -> str:
        """Return the shell that ran its command, "" for none."""
        return self.outcome.shell if self.outcome is not None else ""

    @property
    def flaky(self) -> bool:
        """Return whether it failed first and passed when it was run again."""
        return self.outcome is not None and self.outcome.passed_on_rerun

    @property
    def verdict(self) -> str:
        if self.altered:
            return "altered"
        return "manual" if self.passed is None else "passed" if self.passed else "missed"


def tally(results: list[Result]) -> str:
    """Return the number of results with each verdict, in words."""
    verdicts = [result.verdict for result in results]
    counts = [
        f"{verdicts.count(word)} {word}"
        for word in ("passed", "missed", "altered", "manual")
        if word in verdicts
    ]
    flaky = [result.key for result in results if result.flaky]
    counts += [f"flaky: {', '.join(flaky)}"] if flaky else []
    return ", ".join(counts) or "no checks"


def gap_data(result: Result) -> dict[str, Any]:
    """Return the gap event data of a missed check: the text of the plan, not the evidence."""
    what = result.task or f"CI {result.key.partition(':')[2]}"
    data = {
        "kind": "ci_failure" if result.kind == "command" else "stub",
        "description": redact_and_truncate(f"{what}: {result.text}", MAX_DESCRIPTION),
        "check": result.key,
    }
    if result.file:
        data["file"] = redact_and_truncate(result.file, MAX_DESCRIPTION)
    return data


def known_gaps(loop: Loop, results: list[Result]) -> dict[str, str]:
    """Return the gap that each check opened before, by the key of the check.

    Match by text and key, then by text, then by key, because a plan may have been renumbered or
    reworded. No gap belongs to two checks.
    """
    found: dict[str, str] = {}
    details = {result.key: gap_data(result) for result in results}
    for matches in (_same_text_and_key, _same_text, _same_key):
        for key, data in details.items():
            if key not in found:
                taken = set(found.values())
                free = (gap for gap_id, gap in loop.gaps.items() if gap_id not in taken)
                same = next((gap.id for gap in free if matches(gap, data)), None)
                found.update({key: same} if same else {})
    return found


def _same_text_and_key(gap: Gap, data: dict[str, Any]) -> bool:
    return _same_text(gap, data) and _same_key(gap, data)


def _same_text(gap: Gap, data: dict[str, Any]) -> bool:
    identity = data["kind"], data.get("file"), data.get("description")
    return (gap.kind, gap.file, gap.description) == identity


def _same_key(gap: Gap, data: dict[str, Any]) -> bool:
    return bool(gap.check == data["check"] and gap.kind == data["kind"])


def same_gap(loop: Loop, data: dict[str, Any], gap_id: str | None = None) -> str | None:
    """Return the known gap with this id, or with this kind, file and description."""
    if gap_id in loop.gaps:
        return gap_id
    return next((known for known, gap in loop.gaps.items() if _same_text(gap, data)), None)


def gap_event(loop: Loop, known: str | None, data: dict[str, Any]) -> dict[str, Any] | None:
    """Return the event data that opens a gap or updates its evidence; None if nothing changed."""
    if known is None:
        return {"action": "found", "gap": free_gap_id(set(loop.gaps)), **data}
    gap = loop.gaps[known]
    if not gap.is_open:
        return {"action": "reopened", "gap": known, **data}
    if data.get("evidence", gap.evidence) != gap.evidence:
        return {"action": "found", "gap": known, **data}
    return None
