"""Our status line in the settings of Claude Code: how it is written, known, put in and taken out."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import gsd_fsm
from gsd_fsm.core.system import WINDOWS
from gsd_fsm.documents.json_text import drop, put, root
from gsd_fsm.install.hook_entries import items_of

STATUS_LINE = "statusLine"
# Without the PATH, without variables that change a Python, without a look into the project.
_CODE = "import sys; sys.path.append(sys.argv.pop(1)); from gsd_fsm.cli import main; main()"
_WORDS = 6  # interpreter, -I, -c, code, directory, verb; what follows are the user's options
_OPTIONS = {"--color"}


def status_line() -> str:
    """The command of our status line, as a line for the client's shell.

    It needs all of this program: that is run by the Python it is installed in, wherever that is.
    """
    python, library = Path(sys.executable).absolute(), Path(gsd_fsm.__file__).absolute().parents[1]
    # Of the shells that a client may have, none is confused by the slashes of Unix.
    return shlex.join([python.as_posix(), "-I", "-c", _CODE, library.as_posix(), "statusline"])


def started(line: str) -> list[str]:
    """How the client starts such a line."""
    return shlex.split(line) if WINDOWS else ["/bin/sh", "-c", line]


def our_status_line(document: Any) -> str:
    """The command of the status line in these settings if it is ours and nothing more, else ""."""
    command = dict(items_of(document, STATUS_LINE)).get("command")
    words = _words(command) if isinstance(command, str) else []
    ours = words[1:4] == ["-I", "-c", _CODE] and words[5:_WORDS] == ["statusline"]
    # Words that are joined differently are more than words to a shell.
    alone = ours and _OPTIONS.issuperset(words[_WORDS:]) and shlex.join(words) == command
    return str(command) if alone else ""


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []  # a quote is not closed


def has_foreign_status_line(document: Any) -> bool:
    found = document.get(STATUS_LINE) if isinstance(document, dict) else None
    return found is not None and not our_status_line(document)


def with_status_line(text: str) -> str:
    """The settings with our status line, unless another program's is there."""
    document = root(text).value
    old = our_status_line(document)
    if old:
        new = " ".join([status_line(), *_words(old)[_WORDS:]])
        return text if new == old else put(text, (STATUS_LINE, "command"), new)
    if has_foreign_status_line(document):
        return text
    return put(text, (STATUS_LINE,), {"type": "command", "command": status_line()})


def without_status_line(text: str) -> str:
    return drop(text, (STATUS_LINE,)) if our_status_line(root(text).value) else text
