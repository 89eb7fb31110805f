"""The shape of the project: small files, imports in one direction, a pure core, a current README."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import click

from gsd_fsm.cli import COMMANDS, cli
from gsd_fsm.graph import mermaid

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "gsd_fsm"
CORE = sorted(PACKAGE.glob("core/*.py"))
GENERATED = PACKAGE / "gsd_fsm_hook.py"
SOURCES = sorted({*PACKAGE.rglob("*.py")} - {GENERATED})
ALL = [*SOURCES, *sorted((ROOT / "scripts").rglob("*.py")), *sorted((ROOT / "tests").rglob("*.py"))]
# The modules of core that touch files; every other one is pure, and `clock` but for `now_ms`.
IMPURE = {"__init__", "aside", "disk", "lock", "journal", "snapshot", "repair", "places", "log",
          "watch", "repeats", "views", "hook", "entry", "meter", "task_list", "client"}  # fmt: skip
PURE = [path.stem for path in CORE if path.stem not in IMPURE]
# What touches the world outside.
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


def test_no_file_is_longer_than_300_lines() -> None:
    assert names([path for path in ALL if len(path.read_text("utf-8").splitlines()) > 300]) == []


def layer(module: str) -> int:
    """core is 0, the machine 1, read models 2, the command line 3."""
    if module.startswith("gsd_fsm.core"):
        return 0
    if module == "gsd_fsm.machine":
        return 1
    return 3 if module.startswith(("gsd_fsm.cli", "gsd_fsm.__main__")) else 2


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
    for name in PURE:
        path = PACKAGE / "core" / f"{name}.py"
        found = {module.partition(".")[0] for module in imports(path)}
        allowed = {"time"} if name == "clock" else set()
        assert not found & (IMPURE_MODULES - allowed), name
        assert not {m for m in imports(path) if m.startswith("gsd_fsm.core.")} - {
            f"gsd_fsm.core.{pure}" for pure in PURE
        }, name
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


def defined(module: ast.Module) -> set[str]:
    """Top-level names, also those within a top-level if, try or for."""
    found: set[str] = set()
    todo = list(module.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            todo += node.orelse
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {
                n.id
                for t in targets
                for n in ast.walk(t)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
        elif isinstance(node, ast.For):
            found |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
            todo += [*node.body, *node.orelse]
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            for part in ("body", "orelse", "finalbody"):
                todo += getattr(node, part, [])
            for handler in getattr(node, "handlers", []):
                todo += handler.body
        elif isinstance(node, (ast.Import, ast.ImportFrom)) and not _of_core(node):
            found |= {(a.asname or a.name).partition(".")[0] for a in node.names} - {"annotations"}
    return found


def _of_core(node: ast.Import | ast.ImportFrom) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gsd_fsm.core")


def test_a_name_is_defined_in_one_core_module_only() -> None:
    homes: dict[str, list[str]] = {}
    imported: dict[str, set[str]] = {}
    for path in CORE:
        module = tree(path)
        outside = {
            (alias.asname or alias.name)
            for node in ast.walk(module)
            if isinstance(node, (ast.Import, ast.ImportFrom)) and not _of_core(node)
            for alias in node.names
        }
        for name in defined(module) - {"TYPE_CHECKING"}:
            homes.setdefault(name, []).append(path.stem)
            imported.setdefault(name, set()).add(path.stem if name in outside else "")
    # The same import in two modules is one name; anything else twice would be lost in a bundle.
    twice = {n: found for n, found in homes.items() if len(found) > 1 and "" in imported[n]}
    assert twice == {}


def test_core_modules_import_each_other_by_plain_names() -> None:
    for node in (node for path in CORE for node in ast.walk(tree(path))):
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("gsd_fsm") for alias in node.names)
        elif _of_core(node) if isinstance(node, ast.ImportFrom) else False:
            assert str(node.module).count(".") == 2
            assert all(alias.asname is None and alias.name != "*" for alias in node.names)


def test_core_is_valid_on_python_3_8() -> None:
    for path in CORE:
        text = path.read_text("utf-8")
        ast.parse(text, str(path), feature_version=(3, 8))
        assert path.stem == "__init__" or "from __future__ import annotations" in text, path


def test_every_command_has_help_and_stands_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert (command.help or "").strip(), name
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert (parameter.help or "").strip(), (name, parameter.name)
        assert f"`{name}" in readme or f"gsd-fsm {name}" in readme, name


def test_the_readme_shows_the_machine_as_it_is() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"```mermaid\n{mermaid()}\n```" in readme
