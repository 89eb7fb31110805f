"""Find out how a client's shell can run gsd-fsm: by its name, else by its recorded path."""

from __future__ import annotations

from gsd_fsm.core.command_line import PROGRAM, program, set_program
from gsd_fsm.core.project import state_directory
from gsd_fsm.core.system import WINDOWS, getenv, join, system

_NAME = PROGRAM + (".exe" if WINDOWS else "")
_LONGEST = 4_096


def is_on_path() -> bool:
    """Return whether an absolute directory of the PATH has the program."""
    for directory in getenv("PATH").split(";" if WINDOWS else ":"):
        absolute = directory[1:3] in (":\\", ":/") if WINDOWS else directory.startswith("/")
        if absolute and is_program(join(directory, _NAME)):
            return True
    return False


def is_program(path: str) -> bool:
    """Return whether the path is a file that can be executed."""
    try:
        mode = system.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return mode & 0o170000 == 0o100000 and mode & 0o111 != 0


def program_file() -> str:
    """Return the path of the file with the words that run gsd-fsm by its path."""
    return join(state_directory(), "program")


def name_program() -> None:
    """Let the texts of this process name the program so that the client's shell can run it."""
    words = "" if is_on_path() else _kept()
    set_program(words or PROGRAM)


def missing_program() -> str:
    """Return the path that texts name if there is no program, else "".

    Return "" if no path was recorded: the shell of the client may find the name.
    """
    words = program()
    if words == PROGRAM:
        return ""
    path = words.partition(" -I -m ")[0]
    if path.startswith("'"):
        path = path[1:-1].replace("'\"'\"'", "'")  # as shlex.quote wrote it
    return "" if is_program(path) else path


def _kept() -> str:
    """Return the words that the last `start` or `init` kept, "" if there are none to be shown."""
    try:
        with open(program_file(), encoding="utf-8") as file:
            words = file.read(_LONGEST).strip()
    except (OSError, ValueError):
        return ""
    return words if words.isprintable() else ""
