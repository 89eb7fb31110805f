"""The lock: deadlines, replaced files and directories, forked processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.errors import CannotWrite, GsdError
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.syscalls import LockedDir
from tests.support import faults
from tests.support.command_line import Here, here
from tests.support.events import append
from tests.support.faults import in_child, judge, long_bytes, long_journal, outcome, say, torture

__all__ = ["here"]


@contextmanager
def stopped_holder(gsd: Path) -> Iterator[int]:
    """Start a process that holds the lock, and stop it."""
    reader, writer = os.pipe()

    def hold() -> None:
        held = LockedDir(str(gsd))
        held.acquire(10)
        os.write(writer, b"!")
        time.sleep(600)

    pid = in_child(hold)
    os.close(writer)
    assert os.read(reader, 1) == b"!"
    os.close(reader)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        assert outcome(pid) == -signal.SIGKILL


@pytest.mark.parametrize("times", [1, pytest.param(100, marks=pytest.mark.torture)])
def test_append_names_lock_of_stopped_process_and_writes_nothing(gsd: Path, times: int) -> None:
    long_journal(gsd, 3)
    for number in range(torture(times)):
        data = (gsd / "journal.jsonl").read_bytes()
        with stopped_holder(gsd):
            with pytest.raises(CannotWrite, match=r"journal\.lock is held") as refused:
                say(Journal(str(gsd), lock_seconds=0.1), "no")
            assert refused.value.hint
            assert Journal(str(gsd)).read().seq == 3 + number
            assert (gsd / "journal.jsonl").read_bytes() == data
        assert say(Journal(str(gsd), lock_seconds=0.1), "yes")[0]["seq"] == 4 + number


def test_read_leaves_partial_line_while_lock_is_held(gsd: Path) -> None:
    data = long_bytes(gsd, 3) + b'{"v":1,"seq":4'
    (gsd / "journal.jsonl").write_bytes(data)
    with stopped_holder(gsd):
        journal = Journal(str(gsd))
        assert (journal.read().seq, journal.at.torn) == (3, 0)
    assert (journal.read().seq, journal.at.torn) == (3, 14)
    assert (gsd / "journal.jsonl").read_bytes() == data


def test_command_exits_6_and_names_held_lock(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    here.ok("start", "goal", "Wait your turn")
    acquire = LockedDir.acquire
    monkeypatch.setattr(LockedDir, "acquire", lambda it, seconds: acquire(it, seconds / 100))
    with stopped_holder(here.gsd):
        assert ".gsd/journal.lock" in here.refused(6, "note", "no").err
        assert here.status()["status"] == "running"
    here.ok("note", "yes")


def _while_waiting(gsd: Path, meanwhile: Callable[[], object]) -> list[dict[str, Any]]:
    """Call `meanwhile` while a thread waits for the lock; return the result of its append."""
    held = LockedDir(str(gsd))
    held.acquire(10)
    with ThreadPoolExecutor(1) as pool:
        append = pool.submit(say, Journal(str(gsd), lock_seconds=20), "waited")
        time.sleep(0.03)
        meanwhile()
        held.close()
        return append.result(60)


@pytest.mark.parametrize("races", [1, pytest.param(1_000, marks=pytest.mark.torture)])
def test_append_writes_to_directory_swapped_while_waiting(tmp_path: Path, races: int) -> None:
    for number in range(torture(races)):
        root = tmp_path / str(number)
        gsd, away, other = root / ".gsd", root / "away", root / "other" / ".gsd"
        old, new = long_bytes(gsd, 3), long_bytes(other, 5, seed=2)
        (written,) = _while_waiting(gsd, lambda g=gsd, a=away, o=other: g.rename(a) and o.rename(g))
        assert (away / "journal.jsonl").read_bytes() == old
        data = (gsd / "journal.jsonl").read_bytes()
        assert data.startswith(new)
        assert judge(data) == (6, written["sum"], 0, 0)


@pytest.mark.parametrize("how", ["linked", "moved", "without a journal"])
def test_append_refuses_directory_replaced_as_it_waits(gsd: Path, tmp_path: Path, how: str) -> None:
    data, away = long_bytes(gsd, 3), tmp_path / "away"

    def replace() -> None:
        (gsd / "journal.jsonl" if how == "without a journal" else gsd).rename(away)
        if how == "linked":
            gsd.symlink_to(away)

    with pytest.raises(GsdError) as refused:
        _while_waiting(gsd, replace)
    assert refused.value.exit_code in ((6,) if how == "linked" else (3, 6))
    assert (away / "journal.jsonl" if away.is_dir() else away).read_bytes() == data
    assert gsd.is_symlink() or not (gsd / "journal.jsonl").exists()


def test_append_waits_again_for_removed_lock_file(gsd: Path) -> None:
    long_journal(gsd, 3)
    (written,) = _while_waiting(gsd, (gsd / "journal.lock").unlink)
    assert written["seq"] == 4
    assert judge((gsd / "journal.jsonl").read_bytes())[2:] == (0, 0)


def test_waiting_process_waits_for_holder_of_replaced_lock_file(gsd: Path) -> None:
    journal = Journal(str(gsd), lock_seconds=0.1)
    before = long_bytes(gsd, 3)
    assert append(journal) == []  # it keeps the lock file open
    (gsd / "journal.lock").unlink()
    holder = LockedDir(str(gsd))
    holder.acquire(1)
    with pytest.raises(CannotWrite, match="held by another process"):
        say(journal, "two at once")
    assert (gsd / "journal.jsonl").read_bytes() == before
    holder.close()
    lock = (gsd / "journal.lock").stat()
    assert say(journal, "one after the other")[0]["seq"] == 4
    after = (gsd / "journal.lock").stat()
    assert (after.st_ino, after.st_mode & 0o777) == (lock.st_ino, 0o600)  # it is never unlinked


def test_forked_child_does_not_share_lock_of_parent(gsd: Path) -> None:
    shared = long_journal(gsd, 3)
    children = [in_child(lambda: [say(shared, f"child {n}") for n in range(50)]) for _ in range(4)]
    for number in range(50):
        say(shared, f"parent {number}")
    assert [outcome(child) for child in children] == [0] * 4
    assert judge((gsd / "journal.jsonl").read_bytes()).events == 3 + 5 * 50


def test_dropped_journal_closes_its_files(tmp_path: Path) -> None:
    before = faults.open_descriptors()
    for number in range(20):
        say(long_journal(tmp_path / str(number) / ".gsd", 3), "and away")
    assert faults.open_descriptors() == before


def test_forked_child_leaves_lock_with_parent(gsd: Path) -> None:
    long_journal(gsd, 3)
    held = LockedDir(str(gsd))
    held.acquire(1)
    assert outcome(in_child(held.close)) == 0
    with pytest.raises(CannotWrite, match="held by another process"):
        LockedDir(str(gsd)).acquire(0.05)
    held.close()
