"""Follow a command one level: what the script, makefile or package that it runs starts itself."""

from __future__ import annotations

from gsd_fsm.protection.commands import LONGEST_SCRIPT, Command, simple_commands
from gsd_fsm.protection.files import ProjectFiles, normal
from gsd_fsm.protection.programs.followed import (
    MAKE,
    NOTHING,
    PACKAGE_MANAGERS,
    TASK_RUNNERS,
    Followed,
)
from gsd_fsm.protection.programs.named import operands
from gsd_fsm.protection.programs.prefixes import SHELLS


def follow(command: Command, files: ProjectFiles, following: Command | None = None) -> Followed:
    """Return the files in which the commands of a command are, and these commands.

    `following` is the next command, which a prefix such as `pdm run` starts.
    """
    name = command.name
    if name in MAKE:
        from gsd_fsm.protection.programs.makefiles import follow_make

        return follow_make(command, files)
    if name in PACKAGE_MANAGERS:
        from gsd_fsm.protection.programs.packages import follow_package

        return follow_package(command, files)
    if name in TASK_RUNNERS:
        from gsd_fsm.protection.programs.tasks import follow_task

        return follow_task(command, files, following)
    if name in ("tox", "nox"):
        from gsd_fsm.protection.programs.tasks import follow_nox, follow_tox

        return (follow_tox if name == "tox" else follow_nox)(command, files)
    if name == "just":
        from gsd_fsm.protection.programs.justfiles import follow_just

        return follow_just(command, files)
    return _follow_script(command, files)


def _follow_script(command: Command, files: ProjectFiles) -> Followed:
    """Return the commands of a script that a shell runs, or that is run by its path."""
    script, rest = _script_of(command)
    path = None if command.directory is None else _located(script, command.directory, files)
    text = files.read_text(path) if path else ""
    is_shell = command.name in SHELLS or command.program in (".", "source")
    if not text or not (is_shell or _is_for_shell(text)):
        return NOTHING
    root = str(files.root)
    commands = simple_commands(
        text, command.directory, root, parameters=(f"{root}/{path}", *rest), longest=LONGEST_SCRIPT
    )
    return Followed([], commands)


def _located(script: str, directory: str, files: ProjectFiles) -> str | None:
    root = f"{files.root}/"
    return normal("", script[len(root) :]) if script.startswith(root) else normal(directory, script)


def _script_of(command: Command) -> tuple[str, tuple[str, ...]]:
    """Return the file that a command runs, "" if it is another program or a text, and its arguments."""
    if command.name in SHELLS or command.program in (".", "source"):
        words = operands(list(command.arguments), "-o -O")
        return (words[0], tuple(words[1:])) if words else ("", ())
    return (command.program if "/" in command.program else ""), command.arguments


def _is_for_shell(text: str) -> bool:
    """Return whether the first line names a shell; without that line a shell runs the file."""
    if not text.startswith("#!"):
        return "\0" not in text
    words = text.partition("\n")[0][2:].split()
    return any(word.rpartition("/")[2] in SHELLS for word in words)
