"""Commands in a shape: the code span that proves an item, and the lines of a shell fence.

Nothing is run that is not clearly a command; the rest are words, which somebody declares met.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from itertools import dropwhile
from typing import NamedTuple

from gsd_fsm.core.text.sanitize import display

LONGEST_COMMAND = 8_000
_SPAN = re.compile(r"``(?:(?!``).)+``|`[^`]+`")  # the first form may hold single backticks
_BOLD = re.compile(r"\*\*([^*]+)\*\*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PROGRAM = re.compile(r"[a-z_.~/][\w.+~/@-]*|!|\[\[?")
_WORD = re.compile(r"\./.*|.*\.sh|[^/.]*")  # what a single word is, if it is a command
_COMPARES = re.compile(r"[=<>!]=*>?|->")
# What leads from words to the command that proves them.
_LINK = re.compile(
    r"(?:^|[:→(–—]|[=-]>| -|(?P<verb>(?:\b(?:run|running|via|with|by|using)\b[ :]*)+))[ *_]*$",
    re.IGNORECASE,
)
_PROOFS = ("", "verify", "check", "command", "proof", "test")
_NEGATES = re.compile(r"\b(?:not|never|without|avoid|nobody|no need)\b|n['’]t\b", re.IGNORECASE)
_FORBIDS = re.compile(
    r"\b(?:must|should|may|shall|can) ?(?:not|never)\b|\b(?:never|forbidden|nobody|avoid)\b"
    r"|\b(?:must|should|may)n['’]t\b",
    re.IGNORECASE,
)
_PASSES = re.compile(
    r"(?:(?:must|should|is|are|runs?) )?"
    r"(?:pass(?:es)?|succeeds?|(?:completes? )?successfully|green|clean|exits? (?:with )?(?:code )?0)"
    r"(?: with(?:out| no| 0) (?:errors|failures))?",
    re.IGNORECASE,
)
# What means something only with the lines that follow.
_PARTIAL = re.compile(
    r"(?:if|for|while|until|case|function)\b(?!.*\b(?:fi|done|esac)$)|.*(?:[({|]|&&) ?$"
    r"|.*(?<!<)<<(?!<)|(?:cd|export|source|set) [^&;|]*$"
)


class Unreadable(Exception):
    """A line, and why it cannot be understood: what is meant for us is not guessed."""


class Reading(NamedTuple):
    """What an item says: its name, its command if it has one, and why one in it is not run."""

    name: str
    command: str = ""
    doubt: str = ""


def plain(text: str) -> str:
    """The words of a Markdown text, without its marks, on one line."""
    return " ".join(_SPAN.sub(lambda span: _code(span[0]), _BOLD.sub(r"\1", text)).split())


def _code(span: str) -> str:
    return span.strip("`").strip().removeprefix("$ ")


def read(text: str) -> Reading:
    """An item, taken apart into its name and its command."""
    doubt, spans = "", list(_SPAN.finditer(text))
    # Only the last one can be the command; of the others a few are enough to tell.
    for span in spans[:7] + spans[7:][-1:]:
        code, before = _code(span[0]), plain(text[: span.start()])
        link = _LINK.search(before)
        if not link or not _is_command(code):
            continue
        verb, is_word = (link["verb"] or "").lower(), " " not in code
        if is_word and verb and "run" not in verb:
            continue  # `with x`: as often a library as a program
        name = before[: link.start()].lstrip("* ").rstrip(" *_:;,.=→>(–—-")
        after = text[span.end() :].strip(" *_).")
        if _FORBIDS.search(name) or _NEGATES.search(name if verb else " ".join(name.split()[:2])):
            doubt = doubt or f"{code!r} is not run: the words before it forbid it"
        elif not doubt and (not after or _PASSES.fullmatch(after)):
            if is_word and not set("./") & set(code) and shutil.which(code) is None:
                doubt = f"{code!r} is not run: there is no such program here"
                continue
            return Reading(code if name.lower() in _PROOFS else name, code)
        elif not is_word:
            doubt = doubt or f"{code!r} is not run: it may succeed without {plain(after)!r}"
    return Reading(plain(text), "", doubt)


def _is_command(code: str) -> bool:
    words = list(dropwhile(_ASSIGNMENT.match, code.split()))
    if not words or not _PROGRAM.fullmatch(words[0]):
        return False
    if len(words) > 1:
        return not _COMPARES.fullmatch(words[1])
    # `true` is a value: as a command it would prove anything.
    return words[0] != "true" and _WORD.fullmatch(words[0]) is not None


def joined(commands: list[str], line: int) -> str:
    """One command that succeeds if each of these does."""
    commands = list(dict.fromkeys(commands))
    if len(commands) > 1:  # what has several parts, or changes the directory, keeps to itself
        commands = [f"({it})" if re.search(r"[;&#]|\|\|", it) else it for it in commands]
    command = " && ".join(commands)
    if len(command) > LONGEST_COMMAND:
        raise Unreadable(line, f"a command of more than {LONGEST_COMMAND} characters")
    if display(command.replace("\t", " ")) != command.replace("\t", " "):
        raise Unreadable(line, "a command with characters that cannot be seen")
    return command


def shell_lines(lines: list[str], first: int) -> Iterator[tuple[int, str, str]]:
    """Each command of a shell fence: its line, the comment above it, and the command."""
    has_prompts = any(line.lstrip().startswith("$ ") for line in lines)
    begun, name, start = "", "", first
    for line, raw in enumerate([*lines, ""], first):
        text = raw.strip()
        if not begun:
            start = line
            if text.startswith("#"):
                name = text.strip("#! ")
            if not text or text.startswith("#") or (has_prompts and not text.startswith("$ ")):
                continue
        command = joined([begun + text.removeprefix("$ ").removesuffix("\\").strip()], start)
        begun = f"{command} " if text.endswith(("\\", "|", "&&")) else ""
        if begun or not command.strip():
            continue
        try:
            shlex.split(command)
        except ValueError:  # a quotation goes on
            command = "("
        if _PARTIAL.match(command):
            what = "a command over several lines: join them with &&, or put them into a script"
            raise Unreadable(start, what)
        yield start, name, command
        name = ""
