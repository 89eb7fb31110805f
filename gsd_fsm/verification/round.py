"""One round of verification as events: gaps closed, opened and opened again, and what follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.guards import Spent, oscillating, spent_limit
from gsd_fsm.core.loop import Loop, open_gaps
from gsd_fsm.core.proof import ends_by_command, latest_tree, missing
from gsd_fsm.core.table import ACTIVE
from gsd_fsm.texts import keep
from gsd_fsm.verification.gaps import (
    MAX_DESCRIPTION,
    MAX_EVIDENCE,
    gap_of,
    known_gaps,
    opening,
    same_gap,
)
from gsd_fsm.verification.result import Result, tally

if TYPE_CHECKING:
    from gsd_fsm.verification.gaps_text import ReportedGap

Draft = tuple[str, dict[str, Any], str]  # type, data, by; "" is whoever calls
_LISTED = 20


class Round:
    """What a round found, and once its events are drafted, what it changed."""

    def __init__(self, results: list[Result], reported: list[ReportedGap]) -> None:
        self.results = results
        self.reported = reported
        self.misses = [result for result in results if result.passed is False]
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.reopened: list[str] = []
        self.gap_of_check: dict[str, str] = {}
        self.passed = False
        self.remedy = ""

    def events(self, loop: Loop, now: int) -> Iterator[Draft]:
        """Draft them one by one; each is folded into the loop before the next is drafted."""
        yield from self._checked(loop)
        yield from self._reported(loop)
        self.passed = not self.misses and not open_gaps(loop)
        left = named(open_gaps(loop))
        report = tally(self.results) + (f"; open gaps: {left}" if left else "")
        yield "verified", {"passed": self.passed, "report": report}, ""
        if loop.status not in ACTIVE:
            return
        if self.passed and not missing(loop, latest_tree(loop)) and not ends_by_command(loop):
            yield "complete", {}, "cli"
            return
        spent = spent_rounds(loop, now)
        if spent is not None:
            self.remedy = spent.remedy
            yield "pause", {"code": spent.code, "reason": spent.reason}, "cli"

    def _checked(self, loop: Loop) -> Iterator[Draft]:
        known = known_gaps(loop, [it for it in self.results if it.passed is not None])
        # Closed ones first: a loop that does not go on by itself pauses at the first gap.
        for result in self.results:
            gap_id = known.get(result.key)
            if result.passed and gap_id and loop.gaps[gap_id]["status"] == "open":
                self.closed.append(gap_id)
                yield "gap", {"action": "closed", "gap": gap_id}, "cli"
        for miss in self.misses:
            evidence = keep(miss.evidence, MAX_EVIDENCE)
            data = {**gap_of(miss), "evidence": evidence}
            gap_id = known.get(miss.key)
            if gap_id:
                self.gap_of_check[miss.key] = gap_id
            for draft in self._opened(loop, gap_id, data, "cli"):
                self.gap_of_check[miss.key] = draft[1]["gap"]
                yield draft

    def _reported(self, loop: Loop) -> Iterator[Draft]:
        for gap in self.reported:
            data = {"kind": gap.kind, "description": keep(gap.description, MAX_DESCRIPTION)}
            if gap.file:
                data["file"] = keep(gap.file, MAX_DESCRIPTION)
            if gap.evidence:
                data["evidence"] = keep(gap.evidence, MAX_EVIDENCE)
            yield from self._opened(loop, same_gap(loop, data), data, "")

    def _opened(
        self, loop: Loop, known: str | None, data: dict[str, Any], by: str
    ) -> Iterator[Draft]:
        if loop.status not in ACTIVE:
            return
        for event in opening(loop, known, data):
            if known is None:
                self.opened.append(event["gap"])
            elif event["action"] == "reopened":
                self.reopened.append(known)
            yield "gap", event, by


def spent_rounds(loop: Loop, now: int) -> Spent | None:
    """What forbids another round: a gap that keeps coming back, or the limit, with what is left."""
    wobbling = oscillating(loop)
    if wobbling is not None:
        return wobbling
    spent = spent_limit(loop, loop.limits, now, ("rounds",))
    if spent is None or not missing(loop, latest_tree(loop)):
        return None
    left = named(open_gaps(loop))
    return Spent(spent.code, spent.reason + (f"; gaps left: {left}" if left else ""), spent.remedy)


def named(gap_ids: list[str]) -> str:
    more = len(gap_ids) - _LISTED
    return ", ".join(gap_ids[:_LISTED]) + (f" and {more} more" if more > 0 else "")
