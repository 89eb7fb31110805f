"""Elements in a text that is no XML: what stands between the tags may be anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

_VALUE = r"\"[^\"]*\"|'[^']*'|[^\s\"'<>]+"
_BEGINNING = re.compile(r"<([a-z_]+)(?=[\s/>])")
_TAG = re.compile(rf"<([a-z_]+)((?:\s+[\w:.-]+\s*=\s*(?:{_VALUE})){{0,20}})\s*(/?)>")
_CLOSING = re.compile(r"</([a-z_]+)>")
_ATTRIBUTE = re.compile(rf"([\w:.-]+)\s*=\s*({_VALUE})")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))

SECTIONS = (
    "title", "files", "action", "libraries", "verify", "done", "skills", "test_required",
    "test_files", "reqs", "type",
)  # fmt: skip
_AFTER_ACTION = "|".join(name for name in SECTIONS if name != "action")
_NEXT_SECTION = re.compile(
    rf"(?:^([ \t]*)|(?<=</action>)[ \t]*)<(?:{_AFTER_ACTION})(?=[\s/>])", re.MULTILINE
)
_ACTION_END = re.compile(r"(?:^([ \t]*))?</action>", re.MULTILINE)


class Element(NamedTuple):
    """Where the inside of an element begins and ends, and the lines of its tag and its inside."""

    name: str
    attributes: dict[str, str]
    start: int
    end: int
    line: int
    inside_line: int


def elements(
    text: str, line: int, wanted: Collection[str], wrong: Callable[[int, str], None]
) -> Iterator[Element]:
    """The elements of these names, one after the other; the text begins in this line.

    Other elements are passed over with everything in them.
    """
    closed = {found[1]: found.start() for found in _CLOSING.finditer(text)}  # the last of each name
    at = counted = 0
    while beginning := _BEGINNING.search(text, at):
        line += text.count("\n", counted, beginning.start())
        counted = at = beginning.start()
        name = beginning[1]
        tag = _TAG.match(text, at)
        if tag is None:
            if name in wanted:
                wrong(line, f'<{name}> cannot be read: its attributes are not name="value"')
            at = beginning.end()
            continue
        start = end = at = tag.end()
        if not tag[3]:
            if closed.get(name, -1) < start:
                if name in wanted:
                    wrong(line, f"<{name}> has no </{name}>")
                continue
            is_action = name == "action" and name in wanted
            end = _end_of_action(text, tag) if is_action else text.find(f"</{name}>", start)
            at = end + len(f"</{name}>")
        if name in wanted:
            inside = line + text.count("\n", tag.start(), start)
            yield Element(name, attributes_of(tag[2]), start, end, line, inside)


def _end_of_action(text: str, tag: re.Match[str]) -> int:
    """The last `</action>` before the section that follows it.

    Where it is indented as its beginning is, whatever is indented deeper belongs to the action.
    """
    indent = text[text.rfind("\n", 0, tag.start()) + 1 : tag.start()]
    depth = len(indent) if not indent.strip() else -1
    ends = list(_ACTION_END.finditer(text, tag.end()))
    proper = [end for end in ends if end[1] is not None and len(end[1]) <= depth]
    limit = len(text)
    for section in _NEXT_SECTION.finditer(text, (proper or ends)[0].end()):
        if not proper or len(section[1] or "") <= depth:
            limit = section.start()
            break
    return [end.end() for end in proper or ends if end.end() <= limit][-1] - len("</action>")


def tag_at(text: str, name: str) -> re.Match[str] | None:
    """The opening tag that the text begins with, after blanks."""
    tag = _TAG.match(text, len(text) - len(text.lstrip()))
    return tag if tag and tag[1] == name and not tag[3] else None


def attributes_of(text: str) -> dict[str, str]:
    return {
        name: plain(value[1:-1] if value[0] in "\"'" else value)
        for name, value in _ATTRIBUTE.findall(text)
    }


def plain(text: str) -> str:
    """The text as it is meant, if it was written by somebody who wrote XML."""
    for entity, sign in _ENTITIES:
        text = text.replace(entity, sign)
    return text


def unwrapped(text: str) -> str:
    """The text as it stands, out of its CDATA section."""
    inside = text.strip()
    if inside.startswith("<![CDATA[") and inside.endswith("]]>"):
        return inside[len("<![CDATA[") : -len("]]>")]
    return text
