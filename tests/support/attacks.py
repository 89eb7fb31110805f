"""Loops whose agent attacks what proves the work, instead of doing it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from tests.support.command_line import AGENT_A, A, Here
from tests.support.events import write
from tests.support.repositories import git

# The work that every check of these loops asks for, and that nobody does.
RUN = "test -e done.txt\n"
FAKE = "#!/bin/sh\nexit 0\n"
# A task whose check is the script.
TASK = (
    '<task id="01" wave="1"><files><file>a.py</file></files><action>A</action>'
    '<verify><check type="command">sh run.sh</check></verify><done>D</done></task>\n'
)
Env = dict[str, str]


def begin(here: Here, check: str, *options: str, files: dict[str, str] | None = None) -> str:
    """Commit these files, and start a goal loop with the check, as a user in the agent's session."""
    (here.root / "code.py").unlink()  # as a module it would take the place of Python's
    for name, content in (files or {}).items():
        write(here.root / name, content).chmod(0o755)
    git(here.root, "add", "-A")
    git(here.root, "commit", "-qm", "project", "--allow-empty")
    return here.start("goal", "g", "--mode", "yolo", "--check", f"t={check}", *options, env=A)


def attempt(here: Here, env: Env | None = None, *, check: str = "check") -> Any:
    """Let the agent run the checks and complete; return what the proof shows of it."""
    agent = {**AGENT_A, **(env or {})}
    here.run(check, env=agent)
    here.run("complete", env=agent)
    return here.ok("proof", "--json").json


def proven(proof: Any) -> Any:
    """Return the evidence of the only check of a completed loop."""
    assert proof["status"] == "completed", proof
    (check,) = proof["proven"]
    return check


def assert_altered(proof: Any, path: str) -> None:
    """Require that the loop did not complete, and that its proof names the altered file."""
    assert proof["status"] != "completed", proof
    assert [it["path"] for it in proof["altered"]] == [path]
    assert f"protected file is altered: {path}" in proof["missing"]


def fake_program(directory: Path, name: str, text: str = FAKE) -> Env:
    """Make a program; return the variables with which it is found first."""
    write(directory / name, text).chmod(stat.S_IRWXU)
    return {"PATH": f"{directory}{os.pathsep}{os.environ['PATH']}"}
