"""The shape of the project: small files, imports in one direction, a pure core, help for every command."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import click

from gsd_fsm.cli import COMMANDS, cli

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "gsd_fsm"
CORE = sorted((PACKAGE / "core").rglob("*.py"))
GENERATED = PACKAGE / "gsd_fsm_hook.py"
SOURCES = sorted({*PACKAGE.rglob("*.py")} - {GENERATED})
ALL = [*SOURCES, *sorted((ROOT / "scripts").rglob("*.py")), *sorted((ROOT / "tests").rglob("*.py"))]
# The modules of core that touch files; every other one is pure, and `clock` but for `now_ms`.
IMPURE = {"system", "syscalls", "project", "journal.journal", "journal.snapshot", "journal.repair",
          "hook.hook_log", "hook.activity", "hook.respond", "hook.main", "views.write",
          "usage.transcript", "usage.task_list", "hook.client_usage"}  # fmt: skip
# The packages of core from the top down: each imports only from those below it, and from the
# modules that lie directly in core.
PACKAGES = ("hook", "journal", "views", "usage", "text", "loop")
# A folder shows what is in it at a glance; a file holds one thing.
MOST_FILES = 12
MOST_LINES = 500
# What touches the loops outside.
IMPURE_MODULES = {"os", "posix", "nt", "io", "pathlib", "random", "secrets", "socket", "subprocess",
                  "tempfile", "shutil", "threading", "datetime", "signal", "fcntl", "msvcrt", "time"}  # fmt: skip
IMPURE_NAMES = {"open", "input", "print", "exec", "eval", "now_ms", "system", "getenv"}


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def at_run_time(module: ast.Module) -> list[ast.AST]:
    """All nodes but those for type checkers only."""
    found: list[ast.AST] = []
    todo: list[ast.AST] = [module]
    while todo:
        node = todo.pop()
        found.append(node)
        if isinstance(node, ast.If) and ast.unparse(node.test) in (
            "TYPE_CHECKING",
            "typing.TYPE_CHECKING",
        ):
            todo += node.orelse
        else:
            todo += ast.iter_child_nodes(node)
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
            if node.module == "gsd_fsm":
                found |= {f"gsd_fsm.{alias.name}" for alias in node.names}
    return found


def core_name(path: Path) -> str:
    """Return the name of a core module below `gsd_fsm.core`."""
    return module_of(path).removeprefix("gsd_fsm.core").lstrip(".")


def test_files_have_at_most_500_lines() -> None:
    long = [path for path in ALL if len(path.read_text("utf-8").splitlines()) > MOST_LINES]
    assert names(long) == []


def test_core_folders_have_at_most_12_files() -> None:
    folders = {path.parent for path in CORE}
    full = [folder for folder in folders if len([*folder.glob("[!_]*.py")]) > MOST_FILES]
    assert full == []


def test_core_packages_import_downwards_only() -> None:
    for path in CORE:
        own = core_name(path).partition(".")[0]
        if own not in PACKAGES:
            allowed: tuple[str, ...] = ()
        else:
            allowed = PACKAGES[PACKAGES.index(own) :]
        for module in imports(path, typing_too=True):
            if module.startswith("gsd_fsm.core."):
                package = module.removeprefix("gsd_fsm.core.").partition(".")[0]
                assert package not in PACKAGES or package in allowed, (core_name(path), module)


def layer(module: str) -> int:
    """core is 0, the machine 1, read models 2, the engine 3, the command line 4."""
    if module.startswith("gsd_fsm.core"):
        return 0
    if module == "gsd_fsm.history.machine":
        return 1
    if module.startswith("gsd_fsm.engine"):
        return 3
    return 4 if module.startswith(("gsd_fsm.cli", "gsd_fsm.__main__")) else 2


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_imports_go_one_way() -> None:
    for path in SOURCES:
        own = layer(module_of(path))
        for module in imports(path, typing_too=True):
            # The package itself holds nothing but its version.
            if module.startswith("gsd_fsm.") and module != "gsd_fsm.__version__":
                assert layer(module) <= own, (path, module)


def test_no_module_imports_itself_around_a_corner() -> None:
    edges = {module_of(p): {m for m in imports(p) if m.startswith("gsd_fsm.")} for p in SOURCES}
    left = dict(edges)
    while left:
        free = [m for m, uses in left.items() if not (uses & set(left)) - {m}]
        assert free, sorted(left)
        for module in free:
            del left[module]


def test_core_imports_only_core_and_the_standard_library() -> None:
    for path in CORE:
        for module in imports(path, typing_too=True):
            top = module.partition(".")[0]
            core = module.startswith("gsd_fsm.core.")
            standard = top in sys.stdlib_module_names or top in ("__future__", "_sha2", "_sha256")
            assert core or standard, (path, module)


def test_the_pure_core_touches_no_disk_no_clock_and_no_chance() -> None:
    pure = {core_name(path): path for path in CORE if core_name(path) not in IMPURE}
    for name, path in pure.items():
        found = {module.partition(".")[0] for module in imports(path)}
        allowed = {"time"} if name == "clock" else set()
        assert not found & (IMPURE_MODULES - allowed), name
        used = {m.removeprefix("gsd_fsm.core.") for m in imports(path) if "gsd_fsm.core." in m}
        assert not used & IMPURE, name
        for node in at_run_time(tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in IMPURE_NAMES, (name, node.func.id)


def test_only_now_reads_the_clock() -> None:
    module = tree(PACKAGE / "core" / "clock.py")
    callers = [
        function.name
        for function in ast.walk(module)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "time"
    ]
    assert callers == ["now_ms"]


def _of_core(node: ast.Import | ast.ImportFrom) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gsd_fsm.core")


def test_core_modules_import_each_other_by_plain_names() -> None:
    for node in (node for path in CORE for node in ast.walk(tree(path))):
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("gsd_fsm") for alias in node.names)
        elif _of_core(node) if isinstance(node, ast.ImportFrom) else False:
            assert all(alias.asname is None and alias.name != "*" for alias in node.names)


def test_core_is_valid_on_python_3_8() -> None:
    for path in CORE:
        text = path.read_text("utf-8")
        ast.parse(text, str(path), feature_version=(3, 8))
        assert path.stem == "__init__" or "from __future__ import annotations" in text, path


def test_every_command_and_option_has_help() -> None:
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert (command.help or "").strip(), name
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert (parameter.help or "").strip(), (name, parameter.name)
