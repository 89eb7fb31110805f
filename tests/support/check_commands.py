"""Commands for checks, and what became of their processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.evidence.interruption import Output

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")

AGES = 30


@pytest.fixture
def python(tmp_path):
    """Return a function that makes a command line from Python source."""

    def command(source):
        script = tmp_path / f"script{len(list(tmp_path.iterdir()))}.py"
        script.write_text("import os, sys\n" + source)
        return f'"{sys.executable}" {script.name}'

    return command


def write(text):
    return f"sys.stdout.buffer.write({text.encode()!r})"


def wait_for(path: Path) -> None:
    """Wait until the file exists."""
    deadline = time.monotonic() + AGES
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} was not created"
        time.sleep(0.01)


def ends(group: int) -> bool:
    """Return whether every process of the group ends within five seconds."""
    for _ in range(500):
        if not _runs(group):
            return True
        time.sleep(0.01)
    return False


def _runs(group: int) -> bool:
    """Return whether a process of the group is running; zombies have ended."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    listed = subprocess.check_output(["ps", "-eo", "pgid=,stat="], text=True)
    rows = [row.split() for row in listed.splitlines()]
    return any(int(of) == group and not stat.startswith("Z") for of, stat in rows)


def watching(**methods: Any) -> Any:
    """Return a `watch` argument: its output has these methods instead of its own."""
    output = Output()
    vars(output).update(methods)
    return lambda: nullcontext(output)
