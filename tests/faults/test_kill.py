"""kill -9 at every step of an append loses no acknowledged event."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from gsd_fsm.core import syscalls
from gsd_fsm.core.journal import journal as journal_module
from tests.support import faults
from tests.support.faults import apart, in_child, torture, wired, without_sync
from tests.support.journal_scenes import SCENES, Scene, make_scene

Point = tuple[int, int]  # the number of a call, and of the bytes that it writes before the kill


@pytest.fixture(autouse=True)
def _snapshots_of_small_journals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "SMALL", 0)


def _kill_points(scene: Scene) -> tuple[list[Point], list[Point]]:
    """Return the points before and after each call, and those after each written byte."""
    scene.restore()
    calls = faults.calls_of(lambda: scene.work(lambda _sum: None))
    within = [(number, n) for number, (_, size) in enumerate(calls) for n in range(1, size)]
    return [(number, 0) for number in range(len(calls) + 1)], within


def _kill_once(scene: Scene, point: Point) -> list[str]:
    """Kill a working child at this point; return the events it acknowledged."""
    scene.restore()
    reader, writer = os.pipe()

    def work() -> None:
        os.close(reader)
        with wired(faults.At(point[0], faults.killed(point[1]))):
            scene.work(lambda sum_: os.write(writer, sum_.encode() + b"\n"))
        os.kill(os.getpid(), signal.SIGKILL)

    pid = in_child(work)
    os.close(writer)
    acknowledged = faults.drained(reader).decode().split()
    assert faults.outcome(pid) == -signal.SIGKILL
    return acknowledged


def _campaign(scene: Scene, points: list[Point]) -> int:
    for point in points:
        acknowledged = _kill_once(scene, point)
        with wired(without_sync):
            scene.assert_recovers(acknowledged)
    return len(points)


def _kill_everywhere(gsd: str, name: str) -> None:
    """Kill a scene at each step, and within some writes; called in a process of its own."""
    syscalls._SLICE = journal_module.SMALL = 0  # as the fixtures do
    scene = make_scene(Path(gsd), name, *["hello"] * (1 if name in ("creating", "cutting") else 3))
    steps, within = _kill_points(scene)
    assert len(steps) > 20
    assert _campaign(scene, [*steps, *random.Random(1).sample(within, 15)]) >= 43
    if name == "appending":
        assert len(_kill_once(scene, steps[-1])) == 3
        assert _kill_once(scene, steps[0]) == []


@pytest.mark.parametrize("name", SCENES)
def test_kill_at_any_step_loses_no_acknowledged_event(gsd: Path, name: str) -> None:
    apart(_kill_everywhere, str(gsd), name)


@pytest.mark.torture
def test_10000_kills_lose_nothing(tmp_path: Path) -> None:
    goal, done, choose = torture(10_000), 0, random.Random(2)
    while done < goal:
        for name in SCENES:
            texts = ["y" * choose.choice([1, 30, 300, 1500])] * 3
            scene = make_scene(tmp_path / f"p-{done}" / ".gsd", name, *texts)
            steps, within = _kill_points(scene)
            done += _campaign(scene, [*steps, *choose.sample(within, min(200, len(within)))])
    print(f"{done} kills, 0 acknowledged events lost")
