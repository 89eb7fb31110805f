"""Who calls a command, by its ancestors; and an environment that shows neither agent nor user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gsd_fsm.config.caller import CLIENTS, scratch_environment
from tests.support.command_line import Answer, Project
from tests.support.fake_client import client_command
from tests.support.hook_agent import COMMAND

GSD = (sys.executable, "-m", "gsd_fsm")
GOAL = ("start", "goal", "g", "--criterion", "c")
SESSION = {"CLAUDE_CODE_SESSION_ID": "s-1"}


class Below(Project):
    """A project whose commands run below programs with these names, the outermost first."""

    def __init__(self, root: Path, *names: str) -> None:
        super().__init__(root)
        self.names = names

    def start_below(self, *command: str, **how: object) -> Answer:
        line = list(command)
        for name in reversed(self.names):
            line = client_command(self.root.parent / "bin", name, *line)
        done = subprocess.run(
            line, cwd=self.root, capture_output=True, timeout=60, check=False, **how
        )  # type: ignore[call-overload]
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())

    def run(self, *args: str, env: dict[str, str] | None = None, stdin: bytes = b"") -> Answer:
        return self.start_below(*GSD, *args, input=stdin, env={**os.environ, **(env or {})})

    def prompt(self, text: str, *hook: str) -> None:
        """Send the signal of a prompt to the hook, which this command runs."""
        signal = {
            "hook_event_name": "UserPromptSubmit", "session_id": "s-1", "cwd": str(self.root),
            "transcript_path": str(self.root.parent / "s-1.jsonl"), "prompt": text,
        }  # fmt: skip
        answer = self.start_below(*hook, input=json.dumps(signal).encode(), env=dict(os.environ))
        assert (answer.code, answer.err) == (0, "")


@pytest.mark.parametrize(
    ("names", "by", "client"),
    [
        (("claude", "bash"), "agent", "claude"),
        (("kimi",), "agent", "kimi"),
        (("code", "bash"), "human", None),
        (("nvim", "sh"), "human", None),
    ],
)
def test_command_below_a_client_is_an_agents_without_any_variable(
    project: Project, names: tuple[str, ...], by: str, client: str | None
) -> None:
    below = Below(project.root, *names)
    below.ok(*GOAL)
    event = below.lines()[-1]
    assert (event["by"], event.get("client"), event.get("session")) == (by, client, None)


def test_agent_below_a_client_can_neither_trust_nor_repair_nor_decide(project: Project) -> None:
    agent = Below(project.root, "claude", "bash")
    project.ok(*GOAL, env=SESSION)
    project.ok("wait", "Which?", env=SESSION)
    for code, command in ((6, "trust"), (6, "fsck --repair --yes"), (4, "answer x"), (4, "cancel")):
        answer = agent.run(*command.split(), env=SESSION)
        assert answer.code == code
        assert "agents cannot" in answer.err
    assert agent.ok("fsck").code == 0
    project.ok("answer", "this one", env=SESSION)


def test_prompt_that_an_agent_feeds_to_the_hook_unlocks_nothing(project: Project) -> None:
    agent = Below(project.root, "claude", "bash")
    transcript = project.root.parent / "s-1.jsonl"
    transcript.write_text('{"type":"assistant"}\n')
    project.ok(*GOAL, env=SESSION)
    project.ok("wait", "Which?", env=SESSION)
    agent.prompt("yes", *GSD, "hook")
    assert project.lines()[-1]["data"]["action"] == "prompt"
    for env in (SESSION, {**SESSION, "GEMINI_CLI": "1"}, {}):
        answer = agent.run("answer", "yes", env=env)
        assert (answer.code, project.status()["status"]) == (4, "waiting")
    with transcript.open("a") as file:
        row = {"type": "user", "message": {"role": "user", "content": "yes"}}
        file.write(json.dumps(row) + "\n")
    agent.ok("answer", "yes", env=SESSION)
    assert project.lines()[-1]["data"] == {"text": "yes", "relayed": True}


def test_prompt_to_a_client_below_another_client_does_not_count(project: Project) -> None:
    project.ok(*GOAL, env=SESSION)
    Below(project.root, "claude", "bash", "claude").prompt("yes", *COMMAND, "one")
    assert project.lines()[-1]["data"]["source"] == "nested"
    Below(project.root, "claude", "bash").prompt("yes, do", *COMMAND, "one")
    assert "source" not in project.lines()[-1]["data"]
    nested = Below(project.root, "codex", "bash", "claude")
    nested.prompt("yes", *COMMAND, "one")
    project.ok("wait", "Which?", env=SESSION)
    answer = nested.run("answer", "yes", env=SESSION)
    assert "messages to a client that runs below another client do not count" in answer.err


def test_scratch_environment_has_no_agent_and_only_homes_in_its_folder(
    tmp_path, monkeypatch
) -> None:
    agents = {name for _, markers, session in CLIENTS for name in (*markers, session)}
    others = {"CLAUDE_PROJECT_DIR", "CLAUDE_PID", "CLAUDE_CONFIG_DIR", "GSD_FSM_DISABLE"}
    dropped = agents | others | {"GSD_FSM_CHECK", "CLAUDE_CODE_SESSION_ATTENDED"}
    for name in dropped | {"KEPT"}:
        monkeypatch.setenv(name, "1")
    found = scratch_environment(tmp_path)
    assert not dropped & set(found)
    assert found["KEPT"] == "1"
    homes = ["HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA"]
    for name in [*homes, "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"]:
        assert tmp_path in Path(found[name]).parents


def test_simulation_does_not_depend_on_who_runs_it(project: Project) -> None:
    script = project.root / "script.txt"
    asked = ("start goal g --criterion c", "wait Which?", "CLAUDECODE=1 answer this => 4")
    decided = ("prompt this one", "CLAUDECODE=1 answer this => 0", "cancel => 0")
    script.write_text("\n".join((*asked, *decided)))
    attended = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ATTENDED": "0", **SESSION}
    Below(project.root, "codex", "sh", "claude").ok("simulate", str(script), env=attended)
