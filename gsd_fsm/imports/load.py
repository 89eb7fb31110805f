"""Read the loop of another tool from a file, and detect the format from its content."""

from __future__ import annotations

from pathlib import Path

from gsd_fsm.core.errors import NotFound, UsageError
from gsd_fsm.documents.front_matter import split_front_matter
from gsd_fsm.documents.json_text import read_object
from gsd_fsm.documents.read import decode, read_bytes
from gsd_fsm.imports import from_ralph, from_state, from_state_md, from_workflow_state
from gsd_fsm.imports.findings import Findings, OldLoop

MAX_BYTES = 1 << 20
_HINT = "Fix the file, or let the tool that wrote it write it again."
_KNOWN = (
    "Name a .gsd/STATE.md, .loop/workflow-state.json, .loop/state.json or "
    ".claude/ralph-loop.local.md; the file may have another name."
)


def load_loop(path: Path, file: str) -> OldLoop:
    """Return the running loop in this file, which messages call `file`.

    Raise NotFound if there is no file, and UsageError with all problems if it has no such loop.
    """
    if not path.exists():
        raise NotFound(f"missing file: {file}", _KNOWN)
    return read_loop(read_bytes(path, MAX_BYTES, _KNOWN), file)


def read_loop(content: bytes, file: str) -> OldLoop:
    """Return the running loop in the content of a file, as `load_loop` does."""
    findings = Findings(file)
    old = _read(decode(content, file, _HINT), findings)
    findings.finish()
    return old


def _read(text: str, findings: Findings) -> OldLoop:
    if text.lstrip()[:1] == "{":
        document = read_object(text, findings.file, _HINT)
        goal = len(from_state.MEMBERS & document.keys())
        workflow = len(from_workflow_state.MEMBERS & document.keys())
        if goal > max(workflow, 1):
            return from_state.read_state(document, findings)
        if workflow > max(goal, 1):
            return from_workflow_state.read_workflow_state(document, findings)
    front = split_front_matter(text, findings.file, _HINT)
    keys = front.keys() if front else []
    if front and "loop" in keys:
        return from_state_md.read_state_md(front, findings)
    if front and len(from_ralph.MEMBERS.intersection(keys)) > 1:
        return from_ralph.read_ralph(front, findings)
    raise UsageError(f"{findings.file}: unknown loop format", _KNOWN)
