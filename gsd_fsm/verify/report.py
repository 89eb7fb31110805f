"""Write the report of a round: VERIFICATION.md for people and agents, verification.json for scripts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import CannotWrite, GsdError, UsageError
from gsd_fsm.core.loop.state import Loop, open_gaps
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.documents.elements import escape
from gsd_fsm.documents.files import Change, write_change
from gsd_fsm.documents.markdown import code_block, escape_markdown
from gsd_fsm.documents.read import Missing, Unreadable, read_inside
from gsd_fsm.verify.strategy import STRATEGIES, iteration_of, strategy_of

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan
    from gsd_fsm.verify.gaps import Result

NAME, AGENTS, JSON = "VERIFICATION.md", "VERIFICATION.agent.md", "verification.json"
MARKER = "<!-- written by gsd-fsm -->"
_GAP = ("id", "kind", "file", "description", "evidence", "reopened", "round", "check")


def report_facts(loop: Loop, results: list[Result], *, passed: bool) -> dict[str, Any]:
    """Return the content of verification.json."""
    gaps = [loop.gaps[gap_id] for gap_id in open_gaps(loop)]
    return {
        "loop": loop.id,
        "phase": loop.phase,
        "round": loop.round,
        "max_rounds": loop.limits.max_rounds,
        "status": "passed" if passed else "gaps_found",
        "checks": [result.facts() for result in results],
        "gaps": [
            {**{name: getattr(gap, name) for name in _GAP}, "strategy": strategy_of(gap.kind)}
            for gap in gaps
        ],
        "manual": manual_checks(results),
    }


def manual_checks(results: list[Result]) -> list[dict[str, Any]]:
    """Return the manual checks."""
    return [
        {"key": result.key, "task": result.task, "text": result.text}
        for result in results
        if result.passed is None
    ]


def markdown(facts: dict[str, Any], plan: Plan | None) -> str:
    """Return VERIFICATION.md; quoted text cannot look like a part of the document."""
    phase = f"Phase {_cell(str(facts['phase']))} " if facts["phase"] is not None else ""
    most = facts["max_rounds"]
    lines = [MARKER, f"# {phase}Verification", ""]
    lines += [f"**Status:** {facts['status']}", ""]
    lines += [f"Round {facts['round']}{f' of {most}' if most else ''} of loop {facts['loop']}.", ""]
    if facts["checks"]:
        lines += ["## Checks", "", *_table(facts["checks"]), ""]
    lines += ["## Gaps", "", _gaps(facts), ""]
    if facts["manual"]:
        lines += ["## Manual checks", ""]
        lines += [f"- [ ] {_cell(it['task'])}: {_cell(it['text'])}" for it in facts["manual"]]
        lines.append("")
    if plan and plan.must_haves:
        lines += ["## Must-haves", "", *(f"- {_cell(text)}" for text in plan.must_haves), ""]
    return "\n".join(lines)


def _table(checks: list[dict[str, Any]]) -> list[str]:
    words = {True: "passed", False: "**missed**", None: "manual"}
    lines = ["| Task | Kind | What | Result | Seconds |", "|---|---|---|---|---|"]
    for check in checks:
        task = check["task"] or check["key"].replace(":", " ").replace("ci", "CI", 1)
        cells = (_cell(task), check["kind"], _cell(check["text"]), words[check["passed"]])
        lines.append(f"| {' | '.join(cells)} | {check['seconds']:.1f} |")
    return lines


def _cell(text: str) -> str:
    return escape_markdown(text).replace("|", "\\|")


def _gaps(facts: dict[str, Any]) -> str:
    if not facts["gaps"]:
        return "None."
    iteration = iteration_of(facts["round"], facts["max_rounds"])
    lines = ["<gaps>"]
    for gap in facts["gaps"]:
        # `read_gaps` rejects unknown kinds.
        kind = gap["kind"] if gap["kind"] in STRATEGIES else "other"
        lines.append(f'  <gap id="{gap["id"]}" type="{kind}" iteration="{iteration}">')
        for name in ("file", "description", "evidence"):
            text = escape(display(gap[name] or "", lines=True))
            lines += [f"    <{name}>{text}</{name}>"] if text else []
        lines.append("  </gap>")
    lines.append("</gaps>")
    return code_block("\n".join(lines), "xml")


def report_directory(project: Path, plan: Plan | None, phase: int | str | None) -> Path:
    """Return the real directory of the reports; raise UsageError if it is outside the project."""
    from gsd_fsm.plans.find import artefacts

    found = artefacts(project, plan.path if plan else project, phase)
    real = Path(os.path.realpath(found))
    if not real.is_relative_to(os.path.realpath(project)):
        raise UsageError(
            f"{found} points outside the project: {real}", "Replace it with a directory."
        )
    return real


def read_report(project: Path, directory: Path) -> bytes | None:
    """Return VERIFICATION.md, None if there is none; raise UsageError if it cannot be read."""
    return _content(project, directory / NAME)


def _content(project: Path, path: Path) -> bytes | None:
    try:
        return read_inside(project, os.path.relpath(path, os.path.realpath(project)))
    except Missing:
        return None
    except Unreadable as error:
        raise UsageError(error.message, "Rename or remove it.") from error


def is_own_report(content: bytes) -> bool:
    return content.removeprefix(b"\xef\xbb\xbf").startswith(MARKER.encode())


def write_report(
    project: Path, directory: Path, facts: dict[str, Any], plan: Plan | None, found: bytes | None
) -> Path:
    """Write both files, and keep a VERIFICATION.md of an agent as VERIFICATION.agent.md.

    `found` is its content when it was read; raise CannotWrite if it has changed since.
    """
    import json

    def replace(name: str, content: bytes) -> None:
        write_change(Change(directory / name, _content(project, directory / name), content))

    try:
        if found is not None and not is_own_report(found):
            replace(AGENTS, found)
        write_change(Change(directory / NAME, found, markdown(facts, plan).encode()))
        replace(JSON, (json.dumps(facts, indent=2) + "\n").encode())
    except GsdError as error:
        raise CannotWrite(
            f"round {facts['round']} is recorded, but its report is not written: {error.message}",
            f"{error.hint} Then run: {command_line('status', facts['loop'])}",
        ) from error
    return directory / NAME
