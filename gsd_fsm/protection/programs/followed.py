"""What a command runs indirectly."""

from __future__ import annotations

from typing import NamedTuple

from gsd_fsm.protection.commands import Command

MAKE = ("gmake", "make")
MONOREPO_TOOLS = ("lerna", "nx", "turbo", "wsrun")  # they run a script in each package
PACKAGE_MANAGERS = ("bun", "npm", "pnpm", "yarn", *MONOREPO_TOOLS)
TASK_RUNNERS = ("composer", "deno", "hatch", "pdm", "pipenv", "pixi", "poe", "rye", "task")


class Source(NamedTuple):
    """A file that holds commands, and the parts of it that are run; () for all of it.

    It may be missing: then it would be run if it were created.
    """

    path: str
    parts: tuple[str, ...] = ()


class Followed(NamedTuple):
    """The files in which the commands of a command are, and these commands."""

    sources: list[Source]
    commands: list[Command]


NOTHING = Followed([], [])
