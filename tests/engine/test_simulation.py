"""Scenarios: scripts of `gsd-fsm simulate`, then `----`, then the timeline that they lead to.

To record the timelines again, run: GSD_RECORD=1 pytest tests/engine/test_simulation.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from gsd_fsm.cli import run
from gsd_fsm.core.journal.journal import JOURNAL_NAME
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.engine.simulation import Simulation, read_script, simulation
from tests.support.events import require_legal_prefixes

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios").glob("*.txt"))
assert len(SCENARIOS) >= 10
RULER = "----\n"


def play(running: Simulation, script: str) -> None:
    """Run the script; every command exits with the code that its line gives, or with 0."""
    for outcome in running.play(read_script(script)):
        assert outcome.exit_code == (outcome.step.expected or 0), outcome


def timeline(running: Simulation) -> str:
    """Return the replay and the next step, without ids, digests and times."""
    last = max(running.loops.by_id.values(), key=lambda loop: loop.last_seq)
    (replay,) = running.play(read_script("replay --all"))
    rows = replay.output.splitlines()[:-1]
    lines = [
        re.sub(r"  \d{4}-\d\d-\d\dT[\d:.]+Z| · \d+ s\b| after \d+ s$", "", row) for row in rows
    ]
    lines += [f"{running.loops.seq} events, {last.status}", "{} Run: {}".format(*next_step(last))]
    text = "\n".join(line.rstrip() for line in lines)
    for number, loop in enumerate(running.started, 1):
        text = text.replace(loop, f"{{{number}}}")
    text = re.sub(r"\bj-[a-z0-9]{12}\b", "j-…", text)
    return re.sub(r"\b[0-9a-f]{16}\b", "<digest>", text) + "\n"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario_leads_to_its_timeline_through_legal_prefixes(path: Path, tmp_path: Path) -> None:
    script, _, expected = path.read_text(encoding="utf-8").partition(RULER)
    with simulation(run) as running:
        play(running, script)
        found = timeline(running)
        journal = (running.gsd / JOURNAL_NAME).read_bytes()
    if os.environ.get("GSD_RECORD") == "1":
        path.write_text(script + RULER + found, encoding="utf-8")
        return
    assert found == expected
    require_legal_prefixes(tmp_path / "part" / ".gsd", journal)
