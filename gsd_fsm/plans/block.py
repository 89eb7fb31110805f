"""Where a task of a Markdown plan ends, whatever stands in its action."""

from __future__ import annotations

import re
from typing import NamedTuple

_BEGINS = re.compile(r"<task(?=[\s>]|$)")
_ACTION = re.compile(r"<action\s*>")
_ACTION_ENDS = re.compile(r"</action>\s*(?:<|$)")


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
