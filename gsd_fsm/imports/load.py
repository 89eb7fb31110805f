"""From a file to the loop in it: read safely, its format seen from its content."""

from __future__ import annotations

from pathlib import Path

from gsd_fsm.core.errors import NotFound, UsageError
from gsd_fsm.documents.read import read_bytes
from gsd_fsm.imports import from_ralph, from_state, from_workflow_state
from gsd_fsm.imports.findings import Findings, OldLoop
from gsd_fsm.imports.plain import HINT, object_in, split

MOST_BYTES = 1 << 20
_KNOWN = (
    "known are .gsd/STATE.md, .loop/workflow-state.json, .loop/state.json and "
    ".claude/ralph-loop.local.md, whatever they are called"
)


def load_loop(path: Path, file: str) -> OldLoop:
    """The loop in this file, which messages call `file`.

    NotFound if there is none; UsageError, telling all that is wrong, if no loop runs in it.
    """
    if not path.exists():
        raise NotFound(f"there is no file {file}", "name the file in which the other tool keeps it")
    return read_loop(read_bytes(path, MOST_BYTES, _KNOWN), file)


def read_loop(content: bytes, file: str) -> OldLoop:
    """The loop in this content of a file."""
    text = _text(content, file)
    findings = Findings(file)
    old = _read(text, findings)
    findings.settle()
    return old


def _text(content: bytes, file: str) -> str:
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{file}:{line}: not valid UTF-8", HINT) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise UsageError(f"{file}:{line}: a NUL character: this is no text", HINT)
    return text


def _read(text: str, findings: Findings) -> OldLoop:
    if text.lstrip()[:1] == "{":
        document = object_in(findings.file, text)
        goal = len(from_state.MEMBERS & document.keys())
        workflow = len(from_workflow_state.MEMBERS & document.keys())
        if max(goal, workflow) > 1 and goal != workflow:
            if goal > workflow:
                return from_state.read_state(document, findings)
            return from_workflow_state.read_workflow_state(document, findings)
    front = split(findings.file, text)
    if front is not None:
        if "loop" in front.names():
            from gsd_fsm.imports.from_state_md import read_state_md

            return read_state_md(front, findings)
        if len(from_ralph.MEMBERS.intersection(front.names())) > 1:
            return from_ralph.read_ralph(front, findings)
    raise UsageError(f"{findings.file} is no loop of a known format", _KNOWN)
