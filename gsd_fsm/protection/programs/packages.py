"""Read package.json: the commands that npm, yarn, pnpm and bun run for a script."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from gsd_fsm.protection.commands import LONGEST_SCRIPT, Command, simple_commands
from gsd_fsm.protection.files import ProjectFiles, normal
from gsd_fsm.protection.programs.followed import (
    MONOREPO_TOOLS,
    NOTHING,
    PACKAGE_MANAGERS,
    Followed,
    Source,
)
from gsd_fsm.protection.tables import Table, find_part, strings, table_of

_CHAINS = ("concurrently", "npm-run-all", "npm-run-all2", "run-p", "run-s")
_RUN = ("rum", "run", "run-script", "urn")
_TEST = ("t", "test", "tst")
_INSTALL_TEST = ("cit", "install-ci-test", "install-test", "it")
_SETTINGS = {"bun": "bunfig.toml", "npm": ".npmrc", "pnpm": ".npmrc", "yarn": ".yarnrc.yml"}
_DIRECTORY = ("--prefix", "-C", "--dir", "--cwd")
_WORKSPACE = ("-w", "--workspace", "-F", "--filter", "--scope", "-p", "--project")
_ALL = ("-ws", "--workspaces", "-r", "--recursive", "--workspaces=true")
_VALUES = (*_DIRECTORY, *_WORKSPACE, "-t", "--target", "--targets", "--script-shell", "--loglevel")
# First words that are not scripts, although a script may have no `run` before it.
_COMMANDS = frozenset(
    [
        "add",
        "audit",
        "bin",
        "build-info",
        "cache",
        "ci",
        "config",
        "create",
        "dedupe",
        "dlx",
        "exec",
        "i",
        "info",
        "init",
        "install",
        "link",
        "list",
        "login",
        "ls",
        "npm",
        "outdated",
        "pack",
        "patch",
        "prune",
        "publish",
        "rebuild",
        "remove",
        "set",
        "unlink",
        "up",
        "update",
        "upgrade",
        "version",
        "view",
        "why",
        "workspace",
        "workspaces",
        "x",
        "pm",
    ]
)
_MOST, _MOST_STARS = 200, 4


class _Run(NamedTuple):
    """A script to run, and where."""

    script: str  # "" for none
    rest: tuple[str, ...]  # arguments of the script
    directory: str | None
    workspaces: tuple[str, ...] = ()  # their names, or the directories in which they are
    everywhere: bool = False

    def is_of(self, directory: str) -> bool:
        """Return whether it runs a script of the package in this directory, and of no other."""
        return self.directory == directory and not self.workspaces and not self.everywhere


def follow_package(command: Command, files: ProjectFiles) -> Followed:
    """Return the scripts of package.json that a package manager runs, and their commands."""
    run = _run_of(command)
    if run is None or not run.script or run.directory is None:
        return NOTHING
    packages = _Packages(files, command.name)
    for directory in packages.chosen(run):
        packages.add(run.script, run.rest, directory)
    settings = normal(run.directory, _SETTINGS.get(command.name, ".npmrc"))
    sources = [*packages.sources, *([Source(settings)] if settings else [])]
    return Followed(sources, packages.commands)


def _run_of(command: Command) -> _Run | None:
    """Return the script that a command runs, None if it is not one that runs scripts."""
    name, words = command.name, list(command.arguments)
    if name not in PACKAGE_MANAGERS:
        return None
    directory, workspaces, everywhere, at = command.directory, [], name in MONOREPO_TOOLS, 0
    plain: list[str] = []
    while at < len(words) and words[at] != "--":
        option, sign, value = words[at].partition("=")
        if not words[at].startswith("-"):
            plain.append(words[at])
        if not sign and option in _VALUES:
            at += 1
            value = words[at] if at < len(words) else ""
        if option in _DIRECTORY:
            directory = None if directory is None else normal(directory, value)
        elif option in _WORKSPACE:
            workspaces.append(value)
        elif option in ("-t", "--target", "--targets"):
            plain.append(value)
        everywhere = everywhere or words[min(at, len(words) - 1)] in _ALL
        at += 1
        if plain and _is_script(name, plain) and name not in ("npm", *MONOREPO_TOOLS):
            break  # yarn, pnpm and bun give all further words to the script
    if name == "yarn" and plain[:1] == ["workspace"]:
        workspaces, plain = plain[1:2], plain[2:]
    elif name == "yarn" and plain[:1] == ["workspaces"]:
        everywhere, plain = True, [it for it in plain[1:] if it != "foreach"]
    script, further = _script_of(name, plain)
    rest = (*further, *words[at:])
    return _Run(
        script, tuple(it for it in rest if it != "--"), directory, tuple(workspaces), everywhere
    )


def _is_script(name: str, plain: list[str]) -> bool:
    if name == "yarn" and plain[0] in ("workspace", "workspaces"):
        return False
    return plain[0] not in _RUN or len(plain) > 1


def _script_of(name: str, plain: list[str]) -> tuple[str, list[str]]:
    """Return the name of the script, "" for none, and its arguments."""
    first, rest = (plain[0], plain[1:]) if plain else ("", [])
    if first in _RUN or first == "run-many":
        return (rest[0], rest[1:]) if rest else ("", [])
    if name == "npm" and first in (*_TEST, *_INSTALL_TEST):
        return "test", rest
    if name == "pnpm" and first in _TEST:
        return "test", rest
    if name == "npm":
        return (first, rest) if first in ("start", "stop", "restart") else ("", [])
    if first in _COMMANDS or (name == "bun" and first in ("test", "build")):
        return "", []
    return first, rest


class _Packages:
    """The scripts that were found so far; each is followed once."""

    def __init__(self, files: ProjectFiles, manager: str) -> None:
        self.files, self.manager = files, manager
        self.sources: list[Source] = []
        self.commands: list[Command] = []
        self.tables: dict[str, Table] = {}

    def table(self, directory: str) -> Table:
        if directory not in self.tables:
            path = normal(directory, "package.json") or ""
            self.tables[directory] = table_of(path, self.files.read_text(path))
        return self.tables[directory]

    def chosen(self, run: _Run) -> list[str]:
        """Return the directories of the packages in which the script runs."""
        directory = run.directory or ""
        if run.everywhere or run.workspaces:
            found = self._workspaces(directory)
            chosen = [it for it in found if run.everywhere or self._is_named(it, run)]
            if chosen:
                is_root = self.manager in MONOREPO_TOOLS and self._text(run.script, directory)
                return [*([directory] if is_root else []), *chosen]
        return [directory]

    def _is_named(self, directory: str, run: _Run) -> bool:
        name = self.table(directory).get("name")
        return any(
            fnmatchcase(str(name), it.strip(".{}^")) or normal(run.directory or "", it) == directory
            for it in run.workspaces
        )

    def _workspaces(self, directory: str) -> list[str]:
        """Return the directories of the packages that belong to this one."""
        given = self.table(directory).get("workspaces")
        forms = strings(given.get("packages") if isinstance(given, dict) else given)
        forms += _pnpm_forms(self.files.read_text(normal(directory, "pnpm-workspace.yaml") or ""))
        forms += strings(
            table_of("lerna.json", self.files.read_text(normal(directory, "lerna.json") or "")).get(
                "packages"
            )
        )
        found = []
        for form in forms:
            path = normal(directory, form.strip("/"))
            if path is None or form.startswith("!") or form.count("*") > _MOST_STARS:
                continue
            if "*" not in path:
                found.append(path)
                continue
            start = path.partition("*")[0].rpartition("/")[0]
            pattern = re.compile(_regex(path))
            found += [
                folder
                for name in self.files.below(start)
                if name.endswith("/package.json")
                and pattern.fullmatch(folder := name.removesuffix("/package.json"))
            ]
        return list(dict.fromkeys(found))[:_MOST]

    def _text(self, script: str, directory: str) -> str | None:
        scripts = self.table(directory).get("scripts")
        text = scripts.get(script) if isinstance(scripts, dict) else None
        return text if isinstance(text, str) else None

    def add(self, script: str, rest: tuple[str, ...], directory: str) -> None:
        """Add a script of a package, and those of the same package that it runs."""
        parts = tuple(f"scripts/{before}{script}" for before in ("", "pre", "post"))
        if "/" in script:  # parts are paths of keys
            parts = ("scripts",)
        source = Source(normal(directory, "package.json") or "", parts)
        if source in self.sources or len(self.sources) >= _MOST:
            return
        self.sources.append(source)
        text = self._text(script, directory)
        if text is None and self.manager in ("yarn", "pnpm", "bun"):
            is_file = self.files.is_file(normal(directory, script) or "")
            text = shlex.join((*(["node"] if is_file else []), script, *rest))
        elif text is not None:
            text = " ".join((text, *map(shlex.quote, rest)))
        for it in (
            self._text(f"pre{script}", directory),
            text,
            self._text(f"post{script}", directory),
        ):
            self._add_text(it or "", directory)

    def _add_text(self, text: str, directory: str) -> None:
        root = str(self.files.root)
        for command in simple_commands(text, directory, root, longest=LONGEST_SCRIPT):
            self.commands.append(command)
            run = _run_of(command)
            if run and run.is_of(directory) and self._text(run.script, directory) is not None:
                self.add(run.script, run.rest, directory)
            for script in self._chained(command, directory):
                self.add(script, (), directory)

    def _chained(self, command: Command, directory: str) -> Iterator[str]:
        """Yield the scripts that programs such as npm-run-all and concurrently run."""
        if command.name not in _CHAINS or command.directory != directory:
            return
        known = [str(it) for it in find_part(self.table(directory), "scripts") or ()]
        for word in command.arguments:
            form = re.sub(r"^(?:(?:npm|yarn|pnpm|bun)(?: run |:))", "", word)
            yield from (name for name in known if fnmatchcase(name, form))


def _regex(form: str) -> str:
    """Return a glob of npm as a regular expression: "*" within a directory, "**" across."""
    text = re.escape(form).replace(r"\*\*", "\0").replace(r"\*", "[^/]*")
    return text.replace("\0/", "(?:.*/)?").replace("\0", ".*")


def _pnpm_forms(text: str) -> list[str]:
    """Return the list `packages` of pnpm-workspace.yaml."""
    _, _, after = f"\n{text}".partition("\npackages:")
    found = []
    for line in after.splitlines()[1:]:
        item = re.match(r"""\s*-\s*["']?([^"'#]+)["']?\s*(?:#.*)?$""", line[:1000])
        if item:
            found.append(item[1].strip())
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return found
