"""Decide what the command of a check depends on: files that prove, and files that are the work.

A protected file decides what the check means: scripts, makefiles, configuration. A watched file may
change in honest work: tests, files that do not exist yet, and whatever a program only looks at.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import zip_longest
from typing import NamedTuple

from gsd_fsm.protection.commands import Command, simple_commands
from gsd_fsm.protection.files import BUILT, INSTALLED, ProjectFiles, lineage, normal
from gsd_fsm.protection.programs.named import (
    Word,
    looks_like_path,
    named_by,
    operands,
    program_words,
)
from gsd_fsm.protection.runners import (
    COVERAGE,
    Configuration,
    Runner,
    patterns_of,
    runner_of,
)
from gsd_fsm.protection.scripts import follow
from gsd_fsm.protection.tables import Table, find_part, strings, table_of

MOST_WATCHED = 20_000
_LEVELS = 1  # of scripts that are opened
_CONFTEST = "conftest.py"
_OURS = (".git/", ".gsd/")
# The content of compiled programs begins so; they are results of the work.
_COMPILED = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xfe\xed\xfa", b"\0asm")


class Dependency(NamedTuple):
    """A file that a check depends on.

    `parts` are the values of it that matter, () for all of it: a path of keys joined by "/" in TOML
    and JSON, the name of a section in INI, and "hooks" in a conftest.py.
    """

    path: str  # relative to the project, "/" separated
    parts: tuple[str, ...] = ()


class Dependencies(NamedTuple):
    """What a command depends on; each list has no duplicates and the same order at each call."""

    protected: list[Dependency]  # files that exist
    watched: list[Dependency]
    hook_directories: list[str]  # of pytest: a new conftest.py in, below or above them matters
    programs: list[str]  # that the command itself starts, in order
    named: list[str]  # files that the command or its script names, also missing and installed ones


def dependencies(command: str, directory: str, files: ProjectFiles) -> Dependencies:
    """Return what a command depends on that runs in this directory of the project."""
    found = _Finder(files)
    commands = simple_commands(command, normal("", directory), str(files.root))
    found.add(commands, 0)
    return found.result(program_words(commands))


class _Finder:
    """The dependencies that were found so far."""

    def __init__(self, files: ProjectFiles) -> None:
        self.files = files
        self.protected: dict[str, set[str]] = {}  # "" stands for the whole file
        self.watched: dict[str, set[str]] = {}
        self.tests: dict[str, None] = {}  # watched too; there may be thousands
        self.written: set[str] = set()
        self.named: dict[str, None] = {}
        self.hook_directories: set[str] = set()
        self.tables: dict[str, Table] = {}
        self.seen: set[tuple[Command, Command | None, int]] = set()

    def result(self, programs: list[str]) -> Dependencies:
        whole = {path for path, parts in self.protected.items() if "" in parts}
        watched = [
            Dependency(path, parts)
            for path, named in self.watched.items()
            if path not in whole
            for parts in _split(named - self.protected.get(path, set()))
        ]
        named = whole | {path for path, parts in self.watched.items() if "" in parts}
        watched += [Dependency(path) for path in self.tests if path not in named]
        protected = (
            Dependency(path, parts)
            for path, named in self.protected.items()
            for parts in _split({""} if "" in named else named)
        )
        return Dependencies(
            sorted(protected),
            sorted(watched)[:MOST_WATCHED],
            sorted(self.hook_directories),
            programs,
            [path for path in self.named if path not in self.written],
        )

    def _protect(self, path: str, part: str = "") -> None:
        self.protected.setdefault(path, set()).add(part)

    def _watch(self, path: str, part: str = "") -> None:
        self.watched.setdefault(path, set()).add(part)

    # commands

    def add(self, commands: list[Command], level: int) -> None:
        """Add what these commands depend on, and what the scripts that they run start."""
        for command in commands:
            self._add_written(command)
        for command, following in zip_longest(commands, commands[1:]):
            if (command, following, level) in self.seen:
                continue
            self.seen.add((command, following, level))
            if command.directory is not None:
                self._add(command, command.directory, level, following)

    def _add_written(self, command: Command) -> None:
        for word in (*command.outputs, *named_by(command).written):
            if (path := self._locate(word, command.directory)) is not None:
                self.written.add(path)

    def _add(self, command: Command, directory: str, level: int, following: Command | None) -> None:
        self._add_program(command, directory)
        followed = follow(command, self.files, following)
        for path, parts in followed.sources:
            self._configure(path, parts)
        runner = runner_of(command)
        if runner is not None:
            self._add_run(command, directory, runner)
        if runner is None or runner.is_script:
            self._add_named(command, directory)
        if level < _LEVELS:
            self.add(followed.commands, level + 1)

    def _add_program(self, command: Command, directory: str) -> None:
        """Protect the program if it is a script of the project, watch it if it could become one."""
        if command.is_module:
            module = command.program.replace(".", "/")
            for path in (f"{module}.py", f"{module}/__init__.py", f"{module}/__main__.py"):
                # Python looks in this directory first: a new file would take the place of a runner.
                found = normal(directory, path) or ""
                if self.files.is_file(found):
                    self._name_used(path, directory)
                elif runner_of(command):
                    self._watch(found)
        elif "/" in command.program:
            self._name_used(command.program, directory)

    def _add_named(self, command: Command, directory: str) -> None:
        """Add the files that a program names which is not a known runner."""
        for word in named_by(command).read:
            self._name(word, directory)

    def _name(self, word: Word, directory: str) -> None:
        """Watch a named file if it is a subject or missing, else protect it."""
        path = self._place(word.text, directory)
        if not path or path in self.written or self.files.is_directory(path):
            return
        exists = self.files.is_file(path)
        if not exists and not word.is_file and not looks_like_path(word.text):
            return
        self.named[path] = None
        if INSTALLED & {*path.split("/")}:
            return
        if exists and not word.is_subject:
            self._use(path)
        else:
            self._watch(path)

    def _name_used(self, path: str, directory: str) -> None:
        self._name(Word(path, is_subject=False, is_file=True), directory)

    def _use(self, path: str) -> None:
        """Protect a file that is executed or read, unless it is installed or a result of the work."""
        folders = set(path.split("/")[:-1])
        if path in self.written or (folders & BUILT and path not in self.files):
            return
        if self.files.head(path).startswith(_COMPILED):
            self._watch(path)
        else:
            self._protect(path)

    def _locate(self, word: str, directory: str | None) -> str | None:
        """Return the path that a word names, None if it is installed, an option, a pattern or no file."""
        path = self._place(word, directory)
        return None if path is None or INSTALLED & {*path.split("/")} else path

    def _place(self, word: str, directory: str | None) -> str | None:
        """Return the path that a word names, None if it is an option, a pattern or no file."""
        if not word or directory is None or word.startswith(("-", "~")) or len(word) > 1000:
            return None
        if any(sign in word for sign in "$*?[]{}\n\0\\") or "://" in word:
            return None
        root = str(self.files.root)
        if word == root or word.startswith(f"{root}/"):
            word, directory = word[len(root) + 1 :] or ".", ""
        return normal(directory, word)

    # runners

    def _add_run(self, command: Command, directory: str, runner: Runner) -> None:
        """Add the configuration of a runner, and the tests that it runs."""
        configuration = runner.configuration
        if runner.name == "pytest" and any(it.startswith("--cov") for it in command.arguments):
            configuration += COVERAGE.configuration
        roots = [directory]
        for value in _values(command, runner.files):
            path = self._locate(value, directory)
            if path is not None and self.files.is_directory(path):
                roots.append(path)
            elif path:
                self._configure_named(path, configuration)
        for value in command.inputs:
            self._name_used(value, directory)
        named = [] if runner.has_tasks else list(self._operands(command, directory, runner))
        folders = [it if self.files.is_directory(it) else posixpath.dirname(it) for it in named]
        self._configured(configuration, [*roots, *folders])
        if runner.name == "pytest":
            self._add_pytest(directory, runner, named, folders)
        elif runner.tests:
            self._add_tests(runner.tests, named or [directory])

    def _configure_named(self, path: str, configuration: Iterable[Configuration]) -> None:
        """Add a file that an option names; of a file that others share, the parts of the runner."""
        name = posixpath.basename(path)
        for parts in [it.parts for it in configuration if it.name == name] or [()]:
            self._configure(path, parts)

    def _operands(self, command: Command, directory: str, runner: Runner) -> Iterator[str]:
        """Yield the files and directories that a runner is given; watch the files."""
        words = operands(list(command.arguments), f"{runner.values} {runner.files}")
        if words and f"{command.name} {words[0]}" in runner.programs:
            words = words[1:]
        for word in words:
            path = self._operand(word.partition("::")[0].removesuffix("/..."), directory, runner)
            if path is not None and self.files.is_directory(path):
                yield path
            elif path is not None and self.files.is_file(path):
                self._watch(path)
                self.named[path] = None
                yield path
            elif path is not None and looks_like_path(word):
                self._watch(path)
                self.named[path] = None
                if path.endswith(patterns_of(runner.tests).endings):
                    yield path

    def _operand(self, word: str, directory: str, runner: Runner) -> str | None:
        """Return the path of an operand: of a pattern its directory, of a module its file."""
        if any(sign in word for sign in "*?["):
            word = re.split(r"[*?[]", word)[0].rpartition("/")[0] or "."
        path = self._locate(word, directory)
        if runner.name == "unittest" and path and not self.files.is_file(path):
            for module in lineage(word.replace(".", "/"))[:-1]:
                found = normal(directory, module)
                if found and (self.files.is_directory(found) or self.files.is_file(f"{found}.py")):
                    return found if self.files.is_directory(found) else f"{found}.py"
        return path

    def _configured(self, configuration: Iterable[Configuration], folders: Iterable[str]) -> None:
        """Add the configuration files of a runner in these directories and above them."""
        places = dict.fromkeys(above for folder in folders for above in lineage(folder))
        for place in places:
            for name, parts in configuration:
                for it in self._matching(name, place) if "*" in name else [name]:
                    self._configure(normal(place, it) or it, parts)

    def _matching(self, form: str, directory: str) -> list[str]:
        return [it for it in self.files.entries(directory) if fnmatchcase(it, form)]

    def _configure(self, path: str, parts: tuple[str, ...]) -> None:
        """Protect the parts of a file that exist, and watch those that do not."""
        if not self.files.is_file(path):
            for part in parts or ("",):
                self._watch(path, part)
        elif not parts:
            self._use(path)
        else:
            table = self._table(path)
            for part in parts:
                if find_part(table, part) is None:
                    self._watch(path, part)
                else:
                    self._protect(path, part)

    def _table(self, path: str) -> Table:
        if path not in self.tables:
            self.tables[path] = table_of(path, self.files.read_text(path))
        return self.tables[path]

    def _add_tests(self, forms: tuple[str, ...], folders: Iterable[str]) -> None:
        """Watch the test files in these directories."""
        for folder in folders:
            found = patterns_of(forms).select(self.files.below(folder))
            self.tests.update((it, None) for it in found if not it.startswith(_OURS))

    def _add_pytest(
        self, directory: str, runner: Runner, named: list[str], folders: list[str]
    ) -> None:
        """Watch tests and conftest.py, and protect the hooks of the latter."""
        testpaths, forms = self._pytest_settings(directory, runner)
        starts = named or testpaths or [directory]
        self.hook_directories.update(folders if named else starts)
        self._add_tests(forms or runner.tests, starts)
        for path in self._conftests(self.hook_directories):
            self._watch(path)
            self._protect(path, "hooks")

    def _conftests(self, folders: Iterable[str]) -> Iterator[str]:
        above = {normal(place, _CONFTEST) or "" for it in folders for place in lineage(it)}
        below = {
            path
            for folder in folders
            for path in self.files.below(folder)
            if path.endswith(_CONFTEST)
            and posixpath.basename(path) == _CONFTEST
            and not path.startswith(_OURS)
        }
        yield from filter(self.files.is_file, sorted(above | below))

    def _pytest_settings(self, directory: str, runner: Runner) -> tuple[list[str], tuple[str, ...]]:
        """Return the test directories and the forms of test files that the project sets."""
        for place in lineage(directory):
            for name, parts in runner.configuration:
                path = normal(place, name) or name
                if not self.files.is_file(path):
                    continue
                table = self._table(path)
                section = find_part(table, parts[0] if parts else "pytest")
                if isinstance(section, dict) and "ini_options" in section:
                    section = section["ini_options"]
                if not isinstance(section, dict):
                    continue
                words = strings(section.get("testpaths"))
                named = (self._operand(it, place, runner) for it in words)
                paths = [it for it in named if it is not None and self.files.is_directory(it)]
                forms = tuple(strings(section.get("python_files")))
                return (paths if place == directory else []), forms
        return [], ()


def _split(named: set[str]) -> list[tuple[str, ...]]:
    """Return the parts of one dependency; the whole file is another."""
    parts = tuple(sorted(named - {""}))
    return [*([()] if "" in named else []), *([parts] if parts else [])]


def _values(command: Command, options: str) -> Iterator[str]:
    """Yield the values of these options."""
    names = options.split()
    for word, following in zip_longest(command.arguments, command.arguments[1:], fillvalue=""):
        name, sign, value = word.partition("=")
        if name in names:
            yield value if sign else following
