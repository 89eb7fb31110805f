"""Compare outputs without times, addresses, temporary paths and the like."""

from __future__ import annotations

import re
from hashlib import sha256

_UNIT = r"(?:\s?(?:milliseconds?|seconds?|minutes?|hours?|secs?|mins?|hrs?|ns|µs|μs|us|ms|s)|[mhd])"
_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?(?: ?[AaPp][Mm]\b)?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_WEEKDAY = r"(?:\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? )?"
_ZONE = r"(?: ?(?:Z|[A-Z]{3,4}|[+-]\d{2}:?\d{2})(?![\w:]))?"
_SPELLED = rf"{_WEEKDAY}\b(?:{_MONTH} {{1,2}}\d{{1,2}}|\d{{1,2}} {_MONTH}),?(?: \d{{4}})? {_CLOCK}"
_ISO = r"\b\d{4}([-/])\d{2}\1\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"

# (placeholder, regex), applied in this order. Each pattern needs context, because a bare number may
# be the difference that matters: a count, a line, a port of another machine.
PATTERNS = (
    ("uuid", r"(?<![0-9A-Za-z])[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])"),
    ("address", r"\b0x[0-9A-Fa-f]{6,16}\b"),
    ("temp", r"\bpytest-of-[^/\\\s\"']{1,64}[/\\]pytest-\d+"),
    ("temp", r"(?:/private)?/var/folders/[^/\s\"']+/[^/\s\"']+/T\b"),
    ("temp", r"(?<=[/\\])tmp[a-z0-9_]{8}(?!\w)"),
    ("temp", r"(?<=/tmp/)tmp[.\w]{4,10}(?!\w)"),
    ("temp", r"(?<=/tmp/)(?:\w+[-.])+(?=[A-Za-z]{0,15}[\dA-Z])[A-Za-z0-9]{6,16}(?![\w.-])"),
    ("time", rf"{_SPELLED}{_ZONE}(?: \d{{4}}\b)?"),
    ("time", rf"{_ISO}{_ZONE})?(?!\w)"),
    ("time", r"\b\d{8}T\d{6}Z?\b|\b\d{1,2}/\d{1,2}/\d{4}\b"),
    ("time", rf"(?<![\w:.]){_CLOCK}(?![\w:]){_ZONE}"),
    ("duration", r"(?<!\d)\d+:\d{2}<\d+:\d{2}|(?<=\bin )\d+:\d{2}\b"),
    ("rate", r"\b\d+(?:\.\d+)?\s?(?:(?:it|[kKMG]?i?B)/s|s/it)\b"),
    ("duration", rf"(?<![\w.:-])(?:\d+(?:\.\d+)?{_UNIT},? ?){{0,3}}\d+(?:\.\d+)?{_UNIT}(?![\w/])"),
    (
        "duration",
        r"(?i:\b(?:duration|elapsed|took)(?:_?(?:ms|ns|s|secs?|seconds))?[\"' :=]{1,4})\d[\d.]*",
    ),
    ("pid", r"(?i:\b(?:pid|process|process id|thread id)[ :=#]{1,3})\d+\b|\(node:\d+\)|^==\d+=="),
    ("port", r"(?i:\blocalhost|\b127(?:\.\d+){3}|\b0\.0\.0\.0|\[::1?\]):\d{2,5}\b"),
)
_COMPILED = tuple((stand_in, re.compile(regex, re.MULTILINE)) for stand_in, regex in PATTERNS)
_REDRAW = re.compile(r"\x1b\[(?:2K|1?G)|\r")
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
_RULER = re.compile(r"([=\-─_ ])\1{2,}")


def _last_drawing(line: str) -> str:
    """Return the last text that a terminal shows of a redrawn line."""
    drawings = [_ESCAPE.sub("", drawing).rstrip() for drawing in _REDRAW.split(line)]
    return next((drawing for drawing in reversed(drawings) if drawing), "")


def _without_volatile(line: str) -> str:
    for stand_in, pattern in _COMPILED:
        line = pattern.sub(f"<{stand_in}>", line)
    # The length of a ruler around a duration depends on the duration.
    return _RULER.sub(r"\1\1\1", line) if "<duration>" in line or "<time>" in line else line


def likeness(text: str) -> str:
    """Return 16 hex digits that are equal for outputs that differ only in volatile parts.

    These are times, dates, durations, addresses, process ids, local ports, temporary directories,
    UUIDs, colours and redrawn progress.
    """
    lines = [_without_volatile(_last_drawing(line)) for line in text.split("\n")]
    remaining = "\n".join(lines).rstrip("\n")
    return sha256(remaining.encode("utf-8", "replace")).hexdigest()[:16]
