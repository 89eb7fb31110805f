"""Read and write XML-style elements in text that is not XML: tags, attributes, entities, CDATA."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

_VALUE = r"\"[^\"]*\"|'[^']*'|[^\s\"'<>]+"
_BEGINNING = re.compile(r"<([a-z_]+)(?=[\s/>])")
# The bound keeps the search linear.
_TAG = re.compile(rf"<([a-z_]+)((?:\s+[\w:.-]+\s*=\s*(?:{_VALUE})){{0,20}})\s*(/?)>")
_CLOSING = re.compile(r"</([a-z_]+)>")
_ATTRIBUTE = re.compile(rf"([\w:.-]+)\s*=\s*({_VALUE})")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"))
_CDATA, _CDATA_END = "<![CDATA[", "]]>"

Report = Callable[[int, str], object]
"""Takes the line and the text of a problem; may raise."""


class Element(NamedTuple):
    """An element: text[start:end] is its content, which begins in `content_line`."""

    name: str
    attributes: dict[str, str]
    start: int
    end: int
    line: int
    content_line: int


def elements(
    text: str,
    line: int,
    wanted: Collection[str],
    report: Report,
    ends: Mapping[str, Callable[[str, re.Match[str]], int]] | None = None,
) -> Iterator[Element]:
    """Yield the outermost elements of these names in a text that begins in this line.

    Skip other elements with their content. `ends` finds the end of the content of an element that
    may contain its own closing tag; it gets the text and the opening tag.
    """
    last = {found[1]: found.start() for found in _CLOSING.finditer(text)}
    at = counted = 0
    while beginning := _BEGINNING.search(text, at):
        line += text.count("\n", counted, beginning.start())
        counted = at = beginning.start()
        name = beginning[1]
        tag = _TAG.match(text, at)
        if tag is None:
            if name in wanted:
                report(line, f'<{name}> cannot be read: its attributes are not name="value"')
            at = beginning.end()
            continue
        start = end = at = tag.end()
        if not tag[3]:
            if last.get(name, -1) < start:
                if name in wanted:
                    report(line, f"<{name}> has no </{name}>")
                continue
            find_end = ends.get(name) if ends and name in wanted else None
            end = find_end(text, tag) if find_end else text.find(f"</{name}>", start)
            at = end + len(f"</{name}>")
        if name in wanted:
            content_line = line + text.count("\n", tag.start(), start)
            yield Element(name, attributes_of(tag), start, end, line, content_line)


def opening_tag(text: str, name: str) -> re.Match[str] | None:
    """Return the opening tag of this name that the text begins with, after blanks."""
    tag = _TAG.match(text, len(text) - len(text.lstrip()))
    return tag if tag and tag[1] == name and not tag[3] else None


def attributes_of(tag: re.Match[str]) -> dict[str, str]:
    """Return the attributes of a tag that `opening_tag` returned."""
    return {
        name: unescape(value[1:-1] if value[0] in "\"'" else value)
        for name, value in _ATTRIBUTE.findall(tag[2])
    }


def blank_comments(text: str) -> str:
    """Return the text with blanks instead of comments; every line and position stays."""
    return _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def without_cdata(text: str) -> str:
    """Return the content of a CDATA section that is the whole text, else the text as it is."""
    inside = text.strip()
    if inside.startswith(_CDATA) and inside.endswith(_CDATA_END):
        return inside[len(_CDATA) : -len(_CDATA_END)]
    return text


def escape(text: str) -> str:
    """Return the text as the content of an element, or between double quotes."""
    for sign, entity in _ENTITIES:
        text = text.replace(sign, entity)
    return text


def unescape(text: str) -> str:
    """Return the text with the five entities of XML replaced by their characters."""
    for sign, entity in (("'", "&apos;"), *reversed(_ENTITIES)):
        text = text.replace(entity, sign)
    return text
