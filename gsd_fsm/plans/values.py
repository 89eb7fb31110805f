"""Values of a plan that Markdown and JSON spell differently, in one shape."""

from __future__ import annotations

import re
import textwrap

from gsd_fsm.plans.plan import Check

QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|`([^`]+)`|(?<!\S)'([^']+)'(?![\w])")
_COMMANDS = {"command", "cmd", "run", "shell", "bash"}
# These may be told in words instead: "All tests pass" is no command.
_TOLD = {"test", "lint", "build", "typecheck", "ci", "e2e"}
_ACTIONS = {
    **dict.fromkeys(("create", "add", "new", "write"), "create"),
    **dict.fromkeys(("modify", "edit", "update", "change"), "modify"),
    **dict.fromkeys(("delete", "remove"), "delete"),
}
# What a check about a file names first, in quotes or not.
_FILE = re.compile(r"(?:the )?(?:file )?(?:\"[^\"]*\"|“[^”]*”|`[^`]*`|'[^']*'|\S+)", re.IGNORECASE)
_SAYS_MORE = re.compile(
    r"\b(contains?|references?|includes?|has|describes?|explains?)\b", re.IGNORECASE
)
_TITLE = 200


def quoted_texts(text: str) -> list[str]:
    """What a check quotes, and so wants to find word for word."""
    return [next(filter(None, found.groups())) for found in QUOTED.finditer(text)]


def check_of(kind: str, text: str, command: str | None, line: int) -> Check:
    """A check as it can be carried out: what nobody can decide by machine is manual."""
    kind, said = kind.strip().lower(), " ".join(text.split())
    if command and command.strip():
        return Check("command", said or " ".join(command.split()), dedented(command), line)
    if said and (kind in _COMMANDS or (kind in _TOLD and not said[0].isupper())):
        return Check("command", said, dedented(text), line)
    named = _FILE.match(said) if kind == "file" else None
    claimed = said[named.end() :] if named else said
    quotes = bool(quoted_texts(claimed))
    if kind == "file" and not quotes and not _SAYS_MORE.search(claimed):
        return Check("file", said, None, line)
    if kind in ("file", "content") and quotes:
        return Check("content", said, None, line)
    return Check("manual", said, None, line)


def names_in(text: str) -> tuple[str, ...]:
    """A list that may be written with commas, blanks or lines; 'none' is an empty one."""
    return _listed(re.split(r"[\s,]+", text))


def items_in(text: str) -> tuple[str, ...]:
    """A list whose items may have blanks: written with commas or lines; 'none' is an empty one."""
    return _listed(re.split(r"[\n,]", text))


def _listed(items: list[str]) -> tuple[str, ...]:
    found = [name for item in items if (name := item.strip().removeprefix("- ").strip())]
    return () if [name.lower() for name in found] == ["none"] else tuple(found)


def tests_wanted(text: str) -> str:
    """Whether a task is test-driven: true, false, or existing."""
    word = text.strip().lower()
    return word if word in ("true", "existing") else "false"


def file_action(text: str) -> str:
    """What becomes of a file: create, modify or delete; "" where nobody says so."""
    return _ACTIONS.get(text.strip().lower(), "")


def commit_type(text: str) -> str:
    """The first word of a commit message: "feat" unless the plan has another."""
    word = text.strip().lower()
    return word if re.fullmatch(r"[a-z]{1,20}", word) and word != "auto" else "feat"


def number_of(text: str) -> int:
    """The number of a wave; 0 for what is none."""
    return int(text) if re.fullmatch(r"[0-9]{1,6}", text) else 0


def phase_of(value: object) -> int | str | None:
    """A phase as a loop names it: a number where it is one; None where none is said."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    text = str(value).strip()
    if text.lower() in ("", "null", "~", "none"):
        return None
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else text


def title_of(title: str, action: str) -> str:
    """The title, or the first line of what is to be done."""
    lines = (" ".join(line.split()) for line in (title or action).splitlines())
    return next(filter(None, lines), "")[:_TITLE]


def dedented(text: str) -> str:
    """The text without the indent that all its lines share, and without blank lines around it."""
    first, newline, rest = text.partition("\n")
    if first.strip():  # it begins beside its tag, where it has no indent to share
        return f"{first.lstrip()}{newline}{textwrap.dedent(rest)}".rstrip()
    return textwrap.dedent(rest).lstrip("\n").rstrip()
