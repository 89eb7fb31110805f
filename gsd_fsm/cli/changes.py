"""How a change of files looks before it is made: line by line, by name, and in one sentence."""

from __future__ import annotations

import difflib

import click

from gsd_fsm.cli.voice import counted
from gsd_fsm.core.text.redact import redact
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.files import Change
from gsd_fsm.json_text import root
from gsd_fsm.registration import EVENTS, cap_in, ours
from gsd_fsm.status_line import our_status_line

LONGEST_LINE = 200
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def shown(change: Change, *, in_full: bool) -> list[str]:
    """The lines that differ, or the name alone: of programs, and of what is to go."""
    by_lines = in_full and change.after is not None and change.path.suffix != ".py"
    return _diff(change) if by_lines else _name(change)


def summary(settings: Change) -> str:
    """The whole change of the settings in one line, as a long diff ends anywhere."""
    if settings.before == settings.after:
        return ""
    old, new = _document(settings.before), _document(settings.after)
    what = []
    if ours(old) != ours(new):
        verb = "renews" if ours(old) else "adds"
        what.append(f"{verb} one command for {counted(len(EVENTS), 'event')}")
    if cap_in(old) != cap_in(new):
        what.append(f"raises the client's cap to {cap_in(new)}")
    if our_status_line(old) != our_status_line(new):
        what.append(f"{'renews' if our_status_line(old) else 'adds'} the status line")
    at = "to" if what[0].startswith("adds") else "in"
    words = " and ".join(filter(None, [", ".join(what[:-1]), what[-1]]))
    return (
        f"{words[:1].upper()}{words[1:]} {at} {display(str(settings.path))}; nothing else changes."
    )


def _document(content: bytes | None) -> object:
    return {} if content is None else root(content.decode("utf-8-sig")).value


def _name(change: Change) -> list[str]:
    name = display(str(change.path))
    if change.after is None:
        return [f"removes {name}"]
    verb = "writes" if change.before is None else "replaces"
    return [f"{verb} {name} ({counted(len(change.after), 'byte')})"]


def _diff(change: Change) -> list[str]:
    """The change line by line, without secrets that stand nearby."""
    name = display(str(change.path))
    old, new = (
        (text or b"").decode("utf-8", "replace").splitlines()
        for text in (change.before, change.after)
    )
    return [
        click.style(display(redact(line))[:LONGEST_LINE], fg=_COLOURS.get(line[:1]))
        for line in difflib.unified_diff(old, new, name, name, lineterm="")
    ]
