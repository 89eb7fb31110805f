"""The lock under load: every process gets it in time."""

from __future__ import annotations

import errno
import os
import signal
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core import syscalls as lock
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.syscalls import LockedDir
from tests.support.command_line import Project
from tests.support.events import append, draft
from tests.support.faults import in_child, judge, long_journal, outcome, say, torture, wired
from tests.support.hook_project import UNLIMITED, HookProject, blocks, run_hook

SLICE = lock._SLICE


@pytest.fixture(autouse=True)
def _slices(_turn_at_every_append: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_SLICE", SLICE)


def test_lock_goes_to_waiting_process_before_its_last_holder(
    gsd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_journal(gsd, 3)
    busy, waits, order = LockedDir(str(gsd)), threading.Event(), []

    def pause(seconds: float) -> None:
        waits.set()
        time.sleep(seconds)

    def wait() -> None:
        waiting = LockedDir(str(gsd))
        waiting.acquire(10)
        order.append("waiting")
        waiting.close()

    monkeypatch.setattr(lock, "sleep", pause)
    monkeypatch.setattr(lock, "_SLICE", 0)
    for _ in range(20):
        order.clear()
        busy.acquire(10)
        waits.clear()
        thread = threading.Thread(target=wait)
        thread.start()
        assert waits.wait(60)
        busy.release()
        busy.acquire(10)
        order.append("busy")
        busy.release()
        thread.join(60)
        assert order == ["waiting", "busy"]
    busy.close()


def test_lock_is_available_while_waiting_process_is_stopped(gsd: Path) -> None:
    long_journal(gsd, 3)
    held = LockedDir(str(gsd))
    held.acquire(1)
    reader, writer = os.pipe()

    def wait() -> None:
        lock.sleep = lambda seconds: os.write(writer, b"!") and time.sleep(seconds)
        LockedDir(str(gsd)).acquire(60)

    waiting = in_child(wait)
    os.close(writer)
    assert os.read(reader, 1) == b"!"
    os.kill(waiting, signal.SIGSTOP)
    os.waitpid(waiting, os.WUNTRACED)
    held.close()
    try:
        assert say(Journal(str(gsd), lock_seconds=1), "on")[0]["seq"] == 4
    finally:
        os.kill(waiting, signal.SIGKILL)
        assert outcome(waiting) == -signal.SIGKILL
        os.close(reader)


def test_append_works_without_directory_locks(gsd: Path) -> None:
    long_journal(gsd, 3)

    def refuse(name: str, real: Any, *args: Any, **more: Any) -> Any:
        if name == "flock" and stat.S_ISDIR(os.fstat(args[0]).st_mode):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return real(*args, **more)

    with wired(refuse):
        assert say(Journal(str(gsd)), "on")[0]["seq"] == 4


def _together(works: list[Callable[[], None]]) -> list[int]:
    """Start a child for each; none works before all have started."""
    reader, writer = os.pipe()

    def begin(work: Callable[[], None]) -> None:
        os.close(writer)
        os.read(reader, 1)
        work()

    children = [in_child(partial(begin, work)) for work in works]
    os.close(writer)
    os.close(reader)
    return children


def _append_until(enough: Path, gsd: Path, name: str) -> None:
    journal = Journal(str(gsd))
    event = draft("iteration", "lp-1", "hook", {"activity": True, "reason": name})
    while not enough.exists():
        append(journal, event)


def _shares(project: HookProject) -> list[int]:
    """Return the number of events of each writer of `_append_until`, smallest first."""
    reasons = (event["data"].get("reason", "") for event in project.events())
    return sorted(Counter(name for name in reasons if name.startswith("writer ")).values())


def _read_until(enough: Path, gsd: Path) -> None:
    journal = Journal(str(gsd))
    while not enough.exists():
        journal.read()
        time.sleep(0.2)


def test_busy_writers_get_similar_shares(tmp_path: Path) -> None:
    project, enough = HookProject(tmp_path / "p", limits=UNLIMITED), tmp_path / "enough"
    writers = _together(
        [partial(_append_until, enough, project.gsd, f"writer {n}") for n in range(8)]
    )
    while Journal(str(project.gsd)).read().seq < 800:
        time.sleep(0.05)
    enough.touch()
    assert [outcome(writer) for writer in writers] == [0] * 8
    shares = _shares(project)
    assert (len(shares), shares[0] * 10 >= shares[-1]) == (8, True), shares


def _stop(project: HookProject, name: str) -> None:
    answered = run_hook(project.signal(last_assistant_message=name))
    assert (blocks(answered.answer), answered.err) == (True, "")


def _prompt(project: HookProject, name: str) -> None:
    answered = run_hook(project.signal("UserPromptSubmit", prompt=name))
    assert (answered.code, answered.err) == (0, "")


def _command(project: HookProject, name: str) -> None:
    Project(project.root).ok("note", name)


CALLS = [_stop, _stop, _prompt, _command] * 6


# At first not all at once: this must leave time to the tests that run beside it.
@pytest.mark.parametrize(
    ("rounds", "apart"), [(1, 0.1), pytest.param(50, 0, marks=pytest.mark.torture)]
)
def test_36_processes_get_the_lock_in_time(tmp_path: Path, rounds: int, apart: float) -> None:
    """Each process fails if one of its calls fails. The calls begin so many seconds apart."""
    project, enough = HookProject(tmp_path / "p", limits=UNLIMITED), tmp_path / "enough"
    _stop(project, "compile the hook")
    rounds = torture(rounds)

    def call(number: int) -> None:
        time.sleep(number * apart)
        for turn in range(rounds):
            CALLS[number](project, f"{number}.{turn}")

    endless = [partial(_append_until, enough, project.gsd, f"writer {n}") for n in range(6)]
    endless += [partial(_read_until, enough, project.gsd)] * 6
    children = _together([*(partial(call, n) for n in range(len(CALLS))), *endless])
    ended = [outcome(child) for child in children[: len(CALLS)]]
    enough.touch()
    ended += [outcome(child) for child in children[len(CALLS) :]]
    assert ended == [0] * 36
    assert judge(project.file.read_bytes())[2:] == (0, 0)
    shares = _shares(project)
    assert len(shares) == 6
    assert apart or shares[0] * 10 >= shares[-1], shares
    print(f"{12 * rounds} stops decided beside 24 other processes; none allowed without the lock")
