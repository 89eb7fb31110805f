"""The `loop:` section in the front matter of `STATE.md`: an execute or verify loop."""

from __future__ import annotations

import re
from typing import Any

from gsd_fsm.documents.front_matter import FrontMatter, block_lines, load_yaml
from gsd_fsm.imports.findings import Findings, OldLoop, given
from gsd_fsm.imports.loop_section import read_retries, read_section
from gsd_fsm.imports.members import Members

_LOOP = re.compile(r"(?:loop|\"loop\"|'loop')[ \t]*:(?=\s|$)")


def read_state_md(front: FrontMatter, findings: Findings) -> OldLoop:
    """Return the loop; report problems to `findings`."""
    members = _section(front, findings)
    paused = members.flag("paused")
    runs = members.flag("active", default=True, required=True) or paused
    if not runs:
        findings.ended("the loop is neither active nor paused")
    section = read_section(members, findings, is_live=runs, paused=paused)
    start = given(
        kind=section.kind,
        phase=section.phase,
        tasks=_tasks(members.inner("task_retries"), findings) or None,
        carried=section.carried,
    )
    members.ignore_rest()
    return OldLoop("state-md", start, section.limits, section.later, findings.notes)


def _section(front: FrontMatter, findings: Findings) -> Members:
    # The rest of the front matter need not be valid YAML.
    lines = front.text.split("\n")
    block = block_lines(lines, _LOOP) or range(0)
    if front.keys().count("loop") > 1:
        findings.problem("duplicate key: loop")
    text = "\n".join(lines[block.start : block.stop])
    value = load_yaml(text, findings.file, block.start + 2)
    return Members(value or {}, findings).inner("loop", required=True)


def _tasks(retries: Members, findings: Findings) -> list[dict[str, Any]]:
    tasks = [{"id": name, "retries": it} for name, it in read_retries(retries, findings).items()]
    if tasks:
        findings.note(
            "loop.task_retries: the file does not contain the status of its tasks, nor tasks that "
            "never failed. All tasks are pending. For a task that is done, run: gsd-fsm task ID "
            "skipped. To add a task, run: gsd-fsm task ID pending"
        )
    return tasks
