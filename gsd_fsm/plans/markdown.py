"""Read a plan in Markdown: front matter, must-haves, headings of waves, and blocks of tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from gsd_fsm.plans.plan import PlanDraft, Wave, task_name
from gsd_fsm.plans.task_element import read_task
from gsd_fsm.plans.values import phase_of

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_PHASE = re.compile(r"phase\s+(\S+?)(?:\s*:|\s+[–—-])\s+(\S.*)", re.IGNORECASE)
_MUST_HAVES = re.compile(r"must[- ]?haves?\b", re.IGNORECASE)
_WAVE = re.compile(r"wave\s+([0-9]{1,6})\b(.*)", re.IGNORECASE)
_MODE = re.compile(r"\b(sequential|parallel)\b", re.IGNORECASE)
_ITEM = re.compile(r"\s*(?:[-*+]|[0-9]{1,4}[.)])[ \t]+(\[[ xX]\])?(.*)")
_ID = re.compile(r"""\sid=["']([^"']*)["']""")
_DASHES = " \t:,.–—-"
_BEGINS = re.compile(r"<task(?=[\s>]|$)")
_ACTION = re.compile(r"<action\s*>")
_ACTION_ENDS = re.compile(r"</action>\s*(?:<|$)")
# Both bound the work that a hostile text can make for the parser.
MOST_CHARACTERS = 16 * 1024
MOST_DEPTH = 20


def read_markdown(text: str, only: Collection[str] | None = None) -> PlanDraft:
    """Everything that the text says; what is wrong with it stands in `problems`.

    `only`: of the tasks just these are read.
    """
    return _Reader(text, only).read()


class _Reader:
    """The lines of a plan, each looked at once."""

    def __init__(self, text: str, only: Collection[str] | None) -> None:
        self.lines = text.split("\n")
        self.only = only
        self.draft = PlanDraft("markdown")
        self.wave: int | None = None
        self.level = 0  # of the heading that must-haves are listed under; 0 anywhere else
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
        try:
            found, after = front_matter(self.lines)
        except FrontMatterError as error:
            self.draft.wrong(error.line, error.what)
            return 1
        draft = self.draft
        draft.phase = phase_of(found.get("phase"))
        draft.title = _text(found.get("title"))
        draft.estimated_tokens = _text(found.get("estimated_tokens")) or None
        draft.counts = {name: found.get(name) for name in ("wave_count", "task_count")}
        listed = found.get("must_haves")
        if isinstance(listed, dict):
            listed = listed.get("truths")
        if isinstance(listed, list):
            draft.must_haves = tuple(filter(None, map(_text, listed)))
        return after

    def _step(self, at: int) -> int:
        """Look at this line; the next one to be looked at."""
        line = self.lines[at]
        word = line.lstrip()
        in_item, self.in_item = self.in_item, False
        fence = _FENCE.match(line)
        if fence and not (fence[1][0] == "`" and "`" in fence[2]):
            return self._pass_over(at, "code fence", lambda later: _closes(fence[1], later))
        if word.startswith("<!--"):
            if "-->" in word:
                return at + 1
            return self._pass_over(at, "comment", lambda later: "-->" in later)
        if begins_task(word):
            return self._task(at)
        if word.startswith("</task>"):
            self.draft.wrong(at + 1, "</task> without its <task>")
        elif heading := _HEADING.match(line):
            self._heading(len(heading[1]), heading[2].strip().rstrip("#").rstrip())
        elif self.level:
            self._must_have(line, in_item)
        return at + 1

    def _pass_over(self, start: int, what: str, ends: Callable[[str], bool]) -> int:
        """The line after an example or a comment."""
        hides = False
        for at in range(start + 1, len(self.lines)):
            if ends(self.lines[at]):
                return at + 1
            hides = hides or begins_task(self.lines[at])
        if hides:
            self.draft.wrong(start + 1, f"this {what} has no end, and hides a task")
        return len(self.lines)

    def _task(self, start: int) -> int:
        block = block_at(self.lines, start)
        self.level = 0
        if block.end is None:
            self.draft.wrong(start + 1, "<task> has no </task>")
            return block.after
        if self._is_unwanted(self.lines[start]):
            return block.after
        quoted = [(first - start, last - start) for first, last in block.quoted]
        lines = self.lines[start : block.end + 1]
        task = read_task(self.draft, lines, start + 1, self.wave, quoted)
        if task:
            self.draft.tasks.append(task)
        return block.after

    def _is_unwanted(self, line: str) -> bool:
        if self.only is None:
            return False
        found = _ID.search(line)
        return found is not None and task_name(found[1].strip()) not in self.only

    def _heading(self, level: int, title: str) -> None:
        if _MUST_HAVES.match(title):
            self.level = level
        elif level <= self.level:
            self.level = 0
        if wave := _WAVE.match(title):
            self.wave = int(wave[1])
            self.draft.waves.setdefault(self.wave, _wave(self.wave, wave[2]))
        elif level == 1 and (phase := _PHASE.match(title)):
            self.draft.title = self.draft.title or phase[2]
            self.draft.phase = phase_of(phase[1]) if self.draft.phase is None else self.draft.phase
        elif level == 1:
            self.draft.title = self.draft.title or title

    def _must_have(self, line: str, in_item: bool) -> None:
        item = _ITEM.match(line)
        if item and item[2].strip():
            self.items.append((item[1] is not None, [item[2].strip()]))
            self.in_item = True
        elif in_item and line[:1].isspace() and line.strip():  # the item goes on in the next line
            self.items[-1][1].append(line.strip())
            self.in_item = True


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _closes(fence: str, line: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(fence) and not mark.strip(fence[0])


def _wave(number: int, rest: str) -> Wave:
    """The wave of a heading like `Wave 2 (Sequential - Commands)` or `Wave 2: Commands`."""
    title = rest.strip(_DASHES)
    if title.startswith("(") and title.endswith(")"):
        title = title[1:-1]
    modes = [mode.lower() for mode in _MODE.findall(title)]
    title = _MODE.sub("", title, count=1).replace("()", "").strip(_DASHES)
    return Wave(number, title, "sequential" in modes)


class Block(NamedTuple):
    """The lines of a task: `end` holds its `</task>`, None where it has none."""

    end: int | None
    after: int
    quoted: list[tuple[int, int]]  # tasks that stand in its action as an example


def begins_task(line: str) -> bool:
    return _BEGINS.match(line.lstrip()) is not None


def block_at(lines: list[str], start: int) -> Block:
    """The task that begins in this line.

    Its end is the first `</task>` that is indented no deeper than its beginning and belongs to no
    example. A task that is ended by a deeper one, or at the end of a line with something before it,
    is understood too, if no better end comes before the next task.
    """
    own = _indent(lines[start])
    if lines[start].rstrip().endswith("</task>"):
        return Block(start, start + 1, [])
    action = _Action()
    examples: list[tuple[int, int]] = []  # the indent and the line of each that has not ended yet
    quoted: list[tuple[int, int]] = []
    likely: int | None = None
    for at in range(start + 1, len(lines)):
        line = lines[at]
        word = line.lstrip()
        indent = len(line) - len(word)
        if begins_task(word):
            if not examples and not action.is_open:
                return Block(likely, at if likely is None else likely + 1, quoted)
            examples.append((indent, at))
        elif word.startswith("</task>"):
            while examples and examples[-1][0] > indent:
                examples.pop()  # begun but never ended: it was only mentioned
            if not examples:
                if indent <= own:
                    return Block(at, at + 1, quoted)
                likely = at
            elif examples[-1][0] == indent:
                quoted.append((examples.pop()[1], at))
        elif not examples:
            action.see(word, indent)
            if word.rstrip().endswith("</task>"):
                likely = at
    return Block(likely, len(lines) if likely is None else likely + 1, quoted)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


class _Action:
    """Whether the lines seen so far lead into the action of the task, and not out of it yet."""

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
            # One that stands alone, and deeper than its beginning, ends something else.
            self.is_open = word.startswith("</action>") and indent > self._indent


class FrontMatterError(Exception):
    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line
        self.what = what


def front_matter(lines: list[str]) -> tuple[dict[str, Any], int]:
    """Its members, each scalar as the text that stands there, and the first line after it.

    FrontMatterError with a line for what is no front matter though it begins like one.
    """
    if lines[0].rstrip() != "---":
        return {}, 0
    end = next((at for at in range(1, len(lines)) if lines[at].rstrip() in ("---", "...")), None)
    if end is None:
        raise FrontMatterError(1, "the front matter has no end: a second line '---'")
    text = "\n".join(lines[1:end])
    if len(text) > MOST_CHARACTERS:
        raise FrontMatterError(1, "the front matter is larger than 16 KiB")
    found = _load(text)
    if found is None or found == "":
        return {}, end + 1
    if not isinstance(found, dict):
        raise FrontMatterError(1, "the front matter is no list of keys and values")
    return {str(name): value for name, value in found.items()}, end + 1


def _load(text: str) -> Any:
    import yaml

    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.BaseLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > MOST_DEPTH:
                line = event.start_mark.line + 2 if event.start_mark else 1
                raise FrontMatterError(line, "the front matter is too deep, or has an alias")
        # Texts only: YAML would read phase 010 as 8, and a title of `No` as false.
        return yaml.BaseLoader(text).get_single_data()
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or getattr(error, "reason", None)
        what = "the front matter is not valid YAML" + (f": {why}" if why else "")
        raise FrontMatterError(mark.line + 2 if mark else 1, what) from error
