"""Run the checks of a loop once more, in a clean copy of the content to be delivered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import CheckFailed
from gsd_fsm.core.loop.completion import needs_clean_room
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.text.sanitize import one_line
from gsd_fsm.documents.journal_text import redact_and_truncate
from gsd_fsm.engine.content import tree_of
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.planned.plan import frozen_plan
from gsd_fsm.engine.planned.recheck import fail_again
from gsd_fsm.engine.planned.verify import refute_round
from gsd_fsm.engine.protection.files import prefix_of
from gsd_fsm.engine.protection.freeze import Command
from gsd_fsm.engine.protection.protect import (
    CLEAN_SETUP,
    as_run,
    ci_commands,
    commands_of,
    note_changed_commands,
    specs_of,
)
from gsd_fsm.engine.protection.witness import variables_of
from gsd_fsm.evidence.interruption import Output, Watch
from gsd_fsm.protection.originals import LINK, Originals

if TYPE_CHECKING:
    from gsd_fsm.evidence.checks import Outcome

_LONGEST_NAME = 60
_MAX_TEXT = 2_000


def pass_clean_room(context: Context, loop: Loop, tree: str | None, watch: Watch) -> bool:
    """Return whether the checks passed in the clean room; False if the loop asks for none.

    What passed is recorded as it ends: a repeated call runs only the rest. Raise CheckFailed if a
    check fails, which then is not met any more, or if the room cannot be prepared.
    """
    if not needs_clean_room(loop):
        return False
    commands = _commands(context, loop)
    known = loop.protection.clean_checks if loop.protection.clean_tree == tree else []
    left = {name: it for name, it in commands.items() if name not in known}
    repository = context.repository
    if not left or repository is None or tree is None:
        return not left
    from gsd_fsm.git.clean_room import clean_room

    prefix = prefix_of(context.project, repository.top)
    with watch() as output:
        output.say("Preparing a clean copy of the work tree.")
        with clean_room(repository, _frozen_files(context, loop, prefix)) as top:
            room = _Room(context, loop, tree, output, top / prefix)
            room.prepare(_setup(context, loop))
            room.run(left)
    if tree_of(context, loop) != tree:
        raise CheckFailed(
            "files were changed while the checks ran in the clean room",
            f"When nobody changes files, run: {command_line('complete', loop.id)}",
        )
    return True


def _setup(context: Context, loop: Loop) -> str:
    """Return the command that prepares the room, as it was frozen or accepted; "" for none."""
    now = {CLEAN_SETUP: context.settings()[CLEAN_SETUP] or ""}
    frozen = loop.protection.commands.get(CLEAN_SETUP) or ""
    note_changed_commands(context, loop, {CLEAN_SETUP: frozen}, now)
    return as_run(loop, CLEAN_SETUP, frozen, now)


def _commands(context: Context, loop: Loop) -> dict[str, Command]:
    """Return the commands of all checks of this loop, by check."""
    plan = frozen_plan(context.project, loop) if loop.is_planned and loop.kind != "goal" else None
    ci = ci_commands(loop, context.settings()) if loop.kind == "verify" else {}
    return commands_of(loop.kind, specs_of(loop), plan, ci)


def _frozen_files(context: Context, loop: Loop, prefix: str) -> dict[str, bytes]:
    """Return the protected files that matter as a whole, as they were frozen or accepted."""
    originals = Originals(context.gsd, loop.id)
    found = {}
    for file in loop.protection.files:
        content = originals.read(file.digest) if not file.parts else None
        if content is not None and not content.startswith(LINK):
            found[prefix + file.path] = content
    return found


class _Room:
    """A clean copy of the work tree, in which the checks of one loop run."""

    def __init__(
        self, context: Context, loop: Loop, tree: str, output: Output, project: Path
    ) -> None:
        settings = context.settings()
        self.context, self.loop, self.tree, self.output = context, loop, tree, output
        self.project = project
        self.shell = context.check_shell()
        self.timeout = float(settings["check_timeout_seconds"])
        self.reruns = int(settings["check_reruns"])
        self.variables = variables_of(context, loop)

    def prepare(self, command: str) -> None:
        """Run the command that prepares the room; raise CheckFailed if it fails."""
        if not command:
            return
        outcome = self._outcome("clean_setup", Command(command))
        if outcome.exit_code:
            raise CheckFailed(
                f"the clean room cannot be prepared, so no check has run in it: clean_setup "
                f"{outcome.result}",
                f"Fix its cause, then run: {command_line('complete', self.loop.id)}. Or change "
                f"clean_setup, then run: {command_line('accept', self.loop.id, CLEAN_SETUP)}",
            )

    def run(self, commands: Mapping[str, Command]) -> None:
        """Run these checks and record each; raise CheckFailed at the first that fails."""
        for name, command in commands.items():
            outcome = self._outcome(name, command)
            data = self._facts(name, outcome)
            with self.context.writing(self.loop) as tx:
                tx.append("plan", {"clean": data}, by="cli")
                if outcome.exit_code and name in tx.loop.criteria:
                    evidence = {**self._evidence(outcome), "clean": True}
                    met = {"criterion": name, "met": False, "evidence": evidence}
                    tx.append("criterion", met, by="cli")
            if outcome.exit_code:
                self._refuse(name, command, outcome)

    def _outcome(self, name: str, command: Command) -> Outcome:
        from gsd_fsm.evidence.checks import run_check

        self.output.say(f"{name}: {command.text}")
        self.output.running([one_line(name, _LONGEST_NAME)])
        outcome = run_check(
            command.text,
            self.project / command.directory,
            self.timeout,
            self.output.show,
            self.output.poll,
            shell=self.shell,
            reruns=self.reruns,
            variables=self.variables,
        )
        self.output.running([])
        self.output.say(f"  {outcome.result}")
        if outcome.exit_code:
            self.output.quote(f"Output of {name} in the clean room", outcome.tail)
        return outcome

    def _facts(self, name: str, outcome: Outcome) -> dict[str, Any]:
        return {"tree": self.tree, "check": name, **self._result(outcome)}

    def _evidence(self, outcome: Outcome) -> dict[str, Any]:
        return {"tree": self.tree, "likeness": outcome.likeness, **self._result(outcome)}

    def _result(self, outcome: Outcome) -> dict[str, Any]:
        return {
            "command": outcome.command,
            "exit_code": outcome.exit_code,
            "tail": redact_and_truncate(outcome.tail, _MAX_TEXT),
            "digest": outcome.digest,
            "seconds": round(outcome.seconds, 3),
            "timed_out": outcome.timed_out,
        }

    def _refuse(self, name: str, command: Command, outcome: Outcome) -> None:
        """Record which task or round no longer holds, and raise CheckFailed."""
        from gsd_fsm.verify.gaps import Result

        why = f"check {name} {outcome.result} in a clean copy of the work tree"
        if self.loop.kind == "verify":
            refute_round(self.context, self.loop, why)
        task, number, _ = name.partition("#")
        if number and task in self.loop.tasks:
            evidence = f"in a clean copy of the work tree: {outcome.tail}"
            result = Result(
                name, task, "command", command.text, False, None, evidence, outcome.seconds
            )
            fail_again(self.context, self.loop, {task: [result]})
        raise CheckFailed(
            f"{why}, where ignored files and running programs are missing",
            "Deliver what the check needs, or set clean_setup, then run: "
            f"{command_line('check', self.loop.id)}",
        )
