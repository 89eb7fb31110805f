"""Every loop that the hook holds ends: in no life are there more blocks than the limits allow."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import ACTIVE
from gsd_fsm.history.replay import Replay
from tests.support.faults import torture
from tests.support.hook_project import HookProject, blocks, is_of_a_client, run_hook, said
from tests.support.lives import CLIENT_CAP, Ledger, Life, Said, Stage, events_of

MEMORY = Path("/dev/shm")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: the disk's patience is not what is tested."""
    for name in filter(is_of_a_client, list(os.environ)):
        monkeypatch.delenv(name)
    made = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(made / "state"))
    yield made
    shutil.rmtree(made)


def check_life(life: Life, *, compare: bool = True) -> int:
    """Live it, and compare what was printed with what is recorded; how many blocks there were."""
    life.live()
    events = events_of(life.stage)
    ends = list(
        itertools.accumulate(map(len, life.stage.file.read_bytes().splitlines(keepends=True)))
    )
    number_at = {end: number for number, end in enumerate(ends, 1)}
    _check_answers(life, events, number_at, _statuses(life, compare))
    return _check_limits(life, events, number_at)


def _check_answers(
    life: Life, events: list[Any], number_at: dict[int, int], statuses: list[str]
) -> None:
    """Every block has its event, and every such event its block, of a loop that is active."""
    printed = 0
    first: Said | None = None
    for told in life.said:
        new = events[number_at[told.before] : number_at[told.after]]
        counted = [event for event in new if event["type"] == "iteration"]
        assert [event["data"]["reason"] for event in counted] == [said(told.answer)] * len(counted)
        first = told if told.first else first
        if not told.first and told.event == "Stop":
            assert new == []
            assert first is not None
            assert told.answer == first.answer or not blocks(told.answer)
        elif blocks(told.answer):
            assert len(counted) == 1
            assert new[-1] == counted[0]
            assert statuses[number_at[told.after] - 1] in ACTIVE
        else:
            assert counted == []
        printed += len(counted)
    texts = [event["data"]["reason"] for event in events if event["type"] == "iteration"]
    assert printed == len(texts)
    assert all(one != other for one, other in itertools.pairwise(texts))


def _statuses(life: Life, compare: bool) -> list[str]:
    """The status of the loop after each event, by the fold, compared with the machine."""
    found: list[str] = []

    def see(_event: Any, loops: Loops) -> None:
        found.append(loops.by_id["lp-1"].status if loops.by_id else "idle")

    replay = Replay(Journal(str(life.stage.gsd)))
    replay.run(see)
    loop = replay.loops.by_id["lp-1"]
    for task in loop.tasks.values():
        assert task.retries <= loop.limits.max_retries
    return [*found[1:], str(loop.status)]


def _check_limits(life: Life, events: list[Any], number_at: dict[int, int]) -> int:
    ledger = Ledger(events[1]["data"], CLIENT_CAP if life.client else 0)
    signs = {number_at[size] for size in life.signs}
    for event in events[2:]:
        if event["seq"] - 1 in signs:
            ledger.sign()
        assert ledger.note(event) == ""
    return ledger.blocks


@pytest.mark.parametrize("part", range(2))
def test_no_life_has_more_blocks_than_its_limits_allow(folder: Path, part: int) -> None:
    stage = Stage(folder / "project")
    total, ends = 0, set()
    for seed in range(part * 250, part * 250 + 250):
        total += check_life(Life(stage, seed))
        ends |= {event["data"].get("code", event["type"]) for event in events_of(stage)}
    assert total > 250
    assert ends >= {"iterations", "rounds", "stuck", "idle", "budget", "minutes", "client"}
    assert ends >= {"complete", "wait", "background", "paused", "waiting", "answer", "resume"}


def test_the_same_holds_for_the_file_that_clients_run(folder: Path) -> None:
    def call(text: str, copy: str) -> dict[str, Any]:
        told = run_hook(text, copy)
        assert (told.code, told.err) == (0, "")
        return told.answer

    stage = Stage(folder / "project")
    assert sum(check_life(Life(stage, seed, call)) for seed in range(1000, 1004)) > 4


def _both_at_once(project: HookProject, rounds: int) -> None:
    """Each round one stop, told by two copies at the same time."""
    with ThreadPoolExecutor(2) as pool:
        for number in range(rounds):
            signal = project.signal(last_assistant_message=f"Turn {number}.")
            told = list(pool.map(lambda copy, text=signal: run_hook(text, copy), ("a", "b")))
            assert [run.code for run in told] == [0, 0]
            assert blocks(told[0].answer)
            assert told[0].answer == told[1].answer
            counted = [event for event in project.events() if event["type"] == "iteration"]
            assert len(counted) == number + 1
            assert counted[-1]["data"]["reason"] == said(told[0].answer)


UNLIMITED = {"max_iterations": 0, "idle_limit": 0, "stuck_limit": 0}


def test_two_copies_at_once_count_one_iteration_and_say_the_same(folder: Path) -> None:
    _both_at_once(HookProject(folder / "project", limits=UNLIMITED), 20)


@pytest.mark.parametrize("first", ["a", "ab"], ids=["one copy asked before", "both"])
@pytest.mark.parametrize("end", ["cancel", "complete"])
def test_no_copy_blocks_for_a_loop_that_has_ended(folder: Path, end: str, first: str) -> None:
    project = HookProject(folder / "project", "execute", tasks=[{"id": "T1"}])
    same = project.signal(last_assistant_message="Done.")
    assert all(blocks(run_hook(same, copy).answer) for copy in first)
    project.tell("task", "human", task="T1", status="skipped")
    project.tell(end, "human")
    assert [run_hook(same, copy).answer for copy in "ab"] == [{}, {}]


def test_no_copy_blocks_for_a_loop_that_was_paused_since(folder: Path) -> None:
    project = HookProject(folder / "project")
    same = project.signal(last_assistant_message="Done.")
    assert blocks(run_hook(same, "a").answer)
    project.tell("pause", "human", code="manual")
    assert not blocks(run_hook(same, "b").answer)


def _live_many(folder: str, seeds: range) -> int:
    os.environ["XDG_STATE_HOME"] = f"{folder}/state"
    stage = Stage(Path(folder))
    return sum(check_life(Life(stage, seed), compare=seed % 10 == 0) for seed in seeds)


@pytest.mark.torture
def test_a_hundred_thousand_lives_end(folder: Path) -> None:
    lives, part = torture(100_000), 500
    parts = [range(begin, min(begin + part, lives)) for begin in range(0, lives, part)]
    with ProcessPoolExecutor(2) as pool:
        places = (str(folder / f"project-{number}") for number in range(len(parts)))
        total = sum(pool.map(_live_many, places, parts))
    assert total > lives
    print(f"{lives} lives, {total} blocks, each with its event, none too many")


@pytest.mark.torture
def test_a_thousand_stops_told_by_two_copies_at_once(folder: Path) -> None:
    _both_at_once(HookProject(folder / "project", limits=UNLIMITED), torture(1_000))
