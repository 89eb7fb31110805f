"""`.claude/ralph-loop.local.md`: a goal loop that repeats one prompt until a promise is kept.

Its tool writes and reads the front matter line by line, without escapes. So it is read here: a
promise may hold what would be no YAML.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.journal_text import GOAL
from gsd_fsm.imports.findings import Findings, OldLoop, shown
from gsd_fsm.imports.members import Members
from gsd_fsm.imports.plain import HINT, FrontMatter, scalar

MEMBERS = frozenset(("active", "iteration", "max_iterations", "completion_promise", "started_at"))
_LINE = re.compile(r"([A-Za-z_][\w-]*):[ \t]*(.*)", re.ASCII)
_BLOCK = re.compile(r"[|>][+-]?")
_LONGEST_PROMISE = 2_000


def read_ralph(front: FrontMatter, findings: Findings) -> OldLoop:
    said, blocks = _lines(front.text, findings.file)
    members = Members({name: _plain(text) for name, text in said.items()}, findings)
    if not members.flag("active", default=True):
        findings.ended("its loop is not active")
    carried: dict[str, Any] = {"iteration": members.count("iteration", needed=True) or 0}
    most = members.count("max_iterations", needed=True)
    started = members.time("started_at")
    if started is not None:
        carried["started"] = started
    # Some write the prompt here, and below it words about the file.
    above = members.take("original_prompt")
    prompt = front.body if above is None else blocks.get("original_prompt", str(above))
    start: dict[str, Any] = {"kind": "goal", "goal": findings.whole("prompt", prompt, GOAL)}
    members.take("completion_promise")
    promise = _unquoted(said.get("completion_promise", ""))
    if promise in ("", "null", "~"):
        findings.note("Without a promise, the exit signal alone ends the loop.")
    else:
        kept = findings.whole("completion_promise", promise, _LONGEST_PROMISE)
        start["criteria"] = [{"name": kept}]
        findings.note(
            "The promise is criterion 1 now: 'gsd-fsm criterion 1 met', then 'gsd-fsm exit-signal', "
            "say what <promise> said."
        )
    if members.take("session_id") is not None:
        findings.note("session_id: not carried; a loop is owned as 'gsd-fsm start' would have it.")
    members.pass_over_rest()
    start["carried"] = carried
    limits = {} if most is None else {"max_iterations": most}
    return OldLoop("ralph", start, limits, [], findings.notes)


def _lines(text: str, file: str) -> tuple[dict[str, str], dict[str, str]]:
    """What stands after each name, and the texts that stand indented below one."""
    said: dict[str, str] = {}
    below: dict[str, list[str]] = {}
    last = ""
    for number, line in enumerate(text.split("\n"), 2):
        found = _LINE.fullmatch(line.rstrip())
        if found is not None:
            last = found[1]
            if last in said:
                raise UsageError(f"{file}:{number}: {last}: it is named twice", HINT)
            said[last] = found[2]
        elif not line.strip() or (line[0] in " \t-" and last):
            below.setdefault(last, []).append(line)
        elif not line.startswith("#"):
            raise UsageError(f"{file}:{number}: {shown(line)} is not 'name: value'", HINT)
    blocks = {
        name: textwrap.dedent("\n".join(lines)).strip()
        for name, lines in below.items()
        if _BLOCK.fullmatch(said.get(name, ""))
    }
    return said, blocks


def _plain(text: str) -> Any:
    unquoted = _unquoted(text)
    return scalar(text) if unquoted == text else unquoted


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1] if text[0] == '"' else text[1:-1].replace("''", "'")
    return text
