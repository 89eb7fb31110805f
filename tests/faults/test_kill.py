"""kill -9 at every step of an append loses no acknowledged event."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gsd_fsm.core.errors import Corrupt
from gsd_fsm.core.journal import journal as journal_module
from gsd_fsm.core.journal.journal import Journal, create_journal
from gsd_fsm.core.journal.repair import cut_damage
from gsd_fsm.core.project import make_gsd
from tests.support.command_line import Here, here
from tests.support.events import NOW, append, start_draft
from tests.support.faults import (
    assert_goes_on,
    calls_of,
    drained,
    files_in,
    in_child,
    judge,
    long_journal,
    outcome,
    put_back,
    say,
    sums,
    torture,
    wired,
    without_sync,
)

__all__ = ["here"]

Ack = Callable[[str], Any]


class Scene(NamedTuple):
    """A directory, the work of the child in it, and the events that must stay."""

    gsd: Path
    files: dict[str, bytes]
    work: Callable[[Ack], None]
    known: list[str]


def _scene(gsd: Path, work: Callable[[Ack], None], events: int = 4) -> Scene:
    long_journal(gsd, events)
    files = files_in(gsd)
    return Scene(gsd, files, work, sums(files["journal.jsonl"]))


def appending(gsd: Path, text: str, events: int = 4, each: int = 1) -> Scene:
    def work(ack: Ack) -> None:
        journal = Journal(str(gsd))
        for _ in range(3):
            for event in say(journal, *([text] * each)):
                ack(event["sum"])

    return _scene(gsd, work, events)


def repairing(gsd: Path, text: str, tail: bytes) -> Scene:
    scene = appending(gsd, text)
    data = scene.files["journal.jsonl"]
    return scene._replace(
        files={**scene.files, "journal.jsonl": data + tail if tail else data[:-1]}
    )


def creating(gsd: Path, text: str) -> Scene:
    def work(ack: Ack) -> None:
        create_journal(str(gsd), "j-new", NOW)
        journal = Journal(str(gsd))
        ack(append(journal, start_draft())[0]["sum"])
        ack(say(journal, text)[0]["sum"])

    gsd.parent.mkdir(parents=True)
    make_gsd(str(gsd))
    return Scene(gsd, files_in(gsd), work, [])


def cutting(gsd: Path, text: str) -> Scene:
    def work(ack: Ack) -> None:
        cut_damage(str(gsd), "j-new", NOW)
        ack(say(Journal(str(gsd)), text)[0]["sum"])

    scene = _scene(gsd, work, events=8)
    lines = scene.files["journal.jsonl"].splitlines(keepends=True)
    lines[5] = lines[5].replace(b"agent", b"human")
    files = {**scene.files, "journal.jsonl": b"".join(lines)}
    return scene._replace(files=files, known=scene.known[:5])


SCENES: dict[str, Callable[[Path, str], Scene]] = {
    "appending": appending,
    "appending two at once": lambda gsd, text: appending(gsd, text, each=2),
    "appending with a snapshot": lambda gsd, text: appending(gsd, text, events=62),
    "repairing a torn tail": lambda gsd, text: repairing(gsd, text, b'{"v":1,"seq":5,"ts":"2026'),
    "repairing a missing newline": lambda gsd, text: repairing(gsd, text, b""),
    "creating": creating,
    "cutting damage off": cutting,
}


def kill_points(scene: Scene) -> list[tuple[int, int]]:
    """Return points before and after each call and after each written byte: (call, bytes)."""
    put_back(scene.gsd, scene.files)
    calls = calls_of(lambda: scene.work(lambda _sum: None))
    points = [(number, 0) for number in range(len(calls) + 1)]
    for number, (_, size) in enumerate(calls):
        points += [(number, count) for count in range(1, size)]
    return points


def _kill_once(scene: Scene, point: tuple[int, int]) -> list[str]:
    """Kill a working child at this point; return the events it acknowledged."""
    put_back(scene.gsd, scene.files)
    reader, writer = os.pipe()
    count = 0

    def die_there(name: str, real: Any, *args: Any, **more: Any) -> Any:
        nonlocal count
        if count == point[0]:
            if point[1]:
                real(args[0], args[1][: point[1]])
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1
        return without_sync(name, real, *args, **more)  # a kill does not touch the page cache

    def work() -> None:
        os.close(reader)
        with wired(die_there):
            scene.work(lambda sum_: os.write(writer, sum_.encode() + b"\n"))
        os.kill(os.getpid(), signal.SIGKILL)

    pid = in_child(work)
    os.close(writer)
    acknowledged = drained(reader).decode().split()
    assert outcome(pid) == -signal.SIGKILL
    return acknowledged


def _assert_nothing_lost(scene: Scene, acknowledged: list[str]) -> None:
    gsd = str(scene.gsd)
    known = [*scene.known, *acknowledged]
    if not scene.known:
        create_journal(gsd, "j-again", NOW)
        made = Journal(gsd)
        append(made, *([] if "lp-1" in made.read().by_id else [start_draft()]))
    before = scene.files.get("journal.jsonl", b"")
    if judge(before).damaged:
        try:
            Journal(gsd).read()
        except Corrupt:
            assert (scene.gsd / "journal.jsonl").read_bytes() == before
            cut_damage(gsd, "j-again", NOW)
        assert before in [path.read_bytes() for path in scene.gsd.glob("journal.broken-*")]
    assert_goes_on(scene.gsd, known)


def _campaign(scene: Scene, points: list[tuple[int, int]]) -> int:
    for point in points:
        acknowledged = _kill_once(scene, point)
        with wired(without_sync):
            _assert_nothing_lost(scene, acknowledged)
    return len(points)


@pytest.mark.parametrize("name", SCENES)
def test_kill_at_any_step_loses_no_acknowledged_event(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "SMALL", 0)
    scene = SCENES[name](tmp_path / "p" / ".gsd", "hello")
    points = kill_points(scene)
    steps = [point for point in points if not point[1]]
    within = [point for point in points if point[1]]
    assert len(steps) > 20
    assert within
    killed = _campaign(scene, [*steps, *random.Random(1).sample(within, 15)])
    assert killed >= 43  # in each of seven scenes


def test_process_killed_after_last_call_acknowledged_everything(tmp_path: Path) -> None:
    scene = appending(tmp_path / "p" / ".gsd", "hello")
    last = max(point for point in kill_points(scene) if not point[1])
    assert len(_kill_once(scene, last)) == 3
    assert _kill_once(scene, (0, 0)) == []


def test_process_with_pid_of_killed_one_can_repair(tmp_path: Path) -> None:
    scene = cutting(tmp_path / "p" / ".gsd", "hello")
    put_back(scene.gsd, scene.files)
    # In containers pids come again and again: this is what a kill just before the rename leaves.
    (scene.gsd / f"journal.jsonl.{os.getpid()}").write_bytes(b"half")
    (scene.gsd / f"snapshot.json.{os.getpid()}").write_bytes(b"half")
    assert cut_damage(str(scene.gsd), "j-new", NOW)[0] == 5
    assert_goes_on(scene.gsd, scene.known)


@pytest.mark.parametrize("size", [1, 40, 150])
def test_start_after_kill_within_first_line_works(here: Here, size: int) -> None:
    here.start("goal", "first")
    header = here.journal.read_bytes().splitlines(keepends=True)[0]
    here.journal.write_bytes(header[:size])
    here.start("goal", "again")
    assert here.lines()[0]["type"] == "journal"
    assert here.status()["goal"] == "again"


@pytest.mark.torture
def test_10000_kills_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "SMALL", 0)
    goal, done, rounds = torture(10_000), 0, 0
    choose = random.Random(2)
    while done < goal:
        for number, make in enumerate(SCENES.values()):
            gsd = tmp_path / f"p-{rounds}-{number}" / ".gsd"
            scene = make(gsd, "y" * choose.choice([1, 30, 300, 1500]))
            points = kill_points(scene)
            choose.shuffle(points)
            steps = [point for point in points if not point[1]]
            done += _campaign(scene, [*steps, *[p for p in points if p[1]][:200]])
        rounds += 1
    print(f"{done} kills, 0 acknowledged events lost")
