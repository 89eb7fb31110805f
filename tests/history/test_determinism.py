"""The same journal gives the same state on every Python, with and without a snapshot."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

import pytest

from gsd_fsm.core.codec import dumps
from gsd_fsm.core.journal.snapshot import loops_from_dict, loops_to_dict
from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.fold import Loops
from tests.support.chaos import run_random_story
from tests.support.command_line import Project
from tests.support.golden import DIRECTORY, NAMES, journal_bytes
from tests.support.hook_project import interpreters
from tests.support.story import Story, error_of, frozen

ROOT = Path(__file__).parents[2]
FOLD = """
import sys
sys.path.insert(0, sys.argv[1])
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.journal.scan import Cursor, into_fold, scan
from gsd_fsm.core.journal.snapshot import pack
for path in sys.argv[2:]:
    with open(path, "rb") as file:
        data = file.read()
    loops = Loops()
    at = scan(lambda at, n: data[at:at + n], len(data), Cursor(), into_fold(loops))
    print(at.sum, loops.seq, dumps([pack(loop) for loop in loops.by_id.values()]))
"""


@pytest.mark.parametrize("name", ["v1/execute", "v2/execute", "v1/goal"])
def test_replay_is_equal_for_every_hash_seed(name: str, project: Project) -> None:
    project.gsd.mkdir(mode=0o700)
    project.journal.write_bytes(journal_bytes(name))
    project.journal.chmod(0o600)
    outputs = {
        project.ok("replay", "--json", "--events", env={"PYTHONHASHSEED": str(seed)}).out
        for seed in range(5)
    }
    assert len(outputs) == 1


def test_golden_journals_fold_alike_on_every_python() -> None:
    pythons = interpreters()
    assert pythons
    journals = [str(DIRECTORY / f"{name}.jsonl") for name in NAMES]
    outputs = {}
    for python in pythons:
        command = [python, "-I", "-S", "-B", "-c", FOLD, str(ROOT), *journals]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, (python, done.stderr.decode())
        outputs[python] = done.stdout
    assert len(set(outputs.values())) == 1, outputs
    for name in NAMES:
        assert journal_bytes(name)[-19:-3] in outputs[pythons[0]]


def through_a_snapshot(loops: Loops) -> Loops:
    return loops_from_dict(parse_json(dumps(loops_to_dict(loops))), loops.ended_ids())


def folded(events: list[dict[str, object]], loops: Loops) -> Loops:
    for event in events:
        loops.apply(event)
    return loops


@pytest.mark.parametrize("name", NAMES)
def test_fold_through_snapshots_equals_whole_fold(name: str) -> None:
    events = [parse_json(line.decode("ascii")) for line in journal_bytes(name).splitlines()]
    whole = folded(events, Loops())
    for cut in range(1, len(events), max(1, len(events) // 40)):
        first = folded(events[:cut], Loops())
        second = folded(events[cut:], through_a_snapshot(first))
        assert frozen(second) == frozen(whole)


@pytest.mark.parametrize("seed", range(25))
def test_random_history_continues_from_snapshot(seed: int) -> None:
    loops, _ = run_random_story(Random(seed), 80)
    copy = through_a_snapshot(loops)
    assert frozen(copy) == frozen(loops)
    story = Story(loops=None)
    names = [*loops.by_id, *loops.ended_ids().decode().split()]
    for event in (story.event("cancel", _loop=name) for name in names):
        answers = [error_of(each.apply, {**event, "seq": each.seq + 1}) for each in (loops, copy)]
        assert answers[0] == answers[1]
