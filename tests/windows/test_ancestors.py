"""The client above a process, found on every system."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from gsd_fsm.core.ancestors import start_time

SHOW = """
from gsd_fsm.core.ancestors import ancestors, clients_among
print(*[client.name for client in clients_among(ancestors())])
"""
START = "import subprocess, sys; subprocess.run(sys.argv[1:])"


def test_client_is_found_above_a_process_by_the_name_of_its_program(tmp_path: Path) -> None:
    python = Path(getattr(sys, "_base_executable", "") or sys.executable)
    for name in ("claude", "code"):
        program = shutil.copy(
            python, tmp_path / f"{name}{python.suffix if os.name == 'nt' else ''}"
        )
        for library in python.parent.glob("*.dll"):
            shutil.copy(library, tmp_path)
        shown = subprocess.check_output(
            [program, "-c", START, sys.executable, "-c", SHOW],
            env={**os.environ, "PYTHONHOME": sys.base_prefix}, text=True, timeout=60,
        )  # fmt: skip
        assert shown.split() == (["claude"] if name == "claude" else [])


def test_start_time_tells_a_process_from_a_younger_one() -> None:
    own = start_time(os.getpid())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        younger = start_time(child.pid)
        assert own == start_time(os.getpid()) != younger == start_time(child.pid) != ""
        child.communicate()
    assert start_time(2**31 - 2) == start_time(0) == ""
