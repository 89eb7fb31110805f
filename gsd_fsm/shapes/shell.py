"""Commands in a code fence: one check for each line that is a command."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gsd_fsm.shapes.blocks import ITEM
from gsd_fsm.shapes.command import is_told
from gsd_fsm.shapes.entry import CRITERIA, VERIFICATION, Entry, Unreadable

LANGUAGES = frozenset(
    ("sh", "bash", "shell", "zsh", "console", "shell-session", "shellsession", "terminal")
)
BARE = frozenset(("", "text", "txt", "plain", "plaintext", "checklist"))
_PROMPT = "$ "
_REMARK = re.compile(r"\s#\s+(\S[^'\"`]*)$")
# What only prepares the commands that follow it: by itself it proves nothing.
_SETUP = re.compile(r"(?:cd|export|source|\.|set|unset|pushd|popd)\s|[A-Za-z_]\w*=\S*$")
# What goes on in the next lines cannot be taken line by line.
_BLOCK = re.compile(r"(?:if|for|while|until|case|function|select)\s|[{(]\s*$|\w+\s*\(\)|.*<<(?!<)")


def commands(section: str, lines: list[str], first: int) -> list[Entry]:
    """A check for each command; a comment above or behind one is its name."""
    found: list[Entry] = []
    setup: list[str] = []
    name = ""
    for line, text in _whole_lines(lines, first):
        if text.startswith("#"):
            name = "" if text.startswith("#!") else text.strip("# \t")
            continue
        if remark := _REMARK.search(text):
            text, name = text[: remark.start()].rstrip(), name or remark[1].strip()  # noqa: PLW2901
        _require_one_line(text, line)
        if _SETUP.match(text):
            setup.append(text)
        elif text:
            found.append(Entry(section, name, line, " && ".join([*setup, text]), certain=True))
        name = ""
    return found


def _whole_lines(lines: list[str], first: int) -> Iterator[tuple[int, str]]:
    """Each command on one line, and the line where it begins; without output, where there is some."""
    prompts = any(line.lstrip().startswith(_PROMPT) for line in lines)
    begun, start = "", first
    for number, raw in enumerate(lines, first):
        text = raw.strip()
        if not begun:
            start = number
            if prompts and not text.startswith((_PROMPT, "# ")):
                continue
            text = text.removeprefix(_PROMPT)
        if text.endswith(("\\", "|", "&&")):
            begun += text.removesuffix("\\").rstrip() + " "
            continue
        yield start, begun + text
        begun = ""
    if begun:
        yield start, begun.strip()


def _require_one_line(text: str, line: int) -> None:
    import shlex

    try:
        shlex.split(text)
    except ValueError:
        raise Unreadable(line, "a command over several lines") from None
    if _BLOCK.match(text):
        raise Unreadable(line, "a command over several lines")


def listed(section: str, lines: list[str], first: int) -> list[Entry]:
    """The entries of a fence that names no language: a list, or nothing but commands."""
    found: list[Entry] = []
    for number, line in enumerate(lines, first):
        item = ITEM.fullmatch(line.strip())
        if item:
            found.append(Entry(section, item["text"].strip(), number))
        elif found and line.strip() and line[:1].isspace():
            found[-1] = found[-1]._replace(text=f"{found[-1].text} {line.strip()}")
    if found:
        return found
    if section not in (CRITERIA, VERIFICATION):  # what is forbidden may well be a command
        return [
            Entry(section, line.strip(), n) for n, line in enumerate(lines, first) if line.strip()
        ]
    said = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if any(line.startswith(_PROMPT) for line in said) or all(map(is_told, said)):
        return commands(section, lines, first)
    raise Unreadable(first, "a fence that is neither a list nor commands")
