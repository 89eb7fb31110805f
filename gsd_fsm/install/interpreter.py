"""Choose the Python that runs the hook: an absolute path that outlives virtual environments."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.config.search_path import Place, existing_program, find_programs
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.syscalls import explain

OLDEST = (3, 8)
PATIENCE = 30.0
# How the hook is run: without user site-packages, PYTHON… variables and the import of `site`.
SWITCHES = ("-I", "-S")
LASTING = "Choose one that stays, e.g.: gsd-fsm init --python /usr/bin/python3"
_IDENTIFY = (
    "import json, sys; "
    "real = getattr(sys, '_base_executable', None) or sys.executable; "
    "print(json.dumps([sys.version_info[:3], sys.implementation.cache_tag, real]))"
)
_SCRIPTS = (".bat", ".cmd", ".ps1", ".sh", ".vbs")


class Interpreter(NamedTuple):
    path: str
    version: str
    tag: str


def choose(given: str | None, start: Place = ".") -> Interpreter:
    """Return the interpreter asked for, else one that lasts; resolve shims and environments.

    Run no Python of the project around `start`, unless it was asked for by its path.
    """
    if given is not None:
        return _resolve(_named(given, start))
    problems, at_risk = [], []
    for path in _candidates(start):
        try:
            found = _resolve(path)
        except UsageError as error:
            problems.append(error.message)
            continue
        if not risk(found.path):
            return found
        at_risk.append(found)
    if at_risk:
        return at_risk[0]
    raise UsageError(f"no suitable Python found: {'; '.join(problems)}", LASTING)


def _named(given: str, start: Place) -> str:
    path = Path(start, given).absolute()
    is_path = len(Path(given).parts) > 1
    found = existing_program(path) if is_path else next(find_programs(start, given), None)
    if found is None:
        raise UsageError(f"{given} is not a program", LASTING)
    return found


def _candidates(start: Place) -> Iterator[str]:
    """Yield the base of the running Python, then every Python on the PATH."""
    others = find_programs(start, "python3", "python")
    base = getattr(sys, "_base_executable", "")
    yield from dict.fromkeys(path for path in (base, sys.executable, *others) if path)


def _resolve(path: str) -> Interpreter:
    """Return the real interpreter behind a shim, a link or a virtual environment."""
    found, real = (None, path) if is_store_stub(path) else ask(path)
    if problem := flaw(real):
        raise UsageError(f"{real} {problem}", LASTING)
    return found if found is not None and real == path else ask(real)[0]


def ask(path: str) -> tuple[Interpreter, str]:
    """Run this Python; return its facts and the path of the interpreter behind it."""
    try:
        done = subprocess.run(
            [path, *SWITCHES, "-c", _IDENTIFY],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )
        version, tag, real = json.loads(done.stdout.decode("ascii"))
        found = Interpreter(path, ".".join(map(str, version)), str(tag))
    except OSError as error:
        raise UsageError(f"{path} cannot be run: {explain(error)}", LASTING) from error
    except (subprocess.SubprocessError, ValueError, TypeError) as error:
        raise UsageError(f"{path} is not a Python interpreter", LASTING) from error
    if tuple(version) < OLDEST:
        raise UsageError(f"{path} is Python {found.version}; the hook needs 3.8 or newer", LASTING)
    return found, str(real)


def flaw(path: str) -> str:
    """Return why the hook must not be run by this program, or ""."""
    if is_store_stub(path):
        return "is the Microsoft Store's placeholder for Python"
    if not Path(path).is_absolute():
        return "is not an absolute path"
    if not Path(path).is_file():
        return "does not exist"
    if _is_script(path):
        return "is a script that starts Python (a shim)"
    if in_venv(path):
        return "belongs to a virtual environment, which may be deleted"
    return ""


def risk(path: str) -> str:
    """Return why this Python may not last, or ""; there may be no better one."""
    is_conda = any((above / "conda-meta").is_dir() for above in Path(path).parents[:2])
    return "belongs to a conda environment, which may be deleted" if is_conda else ""


def in_venv(program: str) -> bool:
    return any((above / "pyvenv.cfg").is_file() for above in Path(program).parents[:2])


def is_store_stub(path: str) -> bool:
    """Return whether Windows would open the Microsoft Store instead of running a Python."""
    return "\\windowsapps\\" in path.replace("/", "\\").lower()


def _is_script(path: str) -> bool:
    if path.lower().endswith(_SCRIPTS):
        return True
    try:
        with Path(path).open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False  # an unreadable program may still be executable
