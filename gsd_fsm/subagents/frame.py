"""The elements of a prompt: whatever text stands in one, it cannot end it.

The plan and the project's documents are the user's own words and stay as they are, code and all;
only what would close one of our elements is blunted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gsd_fsm.core.text.quoting import one_line
from gsd_fsm.core.text.sanitize import clean, display

ELEMENTS = (
    "context", "project", "conventions", "task", "files", "file", "test_required", "test_files",
    "action", "libraries", "verify", "check", "done", "tdd_cycle", "max_attempts", "test_command",
    "phase", "allowed_files", "locked_files", "goal", "success_condition", "on_failure",
    "on_complete", "skills", "skill", "context7", "known_issues", "mcps", "browser", "rules",
    "rule", "previous_attempt", "error", "tdd_attempts", "analysis", "suggested_fix", "attempt",
    "decision", "question", "answer", "left_out", "output",
)  # fmt: skip
_END = re.compile(rf"<(\s*)/(?=\s*(?:{'|'.join(ELEMENTS)})(?![\w:.-]))", re.IGNORECASE)
BLUNTED = "<\\/"
_EMOJI_STYLE = str.maketrans("", "", "\ufe0e\ufe0f")  # they only choose between two glyphs


def framed(text: str) -> str:
    """A text of the user's that may stand in an element: visible all through, and without its end."""
    text = clean(text).replace("\r\n", "\n").translate(_EMOJI_STYLE)
    return _END.sub(r"<\1\\/", display(text.strip("\n"), lines=True))


def element(name: str, body: str, /, **attributes: str) -> str:
    """The element, "" if there is nothing to stand in it."""
    if not body.strip():
        return ""
    glue = "\n" if "\n" in body else ""
    return f"<{name}{_named(attributes)}>{glue}{body}{glue}</{name}>"


def block(name: str, parts: Iterable[str], /, **attributes: str) -> str:
    """An element of parts with a line for each; "" if there are none."""
    body = lines(*parts)
    return f"<{name}{_named(attributes)}>\n{body}\n</{name}>" if body else ""


def empty_element(name: str, /, **attributes: str) -> str:
    return f"<{name}{_named(attributes)}/>"


def lines(*parts: str) -> str:
    """The parts that are not empty, one below the other."""
    return "\n".join(part for part in parts if part)


def _named(attributes: dict[str, str]) -> str:
    return "".join(f' {key}="{_attribute(value)}"' for key, value in attributes.items() if value)


def _attribute(value: str) -> str:
    flat = one_line(value, 500).replace("&", "&amp;").replace('"', "&quot;")
    return flat.replace("<", "&lt;").replace(">", "&gt;")
