"""Follow a command one level: what the script, makefile or package that it runs starts itself."""

from __future__ import annotations

from typing import NamedTuple

from gsd_fsm.protection.commands import LONGEST_SCRIPT, Command, simple_commands
from gsd_fsm.protection.files import ProjectFiles, normal
from gsd_fsm.protection.prefixes import SHELLS
from gsd_fsm.protection.programs import operands


class Source(NamedTuple):
    """A file that holds commands, and the parts of it that are run; () for all of it."""

    path: str
    parts: tuple[str, ...] = ()


class Followed(NamedTuple):
    """What a command runs indirectly."""

    sources: list[Source]
    commands: list[Command]


def follow(command: Command, files: ProjectFiles) -> Followed:
    """Return the files in which the commands of a command are, and these commands."""
    script = script_of(command)
    if script is not None and command.directory is not None:
        return _script(script, command, files)
    return Followed([], [])


def script_of(command: Command) -> str | None:
    """Return the file that a shell runs, None for another program or a text."""
    if command.name in SHELLS:
        return next(iter(operands(list(command.arguments), "-o -O")), None)
    if command.program in (".", "source"):
        return next(iter(command.arguments), None)
    return command.program if "/" in command.program else None


def _script(script: str, command: Command, files: ProjectFiles) -> Followed:
    path = normal(command.directory or "", script)
    if path is None or not (text := files.read_text(path)):
        return Followed([], [])
    root = str(files.root)
    words = list(command.arguments)
    parameters = (f"{root}/{path}", *words[words.index(script) + 1 if script in words else 0 :])
    commands = simple_commands(text, command.directory, root, parameters, longest=LONGEST_SCRIPT)
    return Followed([Source(path)], commands)
