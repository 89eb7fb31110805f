"""Commands that the real client runs without asking, with only the rules that `init --allow` adds.

A headless session denies what it would have to ask for.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.e2e.chat import EDITING, Chat
from tests.support.e2e.fake_model import Request, Turn, bash, say
from tests.support.e2e.project import Rig

pytestmark = pytest.mark.e2e
GOAL = ("start", "goal", "It works", "--mode", "yolo", "--check", "tests=test -e fixed")


def as_told(request: Request) -> Turn:
    """Run the command that the last text named."""
    return bash(re.findall(r"^Run: (.*)$", request.text, re.MULTILINE)[-1])


def denied(chat: Chat) -> list[str]:
    """Return the commands that the client refused to run."""
    found = [it for result in chat.results for it in result["permission_denials"]]
    return [str(it["tool_input"].get("command")) for it in found]


def leave_path(rig: Rig) -> list[str]:
    """Let the client find no gsd-fsm on its PATH; return a command with an awkward path."""
    (rig.scratch / "bin" / "gsd-fsm").unlink()
    program = rig.scratch / "my tools" / "gsd-fsm"
    program.parent.mkdir()
    program.symlink_to(Path(sys.executable).with_name("gsd-fsm"))
    return [str(program)]


@pytest.mark.parametrize("by", ["name", "path"])
def test_goal_completes_with_only_the_rules_of_init_allow(rig: Rig, by: str) -> None:
    program = leave_path(rig) if by == "path" else [str(rig.scratch / "bin" / "gsd-fsm")]
    rig.ok("uninstall", "--yes")
    for command in (["init", "--allow", "--yes"], GOAL):
        subprocess.run([*program, *command], cwd=rig.root, env=rig.env, check=True)
    loop = rig.status()["loop"]
    fix = {"file_path": str(rig.root / "fixed"), "content": "yes\n"}
    rig.model.main.then(
        say("All done."), as_told, say("Now it is done."), Turn(tool="Write", given=fix), as_told,
        say("It works."), as_told, say("The loop is complete."),
    )  # fmt: skip
    chat = rig.chat(mode=EDITING, GSD_FSM_LOOP=loop)
    assert chat.ask("Make it work.")["result"] == "The loop is complete."
    chat.close()
    assert denied(chat) == []
    assert rig.status()["status"] == "completed"
    named = "'" + program[0] + "' check" if by == "path" else "gsd-fsm check"
    assert f"Run: {named} --loop {loop}" in rig.sent_back()[0]


@pytest.mark.parametrize("command", ["start goal x --fresh --check x=ls", "resume", "stage"])
def test_client_denies_a_command_that_could_bring_another(rig: Rig, command: str) -> None:
    rig.ok("init", "--allow", "--yes")
    loop = rig.start(*GOAL[1:])
    line = f"gsd-fsm {command} --loop {loop}" if command == "resume" else f"gsd-fsm {command}"
    rig.model.main.then(bash(line), bash(f"gsd-fsm pause --loop {loop}"), say("I may not."))
    chat = rig.chat(mode=EDITING, GSD_FSM_LOOP=loop)
    chat.ask("Make it work.")
    chat.close()
    assert denied(chat) == [line]
    assert rig.status()["loop"] == loop
    assert rig.status()["status"] == "paused"
