"""Check the client: its version and limits, and whether its shell finds and may run gsd-fsm."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gsd_fsm.config.program import program_by_path
from gsd_fsm.config.search_path import find_programs, program_directories
from gsd_fsm.core.hook.clients import CAP, QUIET_SINCE, block_cap
from gsd_fsm.core.system import home
from gsd_fsm.install import permissions
from gsd_fsm.install.checks.row import Row
from gsd_fsm.install.hook_entries import DEFAULT_CAP, cap_in
from gsd_fsm.install.interpreter import in_venv
from gsd_fsm.install.trial_run import run

CLIENT = "claude"
_INSTALL = "npm install --global @anthropic-ai/claude-code"
_PATIENCE = 10.0
_VERSION = re.compile(rb"\s*(\d+)\.(\d+)\.(\d+)")


def check_client(start: str, documents: dict[str, Any], init: str) -> Iterator[Row]:
    """Yield the results about the client; `init` is the command that installs the hook here."""
    problem = path_problem(start)
    fix = path_fix(start) if problem else ""
    yield Row("here", "gsd-fsm on PATH", "note" if problem else "ok", problem or "found", fix)
    yield check_version(start)
    _, text = cap_of(documents)
    yield Row("here", "client's cap", "ok", text)
    yield from _check_permissions(documents, f"{init} --allow")


def check_version(start: str) -> Row:
    """Ask the client on the PATH for its version."""

    def note(text: str, fix: str) -> Row:
        return Row("here", "client", "note", text, fix)

    program = next(find_programs(start, CLIENT), None)
    if program is None:
        return note(f"{CLIENT} is not on the PATH", _INSTALL)
    ran = run([program, "--version"], b"", Path(tempfile.gettempdir()), os.environ, _PATIENCE)
    found = _VERSION.match(ran.out)
    if found is None:
        return note(f"{program} --version: {ran.problem or 'not a version'}", _INSTALL)
    numbers = tuple(map(int, found.groups()))
    version, oldest = (".".join(map(str, it)) for it in (numbers, QUIET_SINCE))
    if numbers < QUIET_SINCE:
        text = f"version {version} shows each refused stop as an error; {oldest} does not"
        return note(text, f"{CLIENT} update")
    return Row("here", "client", "ok", f"version {version}, {program}")


def path_problem(start: str) -> str:
    """Return why the shell of an agent may not find the command gsd-fsm, or ""."""
    found = list(find_programs(start, "gsd-fsm"))
    if not found:
        return f"gsd-fsm is not on the PATH: suggested commands use {program_by_path()}"
    if all(map(in_venv, found)):
        return f"gsd-fsm is only in a virtual environment ({found[0]}): agents may not find it"
    return ""


def path_fix(start: str) -> str:
    """Return the command that puts gsd-fsm on the PATH of this user."""
    (program, *more) = shlex.split(program_by_path())
    places = [Path(home(), ".local", "bin"), Path(home(), "bin"), Path("/usr/local/bin")]
    on_path = {*program_directories(start)}
    usable = (it for it in places if it in on_path and os.access(it, os.W_OK))
    link = next((it / "gsd-fsm" for it in usable if _is_free(it / "gsd-fsm")), None)
    if sys.platform == "win32" or more or link is None:
        return "pipx install gsd-fsm"
    return shlex.join(["ln", "-sf", program, str(link)])


def _is_free(link: Path) -> bool:
    return link.is_symlink() or not link.exists()


def cap_of(documents: dict[str, Any]) -> tuple[int, str]:
    """Return how many blocks in a row the client accepts (0: any number), and a text with the source."""
    found = [(where, cap_in(document)) for where, document in documents.items()]
    # Settings take precedence over the environment, and later files over earlier ones.
    for where, value in [*reversed(found), ("the environment", os.environ.get(CAP))]:
        if value is not None:
            cap = block_cap("claude", value)
            return cap, f"{cap or 'any number of'} blocks in a row, from {where}"
    return DEFAULT_CAP, f"{DEFAULT_CAP} blocks in a row (default)"


def _check_permissions(documents: dict[str, Any], fix: str) -> Iterator[Row]:
    for where, document in documents.items():
        if permissions.EVERYTHING in permissions.allowed_in(document):
            text = f"{permissions.EVERYTHING} lets agents run any command, as a check of a new loop"
            yield Row(where, "permissions", "note", text, fix)
            return
    if permissions.permits(documents.values()):
        text = "the client runs the commands that loops name without asking"
        yield Row("here", "permissions", "ok", text)
    else:
        yield Row("here", "permissions", "note", "the client asks before each command", fix)
