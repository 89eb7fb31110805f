"""Read the tasks of pyproject.toml and similar tables, of tox and of nox: the commands that they run."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import NamedTuple

from gsd_fsm.protection.commands import LONGEST_SCRIPT, Command, simple_commands
from gsd_fsm.protection.files import ProjectFiles, lineage, normal
from gsd_fsm.protection.programs.followed import NOTHING, Followed, Source
from gsd_fsm.protection.programs.named import operands
from gsd_fsm.protection.tables import Table, find_part, strings, table_of

_MOST = 1_000  # commands


# tables of tasks


class _Tasks(NamedTuple):
    """Where a program finds its tasks; `{}` stands for the name of the task."""

    verbs: tuple[str, ...]  # the word before the name; () if the name is the first word
    places: tuple[tuple[str, str], ...]  # file and part
    may_omit: bool = False  # whether the verb can be left out


_TASKS = {
    "composer": _Tasks(("run-script", "run"), (("composer.json", "scripts/{}"),), may_omit=True),
    "deno": _Tasks(("task",), (("deno.json", "tasks/{}"),)),
    "hatch": _Tasks(
        ("run",),
        (("pyproject.toml", "tool/hatch/envs/{}"), ("hatch.toml", "envs/{}")),
    ),
    "pdm": _Tasks(("run",), (("pyproject.toml", "tool/pdm/scripts/{}"),), may_omit=True),
    "pipenv": _Tasks(("run",), (("Pipfile", "scripts/{}"),)),
    "pixi": _Tasks(("run",), (("pixi.toml", "tasks/{}"), ("pyproject.toml", "tool/pixi/tasks/{}"))),
    "poe": _Tasks((), (("pyproject.toml", "tool/poe/tasks/{}"),)),
    "rye": _Tasks(("run",), (("pyproject.toml", "tool/rye/scripts/{}"),)),
    "task": _Tasks((), (("pyproject.toml", "tool/taskipy/tasks/{}"),)),
}
_OPTIONS = "-e --env -C --directory -p --project"


def follow_task(command: Command, files: ProjectFiles, following: Command | None) -> Followed:
    """Return the tasks that a program runs, and their commands.

    `following` is the command that a prefix such as `pdm run` starts: its name may be a task.
    """
    known = _TASKS.get(command.name)
    if known is None or command.directory is None:
        return NOTHING
    words = operands(list(command.arguments), _OPTIONS)
    if known.verbs and words[:1] and words[0] in known.verbs:
        words = words[1:]
    elif known.verbs and not known.may_omit:
        return NOTHING
    if not words and following is not None:
        words = [following.program, *following.arguments]
    return _of_tables(known, words, command.directory, files) if words else NOTHING


def _of_tables(known: _Tasks, words: list[str], directory: str, files: ProjectFiles) -> Followed:
    sources, commands = [], []
    for file, place in known.places:
        for folder in lineage(directory):
            path = normal(folder, file) or file
            if not files.is_file(path):
                continue
            table = table_of(path, files.read_text(path))
            form, name = _in_environment(place, words[0])
            if (task := find_part(table, form.replace("{}", name))) is not None:
                sources.append(Source(path, (form.replace("{}", name),)))
                text = "\n".join(islice(_texts(task, table, form), _MOST))
                commands += simple_commands(text, folder, str(files.root), longest=LONGEST_SCRIPT)
            break
    return Followed(sources, commands)


def _in_environment(form: str, name: str) -> tuple[str, str]:
    """Return form and name of a task; `hatch run ENVIRONMENT:NAME` names its environment too."""
    if "envs" not in form:
        return form, name
    environment, sign, task = name.rpartition(":")
    return f"{form.replace('{}', environment if sign else 'default')}/scripts/{{}}", task


def _texts(task: object, table: Table, form: str, depth: int = 0) -> Iterator[str]:
    """Yield the commands of a task: a text, a list of them, or a table that says how they are run."""
    if isinstance(task, str):
        text = task.removeprefix("@").replace("{args}", "")
        text = re.sub(r"\{args:([^{}]*)\}", r"\1", text)
        yield text
        if depth < 4:  # the commands of a list may be the names of other tasks
            name = text.split(" ")[0]
            other = find_part(table, form.replace("{}", name)) if name else None
            if other is not None and other != task:
                yield from _texts(other, table, form, depth + 1)
    elif isinstance(task, list):
        for it in task[:_MOST]:
            yield from _texts(it, table, form, depth + 1)
    elif isinstance(task, dict):
        for key in ("cmd", "shell", "command", "sequence", "composite", "chain"):
            value = task.get(key)
            is_words = key == "cmd" and isinstance(value, list)
            yield from _texts(
                shlex.join(strings(value)) if is_words else value, table, form, depth + 1
            )


# tox

_TOX_FILES = ("tox.ini", "tox.toml", "setup.cfg", "pyproject.toml")


def follow_tox(command: Command, files: ProjectFiles) -> Followed:
    """Return the commands of the environments that tox runs; its files are those of a runner."""
    words = list(command.arguments)
    rest = words[words.index("--") + 1 :] if "--" in words else []
    for folder in lineage(command.directory) if command.directory is not None else ():
        for name in _given(words, ("-c", "--conf")) or _TOX_FILES:
            path = normal(folder, name) or name
            if files.is_file(path) and (table := _tox_table(path, files)):
                run = _Tox(table, rest, folder, str(files.root))
                return Followed([], list(islice(run.commands(_environments(words)), _MOST)))
    return NOTHING


def _given(words: list[str], names: tuple[str, str]) -> list[str]:
    """Return the values of an option."""
    separate = [value for option, value in pairwise(words) if option in names]
    starts = tuple(f"{name}=" for name in names)
    return [*separate, *(word.partition("=")[2] for word in words if word.startswith(starts))]


def _tox_table(path: str, files: ProjectFiles) -> Table:
    """Return the settings of tox as sections or tables, {} if the file has none."""
    table = table_of(path, files.read_text(path))
    if path.endswith("pyproject.toml"):
        table = find_part(table, "tool/tox") or {}
        if isinstance(text := table.get("legacy_tox_ini"), str):
            return table_of("tox.ini", text)
    if path.endswith(".toml"):
        return table
    # Without these sections, it is not the configuration of tox.
    return table if any(name.startswith("testenv") for name in table) else {}


def _environments(words: list[str]) -> list[str]:
    found: list[str] = []
    for at, word in enumerate(words):
        if word in ("-e", "--env"):
            found += "".join(words[at + 1 : at + 2]).split(",")
        elif word.startswith("-e") and not word.startswith("--"):
            found += word[2:].split(",")
    return found


class _Tox:
    def __init__(self, table: Table, rest: list[str], folder: str, root: str) -> None:
        self.table, self.rest, self.folder, self.root = table, rest, folder, root

    def commands(self, chosen: list[str]) -> Iterator[Command]:
        for name, section in self._sections():
            is_base = name in ("testenv", "env_run_base")
            if not isinstance(section, dict) or not (is_base or not chosen or name in chosen):
                continue
            moved = section.get("changedir", section.get("change_dir", "."))
            folder = normal(self.folder, self._filled(str(moved)).removeprefix(f"{self.root}/"))
            for key in ("commands_pre", "commands", "commands_post"):
                for line in self._lines(section.get(key)):
                    yield from simple_commands(line, folder, self.root, longest=LONGEST_SCRIPT)

    def _sections(self) -> Iterator[tuple[str, object]]:
        for name, section in self.table.items():
            if name == "env" and isinstance(section, dict):
                yield from section.items()
            elif name.startswith(("testenv", "env_run_base")):
                yield name.removeprefix("testenv:"), section

    def _lines(self, value: object) -> Iterator[str]:
        if isinstance(value, str):
            for line in self._filled(value).replace("\\\n", " ").split("\n"):
                yield re.sub(r"^(?:[\w.,!{}-]+:\s+)?[-!@ ]*", "", line)
        elif isinstance(value, list):
            for it in value:
                words = (
                    [word for part in it for word in self._word(part)]
                    if isinstance(it, list)
                    else []
                )
                yield shlex.join(words)

    def _word(self, part: object) -> list[str]:
        if isinstance(part, str):
            return [self._filled(part)]
        if isinstance(part, dict) and part.get("replace") == "posargs":
            return self.rest or strings(part.get("default"))
        return []

    def _filled(self, text: str, depth: int = 0) -> str:
        """Return the text with the values of `{posargs}`, `{toxinidir}`, `{[section]key}` and so on."""
        return re.sub(r"\{([^{}\n]*)\}", lambda found: self._value(found[1], depth), text)

    def _value(self, name: str, depth: int) -> str:
        key, _, default = name.partition(":")
        if key == "posargs":
            return shlex.join(self.rest) or default
        if key in ("toxinidir", "tox_root"):
            return f"{self.root}/{self.folder}".rstrip("/")
        if key in ("envpython", "basepython"):
            return "python"
        if (other := re.fullmatch(r"\[([^]]+)\](\w+)", name)) and depth < 4:
            section = self.table.get(other[1])
            value = section.get(other[2]) if isinstance(section, dict) else None
            return self._filled(value, depth + 1) if isinstance(value, str) else ""
        return "$()"


# nox


def follow_nox(command: Command, files: ProjectFiles) -> Followed:
    """Return the commands that the sessions of noxfile.py run; the file itself is that of a runner."""
    if command.directory is None:
        return NOTHING
    named = _given(list(command.arguments), ("-f", "--noxfile"))
    path = normal(command.directory, named[0] if named else "noxfile.py") or ""
    try:
        module = ast.parse(files.read_text(path))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return NOTHING
    found: list[Command] = []
    for node in ast.walk(module):
        if len(found) >= _MOST:
            break
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("run", "run_always"):
            words = [it.value for it in node.args if isinstance(it, ast.Constant)]
            text = shlex.join(it for it in words if isinstance(it, str))
            found += simple_commands(text, command.directory, str(files.root))
    return Followed([], found)
