"""Count the operations of gsd_fsm: the same number on every machine, however busy it is.

A second copy of the package is imported from rewritten sources. Each call of a function and each
round of a loop counts as one operation. What C code does with a whole container (a search in a list,
a copy, a sort, a join) counts as one operation per item: a line trace would not see it.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import pairwise
from types import ModuleType
from typing import Any

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


def _step() -> ast.stmt:
    return ast.Expr(_call("__step__"))


class _Instrument(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.body.insert(_after_docstring(node), _step())
        return node

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        node.body.insert(0, _step())
        return node

    def visit_While(self, node: ast.While) -> ast.While:
        self.generic_visit(node)
        node.body.insert(0, _step())
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        node.ifs.insert(0, _call("__step__"))
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.Compare:
        self.generic_visit(node)
        node.comparators = [
            _call("__searched__", right) if isinstance(op, ast.In | ast.NotIn) else right
            for op, right in zip(node.ops, node.comparators, strict=True)
        ]
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in _READERS:
            node.args = [
                arg if isinstance(arg, ast.Starred) else _call("__read__", arg) for arg in node.args
            ]
        elif name in _OWN_READERS and isinstance(node.func, ast.Attribute):
            node.func.value = _call("__read__", node.func.value)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.Starred:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = _call("__read__", node.value)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.Dict:
        self.generic_visit(node)
        node.values = [
            _call("__read__", value) if key is None else value
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        copies = isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load)
        return _call("__read__", node) if copies else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return _call("__read__", node) if isinstance(node.op, ast.Add) else node


def _after_docstring(node: ast.FunctionDef) -> int:
    return int(ast.get_docstring(node) is not None)


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, counter: CountedPackage) -> None:
        super().__init__(name, path)
        self._counter = counter

    def get_code(self, fullname: str) -> Any:
        tree = _Instrument().visit(ast.parse(self.get_data(self.path)))
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        counter = self._counter
        vars(module).update(
            __step__=counter.step, __searched__=counter.searched, __read__=counter.read
        )
        super().exec_module(module)


class CountedPackage(MetaPathFinder):
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

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.split(".", maxsplit=1)[0] != PACKAGE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin and spec.origin.endswith(".py"):
            spec.loader = _Loader(fullname, spec.origin, self)
        return spec

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
    package = CountedPackage()
    package.swap()
    sys.meta_path.insert(0, package)
    try:
        yield package
    finally:
        sys.meta_path.remove(package)
        package.swap()


def require_linear(what: str, costs: Sequence[int]) -> None:
    """Raise AssertionError unless the costs at n, 2n, 4n and 8n grow at most as n·log n.

    Each doubling may add a little more than twice as much as the one before: constant costs cancel
    out, and a quadratic part, which adds four times as much, shows early.
    """
    added = [more - less for less, more in pairwise(costs)]
    for before, after in pairwise(added):
        assert after <= 2.4 * max(before, 0) + 60, f"{what} grows too fast: {costs}"
