"""One task of a Markdown plan: its tag, and the sections in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gsd_fsm.plans import values
from gsd_fsm.plans.draft import PlanDraft, TaskDraft
from gsd_fsm.plans.element import (
    SECTIONS,
    Element,
    attributes_of,
    elements,
    plain,
    tag_at,
    unwrapped,
)
from gsd_fsm.plans.plan import Check, PlanFile


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
