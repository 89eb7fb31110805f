"""Many writers and readers: every acknowledged event once, in one chain."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from gsd_fsm.core.journal import journal as journal_module
from gsd_fsm.core.journal.journal import Journal
from tests.support.command_line import Project
from tests.support.events import append, draft
from tests.support.faults import drained, in_child, judge, long_journal, outcome, sums, torture


def _write(gsd: Path, writer: int, events: int, pipe: int) -> None:
    journal = Journal(str(gsd), lock_seconds=300.0)
    for number in range(events):
        issue = draft("issue", "lp-1", "agent", {"text": f"{writer} {number}"})
        written = append(journal, issue)[0]
        os.write(pipe, f"{number} {written['seq']} {written['sum']}\n".encode())


def _read(gsd: Path, until: Path, seen: Path) -> None:
    journal = Journal(str(gsd))
    with seen.open("w") as file:
        while True:
            last = until.exists()
            for look in (journal.read, journal.read_cached):
                loops = look()
                file.write(f"{loops.seq} {journal.at.sum} {len(loops.by_id)}\n")
            if last:
                return


def _storm(gsd: Path, writers: int, events: int, kills: int, readers: int) -> int:
    """Run all at once, kill some, and check the journal."""
    first = long_journal(gsd, 4).loops.seq
    pipes, pids = [], []
    for writer in range(writers):
        reader, pipe = os.pipe()
        pids.append(in_child(partial(_write, gsd, writer, events, pipe)))
        os.close(pipe)
        pipes.append(reader)
    done = gsd.parent / "done"
    seen = [gsd.parent / f"seen-{number}" for number in range(readers)]
    watching = [in_child(partial(_read, gsd, done, path)) for path in seen]
    choose = random.Random(writers)
    doomed = choose.sample(range(writers), kills)
    for writer in doomed:
        time.sleep(choose.random() * events / 400)  # while they all write
        os.kill(pids[writer], signal.SIGKILL)
    reported = [drained(pipe).decode().splitlines() for pipe in pipes]
    for writer, pid in enumerate(pids):
        assert outcome(pid) in ((0, -signal.SIGKILL) if writer in doomed else (0,))
    done.touch()
    assert [outcome(pid) for pid in watching] == [0] * readers
    data = (gsd / "journal.jsonl").read_bytes()
    _assert_all_there(data, reported, first)
    assert all(len(lines) == events for n, lines in enumerate(reported) if n not in doomed)
    chain = sums(data)
    for path in seen:
        looks = [line.split() for line in path.read_text().splitlines()]
        assert looks
        for seq, sum_, loops in looks:  # what was seen is a prefix of what is there
            assert (chain[int(seq) - 1], loops) == (sum_, "1")
    return sum(map(len, reported))


def _assert_all_there(data: bytes, reported: list[list[str]], first: int) -> None:
    assert judge(data)[2:] == (0, 0)
    events = [json.loads(line) for line in data.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    at = {event["sum"]: event for event in events}
    texts = [event["data"].get("text", "") for event in events[first:]]
    for writer, lines in enumerate(reported):
        for line in lines:
            number, seq, sum_ = line.split()
            found = (at[sum_]["seq"], at[sum_]["data"]["text"])
            assert found == (int(seq), f"{writer} {number}")
        mine = [text for text in texts if text.startswith(f"{writer} ")]
        # In order, each once; at most one more than was acknowledged, of a writer that was killed.
        assert mine == [f"{writer} {number}" for number in range(len(mine))]
        assert len(mine) - len(lines) in (0, 1)


def test_8_writers_beside_readers_lose_nothing(gsd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "SMALL", 0)
    assert _storm(gsd, writers=8, events=50, kills=0, readers=2) == 400


def test_killed_writers_lose_no_acknowledged_event(gsd: Path) -> None:
    assert _storm(gsd, writers=8, events=40, kills=3, readers=1) >= 5 * 40


def test_reading_commands_never_fail_beside_writers(project: Project) -> None:
    project.ok("start", "goal", "Be read while written")
    loop = project.lines()[1]["loop"]

    def write() -> None:
        journal = Journal(str(project.gsd))
        while not (project.root / "enough").exists():
            append(journal, draft("issue", loop, "agent", {"text": "on"}))

    writers = [in_child(write) for _ in range(2)]
    verbs = ("replay", "status", "fsck", "replay")
    heads = [project.ok(verb, "--json").json["head"] for verb in verbs]
    (project.root / "enough").touch()
    assert [outcome(pid) for pid in writers] == [0, 0]
    chain = sums(project.journal.read_bytes())
    for head in heads:
        seq, sum_ = head.split(":")
        assert chain[int(seq) - 1] == sum_


@pytest.mark.torture
@pytest.mark.parametrize(("kills", "readers"), [(16, 4), (0, 0)])
def test_64_writers_partly_killed_lose_nothing(gsd: Path, kills: int, readers: int) -> None:
    events = torture(1_000)
    total = _storm(gsd, 64, events, kills, readers)
    assert (64 - kills) * events <= total <= 64 * events
    print(f"{total} events acknowledged by 64 writers, {kills} of them killed; all there once")
