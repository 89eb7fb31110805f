"""The commands that settings name: which there are, and whether they changed since `start`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gsd_fsm.core.codec import digest_of, dumps
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.subagents.context import test_command

CI = ("lint", "typecheck", "test", "build", "e2e")


def ci_commands(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the CI commands that are set, by name."""
    return {name: str(settings[f"ci_{name}"]) for name in CI if settings[f"ci_{name}"]}


def commands_digest(project: Path, settings: Mapping[str, Any]) -> str:
    """Return what identifies the commands that `verify` and `tdd --run` take from the settings."""
    return digest_of(dumps([ci_commands(settings), test_command(project, settings)]))


def require_same_commands(
    loop: Loop, by: str, project: Path, settings: Mapping[str, Any], command: str
) -> None:
    """Raise Refused if an agent would run commands that were set after this loop had started.

    A user has allowed the client to run `command` because of the commands that were set then.
    """
    frozen = loop.rules.commands if loop.rules is not None else ""
    if by == "agent" and frozen and commands_digest(project, settings) != frozen:
        raise Refused(
            f"the commands of the settings (ci_…) changed after loop {loop.id} started",
            f"Ask the user to read them (gsd-fsm config) and to run: {command}",
        )
