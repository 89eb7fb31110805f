"""Costs, counted in operations, grow at most as n·log n in the size of a journal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.long_journals import (
    GROWTH,
    SESSION,
    START,
    CountedPackage,
    counted_package,
    require_linear,
    write_long_journal,
)

SIZES = (60, 120, 240, 480)


@pytest.fixture(scope="module")
def counted() -> Iterator[CountedPackage]:
    with counted_package() as package:
        yield package


class Grown:
    """A journal of some size, read by the counted package."""

    def __init__(self, package: CountedPackage, gsd: Path, growth: str, count: int) -> None:
        write_long_journal(gsd, GROWTH[growth](count))
        self.path, self.module = str(gsd), package.module
        self.journal = self.open()
        self.loops = self.journal.read()
        self.loop = self.loops.by_id["lp"]

    def open(self) -> Any:
        return self.module("core.journal.journal").Journal(self.path, now=lambda: START, small=0)

    def fold(self) -> None:
        self.open().read()

    def save_snapshot(self) -> None:
        syscalls, snapshot = self.module("core.syscalls"), self.module("core.journal.snapshot")
        directory = syscalls.open_directory(self.path)
        fd = syscalls.open_regular(directory, "journal.jsonl", syscalls.READ)
        snapshot.save_snapshot(directory, fd, self.loops, self.journal.at)
        syscalls.close(fd)
        syscalls.close_directory(directory)

    def read_snapshot(self) -> None:
        assert self.open().read_cached().seq == self.loops.seq

    def decide_stop(self) -> None:
        """Decide one stop as the hook does, from the snapshot, and append the decision."""
        decide, author = self.module("core.hook.decide"), self.module("core.journal.journal")
        owners = self.module("core.hook.owners")
        payload = {"hook_event_name": "Stop", "session_id": SESSION}
        signal = self.module("core.hook.clients").Signal(payload, "", "", lambda _: "")
        with self.open().transaction(author.Author("hook", SESSION)) as tx:
            loop = owners.loop_for_stop(tx.loops, signal, "")
            decision = decide.decide_stop(loop, signal, decide.Observed("0"), START)
            tx.append(loop, decision.event, decision.data)

    def next_step(self) -> None:
        self.module("core.text.next_step").next_step(self.loop)

    def status(self) -> None:
        engine = self.module("engine.status")
        found = engine.Status(self.loop, engine.status_view(self.loop, "1:0"), True, False, "")
        page = self.module("cli.display.loop").LoopPage(self.loop, START, full=True)
        self.module("cli.display.plain").render(page.parts(found))

    def status_line(self) -> None:
        self.module("cli.statusline").summary(self.loop, SESSION, color=False)

    def write_views(self) -> None:
        self.module("core.text.progress").progress(self.loop)
        self.module("core.text.progress").report(self.loop)
        self.module("core.views.state_md").loop_section(self.loop)
        views = self.module("core.views.loop_json")
        views.workflow_state(self.loop)
        views.state(self.loop)

    def follow_plan(self) -> None:
        """Compute what a `report` needs: the turn, missing conditions and questions."""
        self.module("core.loop.completion").missing(self.loop)
        self.module("core.loop.waves").ready_tasks(self.loop)
        self.module("core.loop.waves").ready_gaps(self.loop)
        self.module("core.text.questions").pending_question(self.loop)
        self.module("core.loop.limits").used_up_retries(self.loop, self.loop.limits)
        with contextlib.suppress(self.module("core.errors").Refused):
            self.module("engine.planned.plan").require_turn(self.loop, "T1")

    def add_task(self) -> None:
        """Let a new task depend on all others, as far as the rules allow it."""
        author, errors = self.module("core.journal.journal"), self.module("core.errors")
        data = {"task": "new", "status": "pending", "depends": list(self.loop.tasks)}
        with contextlib.suppress(errors.Refused), self.open().dry_run(author.Author("cli")) as tx:
            tx.append(tx.loops.by_id["lp"], "task", data)

    def mirror(self) -> None:
        """Compare the loop with a client's list in which every task is complete."""
        mirrors = self.module("core.usage.task_list")
        tasks = {
            name: mirrors.ClientTask(task.title, "completed", list(task.depends))
            for name, task in reversed(self.loop.tasks.items())
            if name.isdigit()
        }
        list(mirrors._changes(self.loop, tasks, mirrors.TaskList("list", named=True)))

    def mirror_changes(self) -> None:
        """Compare the loop with a list whose tasks also wait for a new one, some in a cycle."""
        mirrors = self.module("core.usage.task_list")
        names = [name for name in self.loop.tasks if name.isdigit()]
        tasks = {
            name: mirrors.ClientTask(self.loop.tasks[name].title, "pending", ["999999"])
            for name in names
        }
        tasks["999999"] = mirrors.ClientTask("new", "pending", names[:1])
        list(mirrors._changes(self.loop, tasks, mirrors.TaskList("list", named=True)))


WORKS = (
    "fold", "save_snapshot", "read_snapshot", "decide_stop", "next_step", "status", "status_line",
    "write_views", "follow_plan", "add_task", "mirror", "mirror_changes",
)  # fmt: skip


@pytest.mark.parametrize("growth", GROWTH)
def test_cost_grows_at_most_n_log_n(counted: CountedPackage, tmp_path: Path, growth: str) -> None:
    costs: dict[str, list[int]] = {name: [] for name in WORKS}
    for turn, size in enumerate((SIZES[0], *SIZES)):
        grown = Grown(counted, tmp_path / str(turn) / ".gsd", growth, size)
        for name in WORKS:
            cost = counted.cost(getattr(grown, name))
            if turn:  # the first turn imports modules and fills caches
                costs[name].append(cost)
    for name, counts in costs.items():
        require_linear(f"{name} with {growth}", counts)


@pytest.mark.parametrize("shape", ["independent", "chain", "waves"])
def test_appends_cost_at_most_n_log_n(counted: CountedPackage, tmp_path: Path, shape: str) -> None:
    def depends(number: int) -> list[str]:
        first = number - 1 if shape == "chain" else number // 10 * 10 - 10
        count = {"independent": 0, "chain": 1, "waves": 4}[shape]
        return [f"T{first + place}" for place in range(count)] if first >= 0 else []

    def append(count: int) -> None:
        grown = Grown(counted, tmp_path / str(count) / ".gsd", "criteria", 1)
        author = counted.module("core.journal.journal").Author("cli")
        with grown.open().dry_run(author) as tx:
            loop = tx.loops.by_id["lp"]
            for number in range(count):
                data = {"task": f"T{number}", "status": "pending", "depends": depends(number)}
                tx.append(loop, "task", data)
            assert len(loop.tasks) >= count

    append(2)  # imports modules and fills caches
    costs = [counted.cost(lambda size=size: append(size)) for size in SIZES]
    require_linear(f"appending tasks: {shape}", costs)


def test_quadratic_cost_is_noticed() -> None:
    require_linear("linear", [1_000 + 50 * n for n in SIZES])
    with pytest.raises(AssertionError, match="quadratic grows too fast"):
        require_linear("quadratic", [1_000 + 50 * n + n * n // 8 for n in SIZES])
