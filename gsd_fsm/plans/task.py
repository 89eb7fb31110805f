"""Make a plan and its tasks from their members, as Markdown and JSON spell them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.documents.markdown import quotations
from gsd_fsm.documents.read import Object
from gsd_fsm.plans.phase_name import phase_of
from gsd_fsm.plans.plan import INVALID_WAVE, Check, PlanDraft, PlanFile, PlanTask, task_name

_COMMANDS = ("command", "cmd", "run", "shell", "bash")
# These may be described in words: "All tests pass" is not a command.
_DESCRIBED = ("test", "lint", "build", "typecheck", "ci", "e2e")
_TYPES = ("file", "content", "manual", *_COMMANDS, *_DESCRIBED)
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
_LONGEST_WORD = 80


def read_header(found: Object, draft: PlanDraft) -> None:
    """Take everything but waves and tasks from the members of a plan."""
    draft.phase = phase_of(found.get("phase"))
    draft.title = _one_line(text_of(first_of(found, "title", "name")))
    draft.estimated_tokens = text_of(found.get("estimated_tokens")) or None
    draft.counts = {
        "wave_count": found.get("wave_count", found.get("total_waves")),
        "task_count": found.get("task_count", found.get("total_tasks")),
    }
    listed = found.get("must_haves")
    listed = listed.get("truths") if isinstance(listed, Object) else listed
    draft.must_haves = tuple(filter(None, (_one_line(text_of(it)) for it in items_of(listed))))


def make_task(found: Object, wave: int, draft: PlanDraft) -> PlanTask:
    """Return the task with these members; `wave` counts if it names none.

    Report empty checks, and types of checks and actions on files that are not known.
    """
    number, line = text_of(found.get("id")), found.line_of("id")
    action = dedent("\n" + _lines(first_of(found, "action", "description")))
    titles = (text_of(first_of(found, "title", "name")) or action).splitlines()
    own_wave = text_of(found.get("wave"))
    kind = text_of(found.get("type")).lower()
    is_kind = re.fullmatch(r"[a-z]{1,20}", kind) and kind != "auto"
    required = found.get("test_required")
    tests = "true" if required is True else text_of(required).lower()
    depends = names_of(first_of(found, "depends", "depends_on", "dependsOn", "blockedBy"))
    return PlanTask(
        id=task_name(number),
        number=number,
        title=next(filter(None, map(_one_line, titles)), "")[:_TITLE],
        wave=wave if found.get("wave") in (None, "") else wave_number(own_wave),
        depends=tuple(dict.fromkeys(map(task_name, depends))),
        files=tuple(_file(item, draft) for item in items_of(found.get("files"))),
        action=action,
        libraries=names_of(found.get("libraries"), r"[\n,]"),
        checks=tuple(_checks(items_of(found.get("verify")), line, draft)),
        done=_one_line(_lines(found.get("done"))),
        skills=names_of(found.get("skills")),
        reqs=_one_line(", ".join(map(text_of, items_of(found.get("reqs"))))),
        test_required=tests if tests in ("true", "existing") else "false",
        test_files=tuple(_file(item, draft).path for item in items_of(found.get("test_files"))),
        commit_type=kind if is_kind else "feat",
        line=line,
    )


def _checks(items: list[Any], line: int, draft: PlanDraft) -> Iterator[Check]:
    for item in items:
        if isinstance(item, Object):
            text = first_of(item, "check", "text", "value", "description")
            command = text_of(first_of(item, "cmd", "command"), strip=False)
            kind = _known_word(item, "type", "check type", _TYPES, draft)
            written = text_of(text, strip=False) if text else _claim(item)
            check = check_of(kind, written, command, item.line_of("id"))
        else:
            check = check_of("", text_of(item), "", line)
        if check.text:
            yield check
        else:
            draft.report(check.line, "a check is empty")


def _claim(item: Object) -> str:
    """Return the text of a check that has its file, and the text to find in it, as members."""
    path = text_of(first_of(item, "path", "file"))
    wanted = text_of(first_of(item, "contains", "pattern", "content"))
    return f'{path} contains "{wanted}"' if wanted else path


def check_of(kind: str, text: str, command: str, line: int) -> Check:
    """Return the check as it can be run; it is manual if no program can decide it."""
    kind, claim = kind.lower(), _one_line(text)
    if command.strip():
        return Check("command", claim or _one_line(command), dedent(command), line)
    if claim and (kind in _COMMANDS or (kind in _DESCRIBED and not claim[0].isupper())):
        return Check("command", claim, dedent(text), line)
    named = _FILE.match(claim) if kind == "file" else None
    claimed = claim[named.end() :] if named else claim
    quotes = bool(quotations(claimed))
    if kind == "file" and not quotes and not _SAYS_MORE.search(claimed):
        return Check("file", claim, None, line)
    if kind in ("file", "content") and quotes:
        return Check("content", claim, None, line)
    return Check("manual", claim, None, line)


def _file(item: Any, draft: PlanDraft) -> PlanFile:
    if not isinstance(item, Object):
        return PlanFile(text_of(item), "")
    action = _known_word(item, "action", "file action", tuple(_ACTIONS), draft)
    return PlanFile(text_of(first_of(item, "path", "file")), _ACTIONS.get(action, ""))


def _known_word(
    found: Object, key: str, what: str, known: tuple[str, ...], draft: PlanDraft
) -> str:
    """Return this member in lower case, "" if it says nothing; report a word that is not known."""
    value = found.get(key)
    word = text_of(value).lower()
    if word and word not in known:
        near = _closest(word[:_LONGEST_WORD], known)
        words = f"unknown {what} {word[:_LONGEST_WORD]!r} (did you mean {near!r}?)"
        draft.report_unknown(found.line_of(key), words)
    elif not word and value is not None and not isinstance(value, str):
        draft.report_unknown(found.line_of(key), f"the {what} is not a word")
    return word


@lru_cache
def _closest(word: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches  # expensive for plans without a mistake

    return get_close_matches(word, known, 1, cutoff=0)[0]


def first_of(found: Object, *names: str) -> Any:
    """Return the first of these members that says something."""
    return next((found[name] for name in names if found.get(name) not in (None, "")), None)


def items_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def names_of(value: Any, separator: str = r"[\s,]+") -> tuple[str, ...]:
    """Return the names in a list, or in a text with separators; none for "none"."""
    items = value if isinstance(value, list) else re.split(separator, text_of(value))
    found = [name for item in items if (name := text_of(item).removeprefix("- ").strip())]
    return () if [name.lower() for name in found] == ["none"] else tuple(found)


def text_of(value: Any, *, strip: bool = True) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return clean(str(value)).strip() if strip else clean(str(value))


def wave_number(text: str) -> int:
    """Return the number of a wave, or INVALID_WAVE."""
    return int(text) if re.fullmatch(r"[0-9]{1,6}", text) else INVALID_WAVE


def dedent(text: str) -> str:
    """Return the text without the common indent of its lines and without blank lines around it."""
    first, newline, rest = text.partition("\n")
    if first.strip():  # it begins right after its tag, without indent
        return f"{first.lstrip()}{newline}{textwrap.dedent(rest)}".rstrip()
    return textwrap.dedent(rest).lstrip("\n").rstrip()


def _lines(value: Any) -> str:
    return "\n".join(text_of(item, strip=False) for item in items_of(value))


def _one_line(text: str) -> str:
    return " ".join(text.split())
