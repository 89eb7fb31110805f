"""Pages for people, and plain text and JSON that are printed without importing `rich`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import AGENT, Here

TERMINAL = {"FORCE_COLOR": "1"}  # as if standard output were one


def imported(here: Here, *args: str, env: dict[str, str]) -> set[str]:
    """Run a command that must succeed; return the modules that it has imported."""
    found = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), **env}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gsd_fsm", *args], cwd=here.root, env=found,
        capture_output=True, input=b"{}", timeout=60, check=True,
    )  # fmt: skip
    return {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}


@pytest.mark.parametrize(
    ("command", "env"),
    [
        ("next", TERMINAL), ("next --json", TERMINAL), ("status --json", TERMINAL),
        ("statusline", TERMINAL), ("statusline --json", TERMINAL), ("ps --json", TERMINAL),
        ("why --json", TERMINAL), ("history --json", TERMINAL), ("pause", TERMINAL),
        ("status", {}), ("status", {**TERMINAL, **AGENT}), ("status", {**TERMINAL, "TERM": "dumb"}),
        ("", {}), ("", {**TERMINAL, **AGENT}), ("ps", {}), ("--help", TERMINAL),
    ],
)  # fmt: skip
def test_rich_is_not_imported_unless_a_person_reads_a_page(
    here: Here, command: str, env: dict[str, str]
) -> None:
    here.start("goal", "g", "--criterion", "a")
    here.ok("iterate")
    modules = imported(here, *command.split(), env=env)
    assert "gsd_fsm.cli" in modules
    assert not {it for it in modules if it.split(".")[0] == "rich"}
    if command in ("next", "next --json", "status --json", "statusline"):
        assert not {it for it in modules if it.startswith("gsd_fsm.cli.display")}


@pytest.mark.parametrize("command", ["", "status", "why", "ps", "history"])
def test_page_for_a_person_is_drawn_with_rich(here: Here, command: str) -> None:
    here.start("goal", "g", "--criterion", "a")
    here.ok("iterate")
    assert "rich.console" in imported(here, *command.split(), env=TERMINAL)
