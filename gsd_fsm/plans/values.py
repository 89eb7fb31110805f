"""Values that plans in Markdown and in JSON have in common."""

from __future__ import annotations

import re
import textwrap

from gsd_fsm.documents.markdown import quotations
from gsd_fsm.plans.plan import INVALID_WAVE, Check, PlanFile, PlanTask, task_name

_COMMANDS = {"command", "cmd", "run", "shell", "bash"}
# These may be described in words: "All tests pass" is not a command.
_DESCRIBED = {"test", "lint", "build", "typecheck", "ci", "e2e"}
_ACTIONS = {
    **dict.fromkeys(("create", "add", "new", "write"), "create"),
    **dict.fromkeys(("modify", "edit", "update", "change"), "modify"),
    **dict.fromkeys(("delete", "remove"), "delete"),
}
# The file that a check names first, in quotes or not.
_FILE = re.compile(r"(?:the )?(?:file )?(?:\"[^\"]*\"|“[^”]*”|`[^`]*`|'[^']*'|\S+)", re.IGNORECASE)
_SAYS_MORE = re.compile(
    r"\b(contains?|references?|includes?|has|describes?|explains?)\b", re.IGNORECASE
)
_TITLE = 200


def normalized(task: PlanTask) -> PlanTask:
    """Return a task as a loop uses it, made from one with its texts as the plan has them."""
    lines = (" ".join(line.split()) for line in (task.title or task.action).splitlines())
    test_required, kind = task.test_required.strip().lower(), task.commit_type.strip().lower()
    is_kind = re.fullmatch(r"[a-z]{1,20}", kind) and kind != "auto"
    return task._replace(
        id=task_name(task.number),
        title=next(filter(None, lines), "")[:_TITLE],
        depends=tuple(dict.fromkeys(map(task_name, task.depends))),
        done=" ".join(task.done.split()),
        reqs=" ".join(task.reqs.split()),
        test_required=test_required if test_required in ("true", "existing") else "false",
        commit_type=kind if is_kind else "feat",
    )


def check_of(kind: str, text: str, command: str | None, line: int) -> Check:
    """Return the check as it can be run; it is manual if no program can decide it."""
    kind, said = kind.strip().lower(), " ".join(text.split())
    if command and command.strip():
        return Check("command", said or " ".join(command.split()), dedent(command), line)
    if said and (kind in _COMMANDS or (kind in _DESCRIBED and not said[0].isupper())):
        return Check("command", said, dedent(text), line)
    named = _FILE.match(said) if kind == "file" else None
    claimed = said[named.end() :] if named else said
    quotes = bool(quotations(claimed))
    if kind == "file" and not quotes and not _SAYS_MORE.search(claimed):
        return Check("file", said, None, line)
    if kind in ("file", "content") and quotes:
        return Check("content", said, None, line)
    return Check("manual", said, None, line)


def file_of(path: str, action: str) -> PlanFile:
    """Return the file with its action: create, modify, delete, or "" if the plan names none."""
    return PlanFile(path, _ACTIONS.get(action.strip().lower(), ""))


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in a text, separated by commas, blanks or lines; none for "none"."""
    return list_of(re.split(r"[\s,]+", text))


def split_items(text: str) -> tuple[str, ...]:
    """Return the items in a text, which may contain blanks, separated by commas or lines."""
    return list_of(re.split(r"[\n,]", text))


def list_of(items: list[str]) -> tuple[str, ...]:
    """Return the items without bullets and empty ones; none if the only one is "none"."""
    found = [name for item in items if (name := item.strip().removeprefix("- ").strip())]
    return () if [name.lower() for name in found] == ["none"] else tuple(found)


def wave_number(text: str) -> int:
    """Return the number of a wave, or INVALID_WAVE."""
    return int(text) if re.fullmatch(r"[0-9]{1,6}", text) else INVALID_WAVE


def dedent(text: str) -> str:
    """Return the text without the common indent of its lines and without blank lines around it."""
    first, newline, rest = text.partition("\n")
    if first.strip():  # it begins right after its tag, without indent
        return f"{first.lstrip()}{newline}{textwrap.dedent(rest)}".rstrip()
    return textwrap.dedent(rest).lstrip("\n").rstrip()
