"""Describe the change of a file: as a diff, or in one line."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import click

from gsd_fsm.core.system import home
from gsd_fsm.core.text.questions import plural
from gsd_fsm.core.text.redact import redact
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.documents.files import Change
from gsd_fsm.documents.json_text import NotJson, root
from gsd_fsm.install.hook_entries import EVENTS, SWITCH, cap_in, ours
from gsd_fsm.install.permissions import allowed_in
from gsd_fsm.install.status_line import our_status_line

_LONGEST_LINE = 200
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def shown(change: Change) -> list[str]:
    """Return the change as a diff; for programs and removed files, only the name."""
    name = display(str(change.path))
    if has_diff(change):
        return _diff(change, name)
    return [f"Removes {name}" if change.after is None else _written(change, name)]


def has_diff(change: Change) -> bool:
    return change.after is not None and change.path.suffix not in (".py", ".png")


def _written(change: Change, name: str) -> str:
    action = "Writes" if change.before is None else "Replaces"
    return f"{action} {name} ({plural(len(change.after or b''), 'byte')})"


def _diff(change: Change, name: str) -> list[str]:
    """Return the changed lines, without secrets in the lines beside them."""
    old, new = (
        (text or b"").decode("utf-8", "replace").splitlines()
        for text in (change.before, change.after)
    )
    return [
        click.style(display(redact(line))[:_LONGEST_LINE], fg=_COLOURS.get(line[:1]))
        for line in difflib.unified_diff(old, new, name, name, lineterm="")
    ]


def short_path(path: Path, start: str) -> str:
    """Return a path relative to this directory, or to the home as ~."""
    for above, mark in ((Path(start), ""), (Path(home()), "~/")):
        if path.is_relative_to(above) and path != above:
            return display(f"{mark}{path.relative_to(above).as_posix()}")
    return display(str(path))


def summarised(change: Change, start: str) -> str:
    """Return one line about the change of a file."""
    name = short_path(change.path, start)
    if change.path.suffix == ".py":
        return _written(change, name)
    contents = (change.before, change.after)
    old, new = ("" if it is None else it.decode("utf-8-sig", "replace") for it in contents)
    try:
        before, after = (root(text or "{}").value for text in (old, new))
    except NotJson:
        return _of_patterns(old.splitlines(), new.splitlines(), name)
    return f"Removes {name}" if change.after is None else f"{_of_settings(before, after)} in {name}"


def _of_patterns(old: list[str], new: list[str], name: str) -> str:
    """Return one line about a file that lists patterns for git."""
    added = [it for it in new if it not in old]
    first, *more = added or [it for it in old if it not in new]
    lines = f"{display(first)}{f' and {len(more)} more' if more else ''}"
    return f"Adds {lines} to {name}" if added else f"Removes {lines} from {name}"


def _of_settings(old: Any, new: Any) -> str:
    hook = f"one hook for {plural(len(EVENTS), 'event')}"
    parts = [*_action(ours(old), ours(new), hook)]
    if cap_in(old) != cap_in(new):
        parts.append(f"sets the client's cap to {cap_in(new) or 'its default'}")
    parts += _action(our_status_line(old), our_status_line(new), "the status line")
    before, after = (allowed_in(document) for document in (old, new))
    for action, rules in (("adds", {*after} - {*before}), ("removes", {*before} - {*after})):
        parts += [f"{action} {plural(len(rules), 'permission rule')}"] if rules else []
    parts += [f"removes {SWITCH}"] if SWITCH in old and SWITCH not in new else []
    words = " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    return f"{words[:1].upper()}{words[1:]}"


def _action(old: object, new: object, what: str) -> list[str]:
    if old == new:
        return []
    return [f"{'updates' if old and new else 'adds' if new else 'removes'} {what}"]
