"""Failing system calls: a clear error, and recovery when the cause is gone."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.errors import CannotWrite, GsdError, Refused
from gsd_fsm.core.journal.journal import Journal, create_journal
from gsd_fsm.core.journal.repair import cut_damage
from gsd_fsm.core.project import make_gsd
from tests.support.events import NOW, append, draft, start_draft
from tests.support.faults import (
    calls_of,
    files_in,
    judge,
    limited,
    long_bytes,
    long_journal,
    note,
    open_descriptors,
    put_back,
    say,
    sums,
    wired,
    without_sync,
)

ERRORS = ("EIO", "EINTR", "ENOSPC", "EROFS", "EACCES", "EMFILE", "ENOLCK", "ESTALE")
PATIENCE = 0.02


class Trouble:
    """Make the N-th call fail, once or from then on; check the syncs."""

    def __init__(self, number: int, error: int, for_ever: bool) -> None:
        self.number, self.error, self.for_ever = number, error, for_ever
        self.count = 0
        self.failed: list[str] = []
        self.syncs: dict[int, int] = {}

    def __call__(self, name: str, real: Any, *args: Any, **more: Any) -> Any:
        self.count += 1
        if name == "write":
            self.syncs[args[0]] = 0
        if name == "fsync" and args[0] in self.syncs:
            self.syncs[args[0]] += 1
            if self.syncs[args[0]] > 1:
                raise AssertionError("a second sync for one write")
        if name in ("open", "close"):
            self.syncs.pop(args[0], None)
        if self.count == self.number or (self.for_ever and self.count > self.number):
            self.failed.append(name)
            if name == "close":
                real(*args)  # the descriptor is gone whatever close says
            raise OSError(self.error, os.strerror(self.error))
        return without_sync(name, real, *args, **more)


def _append(gsd: Path) -> list[str]:
    return [say(Journal(str(gsd), PATIENCE), "new")[0]["sum"]]


def _append_two(gsd: Path) -> list[str]:
    return [event["sum"] for event in say(Journal(str(gsd), PATIENCE), "new", "newer")]


def _create(gsd: Path) -> list[str]:
    create_journal(str(gsd), "j-new", NOW, PATIENCE)
    made = append(Journal(str(gsd), PATIENCE), start_draft())
    return [made[0]["sum"]]


def _cut(gsd: Path) -> list[str]:
    cut_damage(str(gsd), "j-new", NOW, PATIENCE)
    return []


def _make(gsd: Path, scene: str) -> tuple[Callable[[Path], list[str]], list[str]]:
    """Return the work to do in this directory, and the events that must stay."""
    if scene == "creating":
        gsd.parent.mkdir()
        make_gsd(str(gsd))
        return _create, []
    # 63 events: the next one also makes a snapshot
    data = long_bytes(gsd, 63 if scene == "appending with a snapshot" else 4)
    path = gsd / "journal.jsonl"
    if scene == "repairing":
        path.write_bytes(data + b'{"v":1,"seq":5,"ts"')
    elif scene == "completing":
        path.write_bytes(data[:-1])
    elif scene == "cutting":
        path.write_bytes(data.replace(b'"seq":3', b'"seq":4'))
        return _cut, sums(data)[:2]
    return _append_two if scene == "appending two" else _append, sums(data)


SCENES = ("appending", "appending with a snapshot", "appending two", "repairing", "completing", "creating", "cutting")  # fmt: skip


@pytest.mark.parametrize("for_ever", [False, True], ids=["once", "for ever"])
@pytest.mark.parametrize("scene", SCENES)
def test_append_with_any_failing_call_reports_error_and_recovers(
    gsd: Path, scene: str, for_ever: bool
) -> None:
    work, known = _make(gsd, scene)
    files = files_in(gsd)
    calls = len(calls_of(partial(work, gsd)))
    assert calls > 10
    problems = []
    for number in range(1, calls + 1):
        for name in ERRORS if not for_ever else ERRORS[:3]:
            put_back(gsd, files)
            trouble = Trouble(number, getattr(errno, name), for_ever)
            told, wrong = _try(partial(work, gsd), trouble)
            assert trouble.failed
            with wired(without_sync):
                wrong = wrong or _unsound(gsd, scene, known, told, trouble.failed)
            if wrong:
                problems.append(f"{wrong}: call {number}, {trouble.failed[0]}, {name}")
    assert problems == []


def _try(work: Callable[[], Any], trouble: Trouble) -> tuple[Any, str]:
    """Return the result, and the problem if it failed in a wrong way."""
    result, wrong = None, ""
    before = open_descriptors()
    try:
        with wired(trouble):
            result = work()
    except GsdError as error:
        wrong = "" if error.exit_code == 6 else f"exit code {error.exit_code}"
    except OSError:
        wrong = "an error of the system instead of one of ours"
    after = open_descriptors()
    return result, wrong or (f"{after - before} descriptors leaked" if after != before else "")


def _unsound(
    gsd: Path, scene: str, known: list[str], told: list[str] | None, failed: list[str]
) -> str:
    path = gsd / "journal.jsonl"
    data = path.read_bytes() if path.exists() else b""
    could_undo = scene.startswith("appending") and "ftruncate" not in failed
    if told is None and could_undo and sums(data) != known:
        return "told that nothing was appended, but something was"
    told = told or []
    if not set(told) <= set(sums(data)):
        return "an acknowledged event is missing"
    if scene == "cutting" and judge(data).damaged and cut_damage(str(gsd), "j-x", NOW)[0] != 2:
        return "the second repair keeps something else"
    if scene == "creating":
        create_journal(str(gsd), "j-again", NOW)
        made = Journal(str(gsd))
        append(made, *([] if made.read().by_id else [start_draft()]))
    written = say(Journal(str(gsd)), "next")[0]
    data = path.read_bytes()
    if judge(data) != (written["seq"], written["sum"], 0, 0):
        return "not sound after the next append"
    kept = [sum_ for sum_ in sums(data) if sum_ in {*known, *told}]
    return "" if kept == [*known, *told] else "events are missing after the next append"


@pytest.mark.parametrize("look", ["read", "read_cached"])
def test_read_with_any_failing_call_reports_error(gsd: Path, look: str) -> None:
    long_journal(gsd, 4)
    calls = len(calls_of(getattr(Journal(str(gsd)), look)))
    problems = []
    for number in range(1, calls + 1):
        for name in ERRORS:
            trouble = Trouble(number, getattr(errno, name), for_ever=False)
            loops, wrong = _try(getattr(Journal(str(gsd)), look), trouble)
            assert loops is None or loops.seq == 4
            if wrong:
                problems.append(f"{wrong}: call {number}, {trouble.failed[0]}, {name}")
    assert problems == []


def test_append_with_failed_sync_never_retries_and_removes_event(gsd: Path) -> None:
    data = long_bytes(gsd, 4)
    syncs = 0

    def fail(name: str, real: Any, *args: Any, **more: Any) -> Any:
        nonlocal syncs
        if name == "fsync":
            syncs += 1
            raise OSError(errno.EIO, "Input/output error")
        return real(*args, **more)

    with wired(fail), pytest.raises(CannotWrite, match="Input/output error"):
        say(Journal(str(gsd)), "never acknowledged")
    assert syncs == 1
    assert (gsd / "journal.jsonl").read_bytes() == data


def test_append_syncs_each_event_before_acknowledging(gsd: Path) -> None:
    long_journal(gsd, 3)
    calls = [name for name, _ in calls_of(lambda: say(Journal(str(gsd)), "one", "two"))]
    assert [name for name in calls if name in ("write", "fsync")] == ["write", "fsync"] * 2


def test_append_without_free_descriptors_writes_nothing(gsd: Path) -> None:
    data = long_bytes(gsd, 3)

    highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    for limit in range(highest + 8):
        with contextlib.suppress(CannotWrite), limited(resource.RLIMIT_NOFILE, limit):
            say(Journal(str(gsd)), "on")
            break
        assert (gsd / "journal.jsonl").read_bytes() == data
    assert limit > 0
    assert judge((gsd / "journal.jsonl").read_bytes())._replace(last="") == (4, "", 0, 0)


def test_transaction_writes_nothing_if_second_event_is_refused(gsd: Path) -> None:
    journal = long_journal(gsd, 4)
    before = (gsd / "journal.jsonl").read_bytes()
    refused = draft("answer", "lp-1", "human", {"text": "to nothing"})
    with pytest.raises(Refused):
        append(journal, note("accepted"), refused)
    assert (gsd / "journal.jsonl").read_bytes() == before
    written = say(journal, "on")[0]
    assert judge((gsd / "journal.jsonl").read_bytes()) == (5, written["sum"], 0, 0)
