"""Read Python source as its syntax tree, so that formatting and comments do not count."""

from __future__ import annotations

import ast
import warnings
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_HOOK_PREFIX = "pytest_"
# The lists that pytest reads from a conftest.py, and the functions that decide what a module holds.
_HOOK_LISTS = frozenset({"pytest_plugins", "collect_ignore", "collect_ignore_glob"})
_HOOK_NAMES = _HOOK_LISTS | {"__getattr__", "__dir__"}
# What can define a hook unseen, register one, or end the process before it reports. These count in
# functions too: a statement of the module may call the function.
_SMUGGLING_NAMES = frozenset({"exec", "eval", "globals", "exit", "quit", "_exit", "hookimpl"})
_SMUGGLING_ATTRIBUTES = frozenset({
    "exit", "_exit", "hookimpl", "pluginmanager",
    "execl", "execle", "execlp", "execlpe", "execv", "execve", "execvp", "execvpe",
})  # fmt: skip
_SMUGGLING_IMPORTS = _SMUGGLING_NAMES | _SMUGGLING_ATTRIBUTES
# These can define a hook only where the module itself uses them.
_NAMESPACES = frozenset({"locals", "vars", "__dict__"})
# Objects that a conftest.py has no honest reason to change.
_OF_RUNNER = frozenset({"pytest", "_pytest", "builtins"})

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")


def is_script(content: bytes) -> bool:
    """Return whether the first line names Python as the interpreter."""
    return content.startswith(b"#!") and b"python" in content.partition(b"\n")[0]


def meaning(content: bytes) -> list[str]:
    """Return texts that are equal for sources that differ only in formatting and comments.

    Comments that select the interpreter or its packages count. Raise an error of `ast.parse`.
    """
    return [*_directives(content), ast.dump(_parse(content))]


def hooks(content: bytes) -> list[str]:
    """Return the statements of a conftest.py that can change which tests run and what they report.

    Of an `if`, `try`, `with` or loop, keep the condition and such statements. Raise an error of
    `ast.parse`.
    """
    return [ast.dump(kept) for kept in _kept(_parse(content).body)]


def _directives(content: bytes) -> Iterator[str]:
    """Yield the line that names the interpreter, and the metadata of the script (PEP 723)."""
    lines = content.decode("latin-1").split("\n")
    if lines[0].startswith("#!"):
        yield lines[0].rstrip()
    block = dropwhile(lambda line: line.rstrip() != "# /// script", lines)
    yield from map(str.rstrip, takewhile(lambda line: line.startswith("#"), block))


def _parse(content: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(content)
    for node in ast.walk(tree):
        _remove_formatting(node)
    return tree


def _remove_formatting(node: ast.AST) -> None:
    """Undo what formatters change: `u""`, `del (a, b)`, the indentation of docstrings."""
    match node:
        case ast.Constant():
            node.kind = None
        case ast.Delete(targets=[ast.Tuple(elts=targets)]):
            node.targets = targets
        case (
            ast.Module(body=[ast.Expr(value=ast.Constant(value=str(text)) as docstring), *_])
            | ast.ClassDef(body=[ast.Expr(value=ast.Constant(value=str(text)) as docstring), *_])
            | ast.FunctionDef(body=[ast.Expr(value=ast.Constant(value=str(text)) as docstring), *_])
            | ast.AsyncFunctionDef(
                body=[ast.Expr(value=ast.Constant(value=str(text)) as docstring), *_]
            )
        ):
            docstring.value = "\n".join(map(str.strip, text.strip().split("\n")))


def _kept(statements: Iterable[ast.AST]) -> list[ast.AST]:
    """Return the statements that can change what pytest does, without the others in blocks."""
    return [kept for statement in statements if (kept := _without_others(statement))]


def _without_others(statement: ast.AST) -> ast.AST | None:
    if isinstance(statement, _Definition):
        return statement if _defines_hook(statement) else None
    blocks = {name: found for name in _BLOCKS if (found := getattr(statement, name, None))}
    inner = {name: _kept(block) for name, block in blocks.items()}
    fields = dict(ast.iter_fields(statement))
    head = type(statement)(**fields | {name: [] for name in blocks})
    if any(inner.values()) or any(map(_is_hook, ast.walk(head))):
        return type(statement)(**fields | inner)
    return None


def _defines_hook(definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    return _is_hook_name(definition.name) or any(map(_smuggles, ast.walk(definition)))


def _is_hook_name(name: object) -> bool:
    return isinstance(name, str) and (name.startswith(_HOOK_PREFIX) or name in _HOOK_NAMES)


def _is_hook(node: ast.AST) -> bool:
    """Return whether this node of a module-level statement binds or changes a hook."""
    match node:
        case ast.ImportFrom(names=names):
            return any(_is_hook_name(it.asname or it.name) or it.name == "*" for it in names)
        case ast.Import(names=names):  # `import pytest_asyncio` binds a module, which is not a hook
            return any(_is_hook_name(it.asname) for it in names)
        case ast.Name(id=name, ctx=ast.Load()) if name in _HOOK_LISTS | _NAMESPACES:
            return True
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if _is_hook_name(name):
            return True
        case ast.MatchAs(name=name) | ast.MatchStar(name=name) | ast.MatchMapping(rest=name):
            return _is_hook_name(name)
        case ast.Attribute(attr=name) if name in _NAMESPACES:
            return True
    return _smuggles(node)


def _smuggles(node: ast.AST) -> bool:
    """Return whether this node can define a hook or end the process, wherever it is."""
    match node:
        case ast.Name(id=name):
            return name in _SMUGGLING_NAMES
        case ast.alias(name=name):
            return name in _SMUGGLING_IMPORTS
        case ast.Attribute(value=ast.Name(id="builtins"), attr=name) if name in _SMUGGLING_NAMES:
            return True
        case ast.Attribute(value=owner, attr=name, ctx=ast.Store()):
            return _is_hook_name(name) or (
                isinstance(owner, ast.Name) and (owner.id in _OF_RUNNER or _is_hook_name(owner.id))
            )
        case ast.Attribute(attr=name):
            return name in _SMUGGLING_ATTRIBUTES
        case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name))):
            return name == "SystemExit"
        case ast.Global(names=names):
            return any(map(_is_hook_name, names))
        case ast.Call(func=ast.Name(id="setattr"), args=args):
            return any(map(_names_hook_or_module, args))
    return False


def _names_hook_or_module(argument: ast.AST) -> bool:
    is_hook = isinstance(argument, ast.Constant) and _is_hook_name(argument.value)
    return is_hook or any(
        isinstance(node, ast.Attribute) and node.attr == "modules" for node in ast.walk(argument)
    )
