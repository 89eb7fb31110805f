"""Faults: system calls that fail, processes that die, disks that are full."""

from __future__ import annotations

import pytest

from gsd_fsm.core import syscalls as lock


@pytest.fixture(autouse=True)
def _turn_at_every_append(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no append depend on the clock: campaigns count the system calls of one run in another."""
    monkeypatch.setattr(lock, "_SLICE", 0)
