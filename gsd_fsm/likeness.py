"""Whether an output is the same as last time, once what changes by itself is set aside."""

from __future__ import annotations

import re
from hashlib import sha256

_UNIT = r"(?:ns|µs|μs|us|ms|s|m|h|d|secs?|seconds?|mins?|minutes?|hrs?|hours?|milliseconds?)"
_AMOUNT = rf"\d+(?:\.\d+)?\s?{_UNIT}(?![\w/])"
_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?(?: ?[AaPp][Mm]\b)?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_WEEKDAY = r"(?:\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? )?"
_ZONE = r"(?: ?(?:Z|[A-Z]{3,4}|[+-]\d{2}:?\d{2})(?![\w:]))?"

# What is set aside, in this order: (what stands for it, regex). Each names its context, because a
# bare number may be the very thing that differs: a count, a line, a port on another machine.
PATTERNS = (
    (
        "uuid",
        r"(?<![0-9A-Za-z])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])",
    ),
    ("address", r"\b0x[0-9A-Fa-f]{6,16}\b"),
    ("temp", r"\bpytest-of-[^/\\\s\"']+[/\\]pytest-\d+"),
    ("temp", r"(?:/private)?/var/folders/[^/\s\"']+/[^/\s\"']+/T\b"),
    ("temp", r"(?<=[/\\])tmp(?:[a-z0-9_]{8}|[a-z_]*\d[a-z0-9_]*)(?![\w.])"),
    ("temp", r"(?<=/)tmp\.[A-Za-z0-9]{6,10}\b"),
    ("temp", r"(?<=/tmp/)(?:[A-Za-z]+[-_.])*(?=[A-Za-z]{0,16}[\dA-Z])[A-Za-z0-9]{6,16}(?![\w.-])"),
    (
        "time",
        rf"{_WEEKDAY}\b(?:{_MONTH} {{1,2}}\d{{1,2}}|\d{{1,2}} {_MONTH}),?(?: \d{{4}})?"
        rf" {_CLOCK}{_ZONE}(?: \d{{4}}\b)?",
    ),
    (
        "time",
        rf"\b\d{{4}}([-/])\d{{2}}\1\d{{2}}(?:[T ]\d{{2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?{_ZONE})?",
    ),
    ("time", rf"(?<![\w:.]){_CLOCK}(?![\w:]){_ZONE}"),
    (
        "duration",
        rf"(?<![\w.:-])\d{{1,6}}(?:\.\d+)?\s?{_UNIT}(?![\w/])(?:,? {_AMOUNT}| ?{_AMOUNT})*",
    ),
    ("duration", r"(?<=in )\d+:\d{2}(?::\d{2})?\b"),
    ("pid", r"(?i:\b(?:pid|process(?: id)?|thread(?: id)?)[ :=#]{1,3})\d+\b"),
    ("port", r"(?i:\blocalhost|\b127(?:\.\d+){3}|\b0\.0\.0\.0|\[::1?\]):\d{2,5}\b"),
)
_COMPILED = tuple((stand_in, re.compile(regex)) for stand_in, regex in PATTERNS)
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")


def _last_drawing(line: str) -> str:
    """Return what a terminal shows of a line that was redrawn with carriage returns."""
    drawings = [drawing for drawing in line.split("\r") if drawing.strip()]
    return drawings[-1].rstrip() if drawings else ""


def likeness(text: str) -> str:
    """Give 16 hex digits, equal for outputs that differ only in what changes by itself.

    That is: times, dates, durations, addresses, process ids, local ports, names of temporary
    directories, UUIDs, colours and redrawn progress. Any other difference gives other digits.
    """
    plain = _ESCAPES.sub("", text)
    lines = "\n".join(_last_drawing(line) for line in plain.split("\n")).rstrip("\n")
    for stand_in, pattern in _COMPILED:
        lines = pattern.sub(f"<{stand_in}>", lines)
    return sha256(lines.encode("utf-8", "replace")).hexdigest()[:16]
