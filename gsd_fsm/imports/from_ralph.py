"""`.claude/ralph-loop.local.md`: a goal loop that repeats one prompt until a promise is kept.

Its tool writes and reads the front matter line by line, without escapes. So does this reader: a
promise may contain text that is not valid YAML.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

from gsd_fsm.documents.front_matter import FrontMatter, scalar_value
from gsd_fsm.documents.journal_text import GOAL
from gsd_fsm.documents.read import Malformed
from gsd_fsm.imports.findings import Findings, OldLoop, given
from gsd_fsm.imports.members import Members, shown

MEMBERS = frozenset(("active", "iteration", "max_iterations", "completion_promise", "started_at"))
_LINE = re.compile(r"([A-Za-z_][\w-]*):[ \t]*(.*)", re.ASCII)
_LONGEST_PROMISE = 2_000


def read_ralph(front: FrontMatter, findings: Findings) -> OldLoop:
    """Return the loop; report problems to `findings`."""
    values, blocks = _lines(front.text, findings.file)
    members = Members({name: _value(text) for name, text in values.items()}, findings)
    if not members.flag("active", default=True):
        findings.ended("the loop is not active")
    carried = given(
        iteration=members.count("iteration", required=True) or 0, started=members.time("started_at")
    )
    limits = given(max_iterations=members.count("max_iterations", required=True))
    # Some versions write the prompt here, and a description of the file below.
    above = members.take("original_prompt")
    prompt = front.body if above is None else blocks.get("original_prompt", str(above))
    start: dict[str, Any] = {"kind": "goal", "goal": findings.whole("prompt", prompt, GOAL)}
    members.take("completion_promise")
    promise = _unquoted(values.get("completion_promise", ""))
    if promise in ("", "null", "~"):
        findings.note("There is no promise, so the exit signal alone ends the loop.")
    else:
        kept = findings.whole("completion_promise", promise, _LONGEST_PROMISE)
        start["criteria"] = [{"name": kept}]
        carried["promise"] = kept
        findings.note(
            "The promise is now criterion 1. Instead of writing <promise>, run: "
            "gsd-fsm criterion 1 met, then gsd-fsm complete"
        )
    if members.take("session_id") is not None:
        findings.note("session_id: not imported; the loop gets its owner as with gsd-fsm start.")
    members.ignore_rest()
    start["carried"] = carried
    return OldLoop("ralph", start, limits, [], findings.notes)


def _lines(text: str, file: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the text after each name, and the indented blocks below `name: |`."""
    values: dict[str, str] = {}
    below: dict[str, list[str]] = {}
    last = ""
    for number, line in enumerate(text.split("\n"), 2):
        found = _LINE.fullmatch(line.rstrip())
        if found is not None:
            last = found[1]
            if last in values:
                raise Malformed(file, number, f"duplicate key: {last}")
            values[last] = found[2]
        elif not line.strip() or (line[0] in " \t-" and last):
            below.setdefault(last, []).append(line)
        elif not line.startswith("#"):
            raise Malformed(file, number, f"{shown(line)} is not 'name: value'")
    blocks = {
        name: textwrap.dedent("\n".join(lines)).strip()
        for name, lines in below.items()
        if re.fullmatch(r"[|>][+-]?", values.get(name, ""))
    }
    return values, blocks


def _value(text: str) -> Any:
    unquoted = _unquoted(text)
    return scalar_value(text) if unquoted == text else unquoted


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1] if text[0] == '"' else text[1:-1].replace("''", "'")
    return text
