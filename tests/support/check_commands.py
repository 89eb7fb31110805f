"""Commands for checks: Python source, and a process that a test can observe."""

from __future__ import annotations

import os
import socket
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

# A process that a test observes: it connects to a socket and lives until the socket is closed.
WATCHED = """
import os, signal, socket, sys
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
line.settimeout(90)
line.sendall(b"!")
if line.recv(1) == b"w":
    for _ in range(200):
        os.write(1, bytes(10000))
    line.sendall(b"w")
    line.recv(1)
"""
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, *sys.argv[1:]])
"""


class Watch:
    """Observe whether the watched process is alive, without process ids."""

    def __init__(self, folder):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(AGES)
        self.line = None
        self.port = self.server.getsockname()[1]
        (folder / "watched.py").write_text(WATCHED)

    def command(self, *words):
        return f'"{sys.executable}" watched.py {self.port} ' + " ".join(words)

    def greet(self):
        self.line, _ = self.server.accept()
        self.line.settimeout(AGES)
        assert self.line.recv(1) == b"!"

    def has_greeted(self):
        self.server.setblocking(False)
        try:
            self.greet()
        except BlockingIOError:
            return False
        return True

    def is_dead(self):
        try:
            return self.line.recv(1) == b""
        except ConnectionResetError:
            return True

    def is_alive(self):
        self.line.setblocking(False)
        try:
            return self.line.recv(1) != b""
        except BlockingIOError:
            return True

    def can_go_on_writing(self):
        self.line.settimeout(AGES)
        self.line.sendall(b"w")
        return self.line.recv(1) == b"w"

    def close(self):
        for it in (self.line, self.server):
            if it:
                it.close()


@pytest.fixture
def watch(tmp_path):
    watch = Watch(tmp_path)
    yield watch
    watch.close()


@pytest.fixture
def python(tmp_path):
    """Return a function that makes a command line from Python source."""

    def command(source, *words):
        script = tmp_path / f"script{len(list(tmp_path.iterdir()))}.py"
        script.write_text("import os, sys\n" + source)
        return f'"{sys.executable}" {script.name} ' + " ".join(words)

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
