"""Read justfiles: the commands that `just` runs for its recipes."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from gsd_fsm.protection.commands import LONGEST_SCRIPT, Command, simple_commands
from gsd_fsm.protection.files import ProjectFiles, lineage, normal
from gsd_fsm.protection.programs.followed import NOTHING, Followed, Source
from gsd_fsm.protection.programs.named import operands

_NAMES = ("justfile", "Justfile", ".justfile", "JUSTFILE")
_OPTIONS = ("-f", "--justfile", "-d", "--working-directory")
_VARIABLE = re.compile(r"(?:export\s+)?([\w-]+)\s*:=\s*(.*)")
_RECIPE = re.compile(r"@?([\w-]+)([ \t][^:]*)?:(?!=)(.*)")
_PARAMETER = re.compile(r"[*+$]*([\w-]+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|\S+))?")
_SHELL = re.compile(r"#!.*\b(?:ba|da|z)?sh\b")
_MOST, _MOST_COMMANDS, _LONGEST_LINE = 200, 1_000, 2_000


class _Recipe(NamedTuple):
    needed: list[str]
    lines: list[str]
    parameters: dict[str, str]  # and their default values


def follow_just(command: Command, files: ProjectFiles) -> Followed:
    """Return the justfile, and the commands of the recipes that are run and of those they need."""
    words = list(command.arguments)
    named = next((value for option, value in pairwise(words) if option in _OPTIONS[:2]), None)
    path = _found(command.directory, named, files)
    if path is None:
        return NOTHING
    directory = path.rpartition("/")[0]
    variables, recipes = _parsed(files.read_text(path))
    root = str(files.root)
    variables["justfile_directory()"] = f"{root}/{directory}".rstrip("/")
    todo = operands(words, " ".join(_OPTIONS)) or list(recipes)[:1]
    seen: set[str] = set()
    found: list[Command] = []
    while todo and len(seen) < _MOST and len(found) < _MOST_COMMANDS:
        name = todo.pop(0)
        if name in seen or name not in recipes:
            continue
        seen.add(name)
        recipe = recipes[name]
        todo += recipe.needed
        for text in _texts(recipe, variables):
            started = simple_commands(text, directory, root, longest=LONGEST_SCRIPT)
            found += started
            todo += [word for it in started if it.name == "just" for word in it.arguments]
    return Followed([Source(path)], found)


def _found(directory: str | None, named: str | None, files: ProjectFiles) -> str | None:
    """Return the justfile that an option names, or that lies in this directory or above it."""
    if directory is None:
        return None
    if named is not None:
        return normal(directory, named)
    for folder in lineage(directory):
        for name in _NAMES:
            path = normal(folder, name) or name
            if name in files.entries(folder) and files.is_file(path):
                return path
    return normal(directory, _NAMES[0])


def _parsed(text: str) -> tuple[dict[str, str], dict[str, _Recipe]]:
    variables: dict[str, str] = {}
    recipes: dict[str, _Recipe] = {}
    current: _Recipe | None = None
    for line in text.replace("\\\n", " ").splitlines():
        if len(line) > _LONGEST_LINE:
            continue
        if line[:1].isspace() and current is not None:
            current.lines.append(line.strip())
        elif found := _VARIABLE.fullmatch(line.strip()):
            variables[found[1]] = found[2].strip().strip("'\"")
        elif found := _RECIPE.fullmatch(line.rstrip()):
            needed = re.findall(
                r"[\w-]+", re.sub(r"\((\S+)[^)]*\)", r"\1", found[3].partition("#")[0])
            )
            parameters = {
                it[1]: (it[2] or "").strip("'\"") for it in _PARAMETER.finditer(found[2] or "")
            }
            current = recipes[found[1]] = _Recipe(needed, [], parameters)
        elif line.strip():
            current = None
    return variables, recipes


def _texts(recipe: _Recipe, variables: dict[str, str]) -> list[str]:
    """Return the commands of a recipe; a recipe with a line `#!` is one script."""
    values = {**variables, **recipe.parameters}

    def value(found: re.Match[str]) -> str:
        return values.get(found[1].strip(), "$()")

    lines = [re.sub(r"\{\{([^{}]*)\}\}", value, line) for line in recipe.lines]
    if lines and lines[0].startswith("#!"):
        return ["\n".join(lines)] if _SHELL.match(lines[0]) else []
    return [line.lstrip("@-") for line in lines]
