"""One writer at a time, whatever the system calls its locks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.history.replay import examine
from tests.support.events import append
from tests.support.hook_project import UNLIMITED, HookProject, blocks, run_hook, text_of

WRITER = """
import sys
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.journal.journal import Author
gsd, name, times = sys.argv[1:]
for number in range(int(times)):
    with Journal(gsd, 60.0).transaction(Author("agent")) as tx:
        tx.append(tx.loops.by_id["lp-1"], "note", {"text": "%s %d" % (name, number)})
"""
BUSY = """
import os, sys
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.journal.journal import Author
gsd, enough = sys.argv[1:]
journal = Journal(gsd)
print("writing", flush=True)
while not os.path.exists(enough):
    with journal.transaction(Author("hook")) as tx:
        tx.append(tx.loops.by_id["lp-1"], "iteration", {"activity": True})
"""
HOLDER = """
import sys
from gsd_fsm.core.syscalls import LockedDir
hold = LockedDir(sys.argv[1])
hold.acquire(10)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(hooked: HookProject) -> Iterator[subprocess.Popen[bytes]]:
    """Another process holds the lock until this ends."""
    command = [sys.executable, "-c", HOLDER, str(hooked.gsd)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"held"
        try:
            yield process
        finally:
            process.kill()


def test_concurrent_writers_lose_nothing(hooked: HookProject) -> None:
    writers, times = 5, 12
    started = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(hooked.gsd), f"w{name}", str(times)])
        for name in range(writers)
    ]
    assert [writer.wait(300) for writer in started] == [0] * writers
    events = hooked.events()
    assert [event["seq"] for event in events] == list(range(1, 2 + writers * times + 1))
    for name in range(writers):
        texts = [event["data"].get("text", "") for event in events]
        mine = [text for text in texts if text.startswith(f"w{name} ")]
        assert mine == [f"w{name} {number}" for number in range(times)]
    assert examine(Journal(str(hooked.gsd)))["ok"]


def test_concurrent_hooks_and_writers_lose_nothing(hooked: HookProject) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(hooked.gsd), "w", "20"])
    replies = [run_hook(hooked.signal(last_assistant_message=f"Turn {n}.")) for n in range(4)]
    assert writer.wait(300) == 0
    assert [(run.code, run.err) for run in replies] == [(0, "")] * 4
    printed = sum(blocks(run.answer) for run in replies)
    events = hooked.events()
    assert printed >= 3
    assert [event["type"] for event in events].count("iteration") == printed
    assert [event["type"] for event in events].count("note") == 20
    assert examine(Journal(str(hooked.gsd)))["ok"]


def test_hook_blocks_every_stop_beside_busy_writer(tmp_path: Path) -> None:
    hooked, enough = HookProject(tmp_path / "project", limits=UNLIMITED), tmp_path / "enough"
    command = [sys.executable, "-c", BUSY, str(hooked.gsd), str(enough)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline().strip() == b"writing"
        try:
            replies = [
                run_hook(hooked.signal(last_assistant_message=f"Turn {n}.")) for n in range(12)
            ]
            assert writer.poll() is None
        finally:
            enough.touch()
    assert [(blocks(run.answer), run.err) for run in replies] == [(True, "")] * 12
    assert writer.returncode == 0


def test_hook_allows_stop_while_lock_is_held(hooked: HookProject) -> None:
    before = hooked.file.read_bytes()
    with held(hooked):
        reply = run_hook(hooked.signal())
        assert (reply.code, blocks(reply.answer)) == (0, False)
        for shown in (text_of(reply.answer), reply.err):
            assert "journal.lock is held by another process" in shown
        assert hooked.file.read_bytes() == before
        assert b"journal.lock is held" in (hooked.gsd / "hook.log").read_bytes()
    assert blocks(run_hook(hooked.signal()).answer)


def test_lock_of_killed_process_is_free(hooked: HookProject) -> None:
    with held(hooked) as holder:
        holder.kill()
        holder.wait(60)
        assert blocks(run_hook(hooked.signal()).answer)


def test_torn_tail_is_saved_and_reported(hooked: HookProject) -> None:
    tail = b'{"v":1,"seq":3,"ts":"2026'
    whole = hooked.file.read_bytes()
    hooked.file.write_bytes(whole + tail)
    assert blocks(run_hook(hooked.signal()).answer)
    assert hooked.file.read_bytes().startswith(whole)
    assert [event["type"] for event in hooked.events()[2:]] == ["repair", "iteration"]
    (aside,) = hooked.gsd.glob("journal.broken-*")
    assert aside.read_bytes() == tail
    assert examine(Journal(str(hooked.gsd)))["ok"]


def test_snapshot_is_replaced_beside_readers(hooked: HookProject) -> None:
    notes = [{"loop": "lp-1", "type": "note", "by": "agent", "data": {"text": "on"}}]
    append(Journal(str(hooked.gsd)), *notes * 61)
    with hooked.file.open("rb"):
        assert blocks(run_hook(hooked.signal()).answer)
    assert (hooked.gsd / "snapshot.json").exists()
    assert len(hooked.events()) == 64
