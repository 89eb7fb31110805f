"""The `<gaps>` of a VERIFICATION.md, as agents and we ourselves write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.verify.strategy import ENTITIES, require_kind

MOST_GAPS = 200
FORM = '<gap type="stub"><file>a.py</file><description>what is missing</description></gap>'

# At the beginning of a line: in a sentence the word may well stand for itself.
_BLOCK = re.compile(r"^[ \t>]*<gaps(?:[ \t][^>\n]*)?>", re.MULTILINE)
_OPENING = re.compile(r"<gap(?=[\s/>])")
_GAP = re.compile(r"""<gap((?:[^>"']|"[^"]*"|'[^']*')*)>""")
_ATTRIBUTE = re.compile(r"""([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_CHILDREN = ("file", "description", "evidence")


class ReportedGap(NamedTuple):
    """One `<gap>`, and the line it begins on."""

    line: int
    id: str
    kind: str
    file: str
    description: str
    evidence: str


class _Part(NamedTuple):
    """What stands between `<gaps>` and `</gaps>`, and where."""

    name: str
    line: int
    text: str

    def line_of(self, at: int) -> int:
        return self.line + self.text.count("\n", 0, at)

    def error(self, at: int, what: str) -> UsageError:
        return UsageError(f"{self.name}:{self.line_of(at)}: {what}", FORM)


def read_gaps(text: str, name: str) -> list[ReportedGap]:
    """Every gap of the text, in its order; UsageError, with the line, for what cannot be one."""
    text = clean(text).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    found: list[ReportedGap] = []
    for part in _parts(text, name):
        for gap in _gaps(part):
            found.append(gap)
            if len(found) > MOST_GAPS:
                what = f"{name}:{gap.line}: more than {MOST_GAPS} gaps"
                raise UsageError(what, "report the main ones")
    return found


def _parts(text: str, name: str) -> Iterator[_Part]:
    line, counted = 1, 0
    block = _BLOCK.search(text)
    while block:
        start = end = block.end()
        line, counted = line + text.count("\n", counted, start), start
        if not block[0].endswith("/>"):
            end = text.find("</gaps>", start)
            if end < 0:
                raise UsageError(f"{name}:{line}: <gaps> is not closed", "</gaps> ends it")
            yield _Part(name, line, _without_comments(text[start:end]))
        block = _BLOCK.search(text, end)


def _gaps(part: _Part) -> Iterator[ReportedGap]:
    opening = _OPENING.search(part.text)
    while opening:
        at = opening.start()
        tag = _GAP.match(part.text, at)
        if tag is None:
            raise part.error(at, "the tag of a <gap> is not closed")
        body, after = "", tag.end()
        if not tag[1].endswith("/"):
            end = part.text.find("</gap>", after)
            if end < 0 or _OPENING.search(part.text, after, end):
                raise part.error(at, "a <gap> is not closed")
            body, after = part.text[after:end], end + len("</gap>")
        yield _gap(part, at, tag[1], body)
        opening = _OPENING.search(part.text, after)


def _gap(part: _Part, at: int, attributes: str, body: str) -> ReportedGap:
    given = {
        match[1].lower(): _plain(match[2] or match[3] or "")
        for match in _ATTRIBUTE.finditer(attributes)
    }
    for child in _CHILDREN:
        inner, body = _cut_out(child, body)
        if inner is not None:
            given[child] = _plain(inner)
    line = part.line_of(at)
    kind = given.get("type", "other").lower().replace("-", "_")
    link = " → ".join(filter(None, (given.get("from"), given.get("to"))))
    description = given.get("description") or _plain(body) or link
    if not description:
        raise part.error(at, "a gap without a description")
    return ReportedGap(
        line,
        given.get("id", ""),
        require_kind(kind, f"{part.name}:{line}"),
        given.get("file") or given.get("from", ""),
        description,
        given.get("evidence", ""),
    )


def _cut_out(child: str, body: str) -> tuple[str | None, str]:
    """The content of a child, and the body without it."""
    start, end = body.find(f"<{child}>"), body.find(f"</{child}>")
    if start < 0 or end < start:
        return None, body.replace(f"<{child}/>", "")
    return body[start + len(child) + 2 : end], body[:start] + body[end + len(child) + 3 :]


def _plain(text: str) -> str:
    text = text.strip()
    if text.startswith("<![CDATA[") and text.endswith("]]>"):
        return text[len("<![CDATA[") : -len("]]>")].strip()
    for sign, entity in (("'", "&apos;"), *reversed(ENTITIES)):
        text = text.replace(entity, sign)
    return text


def _without_comments(text: str) -> str:
    """The text with blanks in the place of comments; its lines keep their numbers."""
    parts = []
    at = 0
    while (start := text.find("<!--", at)) >= 0:
        end = text.find("-->", start)
        end = len(text) if end < 0 else end + len("-->")
        parts += [text[at:start], re.sub(r"[^\n]", " ", text[start:end])]
        at = end
    return "".join([*parts, text[at:]])
