"""Read a plan in Markdown: front matter, must-haves, headings of waves, and `<task>` elements."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from gsd_fsm.documents.elements import (
    attributes_of,
    elements,
    opening_tag,
    unescape,
    without_cdata,
)
from gsd_fsm.documents.front_matter import load_yaml, split_front_matter
from gsd_fsm.documents.markdown import heading_of, hidden_at, item_of
from gsd_fsm.documents.read import Malformed, Object
from gsd_fsm.plans.phase_name import phase_of
from gsd_fsm.plans.plan import NO_WAVE, PlanDraft, Wave, task_name
from gsd_fsm.plans.task import dedent, make_task, names_of, read_header

_PHASE = re.compile(r"phase\s+(\S+?)(?:\s*:|\s+[–—-])\s+(\S.*)", re.IGNORECASE)
_MUST_HAVES = re.compile(r"must[- ]?haves?\b", re.IGNORECASE)
_WAVE = re.compile(r"wave\s+([0-9]{1,6})\b(.*)", re.IGNORECASE)
_MODE = re.compile(r"\b(sequential|parallel)\b", re.IGNORECASE)
_ID = re.compile(r"""\sid=["']([^"']*)["']""")
_DASHES = " \t:,.–—-"
_TASK = re.compile(r"<task(?=[\s>]|$)")
_ACTION = re.compile(r"<action\s*>")
_ACTION_ENDS = re.compile(r"</action>\s*(?:<|$)")
SECTIONS = (
    "title", "files", "action", "libraries", "verify", "done", "skills", "test_required",
    "test_files", "reqs", "type",
)  # fmt: skip
_CHILDREN = {"files": "file", "test_files": "file", "verify": "check"}
_CONTENT = {"file": "path", "check": "check"}
_AFTER_ACTION = "|".join(name for name in SECTIONS if name != "action")
_NEXT_SECTION = re.compile(
    rf"(?:^([ \t]*)|(?<=</action>)[ \t]*)<(?:{_AFTER_ACTION})(?=[\s/>])", re.MULTILINE
)
_ACTION_END = re.compile(r"(?:^([ \t]*))?</action>", re.MULTILINE)


def read_markdown(text: str, only: Collection[str] | None = None) -> PlanDraft:
    """Return the plan in this text; `only` limits it to the tasks of these ids."""
    return _Reader(text, only).read()


class _Reader:
    """The lines of a plan, each looked at once."""

    def __init__(self, text: str, only: Collection[str] | None) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.only = only
        self.draft = PlanDraft("markdown")
        self.wave = NO_WAVE
        self.level = 0  # of the heading above the must-haves; 0 elsewhere
        self.items: list[tuple[bool, list[str]]] = []  # whether it has a box, and its lines
        self.in_item = False

    def read(self) -> PlanDraft:
        at = self._front_matter()
        while at < len(self.lines) and not self.draft.is_full:
            at = self._step(at)
        boxed = [" ".join(lines) for has_box, lines in self.items if has_box]
        listed = boxed or [" ".join(lines) for _, lines in self.items]
        self.draft.must_haves = tuple(dict.fromkeys([*self.draft.must_haves, *listed]))
        return self.draft

    def _front_matter(self) -> int:
        """Read the front matter; return the index of the line after it."""
        try:
            front = split_front_matter(self.text)
            if front is None:
                return 0
            # As text: YAML would read phase 010 as 8, and a title of `No` as false.
            found = load_yaml(front.text, first_line=2, scalar=str) or Object(1)
            if not isinstance(found, Object):
                raise Malformed("", 1, "the front matter has no keys")
        except Malformed as error:
            self.draft.report(error.line, error.problem)
            return 1
        read_header(found, self.draft)
        return front.body_line - 1

    def _step(self, at: int) -> int:
        """Read what begins in this line; return the index of the line after it."""
        line = self.lines[at]
        in_item, self.in_item = self.in_item, False
        hidden = hidden_at(self.lines, at)
        if hidden:
            if not hidden.closed and any(map(_begins_task, self.lines[at + 1 :])):
                self.draft.report(at + 1, f"this {hidden.kind} has no end and hides a task")
            return hidden.end
        if _begins_task(line):
            return self._task(at)
        heading = heading_of(line)
        if line.lstrip().startswith("</task>"):
            self.draft.report(at + 1, "</task> without <task>")
        elif heading:
            self._heading(heading.level, heading.title)
        elif self.level:
            self._must_have(line, in_item)
        return at + 1

    def _task(self, start: int) -> int:
        block = _find_block(self.lines, start)
        self.level = 0
        if block.end is None:
            self.draft.report(start + 1, "<task> has no </task>")
        elif self._is_wanted(self.lines[start]):
            lines = self.lines[start : block.end + 1]
            examples = [(first - start, last - start) for first, last in block.examples]
            found = _members(self.draft, lines, start + 1, examples)
            if found is not None:
                self.draft.tasks.append(make_task(found, self.wave, self.draft))
        return block.after

    def _is_wanted(self, line: str) -> bool:
        found = _ID.search(line)
        return self.only is None or found is None or task_name(found[1].strip()) in self.only

    def _heading(self, level: int, title: str) -> None:
        draft = self.draft
        if _MUST_HAVES.match(title):
            self.level = level
        elif level <= self.level:
            self.level = 0
        if wave := _WAVE.match(title):
            self.wave = int(wave[1])
            draft.waves.setdefault(self.wave, _wave(self.wave, wave[2]))
        elif level == 1 and (phase := _PHASE.match(title)):
            draft.title = draft.title or phase[2]
            draft.phase = phase_of(phase[1]) if draft.phase is None else draft.phase
        elif level == 1:
            draft.title = draft.title or title

    def _must_have(self, line: str, in_item: bool) -> None:
        item = item_of(line)
        if item and item.text:
            self.items.append((item.box is not None, [item.text]))
            self.in_item = True
        elif in_item and line[:1].isspace() and line.strip():
            self.items[-1][1].append(line.strip())
            self.in_item = True


def _wave(number: int, rest: str) -> Wave:
    """Return the wave of a heading such as `Wave 2 (Sequential - Commands)` or `Wave 2: Commands`."""
    title = rest.strip(_DASHES)
    if title.startswith("(") and title.endswith(")"):
        title = title[1:-1]
    modes = [mode.lower() for mode in _MODE.findall(title)]
    title = _MODE.sub("", title, count=1).replace("()", "").strip(_DASHES)
    return Wave(number, title, "sequential" in modes)


class _Block(NamedTuple):
    """The lines of a task: `end` has its `</task>`, or is None."""

    end: int | None
    after: int
    examples: list[tuple[int, int]]  # first and last line of each task quoted in its action


def _begins_task(line: str) -> bool:
    return _TASK.match(line.lstrip()) is not None


def _find_block(lines: list[str], start: int) -> _Block:
    """Return the lines of the task that begins in this line.

    Its end is the first `</task>` that is not indented deeper and is not part of an example. If
    the next task comes first, a deeper `</task>`, or one at the end of a line, is its end.
    """
    own = _indent(lines[start])
    if lines[start].rstrip().endswith("</task>"):
        return _Block(start, start + 1, [])
    action = _Action()
    opened: list[tuple[int, int]] = []  # indent and line of each example that has not ended
    examples: list[tuple[int, int]] = []
    likely: int | None = None
    for at in range(start + 1, len(lines)):
        word, indent = lines[at].lstrip(), _indent(lines[at])
        if _begins_task(word):
            if not opened and not action.is_open:
                return _Block(likely, at if likely is None else likely + 1, examples)
            opened.append((indent, at))
        elif word.startswith("</task>"):
            while opened and opened[-1][0] > indent:
                opened.pop()  # it was only mentioned
            if not opened:
                if indent <= own:
                    return _Block(at, at + 1, examples)
                likely = at
            elif opened[-1][0] == indent:
                examples.append((opened.pop()[1], at))
        elif not opened:
            action.see(word, indent)
            if word.rstrip().endswith("</task>"):
                likely = at
    return _Block(likely, len(lines) if likely is None else likely + 1, examples)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


class _Action:
    """Whether the lines of a task seen so far end inside its action."""

    def __init__(self) -> None:
        self.is_open = False
        self._indent: int | None = None

    def see(self, word: str, indent: int) -> None:
        at = 0
        if self._indent is None:
            found = _ACTION.search(word)
            if found is None:
                return
            self.is_open, self._indent, at = True, indent, found.end()
        if self.is_open and _ACTION_ENDS.search(word, at):
            # One that is alone in its line, and deeper than the opening tag, ends something else.
            self.is_open = word.startswith("</action>") and indent > self._indent


def _members(
    draft: PlanDraft, lines: list[str], line: int, examples: list[tuple[int, int]]
) -> Object | None:
    """Return attributes and sections of the task in these lines; None if its tag cannot be read."""
    text = "\n".join(lines)
    tag = opening_tag(text, "task")
    if tag is None:
        draft.report(line, '<task> cannot be read: its attributes are not name="value"')
        return None
    for first, last in examples:  # blank them, so that no tag in them is found
        for at in range(first, last + 1):
            lines[at] = " " * len(lines[at])
    start, end = tag.end(), text.rindex("</task>")
    inside, content = "\n".join(lines)[start:end], text[start:end]
    found = Object(line)
    first_line = line + text.count("\n", 0, start)
    for it in elements(inside, first_line, SECTIONS, draft.report, {"action": _end_of_action}):
        if it.name in found:
            draft.report(it.line, f"a second <{it.name}> in one task")
            break
        found[it.name] = _section(draft, it.name, content[it.start : it.end], it.content_line)
    for name, value in attributes_of(tag).items():
        if value and (name not in found or name not in ("action", *_CHILDREN)):
            found[name] = value
    return found


def _section(draft: PlanDraft, name: str, text: str, line: int) -> Any:
    """Return the content of a section: a list of its children if it has any, else its text."""
    child = _CHILDREN.get(name)
    if child is None or f"<{child}" not in text:
        plain = without_cdata(text)
        if name == "action":
            return dedent(plain)
        if name == "verify":
            return list(_lines_of(unescape(plain), line))
        return list(names_of(unescape(plain))) if child else unescape(plain)
    children = []
    for it in elements(text, line, (child,), draft.report):
        found = Object(it.line)
        found.update(it.attributes)
        found[_CONTENT[child]] = unescape(without_cdata(text[it.start : it.end]))
        children.append(found)
    return children


def _lines_of(text: str, first: int) -> Iterator[Object]:
    """Yield a check for each line of a `<verify>` without `<check>`."""
    for line, item in enumerate(text.split("\n"), first):
        found = Object(line)
        found["check"] = item.strip().removeprefix("- ").strip()
        if found["check"]:
            yield found


def _end_of_action(text: str, tag: re.Match[str]) -> int:
    """Return where the content of an action ends: the last `</action>` before the next section.

    If one is indented like the opening tag, anything that is indented deeper belongs to the action.
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
