"""Read makefiles: the commands that `make` runs for its targets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from gsd_fsm.documents.shell import closing_end
from gsd_fsm.protection.commands import LONGEST_SCRIPT, Command, simple_commands
from gsd_fsm.protection.files import ProjectFiles, normal
from gsd_fsm.protection.programs.followed import MAKE, NOTHING, Followed, Source
from gsd_fsm.protection.programs.named import operands

NAMES = ("GNUmakefile", "makefile", "Makefile")  # in the order in which make looks for them
_MOST_FILES, _MOST_TARGETS, _MOST_COMMANDS, _MOST_VALUES = 50, 300, 2_000, 20_000
_LONGEST_VALUE, _DEEPEST = 8_000, 8
_VALUES = "-C -f -I -o -W --directory --file --makefile --include-dir"
_CONTINUED = re.compile(r"\\\n[ \t]*")
_VARIABLE = re.compile(
    r"(?:(?:export|override|private)\s+)*([\w.-]+)\s*(\?|:{1,3}|\+|!)?=\s*(.*)", re.DOTALL
)
_RULE = re.compile(r"([^\s#:=][^:=#]*?)&?::?(?!=)([^;#]*)(?:;(.*)|#.*)?", re.DOTALL)
_INCLUDE = re.compile(r"[-s]?include\s+(.*)")
_ARGUMENT = re.compile(r"(\w+):?=(.*)", re.DOTALL)
# Functions that return their argument, or the files that it names.
_PASSES = ("abspath", "realpath", "sort", "strip", "wildcard")


class _Rule(NamedTuple):
    prerequisites: list[str]
    recipe: list[str]


def follow_make(command: Command, files: ProjectFiles) -> Followed:
    """Return the makefiles that `make` reads, and the commands of its targets and what they need."""
    words = list(command.arguments)
    given = {it[1]: it[2] for word in words if (it := _ARGUMENT.fullmatch(word))}
    directory = command.directory
    for folder in _option_values(words, ("-C", "--directory")):
        directory = None if directory is None else normal(directory, folder)
    if directory is None:
        return NOTHING
    makefile = _Makefile(files, directory, given)
    named = _option_values(words, ("-f", "--file", "--makefile"))
    makefile.read_first(named)
    targets = [
        word
        for word in operands(words, _VALUES)
        if not _ARGUMENT.fullmatch(word) and not word.isdigit()
    ]
    return Followed(
        [Source(path) for path in makefile.paths], makefile.commands(targets, bool(named))
    )


def _option_values(words: list[str], names: tuple[str, str] | tuple[str, str, str]) -> list[str]:
    """Return the values of an option: `-C DIR`, `-CDIR`, `--directory DIR`, `--directory=DIR`."""
    found = []
    for at, word in enumerate(words):
        name, sign, value = word.partition("=")
        if word in names:
            found += words[at + 1 : at + 2]
        elif name in names and sign:
            found.append(value)
        elif word.startswith(names[0]):
            found.append(word[2:])
    return found


class _Makefile:
    """The variables and rules of a makefile and of those that it includes."""

    def __init__(self, files: ProjectFiles, directory: str, given: dict[str, str]) -> None:
        self.files, self.directory = files, directory
        self.paths: list[str] = []
        root = str(files.root)
        here = f"{root}/{directory}" if directory else root
        self.given = {
            "MAKE": "make",
            "CURDIR": here,
            "PWD": here,
            "CC": "cc",
            "CXX": "c++",
            **given,
        }
        self.variables: dict[str, str] = {}
        self.rules: dict[str, _Rule] = {}
        self.first = ""
        self.left = _MOST_VALUES

    def read_first(self, named: list[str]) -> None:
        """Read the files that options name, else the one that make finds.

        Those that make looks for earlier are part of it: it would read them if they existed.
        """
        for name in named or NAMES:
            path = normal(self.directory, name)
            if path is None:
                continue
            self._read(path)
            if not named and self.files.is_file(path):
                break

    def _read(self, path: str) -> None:
        if path in self.paths or len(self.paths) >= _MOST_FILES:
            return
        self.paths.append(path)
        current: list[_Rule] = []
        for line in _lines(self.files.read_text(path)):
            if line.startswith("\t"):
                for rule in current:
                    rule.recipe.append(line[1:])
            elif line.strip():
                current = self._declare(line.strip(), current)

    def _declare(self, line: str, current: list[_Rule]) -> list[_Rule]:
        """Read an include, a variable or the first line of a rule; return the rules that are open."""
        if found := _INCLUDE.match(line):
            for path in self._included(found[1]):
                self._read(path)
            return []
        if found := _VARIABLE.fullmatch(line):
            self._assign(found[1], found[2] or "", found[3])
            return current
        if not (found := _RULE.fullmatch(line)):
            return current
        if "=" in found[2]:  # a variable of this target
            if own := _VARIABLE.fullmatch(found[2].strip()):
                self._assign(own[1], "?", own[3])
            return []
        return self._open(found[1], found[2], found[3])

    def _included(self, text: str) -> Iterator[str]:
        for word in self.expand(text.partition("#")[0]).split():
            folder, _, form = word.rpartition("/")
            place = normal(self.directory, folder)
            if place is None or "$" in word:
                continue
            if any(it in form for it in "*?["):
                names = sorted(it for it in self.files.entries(place) if fnmatchcase(it, form))
            else:
                names = [form]
            yield from filter(None, (normal(place, name) for name in names))

    def _assign(self, name: str, sign: str, value: str) -> None:
        value = value.partition(" #")[0][:_LONGEST_VALUE]
        if sign == "+":
            value = f"{self.variables.get(name, '')} {value}".strip()
            self.variables[name] = value[:_LONGEST_VALUE]
        elif sign == "!":
            self.variables[name] = f"$(shell {value})"
        elif sign != "?" or name not in self.variables:
            # Without this, `A := $(A) -q` would refer to itself.
            itself = re.compile(rf"\$[({{]{re.escape(name)}[)}}]")
            before = self.variables.get(name, "")
            self.variables[name] = itself.sub(lambda _: before, value)[:_LONGEST_VALUE]

    def _open(self, targets: str, prerequisites: str, recipe: str | None) -> list[_Rule]:
        needed = self.expand(prerequisites.replace("|", " ")).split()
        opened = []
        for target in self.expand(targets).split():
            rule = self.rules.setdefault(target, _Rule([], []))
            rule.prerequisites.extend(needed)
            if recipe:
                rule.recipe.append(recipe)
            opened.append(rule)
            if not self.first and not target.startswith(".") and "%" not in target:
                self.first = target
        return opened

    def expand(self, text: str, own: dict[str, str] | None = None, depth: int = 0) -> str:
        """Return the text with the values of variables; what is unknown keeps a "$".

        `own` are the automatic variables of a rule. A text that grows without end is cut.
        """
        own = own or {}
        pieces: list[str] = []
        at = 0
        while at < len(text):
            next_at = text.find("$", at)
            self.left -= 1
            if next_at < 0 or next_at + 1 == len(text) or depth > _DEEPEST or self.left < 0:
                break
            pieces.append(text[at:next_at])
            sign, at = text[next_at + 1], next_at + 2
            if sign in "({":
                try:
                    end = closing_end(text, at, ")" if sign == "(" else "}")
                except (IndexError, ValueError, RecursionError):
                    break
                pieces.append(self._value(text[at : end - 1], own, depth))
                at = end
            else:
                pieces.append("$" if sign == "$" else own.get(sign, ""))
        return "".join(pieces) + text[at:]

    def _value(self, name: str, own: dict[str, str], depth: int) -> str:
        """Return the value of `$(name)`."""
        function, blank, argument = name.partition(" ")
        if blank:
            value = self.expand(argument.strip(), own, depth + 1)
            if function == "shell":
                return f"$({value})"
            return value if function in _PASSES else "$()"
        if name in self.given:
            return self.given[name]
        return self.expand(self.variables.get(name, own.get(name, "")), own, depth + 1)

    def commands(self, targets: list[str], is_named: bool) -> list[Command]:
        """Return the commands of these targets, and of all that they need; of the first by default."""
        default = self.expand(self.variables.get(".DEFAULT_GOAL", "")) or self.first
        todo = targets or [default]
        seen: set[str] = set()
        found: list[Command] = []
        while todo and len(seen) < _MOST_TARGETS and len(found) < _MOST_COMMANDS:
            target = todo.pop(0)
            if target in seen:
                continue
            seen.add(target)
            rule, stem = self._rule(target)
            todo += [it.replace("%", stem) for it in rule.prerequisites]
            started = list(self._started(rule, target, stem))
            found += started
            for command in started:
                todo += self._own_targets(command, is_named)
        return found

    def _rule(self, target: str) -> tuple[_Rule, str]:
        """Return the rule of a target, and what "%" matches in it."""
        if target in self.rules:
            return self.rules[target], ""
        for form, rule in self.rules.items():
            before, sign, after = form.partition("%")
            fits = target.startswith(before) and target.endswith(after)
            if sign and fits and len(target) >= len(before) + len(after):
                return rule, target[len(before) : len(target) - len(after)]
        return _Rule([], []), ""

    def _started(self, rule: _Rule, target: str, stem: str) -> Iterator[Command]:
        needed = [it.replace("%", stem) for it in rule.prerequisites]
        own = {"@": target, "*": stem, "<": " ".join(needed[:1]), "^": " ".join(needed)}
        lines = [self.expand(line, own).lstrip(" \t@+-") for line in rule.recipe[:_MOST_COMMANDS]]
        if ".ONESHELL" in self.rules:
            lines = ["\n".join(lines)]
        for line in lines:
            yield from simple_commands(
                line, self.directory, str(self.files.root), longest=LONGEST_SCRIPT
            )

    def _own_targets(self, command: Command, is_named: bool) -> list[str]:
        """Return the targets of `$(MAKE) TARGET`, if it reads the same makefile."""
        words = list(command.arguments)
        options = (("-C", "--directory"), ("-f", "--file", "--makefile"))
        is_other = command.name not in MAKE or command.directory != self.directory or is_named
        if is_other or any(_option_values(words, names) for names in options):
            return []
        return [it for it in operands(words, _VALUES) if not _ARGUMENT.fullmatch(it)]


def _lines(text: str) -> Iterator[str]:
    """Yield lines; a continued line is one, in a recipe with its line feeds. Definitions are skipped."""
    whole: list[str] = []
    in_definition = False
    for line in text.splitlines():
        in_definition = in_definition or line.startswith("define ")
        if not in_definition:
            whole.append(line)
        in_definition = in_definition and line.strip() != "endef"
        if whole and not whole[-1].endswith("\\"):
            joined = "\n".join(whole)
            yield joined if joined.startswith("\t") else _CONTINUED.sub(" ", joined)
            whole = []
    if whole:
        yield "\n".join(whole).rstrip("\\")
