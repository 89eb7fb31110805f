"""Layout of the project: layers, file and folder sizes, a pure core, mirrored tests."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import click
import pytest

from gsd_fsm.cli import COMMANDS, cli

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "gsd_fsm"
CORE = sorted((PACKAGE / "core").rglob("*.py"))
GENERATED = PACKAGE / "gsd_fsm_hook.py"
SOURCES = sorted({*PACKAGE.rglob("*.py")} - {GENERATED})
ALL = [*SOURCES, *sorted((ROOT / "scripts").rglob("*.py")), *sorted((ROOT / "tests").rglob("*.py"))]
# A package imports only from packages below it, and never from one beside it.
LAYERS = """
cli
engine
verify  imports  install
subagents  git
phase  history
plans  evidence  protection
config
documents
core
"""
# The same inside core. Modules directly in core are below all of its packages.
CORE_LAYERS = """
hook
journal
views
usage
text
loop
"""
# Modules of core that read or write files. All others are pure, except for `clock.now_ms`.
IMPURE = {"system", "syscalls", "project", "ancestors", "journal.journal", "journal.snapshot",
          "journal.repair", "hook.hook_log", "hook.activity", "hook.respond", "hook.main",
          "hook.memory", "hook.prompt_source", "views.write", "usage.transcript", "usage.task_list",
          "hook.client_usage", "hook.subagents", "program"}  # fmt: skip
# One file for each group of commands, and one for each group of use cases; all others: 12.
MOST_FILES = {"cli": 28, "engine": 21}
# Modules and functions with effects or random results.
IMPURE_MODULES = {"os", "posix", "nt", "io", "pathlib", "random", "secrets", "socket", "subprocess",
                  "tempfile", "shutil", "threading", "datetime", "signal", "fcntl", "msvcrt", "time"}  # fmt: skip
IMPURE_NAMES = {"open", "input", "print", "exec", "eval", "now_ms", "system", "getenv"}


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def at_run_time(module: ast.Module) -> list[ast.AST]:
    """Return all nodes except those for type checkers only."""
    found: list[ast.AST] = []
    todo: list[ast.AST] = [module]
    while todo:
        node = todo.pop()
        found.append(node)
        is_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        todo += node.orelse if is_for_types else ast.iter_child_nodes(node)
    return found


@cache
def imports(path: Path, *, typing_too: bool = False) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree(path)) if typing_too else at_run_time(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found.add(node.module or "")
            if node.module == "gsd_fsm" or (node.module or "").startswith("tests"):
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def rank(layers: str) -> dict[str, int]:
    """Return the height of each package; core and others at the bottom have the lowest."""
    lines = layers.split("\n")[-2:0:-1]
    return {package: height for height, line in enumerate(lines) for package in line.split()}


def package_of(module: str, root: str) -> str:
    """Return the name of the package directly below `root` that holds this module."""
    return module.removeprefix(root).lstrip(".").partition(".")[0]


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_files_and_folders_are_small_and_the_root_holds_only_entry_point_and_hook() -> None:
    assert [path for path in ALL if len(path.read_text("utf-8").splitlines()) > 500] == []
    full = {
        str(folder.relative_to(ROOT)): count
        for folder in {path.parent for path in SOURCES}
        if (count := len([*folder.glob("[!_]*.py")])) > MOST_FILES.get(folder.name, 12)
    }
    assert full == {}
    root = sorted(path.name for path in PACKAGE.glob("*.py"))
    assert root == ["__init__.py", "__main__.py", "gsd_fsm_hook.py"]


def test_no_test_module_imports_another() -> None:
    wrong = {
        str(path.relative_to(ROOT)): module
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for module in imports(path, typing_too=True)
        if re.match(r"tests\.(\w+\.)*(test_\w+|conftest)\b", module)
    }
    assert wrong == {}, "move what they share to tests/support"


@pytest.mark.parametrize(("root", "layers"), [("gsd_fsm", LAYERS), ("gsd_fsm.core", CORE_LAYERS)])
def test_packages_import_downwards_only_as_documented(root: str, layers: str) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert f"```text{layers}```" in page or root == "gsd_fsm.core"
    height, folder = rank(layers), ROOT / root.replace(".", "/")
    assert {path.parent.name for path in folder.glob("*/__init__.py")} == {*height}
    for path in CORE if root == "gsd_fsm.core" else folder.glob("*/**/*.py"):
        own = package_of(module_of(path), root)
        imported = {m for m in imports(path, typing_too=True) if m.startswith(f"{root}.")}
        for package in {package_of(module, root) for module in imported} & {*height} - {own}:
            assert height[package] < height.get(own, -1), (module_of(path), package)


def test_modules_have_no_import_cycles() -> None:
    left = {module_of(p): {m for m in imports(p) if m.startswith("gsd_fsm.")} for p in SOURCES}
    while left:
        free = [m for m, uses in left.items() if not (uses & set(left)) - {m}]
        assert free, sorted(left)
        for module in free:
            del left[module]


def test_core_needs_only_the_standard_library_of_python_3_8() -> None:
    known = {*sys.stdlib_module_names, "__future__", "_sha2", "_sha256"}
    for path in CORE:
        text = path.read_text("utf-8")
        ast.parse(text, str(path), feature_version=(3, 8))
        assert path.stem == "__init__" or "from __future__ import annotations" in text, path
        for module in imports(path, typing_too=True):
            assert module.startswith("gsd_fsm.core.") or module.partition(".")[0] in known, path


def test_pure_core_uses_no_files_clock_or_randomness() -> None:
    modules = {module_of(path).removeprefix("gsd_fsm.core").lstrip("."): path for path in CORE}
    for name in modules.keys() - IMPURE:
        path = modules[name]
        found = {module.partition(".")[0] for module in imports(path)}
        allowed = {"time"} if name == "clock" else set()
        assert not found & (IMPURE_MODULES - allowed), name
        used = {m.removeprefix("gsd_fsm.core.") for m in imports(path) if "gsd_fsm.core." in m}
        assert not used & IMPURE, name
        for node in at_run_time(tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in IMPURE_NAMES, (name, node.func.id)
    clock = tree(modules["clock"]).body
    assert [node.name for node in clock if "time()" in ast.unparse(node)] == ["now_ms"]


def test_every_command_and_option_has_help() -> None:
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        options = [it for it in command.params if isinstance(it, click.Option)]
        assert [it.name for it in (command, *options) if not (it.help or "").strip()] == [], name
