"""Whole lives of loops: the hook never blocks more often than the limits allow, and always in time."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.journal.journal import JOURNAL_NAME, Journal
from gsd_fsm.core.journal.snapshot import SNAPSHOT_NAME, save_snapshot
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import ACTIVE
from gsd_fsm.core.project import register
from gsd_fsm.core.syscalls import READ, close, close_directory, open_directory, open_regular
from gsd_fsm.history.replay import Replay
from tests.support.faults import torture
from tests.support.hook_project import (
    UNLIMITED,
    HookProject,
    blocks,
    is_of_a_client,
    run_hook,
    said,
    signal_of,
)
from tests.support.lives import CLIENT_CAP, Ledger, Life, Said, Stage, events_of
from tests.support.long_journals import (
    SESSION,
    Events,
    full_goal,
    full_plan,
    full_verification,
    write_long_journal,
)

MEMORY = Path("/dev/shm")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A directory in memory if there is one: the speed of the disk is not tested."""
    for name in filter(is_of_a_client, list(os.environ)):
        monkeypatch.delenv(name)
    made = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(made / "state"))
    yield made
    shutil.rmtree(made)


def check_life(life: Life) -> int:
    """Live it, compare the answers with the events, and return the number of blocks."""
    life.live()
    events = events_of(life.stage)
    lines = life.stage.file.read_bytes().splitlines(keepends=True)
    number_at = {end: n for n, end in enumerate(itertools.accumulate(map(len, lines)), 1)}
    _check_answers(life, events, number_at, _statuses(life))
    return _check_limits(life, events, number_at)


def _check_answers(
    life: Life, events: list[Any], number_at: dict[int, int], statuses: list[str]
) -> None:
    """Assert that every block has its event and every such event its block, of an active loop."""
    printed = 0
    first: Said | None = None
    for answered in life.said:
        new = events[number_at[answered.before] : number_at[answered.after]]
        counted = [event for event in new if event["type"] == "iteration"]
        texts = [event["data"]["reason"] for event in counted]
        assert texts == [said(answered.answer)] * len(counted)
        first = answered if answered.first else first
        if not answered.first and answered.event == "Stop":
            assert new == []
            assert first is not None
            assert answered.answer == first.answer or not blocks(answered.answer)
        elif blocks(answered.answer):
            assert len(counted) == 1
            assert new[-1] == counted[0]
            assert statuses[number_at[answered.after] - 1] in ACTIVE
        else:
            assert counted == []
        printed += len(counted)
    texts = [event["data"]["reason"] for event in events if event["type"] == "iteration"]
    assert printed == len(texts)
    assert all(one != other for one, other in itertools.pairwise(texts))


def _statuses(life: Life) -> list[str]:
    """Return the status of the loop after each event, by the fold and the machine."""
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


def test_no_life_has_more_blocks_than_its_limits_allow(folder: Path) -> None:
    stage = Stage(folder / "project")
    total, ends = 0, set()
    for seed in range(100):
        total += check_life(Life(stage, seed))
        ends |= {event["data"].get("code", event["type"]) for event in events_of(stage)}
    assert total > 100
    assert ends >= {"iterations", "rounds", "stuck", "idle", "budget", "minutes", "client"}
    assert ends >= {"complete", "wait", "background", "paused", "waiting", "answer", "resume"}


def _both_at_once(project: HookProject, rounds: int) -> None:
    """Report each stop by two copies at once; assert one iteration and one answer."""
    with ThreadPoolExecutor(2) as pool:
        for number in range(rounds):
            signal = project.signal(last_assistant_message=f"Turn {number}.")
            runs = list(pool.map(lambda copy, text=signal: run_hook(text, copy), ("a", "b")))
            assert [run.code for run in runs] == [0, 0]
            assert blocks(runs[0].answer)
            assert runs[0].answer == runs[1].answer
            counted = [event for event in project.events() if event["type"] == "iteration"]
            assert len(counted) == number + 1
            assert counted[-1]["data"]["reason"] == said(runs[0].answer)


def test_two_copies_at_once_count_one_iteration_and_answer_alike(folder: Path) -> None:
    _both_at_once(HookProject(folder / "project", limits=UNLIMITED), 10)


def _save_snapshot(gsd: Path) -> None:
    journal = Journal(str(gsd))
    journal.read()
    directory = open_directory(journal.path)
    fd = open_regular(directory, JOURNAL_NAME, READ)
    save_snapshot(directory, fd, journal.loops, journal.at)
    close(fd)
    close_directory(directory)


@pytest.mark.parametrize(
    ("fill", "shown"),
    [
        (full_plan, "Start task T0 (Task number 0)"),
        (full_goal, "and 25993 more"),
        (full_verification, "and 9992 more gaps"),
    ],
)
def test_full_loop_is_blocked_in_time_with_and_without_a_snapshot(
    folder: Path, fill: Callable[[], Events], shown: str
) -> None:
    gsd = folder / ".gsd"
    write_long_journal(gsd, fill())
    register("j-long", str(gsd), 0)
    for cached in (False, True):
        if cached:
            _save_snapshot(gsd)
        assert (gsd / SNAPSHOT_NAME).exists() is cached
        done = run_hook(signal_of(folder, session=SESSION))
        assert blocks(done.answer), done
        assert shown in said(done.answer)


def _live_many(folder: str, seeds: range) -> int:
    os.environ["XDG_STATE_HOME"] = f"{folder}/state"
    stage = Stage(Path(folder))
    return sum(check_life(Life(stage, seed)) for seed in seeds)


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
def test_a_thousand_stops_reported_by_two_copies_at_once(folder: Path) -> None:
    _both_at_once(HookProject(folder / "project", limits=UNLIMITED), torture(1_000))
