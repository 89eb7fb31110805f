"""Read the `<gaps>` of a VERIFICATION.md, which an agent or gsd-fsm wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.documents.elements import blank_comments, elements, unescape, without_cdata
from gsd_fsm.documents.read import Malformed
from gsd_fsm.verify.strategy import require_kind

MAX_GAPS = 200
_HINT = 'Write: <gap type="stub"><file>a.py</file><description>what is missing</description></gap>'
# Only at the beginning of a line: in a sentence the tag may be a mere mention.
_BLOCK = re.compile(r"^[ \t>]*<gaps(?:[ \t][^>\n]*)?>", re.MULTILINE)
_NESTED = re.compile(r"<gap[\s/>]")
_CHILD = re.compile(r"<(file|description|evidence)>.*?</\1>", re.DOTALL)


class ReportedGap(NamedTuple):
    """One `<gap>`, and its line."""

    line: int
    id: str
    kind: str
    file: str
    description: str
    evidence: str


def read_gaps(text: str, name: str) -> list[ReportedGap]:
    """Return all gaps in order; raise UsageError with the line of one that is malformed."""
    text = clean(text).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    found: list[ReportedGap] = []
    for line, block in _blocks(text, name):
        for gap in _gaps(block, line, name):
            found.append(gap)
            if len(found) > MAX_GAPS:
                hint = "Report the most important gaps."
                raise Malformed(name, gap.line, f"more than {MAX_GAPS} gaps", hint)
    return found


def _blocks(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Yield line and content of each `<gaps>` element."""
    line, counted = 1, 0
    opening = _BLOCK.search(text)
    while opening:
        start = end = opening.end()
        line, counted = line + text.count("\n", counted, start), start
        if not opening[0].endswith("/>"):
            end = text.find("</gaps>", start)
            if end < 0:
                raise Malformed(name, line, "<gaps> has no </gaps>", "Add </gaps> at the end.")
            yield line, blank_comments(text[start:end])
        opening = _BLOCK.search(text, end)


def _gaps(block: str, line: int, name: str) -> Iterator[ReportedGap]:
    def report(line: int, problem: str) -> None:
        raise Malformed(name, line, problem, _HINT)

    for element in elements(block, line, ("gap",), report):
        body = block[element.start : element.end]
        if _NESTED.search(body):
            report(element.line, "<gap> has no </gap>")
        given = {key.lower(): value for key, value in element.attributes.items()}
        for child in elements(body, 1, ("file", "description", "evidence"), lambda *_: None):
            given[child.name] = _text(body[child.start : child.end])
        link = " → ".join(filter(None, (given.get("from"), given.get("to"))))
        description = given.get("description") or _text(_CHILD.sub("", body)) or link
        if not description:
            report(element.line, "<gap> has no description")
        try:
            kind = require_kind(given.get("type", "other").lower().replace("-", "_"))
        except UsageError as error:
            raise Malformed(name, element.line, error.message, error.hint) from error
        yield ReportedGap(
            element.line,
            given.get("id", ""),
            kind,
            given.get("file") or given.get("from", ""),
            description,
            given.get("evidence", ""),
        )


def _text(content: str) -> str:
    inside = without_cdata(content)
    return (unescape(content) if inside is content else inside).strip()
