"""Verify loops through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.command_line import Here
from tests.support.small_plans import document, lay, task

FILE = task("01", [("file", "a.txt exists"), ("content", 'It says "yes"')], "a.txt")
PLACE = Path(".gsd/plans/phase-1")


def start_verify(here: Here, *tasks: str, mode: str = "yolo", **settings: str | int) -> str:
    """Start a verify loop of phase 1 with this plan; return its id."""
    lay(here.root, {f"{PLACE}/plan.md": document(*tasks)})
    if settings:
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
        lay(here.root, {".gsd/config.toml": "".join(lines)})
    return here.start("verify", "--phase", "1", "--mode", mode)


def failed_round(here: Here, *args: str) -> Any:
    """Run a round that does not pass; return its JSON answer."""
    answer = here.run("verify", "--json", *args)
    assert answer.code == 7, answer
    return answer.json
