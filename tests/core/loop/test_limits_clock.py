"""Limits that depend on the clock, with a clock set by the test."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from freezegun import freeze_time

from gsd_fsm.cli import run
from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.journal.journal import Journal

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = datetime(2026, 3, 29, 0, 30, tzinfo=timezone.utc)


class Clock:
    """Runs commands in this process at a chosen time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.moment = BEGIN

    def run(self, *arguments: str, after: float = 0) -> int:
        """Run a command that many minutes later."""
        self.moment += timedelta(minutes=after)
        with freeze_time(self.moment):
            return run(["--project", str(self.root), *arguments])

    def ok(self, *arguments: str, after: float = 0) -> None:
        assert self.run(*arguments, after=after) == 0, arguments

    @property
    def loop(self) -> Any:
        (loop,) = Journal(str(self.root / ".gsd")).read().by_id.values()
        return loop


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path)


def test_minutes_are_spent_by_active_time_alone(clock: Clock) -> None:
    clock.ok("start", "goal", "g", "--max-minutes", "10", after=1)
    assert clock.loop.started == "2026-03-29T00:31:00.000Z"
    clock.ok("iterate", after=6)
    clock.ok("wait", "Which port?", after=3)
    clock.ok("answer", "80", after=600)
    clock.ok("iterate", after=0.9)
    assert clock.run("iterate", after=0.1) == 4
    assert (clock.loop.status, clock.loop.pause_code) == ("paused", "minutes")
    assert clock.run("resume", after=600) == 4
    clock.ok("resume", "--add-minutes", "2", after=600)
    clock.ok("iterate", after=-60 * 24)  # a backward step adds no time
    clock.ok("iterate", after=1.5)
    assert clock.run("iterate", after=0.5) == 4
    assert clock.loop.pause_code == "minutes"


def test_clock_jump_of_ten_years_pauses_loop(clock: Clock) -> None:
    clock.ok("start", "goal", "g", "--max-minutes", "10")
    assert clock.run("iterate", after=60 * 24 * 3653) == 4
    assert clock.loop.pause_code == "minutes"
    assert clock.loop.last_event.startswith("2036-03-29")
    assert clock.run("resume", "--add-minutes", "1") == 4
    clock.ok("resume", "--add-minutes", "6000000")
    clock.ok("iterate", after=-60 * 24 * 3653)
    clock.ok("fsck")
    clock.ok("replay", "--json")


def test_daylight_saving_change_adds_no_active_time(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In this zone the clocks jump from 02:00 to 03:00 local time at 01:00 UTC.
    monkeypatch.setenv("TZ", "Europe/Berlin")
    clock.ok("start", "goal", "g", "--max-minutes", "61")
    clock.ok("iterate", after=60)
    assert clock.loop.last_event == "2026-03-29T01:30:00.000Z"
    assert clock.run("iterate", after=1) == 4


@pytest.mark.parametrize(
    "moment",
    ["2028-02-29T23:59:59.999", "2016-12-31T23:59:59.500", "2100-03-01T00:00:00",
     "9999-12-31T23:59:59.999", "1970-01-01T00:00:00"],
)  # fmt: skip
def test_clock_writes_leap_days_and_first_and_last_years(moment: str) -> None:
    with freeze_time(moment):
        # A float of seconds may lose the last millisecond.
        assert abs(now_ms() - round(datetime.now(timezone.utc).timestamp() * 1000)) <= 1
        assert to_iso(now_ms())[:19] == moment[:19]


def test_throttled_wait_adds_no_active_time(clock: Clock) -> None:
    clock.ok("start", "goal", "g", "--max-minutes", "10")
    clock.ok("wait", "--until", "2026-03-29T05:00:00Z", after=1)
    assert (clock.loop.status, clock.loop.wait_for) == ("waiting", "throttled")
    assert clock.loop.until == "2026-03-29T05:00:00.000Z"
    assert clock.run("iterate", after=30) == 4
    clock.ok("resume", after=300)
    assert (clock.loop.status, clock.loop.until) == ("running", None)
    clock.ok("iterate", after=8.5)
    assert clock.run("iterate", after=0.5) == 4


def test_throttled_wait_until_past_time_is_accepted(clock: Clock) -> None:
    clock.ok("start", "goal", "g")
    clock.ok("wait", "--until", "2020-01-01T00:00:00+02:00")
    assert clock.loop.until == "2019-12-31T22:00:00.000Z"
    clock.ok("resume")
    assert clock.loop.status == "running"
