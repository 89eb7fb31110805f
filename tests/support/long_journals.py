"""Journals that grow with a number, and a count of the operations that they cost."""

from __future__ import annotations

import ast
import builtins
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.loop import limits
from tests.support.events import NOW as START
from tests.support.events import draft
from tests.support.golden import write_lines

SESSION = "growing"
LIMITS = {"max_iterations": 0, "stuck_limit": 0, "idle_limit": 0}
Events = Iterator[dict[str, Any]]


def begin(kind: str, loop: str = "lp", session: str = SESSION, **data: Any) -> dict[str, Any]:
    start = {"kind": kind, "mode": "yolo", "goal": "Grow", "limits": LIMITS, **data}
    return draft("start", loop, "human", start, session=session)


def happen(kind: str, _by: str = "agent", **data: Any) -> dict[str, Any]:
    return draft(kind, "lp", _by, data)


def waiting_tasks(count: int) -> Events:
    yield begin("execute")
    for number in range(count):
        yield happen("plan", tasks=[{"id": f"T{number}", "title": f"Task {number}"}])


def finished_tasks(count: int) -> Events:
    """Return a scored goal whose waves end in light reviews, with one task left."""
    yield begin("goal")
    yield happen("score", spec_score=9, fit_score=40, shape="tool")
    for number in range(count):
        yield happen("task", task=f"T{number}", status="pending", wave=number + 1)
        yield happen("task", task=f"T{number}", status="running")
        yield happen("task", task=f"T{number}", status="complete")
        yield happen("review", action="light", wave=number + 1, score=9)
    yield happen("task", task="last", status="pending", wave=count + 1)


def chain(count: int) -> Events:
    """Return tasks that depend on the one before, each added alone."""
    yield begin("goal")
    yield happen("task", task="T0", status="pending")
    for number in range(1, count):
        yield happen("task", task=f"T{number}", status="pending", depends=[f"T{number - 1}"])


def fan_in(count: int) -> Events:
    """Return one task that depends on all others, named one by one."""
    yield begin("goal")
    yield happen("task", task="all", status="pending")
    for number in range(count):
        yield happen("task", task=f"T{number}", status="pending")
        yield happen("task", task="all", status="pending", depends=[f"T{number}"])


def plan_in_waves(count: int) -> Events:
    plan = {"file": "plan.md", "digest": "d", "tasks": count, "waves": count // 4}
    yield begin("execute", plan=plan)
    for number in range(count):
        spec = {"id": f"T{number}", "wave": number // 4 + 1}
        if number >= 4:
            spec["depends"] = [f"T{number - 4}"]
        yield happen("plan", tasks=[spec])
    for number in range(count // 2):
        yield happen("task", task=f"T{number}", status="running")
        yield happen("task", task=f"T{number}", status="complete")


def failed_tasks(count: int) -> Events:
    yield begin("execute")
    for number in range(count):
        yield happen("task", task=f"T{number}", status="running")
        error = {"error": f"error {number}", "class": "logic"}
        yield happen("failure", task=f"T{number}", **error)
        yield draft("resume", "lp", "human", {}, session=SESSION)


def mirrored_tasks(count: int) -> Events:
    yield begin("goal", task_list="list")
    for number in range(1, count + 1):
        depends = [str(number - 1)] if number > 1 else []
        about = {"title": f"do {number}", "depends": depends, "list": "list", "named": True}
        yield happen("task", "hook", task=str(number), status="pending", mirrored=True, **about)


def gaps(count: int) -> Events:
    yield begin("verify")
    for number in range(count):
        yield happen("gap", action="found", gap=f"G{number}", description="It is wrong")
    for number in range(0, count, 2):
        yield happen("gap", action="closed", gap=f"G{number}")
        yield happen("iteration", "hook", activity=True)
    for number in range(0, count, 4):
        yield happen("gap", action="reopened", gap=f"G{number}")


def criteria(count: int) -> Events:
    """Each criterion has a task of its own and is proven from other content than the others."""
    names = [f"criterion {number}" for number in range(count)]
    yield begin("goal")
    for name in names:
        yield happen("plan", criteria=[{"name": name, "check": "make"}])
        about = {"condition": f"criterion:{name}", "title": name}
        yield happen("task", "cli", task=name.replace(" ", "-"), status="pending", **about)
    for number, name in enumerate(names[:-1]):
        proof = {"command": "make", "exit_code": 0, "tree": f"tree {number}"}
        yield happen("criterion", "cli", criterion=name, met=True, evidence=proof)
        yield happen("iteration", "hook", activity=True)


def must_nots(count: int) -> Events:
    yield begin("goal")
    for number in range(count):
        yield happen("plan", must_not=[f"break {number}"])


def notes(count: int) -> Events:
    """Each block delivers one note, and the client drops every second block."""
    yield begin("goal")
    first = 3  # after the events `journal` and `start`
    for number in range(count):
        yield happen("note", "human", text=f"note {number}")
    for number in range(count // 2):
        about = {"delivered": [first + number], "signal": f"{number}"}
        yield happen("iteration", "hook", activity=True, **about)
        if number % 2:
            yield happen("stop", "hook", code="client")


def ended_loops(count: int) -> Events:
    for number in range(count):
        yield begin("goal", f"lp-{number}", f"s-{number}")
        yield draft("cancel", f"lp-{number}", "human", {})
    yield begin("goal")


def live_loops(count: int) -> Events:
    for number in range(count):
        yield begin("goal", f"lp-{number}", f"s-{number}", tasks=[{"id": "T1"}])
    for number in range(0, count, 2):
        yield draft("cancel", f"lp-{number}", "human", {})
    yield begin("goal")


def iterations(count: int) -> Events:
    yield begin("goal", criteria=[{"name": "done"}])
    for number in range(count):
        yield happen("iteration", "hook", activity=True, reason=f"Go on {number}", code="continue")


def full_plan() -> Events:
    """A loop with as many tasks and dependencies as it may have."""
    each = limits.MOST_DEPENDENCIES_IN_ALL // limits.MOST_TASKS
    names = [f"T{number}" for number in range(limits.MOST_TASKS)]
    tasks = [
        {"id": name, "title": f"Task {name}", "depends": names[max(0, number - each) : number]}
        for number, name in enumerate(names)
    ]
    yield begin("execute")
    for first in range(0, limits.MOST_TASKS, 400):
        yield happen("plan", tasks=tasks[first : first + 400])


def full_goal() -> Events:
    """A loop with as many failed criteria, notes, must-nots and tasks of the client as it may have."""
    text = "It is not so. " * 280
    yield begin("goal")
    for number in range(limits.MOST_CRITERIA):
        name = f"criterion {number}"
        proof = {"command": "make", "exit_code": 1, "tail": text, "tree": "t"}
        yield happen("plan", criteria=[{"name": name, "check": "make"}], must_not=[f"not {name}"])
        yield happen("criterion", "cli", criterion=name, met=False, evidence=proof)
    for number in range(limits.MOST_NOTES):
        yield happen("note", "human", text=f"{number}: {text}")
    for number in range(limits.MOST_TASKS):
        about = {"mirrored": True, "list": SESSION, "title": f"do {number}"}
        yield happen("task", "hook", task=str(number), status="pending", **about)


def full_verification() -> Events:
    yield begin("verify")
    for number in range(limits.MOST_GAPS):
        text = f"It is wrong: {number}. " * 50
        yield happen("gap", action="found", gap=f"G{number}", description=text, evidence=text)


GROWTH: dict[str, Callable[[int], Events]] = {
    function.__name__: function
    for function in (
        waiting_tasks, finished_tasks, chain, fan_in, plan_in_waves, failed_tasks, mirrored_tasks,
        gaps, criteria, must_nots, notes, ended_loops, live_loops, iterations,
    )
}  # fmt: skip


def write_long_journal(gsd: Path, events: Events) -> None:
    """Write a journal with these events into the new directory `gsd`, without a sync."""
    gsd.mkdir(parents=True, mode=0o700)
    first = draft("journal", None, "cli", {"id": "j-long", "incompat": [], "compat": []})
    numbered = enumerate((first, *events), 1)
    lines = [{"v": 1, "seq": n, "ts": to_iso(START + n * 250), **event} for n, event in numbered]
    (gsd / "journal.jsonl").write_bytes(write_lines(lines))
    (gsd / "journal.jsonl").chmod(0o600)


PACKAGE = "gsd_fsm"
# Functions that go through each of their arguments, and methods that go through their own object.
_READERS = {
    "list", "tuple", "set", "frozenset", "dict", "sorted", "sum", "min", "max", "any", "all",
    "join", "update", "extend", "fromkeys", "intersection", "union", "difference", "writelines",
}  # fmt: skip
_OWN_READERS = {"index", "remove", "count", "copy", "sort", "insert"}
_CONTAINERS = (list, tuple, dict, set, frozenset, type({}.keys()), type({}.values()))


def _call(function: str, *values: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(function, ast.Load()), list(values), [])


def _read(value: ast.expr) -> ast.Call:
    return _call("__read__", value)


class _Instrument(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        match node:
            case ast.FunctionDef() | ast.For() | ast.While():
                is_documented = isinstance(node, ast.FunctionDef) and ast.get_docstring(node)
                node.body.insert(bool(is_documented), ast.Expr(_call("__step__")))
            case ast.comprehension():
                node.ifs.insert(0, _call("__step__"))
            case ast.Compare():
                node.comparators = [
                    _call("__searched__", right) if isinstance(op, ast.In | ast.NotIn) else right
                    for op, right in zip(node.ops, node.comparators, strict=True)
                ]
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in _READERS:
                node.args = [it if isinstance(it, ast.Starred) else _read(it) for it in node.args]
            case ast.Call(func=ast.Attribute(attr=name)) if name in _OWN_READERS:
                node.func.value = _read(node.func.value)
            case ast.Starred(ctx=ast.Load()):
                node.value = _read(node.value)
            case ast.Dict():
                pairs = zip(node.keys, node.values, strict=True)
                node.values = [_read(value) if key is None else value for key, value in pairs]
            case ast.Subscript(slice=ast.Slice(), ctx=ast.Load()) | ast.BinOp(op=ast.Add()):
                return _read(node)
        return node


class CountedPackage:
    """The package `gsd_fsm` with counters in it."""

    def __init__(self) -> None:
        self.count = 0
        self._modules: dict[str, ModuleType] = {}

    def swap(self) -> None:
        """Exchange the modules of the package that `import` finds for those kept here."""
        names = [name for name in sys.modules if name.split(".")[0] == PACKAGE]
        found = {name: sys.modules.pop(name) for name in names}
        sys.modules.update(self._modules)
        self._modules = found

    def module(self, name: str) -> Any:
        return importlib.import_module(f"{PACKAGE}.{name}")

    def cost(self, work: Callable[[], object]) -> int:
        """Return the number of operations that `work` takes."""
        before = self.count
        work()
        return self.count - before

    # called by the rewritten sources

    def step(self) -> bool:
        self.count += 1
        return True

    def searched(self, container: Any) -> Any:
        if isinstance(container, list | tuple):
            self.count += len(container)
        return container

    def read(self, value: Any) -> Any:
        if isinstance(value, _CONTAINERS):
            self.count += len(value)
        return value


@contextmanager
def counted_package() -> Iterator[CountedPackage]:
    """Let `import` find the counted package instead of the one in use."""
    package, compiled = CountedPackage(), SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        if name.partition(".")[0] != PACKAGE:
            return compiled(loader, name)
        tree = _Instrument().visit(ast.parse(loader.get_data(loader.path)))
        return compile(ast.fix_missing_locations(tree), loader.path, "exec", dont_inherit=True)

    package.swap()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SourceFileLoader, "get_code", get_code)
        for name in ("step", "searched", "read"):
            patch.setattr(builtins, f"__{name}__", getattr(package, name), raising=False)
        yield package
    package.swap()


def require_linear(what: str, costs: Sequence[int]) -> None:
    """Raise AssertionError unless the costs at n, 2n, 4n and 8n grow at most as n·log n.

    Each doubling may add a little more than twice as much as the one before: constant costs cancel
    out, and a quadratic part, which adds four times as much, shows early.
    """
    added = [more - less for less, more in pairwise(costs)]
    for before, after in pairwise(added):
        assert after <= 2.4 * max(before, 0) + 60, f"{what} grows too fast: {costs}"
