"""The machine and the fold reach the same states and the same refusals."""

from __future__ import annotations

import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gsd_fsm.core.journal.snapshot import pack
from gsd_fsm.core.loop.fold import TRIGGERS, Loops
from gsd_fsm.core.loop.state import STATUSES
from gsd_fsm.history.machine import MachineLoops, build_machine
from tests.support.chaos import STEPS, random_event
from tests.support.story import NOW, error_of, frozen

MACHINE = build_machine()


class SharedMachineLoops(MachineLoops):
    """Loops that share one machine, since building it takes longer than a story."""

    def __init__(self) -> None:
        Loops.__init__(self)
        self.machine = MACHINE
        self._models: dict[str, Any] = {}


def apply_to_both(r: Random, length: int, seen: Counter[str] | None = None) -> int:
    """Apply a random story to both; return the number of accepted events."""
    MACHINE.models.clear()
    fold, machine = Loops(), SharedMachineLoops()
    now, accepted = NOW, 0
    before = frozen(fold)
    for _ in range(length):
        event = random_event(r, fold, now)
        now = max(0, now + r.choice(STEPS))
        ours, theirs = error_of(fold.apply, event), error_of(machine.apply, event)
        assert ours == theirs, event
        after = frozen(fold)
        assert after == frozen(machine), event
        if ours:
            assert after == before, event
        else:
            accepted += 1
            for name, model in machine._models.items():
                if name in fold.by_id:
                    assert model.state == fold.by_id[name].status
        if seen is not None:
            seen[(ours.partition(":")[0] or "accepted")] += 1
            if not ours and event["loop"] in fold.by_id:
                seen["type " + event["type"]] += 1
                seen["status " + fold.by_id[event["loop"]].status] += 1
        before = after
    return accepted


@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 40))
def test_fold_and_machine_agree_on_random_events(r: Random, length: int) -> None:
    apply_to_both(r, length)


def test_fold_and_machine_agree_on_seeded_stories_that_reach_everything() -> None:
    seen: Counter[str] = Counter()
    for seed in range(250):
        apply_to_both(Random(seed), 30, seen)
    for status in STATUSES:
        assert seen["status " + status] or status == "idle", status
    for trigger in TRIGGERS:
        assert seen["type " + trigger.split(".")[0]], trigger
    assert seen["Refused"] > 100
    assert seen["ValueError"] > 100
    assert seen["accepted"] > seen["Refused"]


def test_fresh_machine_agrees_with_shared_machine() -> None:
    r = Random(7)
    fold, machine = Loops(), MachineLoops()
    for step in range(300):
        event = random_event(r, fold, NOW + 1000 * step)
        assert error_of(fold.apply, event) == error_of(machine.apply, event)
    assert frozen(fold) == frozen(machine)
    for name, loop in fold.by_id.items():
        assert pack(loop) == pack(machine.by_id[name])


def _campaign(task: tuple[int, int]) -> tuple[int, int]:
    first, count = task
    return count, sum(
        apply_to_both(Random(seed), 3 + seed % 12) for seed in range(first, first + count)
    )


@pytest.mark.torture
def test_fold_and_machine_agree_on_a_million_stories() -> None:
    """GSD_TORTURE=1.0 is one million."""
    wanted = int(1_000_000 * float(os.environ.get("GSD_TORTURE", "1.0")))
    share = 2_000
    tasks = [(first, min(share, wanted - first)) for first in range(0, wanted, share)]
    began = time.perf_counter()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(_campaign, tasks))
    stories, events = sum(n for n, _ in done), sum(n for _, n in done)
    seconds = time.perf_counter() - began
    print(f"\n{stories} stories, {events} events accepted, {stories / seconds:.0f} stories/s")
    assert stories == wanted
