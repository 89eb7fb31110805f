"""Add our status line to the text of Claude Code's settings, find it, and remove it again."""

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
# Independent of the PATH, of variables that change Python, and of files in the project.
_CODE = "import sys; sys.path.append(sys.argv.pop(1)); from gsd_fsm.cli import main; main()"
_WORDS = 6  # interpreter, -I, -c, code, directory, command; options of the user may follow
_OPTIONS = {"--color"}


def command() -> str:
    """Return the command of our status line for the client's shell.

    It needs this whole program, so it runs with the Python in which that is installed.
    """
    python, library = Path(sys.executable).absolute(), Path(gsd_fsm.__file__).absolute().parents[1]
    # Every shell that a client may use understands the slashes of Unix.
    return shlex.join([python.as_posix(), "-I", "-c", _CODE, library.as_posix(), "statusline"])


def to_arguments(line: str) -> list[str]:
    """Return the arguments with which the client runs such a line."""
    return shlex.split(line) if WINDOWS else ["/bin/sh", "-c", line]


def our_status_line(document: Any) -> str:
    """Return the command of the status line if it is ours and nothing more, else ""."""
    command = dict(items_of(document, STATUS_LINE)).get("command")
    words = _words(command) if isinstance(command, str) else []
    is_ours = words[1:4] == ["-I", "-c", _CODE] and words[5:_WORDS] == ["statusline"]
    # If joining the words gives another text, a shell would do more than run them.
    is_alone = _OPTIONS.issuperset(words[_WORDS:]) and shlex.join(words) == command
    return str(command) if is_ours and is_alone else ""


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []  # a quote is not closed


def has_foreign_status_line(document: Any) -> bool:
    found = document.get(STATUS_LINE) if isinstance(document, dict) else None
    return found is not None and not our_status_line(document)


def add(text: str) -> str:
    """Return the settings with our status line, unless they have another program's."""
    document = root(text).value
    old = our_status_line(document)
    if old:
        new = " ".join([command(), *_words(old)[_WORDS:]])
        return text if new == old else put(text, (STATUS_LINE, "command"), new)
    if has_foreign_status_line(document):
        return text
    return put(text, (STATUS_LINE,), {"type": "command", "command": command()})


def remove(text: str) -> str:
    return drop(text, (STATUS_LINE,)) if our_status_line(root(text).value) else text
