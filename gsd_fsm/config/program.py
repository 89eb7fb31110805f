"""How this program is called: by its name, or by its path where a client does not find the name."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from gsd_fsm.core.command_line import PROGRAM
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.program import is_on_path, is_program, program_file
from gsd_fsm.core.project import make_directories
from gsd_fsm.core.system import WINDOWS

_SCRIPT = PROGRAM + (".exe" if WINDOWS else "")


def program_here() -> str:
    """Return the words with which a shell like that of the caller runs this program."""
    return PROGRAM if is_on_path() else program_by_path()


def program_by_path() -> str:
    """Return the POSIX shell words that run this program by its path.

    They name the console script, else the interpreter.
    """
    for path in _scripts():
        if is_program(str(path)):
            return shlex.quote(path.absolute().as_posix())
    # -I: no file of the project is imported instead.
    return f"{shlex.quote(Path(sys.executable).absolute().as_posix())} -I -m gsd_fsm"


def _scripts() -> Iterator[Path]:
    called = Path(sys.argv[0] if sys.argv else "")
    if called.name.lower() in (PROGRAM, _SCRIPT):
        yield called.with_name(_SCRIPT)
    yield Path(sys.executable).with_name(_SCRIPT)
    import sysconfig

    yield Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")), _SCRIPT)


def keep_program() -> None:
    """Keep the words for the hook, which cannot find this program; without them it uses the name."""
    from gsd_fsm.documents.files import Change, current_content, write_change

    words = program_by_path()
    if not words.isprintable():
        return
    path = Path(program_file())
    with contextlib.suppress(GsdError, OSError):
        make_directories(str(path.parent))
        change = Change(path, current_content(path), f"{words}\n".encode(), private=True)
        if change.before != change.after:
            write_change(change)


def forget_program() -> None:
    with contextlib.suppress(OSError):
        Path(program_file()).unlink(missing_ok=True)
