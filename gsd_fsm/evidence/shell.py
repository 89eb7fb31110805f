"""Choose the shell that runs checks: one that reads them as they were written, or none."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from gsd_fsm.config.search_path import Place, existing_program, find_programs, outside_of
from gsd_fsm.config.settings import load, user_file
from gsd_fsm.core.errors import UsageError

UNIX_SHELL = "/bin/sh"
GIT_BASH = "CLAUDE_CODE_GIT_BASH_PATH"
_PLACES = (r"C:\Program Files\Git\bin\bash.exe", r"C:\Program Files (x86)\Git\bin\bash.exe")
_POSIX_SHELLS = ("bash", "bash.exe", "sh", "sh.exe")
_CMD = ("cmd", "cmd.exe", "command.com")
_COMMAND = "GSD_FSM_COMMAND"


def find_shell(project: Place) -> str:
    """Return the shell that the user's `check_shell` names, else /bin/sh, on Windows Git Bash.

    Raise UsageError, with the setting in its hint, if there is none. cmd.exe is refused: it runs
    nothing after -c, and only one line after its own option, so a check could pass that never ran.
    """
    wanted = load(None)["check_shell"].value
    if wanted is not None:
        path, remedy = Path(wanted), f"Change it in {user_file()}"
        if path.name.lower() in _CMD:
            raise UsageError(f"check_shell cannot be cmd.exe: {wanted}", remedy)
        if existing_program(path) is None:
            raise UsageError(f"check_shell is not a program: {wanted}", remedy)
        return str(wanted)
    if sys.platform != "win32":
        return UNIX_SHELL
    found = next(_git_bashes(project), None)
    if found is None:
        raise UsageError(
            "no shell for checks: Git Bash was not found",
            f"Install Git for Windows, or set a shell in {user_file()}: "
            r"check_shell = 'C:\path\to\bash.exe'",
        )
    return found


def _git_bashes(project: Place) -> Iterator[str]:
    """Yield each bash of Git for Windows, in the order in which Claude Code looks for it."""
    is_outside = outside_of(project)
    for bash in _places(project):
        if bash.is_absolute() and bash.is_file() and is_outside(bash.parent):
            yield str(bash)


def _places(project: Place) -> Iterator[Path]:
    named = Path(os.environ.get(GIT_BASH, ""))
    if named.name.lower() in _POSIX_SHELLS:
        yield named
    yield from map(Path, _PLACES)
    for git in find_programs(project, "git"):
        folder = Path(git).parent  # `cmd`, `bin` or `mingw64\bin` of the installation
        yield folder.parent / "bin" / "bash.exe"
        yield folder.parent.parent / "bin" / "bash.exe"


def arguments(shell: str, command: str) -> tuple[list[str], dict[str, str]]:
    """Return the arguments that make a shell run a command, and the variables that this needs.

    On Windows, a program splits its own command line, and the shells of Git split it at line feeds
    and halve backslashes. A variable reaches them as it is.
    """
    if sys.platform == "win32" and Path(shell).name.lower() in _POSIX_SHELLS:
        return [shell, "-c", f'eval "${_COMMAND}"'], {_COMMAND: command}
    return [shell, "-c", command], {}
