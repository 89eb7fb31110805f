"""Read one task of a Markdown plan: its tag, its elements, and what they say."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from gsd_fsm.plans import values
from gsd_fsm.plans.plan import Check, PlanDraft, PlanFile, TaskDraft

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


class _Section(NamedTuple):
    text: str
    line: int


_NOTHING = _Section("", 0)


def read_task(
    draft: PlanDraft, lines: list[str], line: int, wave: int | None, quoted: list[tuple[int, int]]
) -> TaskDraft | None:
    """The task in these lines, the first of which has this number; None if it has no proper tag.

    `quoted` are those of its lines, first and last, that hold examples of other tasks.
    """
    text = "\n".join(lines)
    tag = tag_at(text, "task")
    if tag is None:
        draft.wrong(line, '<task> cannot be read: its attributes are not name="value"')
        return None
    given = attributes_of(tag[2])
    found = _sections(draft, text, _without(lines, quoted), tag.end(), line)

    def said(name: str) -> str:
        return given.get(name) or plain(unwrapped(found.get(name, _NOTHING).text)).strip()

    def children(name: str, child: str) -> Iterator[tuple[Element, str]]:
        section = found.get(name, _NOTHING)
        for element in elements(section.text, section.line, (child,), draft.wrong):
            yield element, plain(unwrapped(section.text[element.start : element.end]))

    files = [(path.strip(), element) for element, path in children("files", "file")]
    tests = [path.strip() for _, path in children("test_files", "file")]
    number = given.get("wave", "").strip()
    return TaskDraft(
        number=given.get("id", "").strip(),
        line=line,
        wave=values.number_of(number) if number else wave,
        title=said("title"),
        depends=values.names_in(given.get("depends") or given.get("depends_on") or ""),
        files=tuple(
            PlanFile(path, values.file_action(element.attributes.get("action", "")))
            for path, element in files
        )
        or tuple(PlanFile(path, "") for path in values.names_in(said("files"))),
        action=values.dedented(unwrapped(found.get("action", _NOTHING).text)),
        libraries=values.items_in(said("libraries")),
        checks=tuple(_checks(draft, found.get("verify", _NOTHING), children("verify", "check"))),
        done=" ".join(said("done").split()),
        skills=values.names_in(said("skills")),
        reqs=" ".join(said("reqs").split()),
        test_required=values.tests_wanted(said("test_required")),
        test_files=tuple(tests) or values.names_in(said("test_files")),
        commit_type=values.commit_type(said("type")),
    )


def _without(lines: list[str], quoted: list[tuple[int, int]]) -> str:
    """The lines with blanks in the place of examples, so that no tag is found in them."""
    lines = list(lines)
    for first, last in quoted:
        for at in range(first, last + 1):
            lines[at] = " " * len(lines[at])
    return "\n".join(lines)


def _sections(
    draft: PlanDraft, text: str, searched: str, start: int, line: int
) -> dict[str, _Section]:
    end = text.rindex("</task>")
    line += text.count("\n", 0, start)
    found: dict[str, _Section] = {}
    for element in elements(searched[start:end], line, SECTIONS, draft.wrong):
        if element.name in found:
            draft.wrong(element.line, f"a second <{element.name}> in one task")
            break
        inside = text[start + element.start : start + element.end]
        found[element.name] = _Section(inside, element.inside_line)
    return found


def _checks(
    draft: PlanDraft, verify: _Section, found: Iterator[tuple[Element, str]]
) -> Iterator[Check]:
    if "<check" not in verify.text:
        for line, text in enumerate(plain(unwrapped(verify.text)).split("\n"), verify.line):
            if said := text.strip().removeprefix("- ").strip():
                yield values.check_of("", said, None, line)
    for element, text in found:
        given = element.attributes
        command = given.get("cmd") or given.get("command")
        check = values.check_of(given.get("type", ""), text, command, element.line)
        if check.text:
            yield check
        else:
            draft.wrong(element.line, "a check that says nothing")


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
