"""What one check of a verification came to."""

from __future__ import annotations

from typing import NamedTuple


class Result(NamedTuple):
    """One check; `passed` is None where only a person can tell."""

    key: str  # "T01#2" is the second check of T01, "ci:test" a command of the settings
    task: str | None
    kind: str
    text: str
    passed: bool | None
    file: str | None
    evidence: str
    seconds: float

    @property
    def verdict(self) -> str:
        return "manual" if self.passed is None else "passed" if self.passed else "missed"


def tally(results: list[Result]) -> str:
    """How many there are of each verdict, in words."""
    verdicts = [result.verdict for result in results]
    counts = [
        f"{verdicts.count(word)} {word}"
        for word in ("passed", "missed", "manual")
        if word in verdicts
    ]
    return ", ".join(counts) or "no checks"
