"""Which Python runs the hook: absolute, real, and still there when a virtual environment is gone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.syscalls import explain

OLDEST = (3, 8)
PATIENCE = 30.0
# How the hook is started: no user site, no PYTHON… variables, nothing imported that it does not need.
SWITCHES = ("-I", "-S")
_HINT = "name one that stays, such as: gsd-fsm init --python /usr/bin/python3"
_WHO = (
    "import json, sys; "
    "real = getattr(sys, '_base_executable', None) or sys.executable; "
    "print(json.dumps([sys.version_info[:3], sys.implementation.cache_tag, real]))"
)
_SCRIPTS = (".bat", ".cmd", ".ps1", ".sh", ".vbs")


class Interpreter(NamedTuple):
    path: str
    version: str
    tag: str


def choose(given: str | None) -> Interpreter:
    """The Python asked for, else one that lasts; never a shim, never a venv's."""
    if given is not None:
        program = shutil.which(given)
        if program is None:
            raise UsageError(f"{given} is no program that can be run", _HINT)
        return _behind(str(Path(program).absolute()))
    reasons, passing = [], []
    for path in _candidates():
        found = _or_reason(path)
        if not isinstance(found, Interpreter):
            reasons.append(found)
        elif fleeting(found.path):
            passing.append(found)
        else:
            return found
    if passing:
        return passing[0]
    raise UsageError(f"no Python that lasts was found: {'; '.join(reasons)}", _HINT)


def _candidates() -> Iterator[str]:
    """The Python that this program stands on, then all those on the PATH."""
    directories = [each for each in os.get_exec_path() if Path(each).is_absolute()]
    names = (shutil.which(name, path=at) for at in directories for name in ("python3", "python"))
    base = getattr(sys, "_base_executable", "")
    seen = set()
    for path in (base, sys.executable, *names):
        if path and path not in seen:
            seen.add(path)
            yield path


def _or_reason(path: str) -> Interpreter | str:
    try:
        return _behind(path)
    except UsageError as error:
        return error.message


def ask(path: str) -> tuple[Interpreter, str]:
    """What the program there says of itself, and the path of the Python that it really is."""
    try:
        done = subprocess.run(
            [path, *SWITCHES, "-c", _WHO],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )
        version, tag, real = json.loads(done.stdout.decode("ascii"))
        found = Interpreter(path, ".".join(map(str, version)), str(tag))
    except OSError as error:
        raise UsageError(f"{path} cannot be run: {explain(error)}", _HINT) from error
    except (subprocess.SubprocessError, ValueError, TypeError) as error:
        raise UsageError(f"{path} does not answer as a Python does", _HINT) from error
    if tuple(version) < OLDEST:
        raise UsageError(f"{path} is Python {found.version}; the hook needs 3.8 or newer", _HINT)
    return found, str(real)


def flaw(path: str) -> str:
    """Why the hook should not be started by this program, "" if there is no reason."""
    if is_store_stub(path):
        return "is the Microsoft Store's stand-in for a Python"
    if not Path(path).is_absolute():
        return "is not an absolute path"
    if not Path(path).is_file():
        return "does not exist"
    if _is_script(path):
        return "is a script that looks for a Python at every start (a shim)"
    if in_venv(path):
        return "belongs to a virtual environment, which may vanish"
    return ""


def fleeting(path: str) -> str:
    """Why this Python may be gone one day, "" if nothing says so; there may be no better one."""
    conda = any((above / "conda-meta").is_dir() for above in Path(path).parents[:2])
    return "belongs to a conda environment, which may vanish" if conda else ""


def in_venv(program: str) -> bool:
    return any((above / "pyvenv.cfg").is_file() for above in Path(program).parents[:2])


def is_store_stub(path: str) -> bool:
    """Whether Windows would open its shop, or refuse, instead of running a Python."""
    return "\\windowsapps\\" in path.replace("/", "\\").lower()


def _is_script(path: str) -> bool:
    if path.lower().endswith(_SCRIPTS):
        return True
    try:
        with Path(path).open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False  # that it cannot be read does not say that it cannot be run


def _behind(path: str) -> Interpreter:
    """The real interpreter behind a shim, a link or a virtual environment."""
    real = path if is_store_stub(path) else ask(path)[1]
    if problem := flaw(real):
        raise UsageError(f"{real} {problem}", _HINT)
    return ask(real)[0]
