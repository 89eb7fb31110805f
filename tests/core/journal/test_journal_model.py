"""Compare a journal with a fold of its acknowledged events: work, kills, damage, repair."""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gsd_fsm.core.codec import encode_event
from gsd_fsm.core.errors import Corrupt, GsdError
from gsd_fsm.core.journal.journal import Author, Journal, create_journal
from gsd_fsm.core.journal.repair import cut_damage
from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.project import make_gsd
from tests.support.chaos import random_event
from tests.support.events import apply_new
from tests.support.story import NOW, error_of, frozen


class Files(RuleBasedStateMachine):
    """The model: the acknowledged events, and the loops that they fold to."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.gsd = self.root / ".gsd"
        self.path = self.gsd / "journal.jsonl"
        make_gsd(str(self.gsd))
        create_journal(str(self.gsd), "j-test", NOW)
        self.events: list[dict[str, Any]] = []
        self.model = Loops()
        self.torn = False
        self.reopen()
        self.acknowledge("journal")

    def teardown(self) -> None:
        self.journal.close()
        shutil.rmtree(self.root)

    def acknowledge(self, *kinds: str) -> None:
        """Require that the file has gained exactly these events; fold them into the model."""
        lines = self.path.read_bytes().splitlines()[len(self.events) :]
        events = [parse_json(line.decode("ascii")) for line in lines]
        assert [event["type"] for event in events] == [*kinds]
        for event in events:
            self.model.apply(event)
        self.events += events

    @rule(seed=st.integers(0, 1_000_000))
    def work(self, seed: int) -> None:
        r = Random(seed)
        for _ in range(4):
            self.append(random_event(r, self.model, NOW))

    def append(self, event: dict[str, Any]) -> None:
        event.update(v=1, seq=self.model.seq + 1, ts=self.events[0]["ts"])
        if not event.get("session", "-"):
            del event["session"]  # an author without a session writes none
        expected = error_of(apply_new, copy.deepcopy(self.model), event)
        author = Author(event["by"], event.get("session"))
        try:
            with self.journal.transaction(author) as tx:
                tx._append(event["loop"], event["type"], event["data"], author)
        except GsdError:
            assert expected, event
        else:
            assert not expected, event
        self.acknowledge(*["repair"] * self.torn, *[event["type"]] * (not expected))
        self.torn = False
        assert expected or self.events[-1]["data"] == event["data"]

    @rule()
    def reopen(self) -> None:
        """Continue with another process."""
        self.journal = Journal(str(self.gsd), now=lambda: NOW)

    @precondition(lambda self: not self.torn)
    @rule(share=st.floats(0, 0.9))
    def die_in_the_middle_of_an_append(self, share: float) -> None:
        event = {**self.events[0], "seq": len(self.events) + 1}
        del event["sum"]
        line, _ = encode_event(event, self.events[-1]["sum"])
        with self.path.open("ab") as file:
            file.write(line[: 1 + int(share * (len(line) - 2))])
        self.torn = True
        self.reopen()

    @precondition(lambda self: not self.torn and len(self.events) > 2)
    @rule(data=st.data())
    def damage_a_line_and_repair(self, data: st.DataObject) -> None:
        lines = self.path.read_bytes().splitlines(keepends=True)
        victim = data.draw(st.integers(max(1, len(lines) - 4), len(lines) - 1))
        byte = data.draw(st.integers(0, len(lines[victim]) - 2))
        raw = bytearray(b"".join(lines))
        raw[sum(map(len, lines[:victim])) + byte] ^= 1
        self.journal.close()  # Windows cannot replace an open file
        self.path.write_bytes(raw)
        with pytest.raises(Corrupt) as damage:
            Journal(str(self.gsd)).read()
        assert damage.value.line == victim + 1
        kept, aside = cut_damage(str(self.gsd), "j-new", NOW)
        assert kept == victim
        assert (self.gsd / aside).read_bytes() == raw
        self.model, self.events = Loops(), self.events[:kept]
        for event in self.events:
            self.model.apply(event)
        self.acknowledge("repair")
        self.reopen()

    @invariant()
    def the_file_and_the_model_agree(self) -> None:
        reader = Journal(str(self.gsd))
        assert frozen(reader.read()) == frozen(self.model)
        assert (reader.at.torn > 0) == self.torn


@pytest.mark.parametrize(
    ("examples", "steps"), [(20, 30), pytest.param(4_000, 50, marks=pytest.mark.torture)]
)
def test_journal_agrees_with_model(examples: int, steps: int) -> None:
    if examples > 20:
        examples = int(examples * float(os.environ.get("GSD_TORTURE", "1.0"))) + 1
    how = settings(
        max_examples=examples, stateful_step_count=steps, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(Files, settings=how)
