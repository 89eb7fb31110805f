"""Write the prompt of a subagent that judges what no command can decide."""

from __future__ import annotations

from gsd_fsm.core.loop.completion import open_verdicts
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.text.sanitize import fenced

_PROMPT = """\
You are a reviewer. Judge each claim below by looking at the files and by running what shows it.
Change nothing. Whoever fixed a gap cannot judge it, so you must not have worked on these.

{claims}

A claim passes only if you saw that it is true. If you are not sure, it fails.

End your last message with one line for each claim, and nothing after them:
{lines}
"""


def review_prompt(loop: Loop, nonce: str) -> str:
    """Return the complete prompt of the reviewer; the same input gives the same text."""
    due = open_verdicts(loop)
    claims = [fenced(f"{it.kind} {it.id}", it.text or it.id, nonce, 600) for it in due]
    lines = [f"VERDICT {it.id} PASS|FAIL: what shows it" for it in due]
    return _PROMPT.format(claims="\n".join(claims), lines="\n".join(lines))
