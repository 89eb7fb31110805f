"""Freeze what the checks of a loop depend on: files, programs and variables."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from gsd_fsm.core.codec import digest_of, dumps
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.engine.protection.files import Files
from gsd_fsm.git.tree import is_written
from gsd_fsm.protection import environment
from gsd_fsm.protection.dependencies import Dependencies, Dependency, dependencies
from gsd_fsm.protection.globs import matcher
from gsd_fsm.protection.originals import content_at, digest
from gsd_fsm.protection.values import has_values

DIGEST = "digest:"
GIT = "git"
# Files with which git hides others, or what they contain; they are part of no tree.
_HIDING = (".git/info/attributes", ".git/info/exclude")
# Watched files that are read; what git knows of more of them is less work.
_FEW = 64
_MOST_NAMED = 20  # files of one check
_MOST_BYTES = 20_000  # of the files that one event lists


class Command(NamedTuple):
    """The command of a check, and the directory in which it runs, relative to the project."""

    text: str
    directory: str = ""


class Wishes(NamedTuple):
    """The files that a user wants to be protected, and those that the work may change."""

    protect: tuple[str, ...] = ()
    may_change: tuple[str, ...] = ()
    planned: frozenset[str] = frozenset()

    def allows(self, path: str) -> bool:
        """Return whether the work may change this file."""
        return path in self.planned or any(matches(path) for matches in self._allowed())

    def _allowed(self) -> Iterator[Any]:
        return map(matcher, self.may_change)


class Frozen(NamedTuple):
    """What the checks of a loop depend on.

    `protected` are records for the journal. `originals` are the contents to keep, the last one is the
    list of watched files.
    """

    protected: list[dict[str, Any]]
    facts: dict[str, Any]
    originals: list[bytes]

    def with_values(self, variables: Mapping[str, str]) -> Frozen:
        """Return the same with the variables that can change a result, to be kept."""
        values = dumps(environment.relevant(variables, self.facts.get("environment", {}))).encode(
            "ascii"
        )
        facts = {**self.facts, "values": digest(values)}
        return self._replace(facts=facts, originals=[*self.originals, values])

    def joined_to(self, before: bytes) -> Frozen:
        """Return the same with a watch list that also has what this earlier one has."""
        old, new = (
            parse_json(before.decode("ascii")),
            parse_json(self.originals[-1].decode("ascii")),
        )
        missing = [*old["missing"], *(it for it in new["missing"] if it not in old["missing"])]
        listed = {
            "files": {**new["files"], **old["files"]},
            "missing": missing,
            "hooks": {**old["hooks"], **new["hooks"]},
            "named": {**old.get("named", {}), **new["named"]},
        }
        kept = dumps(listed).encode("ascii")
        facts = {**self.facts, "watched": digest(kept)}
        return self._replace(facts=facts, originals=[*self.originals[:-1], kept])

    def event(
        self, commands: Mapping[str, str]
    ) -> tuple[dict[str, Any], list[list[dict[str, Any]]]]:
        """Return what `start` holds, and the protected files that further events hold.

        `commands` are those of the settings.
        """
        first, *more = portions(self.protected) or [[]]
        held = {"protected": first, "commands": _frozen_texts(commands), **self.facts}
        return {name: value for name, value in held.items() if value}, more


def frozen_text(command: str) -> str:
    """Return what the journal holds of a command of the settings: its digest if it has a secret."""
    from gsd_fsm.core.text.redact import redact

    return command if redact(command) == command else DIGEST + digest_of(command)


def frozen_surroundings(
    commands: Mapping[str, str], variables: Mapping[str, str]
) -> dict[str, Any]:
    """Return what `start` holds of the settings and variables of a loop."""
    facts = {"commands": _frozen_texts(commands), "environment": environment.digests(variables)}
    return {name: value for name, value in facts.items() if value}


def _frozen_texts(commands: Mapping[str, str]) -> dict[str, str]:
    return {name: frozen_text(text) for name, text in commands.items()}


def freeze(
    commands: Mapping[str, Command], files: Files, wishes: Wishes, variables: Mapping[str, str]
) -> Frozen:
    """Return what these checks depend on now; raise UsageError for a wish that fits no file."""
    found = {name: _dependencies(it, files) for name, it in commands.items()}
    by_file: dict[Dependency, list[str]] = {}
    watched: dict[Dependency, None] = {}
    for name, depends in found.items():
        for file in depends.protected:
            if wishes.allows(file.path):
                watched[Dependency(file.path)] = None
            else:
                by_file.setdefault(file, []).append(name)
        watched.update({it: None for it in depends.watched if it.path not in wishes.planned})
    for path in _wanted(wishes.protect, files):
        by_file[Dependency(path)] = []
    programs = {it: None for depends in found.values() for it in depends.programs}
    if files.has_tree:
        programs[GIT] = None
        watched.update(dict.fromkeys(map(Dependency, _HIDING)))
    protected, contents = _protected(by_file, files)
    listed = _watch_list(watched, found, files)
    resolved = environment.resolve(programs, files.project.root, variables)
    scripts = (contents[it["digest"]] for it in protected if "checks" in it)
    texts = [*(it.text for it in commands.values()), *(_text(it) for it in scripts)]
    named = environment.named_in(texts)
    facts: dict[str, Any] = {
        "watched": digest(listed),
        "environment": environment.digests(variables, named),
        "programs": [program._asdict() for program in resolved],
        "may_change": list(wishes.may_change),
    }
    known = {name: value for name, value in facts.items() if value}
    return Frozen(protected, known, [*contents.values(), listed])


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def portions(records: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the records in lists that fit into one event each."""
    lists: list[list[dict[str, Any]]] = []
    room = 0
    for record in records:
        size = len(dumps(record)) + 1
        if size > room or not lists:
            lists.append([])
            room = _MOST_BYTES
        lists[-1].append(record)
        room -= size
    return lists


def _dependencies(command: Command, files: Files) -> Dependencies:
    return dependencies(command.text, command.directory, files.project)


def _wanted(globs: Iterable[str], files: Files) -> list[str]:
    """Return the files that these globs match; raise UsageError for a glob without one."""
    found: dict[str, None] = {}
    for glob in globs:
        matches = matcher(glob)
        names = [name for name in files.project.names if matches(name)]
        if not names and files.project.is_file(glob):
            names = [glob]  # one that git ignores
        if not names:
            raise UsageError(f"--protect {glob!r} matches no file", "Quote the pattern: 'tests/**'")
        found.update(dict.fromkeys(names))
    return list(found)


def _protected(
    by_file: Mapping[Dependency, list[str]], files: Files
) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """Return the records of these files, and their contents by digest."""
    records: list[dict[str, Any]] = []
    contents: dict[str, bytes] = {}
    for file, checks in by_file.items():
        content = content_at(files.project.root / file.path)
        if content is None:
            continue  # it has vanished meanwhile, or is too large to be a script
        record: dict[str, Any] = {"path": file.path, "digest": digest(content)}
        if file.parts:
            record["parts"] = list(file.parts)
        if checks:
            record["checks"] = checks
        if os.access(files.project.root / file.path, os.X_OK):
            record["executable"] = True
        records.append(record)
        contents[record["digest"]] = content
    return records, contents


def _watch_list(
    watched: Collection[Dependency], found: Mapping[str, Dependencies], files: Files
) -> bytes:
    """Return the list of watched files as text: contents by path, what is missing, hook directories."""
    paths = [file.path for file in watched if not file.parts]
    identities = files.digests(paths) if len(paths) <= _FEW else files.identities(paths)
    known = {path: it for path, it in identities.items() if it is not None}
    missing = [
        [file.path, list(file.parts)]
        for file in watched
        if (not _has_values(file, files) if file.parts else file.path not in known)
    ]
    hooks = {name: it.hook_directories for name, it in found.items() if it.hook_directories}
    named = {name: paths for name, it in found.items() if (paths := _bound(it.named))}
    listed = {"files": known, "missing": missing, "hooks": hooks, "named": named}
    return dumps(listed).encode("ascii")


def _bound(named: Iterable[str]) -> list[str]:
    """Return the named files to which evidence is bound: not those of git, or that we write."""
    found = (it for it in named if not it.startswith(".git/") and not is_written(os.fsencode(it)))
    return [*islice(found, _MOST_NAMED)]


def _has_values(file: Dependency, files: Files) -> bool:
    return has_values(file.path, files.project.read(file.path), file.parts)
