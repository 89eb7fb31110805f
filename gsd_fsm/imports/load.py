"""Read the loop of another tool from a file, and detect the format from its content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gsd_fsm.core.errors import NotFound, UsageError
from gsd_fsm.documents.front_matter import split_front_matter
from gsd_fsm.documents.json_text import read_object
from gsd_fsm.documents.read import decode, read_bytes
from gsd_fsm.imports import (
    from_phase_state,
    from_ralph,
    from_state,
    from_state_md,
    from_task,
    from_workflow_state,
)
from gsd_fsm.imports.findings import Findings, OldLoop

MAX_BYTES = 1 << 20
Reader = Callable[[dict[str, Any], Findings], OldLoop]
_HINT = "Fix the file, or let the tool that wrote it write it again."
_KNOWN = (
    "Name a .gsd/STATE.md, .opti-gsd/state.json, .loop/workflow-state.json, .loop/state.json, "
    ".claude/ralph-loop.local.md or a task of the client; the file may have another name."
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
        read = _reader(document)
        if read is not None:
            return read(document, findings)
    front = split_front_matter(text, findings.file, _HINT)
    keys = front.keys() if front else []
    if front and "loop" in keys:
        return from_state_md.read_state_md(front, findings)
    if front and len(from_ralph.MEMBERS.intersection(keys)) > 1:
        return from_ralph.read_ralph(front, findings)
    raise UsageError(f"{findings.file}: unknown loop format", _KNOWN)


def _reader(document: dict[str, Any]) -> Reader | None:
    """Return the reader of the format that most members belong to, at least two; None if unclear."""
    loop = document.get("loop")
    within = from_phase_state.LOOP_MEMBERS & loop.keys() if isinstance(loop, dict) else ()
    counts: dict[Reader, int] = {
        from_state.read_state: len(from_state.MEMBERS & document.keys()),
        from_workflow_state.read_workflow_state: len(from_workflow_state.MEMBERS & document.keys()),
        from_phase_state.read_phase_state: len(from_phase_state.MEMBERS & document.keys())
        + len(within),
        from_task.read_task: len(from_task.MEMBERS & document.keys()),
    }
    most = max(counts.values())
    found = [read for read, count in counts.items() if count == most]
    return found[0] if most > 1 and len(found) == 1 else None
