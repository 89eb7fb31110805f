"""Failing system calls: a clear error, and recovery when the cause is gone."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.journal.journal import Journal
from tests.support import faults
from tests.support.faults import calls_of, long_journal, say, wired
from tests.support.journal_scenes import SCENES, make_scene

ERRORS = ("EIO", "EINTR", "ENOSPC", "EROFS", "EACCES", "EMFILE", "ENOLCK", "ESTALE")


class Trouble:
    """Make the N-th call fail, once or from then on; allow one sync for each write."""

    def __init__(self, number: int, error: str, for_ever: bool) -> None:
        self.number, self.for_ever, self.count = number, for_ever, 0
        self.fail = faults.failing(getattr(errno, error))
        self.failed: list[str] = []
        self.syncs: dict[int, int] = {}

    def __call__(self, name: str, real: Any, *args: Any, **more: Any) -> Any:
        self.count += 1
        if name == "write":
            self.syncs[args[0]] = 0
        if name == "fsync" and args[0] in self.syncs:
            self.syncs[args[0]] += 1
            assert self.syncs[args[0]] == 1, "a second sync for one write"
        if name in ("open", "close"):
            self.syncs.pop(args[0], None)
        if self.count == self.number or (self.for_ever and self.count > self.number):
            self.failed.append(name)
            return self.fail(name, real, *args, **more)
        return faults.without_sync(name, real, *args, **more)


def _fails(work: Callable[[], Any], trouble: Trouble) -> bool:
    """Return whether the work raises, which must be with exit code 6; it must leak no file."""
    before, exit_code = faults.open_descriptors(), 0
    try:
        with wired(trouble):
            work()
    except GsdError as error:
        exit_code = error.exit_code
    assert trouble.failed
    assert faults.open_descriptors() == before, (trouble.number, trouble.failed)
    assert exit_code in (0, 6), (trouble.number, trouble.failed)
    return exit_code == 6


@pytest.mark.parametrize("for_ever", [False, True], ids=["once", "for ever"])
@pytest.mark.parametrize("name", SCENES)
def test_append_with_any_failing_call_reports_error_and_recovers(
    gsd: Path, name: str, for_ever: bool
) -> None:
    scene = make_scene(gsd, name, *[] if name == "cutting" else ["new"], lock_seconds=0.02)
    scene.restore()
    calls = len(calls_of(lambda: scene.work(lambda _sum: None)))
    assert calls > 10
    for number in range(1, calls + 1):
        for error in ERRORS[:3] if for_ever else ERRORS:
            scene.restore()
            trouble, acknowledged = Trouble(number, error, for_ever), []
            failed = _fails(partial(scene.work, acknowledged.append), trouble)
            if failed and name.startswith("appending") and "ftruncate" not in trouble.failed:
                assert faults.sums((gsd / "journal.jsonl").read_bytes()) == scene.known
            with wired(faults.without_sync):
                scene.assert_recovers(acknowledged)


@pytest.mark.parametrize("look", ["read", "read_cached"])
def test_read_with_any_failing_call_reports_error(gsd: Path, look: str) -> None:
    long_journal(gsd, 4)
    for number in range(1, len(calls_of(getattr(Journal(str(gsd)), look))) + 1):
        for error in ERRORS:
            journal = Journal(str(gsd))
            if not _fails(getattr(journal, look), Trouble(number, error, for_ever=False)):
                assert journal.loops.seq == 4


def test_append_syncs_each_event_before_acknowledging(gsd: Path) -> None:
    long_journal(gsd, 3)
    calls = [name for name, _ in calls_of(lambda: say(Journal(str(gsd)), "one", "two"))]
    assert [name for name in calls if name in ("write", "fsync")] == ["write", "fsync"] * 2
