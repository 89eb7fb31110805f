"""The machine and the fold reach the same states and the same refusals."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gsd_fsm.core.loop.fold import TRIGGERS, Loops
from gsd_fsm.core.loop.state import STATUSES
from gsd_fsm.history.machine import MachineLoops, build_machine
from tests.support.chaos import STEPS, random_event
from tests.support.story import NOW, error_of, frozen

MACHINE = build_machine()  # building it takes longer than a story


def apply_to_both(r: Random, length: int, seen: Counter[str] | None = None) -> int:
    """Apply a random story to both; return the number of accepted events."""
    MACHINE.models.clear()
    fold, machine = Loops(), MachineLoops(machine=MACHINE)
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


def accepted_events(seed: int) -> int:
    return apply_to_both(Random(seed), 3 + seed % 12)


@pytest.mark.torture
def test_fold_and_machine_agree_on_a_million_stories() -> None:
    """GSD_TORTURE=1.0 is one million."""
    stories = int(1_000_000 * float(os.environ.get("GSD_TORTURE", "1.0")))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        assert sum(pool.map(accepted_events, range(stories), chunksize=2_000)) > stories
