"""Compare a journal with a small model of it: work, kills, torn tails, damage, repair."""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from pathlib import Path
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
from gsd_fsm.core.errors import Corrupt, Refused
from gsd_fsm.core.journal.journal import Journal, create_journal
from gsd_fsm.core.journal.repair import cut_damage
from gsd_fsm.core.project import make_gsd
from tests.support.events import append, draft
from tests.support.story import NOW

TASKS = ("T1", "T2")
ACTIVE = ("running", "retrying", "fixing")


def new_loop() -> dict[str, Any]:
    return {
        "status": "running", "back": "", "iteration": 0, "retries": dict.fromkeys(TASKS, 0),
        "failed": set(), "done": set(), "gaps": {}, "code": None,
    }  # fmt: skip


class Files(RuleBasedStateMachine):
    """The model: counts of one loop at a time, remembered for every event of the journal."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.gsd = self.root / ".gsd"
        make_gsd(str(self.gsd))
        create_journal(str(self.gsd), "j-test", NOW)
        self.journal = Journal(str(self.gsd))
        self.model: dict[str, Any] = {"loops": 0, "repairs": 0, "loop": None}
        self.past = [copy.deepcopy(self.model)]
        self.torn = False

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    @property
    def loop(self) -> Any:
        return self.model["loop"]

    @property
    def live(self) -> bool:
        return self.loop is not None and self.loop["status"] != "cancelled"

    def active(self) -> bool:
        return self.loop is not None and self.loop["status"] in ACTIVE

    def mend(self) -> None:
        """Record the repair event that an append writes first after a torn tail."""
        if self.torn:
            self.torn = False
            self.model["repairs"] += 1
            self.past.append(copy.deepcopy(self.model))

    def tell(self, kind: str, data: dict[str, Any]) -> None:
        name = f"lp-{self.model['loops']}"
        self.mend()
        append(self.journal, draft(kind, name, "human", data))

    def keep(self) -> None:
        self.past.append(copy.deepcopy(self.model))

    def refuse(self, kind: str, data: dict[str, Any]) -> None:
        with pytest.raises(Refused):
            self.tell(kind, data)

    @precondition(lambda self: not self.live)
    @rule()
    def start(self) -> None:
        self.mend()
        self.model["loops"] += 1
        tasks = [{"id": name} for name in TASKS]
        data = {"kind": "execute", "mode": "yolo", "limits": {"max_retries": 2}, "tasks": tasks}
        self.tell("start", data)
        self.model["loop"] = new_loop()
        self.keep()

    @precondition(lambda self: self.live)
    @rule()
    def iterate(self) -> None:
        if not self.active():
            self.refuse("iteration", {})
            return
        self.tell("iteration", {})
        self.loop["iteration"] += 1
        self.keep()

    @precondition(lambda self: self.live)
    @rule(task=st.sampled_from(TASKS))
    def fail(self, task: str) -> None:
        data = {"task": task, "error": "e", "class": "logic"}
        if not self.active() or task in self.loop["done"]:
            self.refuse("failure", data)
            return
        self.tell("failure", data)
        loop = self.loop
        loop["failed"].add(task)
        if loop["retries"][task] < 2:
            loop["retries"][task] += 1
            loop["status"] = "retrying"
        else:
            loop.update(back=loop["status"], status="paused", code="retries")
        self.keep()

    @precondition(lambda self: self.live)
    @rule(task=st.sampled_from(TASKS), status=st.sampled_from(["running", "skipped"]))
    def work(self, task: str, status: str) -> None:
        data = {"task": task, "status": status}
        loop = self.loop
        if not self.active() or task in loop["done"]:
            self.refuse("task", data)
            return
        self.tell("task", data)
        loop["failed"].discard(task)
        if status == "skipped":
            loop["done"].add(task)
        if loop["status"] == "retrying" and not loop["failed"]:
            loop["status"] = "fixing" if True in loop["gaps"].values() else "running"
        self.keep()

    @precondition(lambda self: self.live)
    @rule(
        gap=st.sampled_from(["G1", "G2"]), action=st.sampled_from(["found", "closed", "reopened"])
    )
    def gap(self, gap: str, action: str) -> None:
        data = {"gap": gap, "action": action}
        loop, is_open = self.loop, self.loop["gaps"].get(gap)
        possible = {
            "found": is_open is not False,
            "closed": is_open is True,
            "reopened": is_open is False,
        }
        if not self.active() or not possible[action]:
            self.refuse("gap", data)
            return
        self.tell("gap", data)
        loop["gaps"][gap] = action != "closed"
        loop["status"] = "fixing" if True in loop["gaps"].values() else "running"
        self.keep()

    @precondition(lambda self: self.live)
    @rule()
    def pause(self) -> None:
        if not self.active():
            self.refuse("pause", {"code": "manual"})
            return
        self.tell("pause", {"code": "manual"})
        self.loop.update(back=self.loop["status"], status="paused", code="manual")
        self.keep()

    @precondition(lambda self: self.live)
    @rule()
    def resume(self) -> None:
        loop = self.loop
        spent = any(loop["retries"][task] >= 2 for task in loop["failed"])
        if loop["status"] == "paused" and loop["code"] == "retries" and spent:
            self.refuse("resume", {})
            return
        self.tell("resume", {})
        if loop["status"] == "paused":
            loop.update(status=loop["back"], code=None)
        self.keep()

    @precondition(lambda self: self.live)
    @rule(sure=st.integers(0, 5))
    def cancel(self, sure: int) -> None:
        if sure == 0:
            self.tell("cancel", {})
            self.loop["status"] = "cancelled"
            self.keep()

    @rule()
    def reopen(self) -> None:
        """Continue with another process."""
        self.journal = Journal(str(self.gsd))

    @precondition(lambda self: not self.torn)
    @rule(share=st.floats(0, 0.9))
    def die_in_the_middle_of_an_append(self, share: float) -> None:
        event = {"v": 1, "seq": len(self.past) + 1, "ts": "2026-11-15T23:00:00.000Z",
                 **draft("note", "lp-1", "human", {"text": "never acknowledged"})}  # fmt: skip
        line, _ = encode_event(event, self.journal.read().journal_id and self.journal.at.sum)
        part = line[: 1 + int(share * (len(line) - 2))]
        with (self.gsd / "journal.jsonl").open("ab") as file:
            file.write(part)
        self.torn = True
        self.journal = Journal(str(self.gsd))

    @precondition(lambda self: not self.torn and len(self.past) > 2)
    @rule(data=st.data())
    def damage_a_line_and_repair(self, data: st.DataObject) -> None:
        path = self.gsd / "journal.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        victim = data.draw(st.integers(max(1, len(lines) - 4), len(lines) - 1))
        byte = data.draw(st.integers(0, len(lines[victim]) - 2))
        at = sum(map(len, lines[:victim])) + byte
        raw = bytearray(path.read_bytes())
        raw[at] ^= 1
        path.write_bytes(bytes(raw))
        with pytest.raises(Corrupt) as damage:
            Journal(str(self.gsd)).read()
        assert damage.value.line == victim + 1
        kept, aside = cut_damage(str(self.gsd), "j-new", NOW)
        assert kept == victim
        assert (self.gsd / aside).read_bytes() == bytes(raw)
        self.past = self.past[:kept]
        self.model = copy.deepcopy(self.past[-1])
        self.model["repairs"] += 1
        self.keep()
        self.journal = Journal(str(self.gsd))

    @invariant()
    def the_file_and_the_model_agree(self) -> None:
        reader = Journal(str(self.gsd))
        loops = reader.read()
        assert loops.seq == len(self.past)
        assert (reader.at.torn > 0) == self.torn
        assert loops.repairs == self.model["repairs"]
        if self.loop is None:
            assert loops.by_id == {}
            return
        loop = loops.by_id[f"lp-{self.model['loops']}"]
        assert (loop.status, loop.iteration) == (self.loop["status"], self.loop["iteration"])
        assert {name: task.retries for name, task in loop.tasks.items()} == self.loop["retries"]
        assert {g: gap.status == "open" for g, gap in loop.gaps.items()} == self.loop["gaps"]


def explore(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Files,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_journal_agrees_with_model() -> None:
    explore(20, 30)


@pytest.mark.torture
def test_journal_agrees_with_model_in_long_runs() -> None:
    explore(int(4_000 * float(os.environ.get("GSD_TORTURE", "1.0"))) + 1, 50)
