"""A document of the project, as far as a prompt has room for it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from gsd_fsm.verification.inside import Missing, Unreadable, read_inside

MOST_BYTES = 64 * 1024
_LEAST = 400  # less of a document is no help


class Document(NamedTuple):
    """A text, and the path in the project at which all of it can be read."""

    path: str
    text: str


def read_document(project: Path, path: str) -> Document | None:
    """The document, None if there is none; Unreadable if it is no text inside of the project."""
    try:
        content = read_inside(project, path)
    except Missing:
        return None
    if b"\0" in content:
        raise Unreadable(f"{path}: not a text")
    text = content[:MOST_BYTES].decode("utf-8-sig", "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if len(content) > MOST_BYTES:
        text = text.rstrip("\ufffd") + _cut_note(path)
    return Document(path, text) if text else None


def names_in(directory: Path) -> list[str]:
    """What a directory holds, in order; nothing if it is none."""
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except OSError:
        return []


def spelled(project: Path, directory: str, name: str) -> str:
    """The path of this name as the directory spells it: `conventions.md` may be in capitals."""
    found = [entry for entry in names_in(project / directory) if entry.lower() == name.lower()]
    return f"{directory}/{name if name in found or not found else found[0]}"


def shortened(document: Document, room: int) -> str:
    """The text in this room: cut at a line where it can be, and saying so."""
    text = document.text
    if len(text) <= room:
        return text
    if room < _LEAST:
        return f"[left out for want of room; read {document.path}]"
    note = _cut_note(document.path)
    kept = text[: room - len(note)]
    line = kept.rfind("\n")
    return (kept[:line] if line > len(kept) // 2 else kept).rstrip() + note


def _cut_note(path: str) -> str:
    return f"\n…[cut here; the rest is in {path}]"
