"""Loops that hold as much as they may: the hook decides their stops within its time limit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gsd_fsm.core.journal.journal import JOURNAL_NAME, Journal
from gsd_fsm.core.journal.snapshot import SNAPSHOT_NAME, save_snapshot
from gsd_fsm.core.project import register
from gsd_fsm.core.syscalls import READ, close, close_directory, open_directory, open_regular
from tests.support.hook_project import blocks, run_hook, said, signal_of
from tests.support.long_journals import (
    SESSION,
    Events,
    full_goal,
    full_plan,
    full_verification,
    write_long_journal,
)


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
def test_hook_blocks_stop_of_full_loop_with_and_without_snapshot(
    tmp_path: Path, fill: Callable[[], Events], shown: str
) -> None:
    gsd = tmp_path / ".gsd"
    write_long_journal(gsd, fill())
    register("j-long", str(gsd), 0)
    for cached in (False, True):
        if cached:
            _save_snapshot(gsd)
        assert (gsd / SNAPSHOT_NAME).exists() or not cached
        done = run_hook(signal_of(tmp_path, session=SESSION))
        assert blocks(done.answer), done
        assert shown in said(done.answer)
