"""Count the tests that a command ran, from the closing lines of its test runner."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Counted(NamedTuple):
    """How many tests were executed, whatever their result, and how many were skipped."""

    ran: int
    skipped: int


# Runners that write numbers before words, as in "1 failed, 2 passed": their closing lines.
SUMMARIES = {
    "pytest": (
        r"^(?:=+ )?(?:no tests (?:ran|collected)\b|(?:\d+/)?\d+ (?:passed|failed|skipped|deselected"
        r"|xfailed|xpassed|warnings?|errors?|reruns?|tests? collected)\b)[^\n]* in \d+\.\d\ds\b"
    ),
    "jest": r"^Tests: +\d[^\n]* total$|^No tests found, exiting with code \d",
    "vitest": r"^ +Tests +(?:no tests|\d[^\n]*\(\d+\))$|^No test files found, exiting with code \d",
    "mocha": r"^ +\d+ passing \([^)\n]*\)(?:\n +\d+ pending)?(?:\n +\d+ failing)?$",
    "cargo test": r"^test result: (?:ok|FAILED)\. \d[^\n]*",
    "cargo nextest": r"^ +Summary \[[^]\n]*\] [^\n]* tests? run: [^\n]*",
}
# Runners that print a closing line, whatever their options are, or at least a sign for each test.
COUNTED = frozenset({"cargo", "jest", "mocha", "node", "pytest", "unittest", "vitest"})
RAN = frozenset({
    "passed", "failed", "error", "errors", "xfailed", "xpassed", "passing", "failing", "measured",
    "expected",  # vitest: "1 expected fail"
    "timed", "exec",  # nextest: "1 timed out", "1 exec failed"
})  # fmt: skip
SKIPPED = frozenset({"skipped", "todo", "pending", "ignored"})
UNITTEST = (
    r"^Ran (?P<all>\d+) tests? in \S+\n\n"
    r"(?:OK|FAILED|PASSED|NO TESTS RAN)(?: \((?P<details>[^)\n]*)\))?"
)
NODE = (
    r"^(?:#|ℹ) tests (?P<all>\d+)\n(?P<details>(?:(?:#|ℹ) (?:suites|pass|fail|cancelled"
    r"|skipped|todo) \d+(?:\n|\Z))+)"
)
GO_PACKAGE = r"^(?:ok {2}|\? {3}|FAIL)\t\S[^\n]*"
GO_TEST = r"^ *--- (PASS|FAIL|SKIP): \S"
GO_VERBOSE = r"^=== RUN "

_SUMMARIES = tuple(re.compile(pattern, re.MULTILINE) for pattern in SUMMARIES.values())
_TOTALS = tuple(re.compile(pattern, re.MULTILINE) for pattern in (UNITTEST, NODE))
_GO_PACKAGE, _GO_TEST, _GO_VERBOSE = (
    re.compile(pattern, re.MULTILINE) for pattern in (GO_PACKAGE, GO_TEST, GO_VERBOSE)
)
_NUMBER_AND_WORD = re.compile(r"(?<![\d/.])(\d+) (\w+)")
_NOT_RUN = re.compile(r"\b(?:skipped|skips?|todo)[= ](\d+)", re.IGNORECASE)
_GO_WITHOUT_TESTS = ("[no test files]", "[no tests to run]")


def count_tests(output: str, *, cut: bool = False) -> Counted | None:
    """Return the sum over all runs of pytest, unittest, jest, vitest, mocha, node, cargo and go.

    The output has no escape sequences. Return None if there is no known closing line, or if the
    number is unknown: `go test` without -v, and with `cut`, which says that the output lacks its
    beginning, also what go and cargo report package by package.
    """
    if cut and ("test result: " in output or _GO_PACKAGE.search(output)):
        return None
    found = [*_by_words(output), *_by_totals(output)]
    if _GO_PACKAGE.search(output):
        of_go = _of_go(output)
        if of_go is None:
            return None
        found.append(of_go)
    return _sum(found) if found else None


def doubts(now: Counted | None, most: int | None) -> list[str]:
    """Return why a passed check may prove little; `most` is how many tests ran before."""
    if now is None:
        return [f"the output counts no tests, but {most} ran before"] if most else []
    if not now.ran and now.skipped:
        return [
            f"all {now.skipped} tests were skipped"
            if now.skipped > 1
            else "the only test was skipped"
        ]
    if not now.ran:
        return ["no tests ran"]
    if most is not None and now.ran < most:
        return [f"fewer tests ran than before: {now.ran}, not {most}"]
    return []


def _sum(counts: Iterable[Counted]) -> Counted:
    numbers = [*counts]
    return Counted(sum(it.ran for it in numbers), sum(it.skipped for it in numbers))


def _by_words(output: str) -> Iterator[Counted]:
    for pattern in _SUMMARIES:
        for summary in pattern.finditer(output):
            words = [(int(n), word) for n, word in _NUMBER_AND_WORD.findall(summary[0])]
            ran = sum(number for number, word in words if word in RAN)
            yield Counted(ran, sum(number for number, word in words if word in SKIPPED))


def _by_totals(output: str) -> Iterator[Counted]:
    """Count where the total includes the skipped tests."""
    for pattern in _TOTALS:
        for found in pattern.finditer(output):
            skipped = sum(map(int, _NOT_RUN.findall(found["details"] or "")))
            yield Counted(max(0, int(found["all"]) - skipped), skipped)


def _of_go(output: str) -> Counted | None:
    """Count the tests of go and their subtests; without -v only failed ones are listed."""
    packages = _GO_PACKAGE.findall(output)
    if all(package.endswith(_GO_WITHOUT_TESTS) for package in packages):
        return Counted(0, 0)
    results = _GO_TEST.findall(output)
    if not _GO_VERBOSE.search(output):
        return None
    skipped = results.count("SKIP")
    return Counted(len(results) - skipped, skipped)
