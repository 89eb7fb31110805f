"""The plugin, and two copies of the hook at once, with the real client."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.e2e.fake_model import say
from tests.support.e2e.project import FINISH, GOAL, Rig

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.e2e


def test_plugin_alone_is_valid_runs_a_loop_and_offers_commands(rig: Rig) -> None:
    rig.install_plugin()
    validate = [rig.claude, "plugin", "validate", "a plugin"]
    done = subprocess.run(
        validate, cwd=rig.root, env=rig.env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "passed" in done.stdout) == (0, True), done
    assert "warning" not in (done.stdout + done.stderr).lower()
    loop = rig.start(*GOAL)
    rig.model.main.then(say("I stop."), FINISH, say("It is shipped."), say("It is over."))
    chat = rig.chat("--plugin-dir", "a plugin")
    assert chat.ask("Ship it.")["result"] == "It is shipped."
    chat.ask("/gsd-fsm:status")
    chat.close()
    assert len(rig.sent_back()) == 1
    assert rig.story(loop)[-1] == "complete"
    offered = chat.of("system", "init")[0]["slash_commands"]
    commands = "start loop execute verify status resume pause cancel why"
    assert {f"gsd-fsm:{name}" for name in commands.split()} <= {*offered}
    assert "gsd-fsm status" in rig.model.asked()[-1].heard


def test_plugin_installs_from_the_marketplace_of_this_repository_and_blocks(
    rig: Rig, tmp_path: Path
) -> None:
    def claude(*args: str) -> str:
        done = subprocess.run(
            [rig.claude, "plugin", *args], cwd=rig.root, env=rig.env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done
        assert "warning" not in (done.stdout + done.stderr).lower()
        return done.stdout

    checkout = tmp_path / "a checkout"
    for name in ("plugin", ".claude-plugin"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, checkout / name, ignore=ignored)
    for place in (checkout, checkout / "plugin"):
        assert "Validation passed" in claude("validate", str(place))
    rig.ok("uninstall", "--scope", "project", "--yes")
    claude("marketplace", "add", str(checkout))
    claude("install", "gsd-fsm@gsd-fsm")
    loop = rig.start(*GOAL)
    rig.model.main.then(say("I stop."), FINISH, say("It is shipped."))
    chat = rig.chat()
    assert chat.ask("Ship it.")["result"] == "It is shipped."
    chat.close()
    assert len(rig.sent_back()) == 1
    assert rig.story(loop)[-1] == "complete"
    rows = rig.ok("doctor", "--json", env=rig.env).json["rows"]
    assert [row["state"] for row in rows if row["where"] == "plugin"] == ["ok"] * 6


def test_plugin_without_python_reports_it_and_lets_the_agent_stop(rig: Rig, tmp_path: Path) -> None:
    rig.ok("uninstall", "--scope", "project", "--yes")
    rig.start(*GOAL)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "cat"):
        (programs / name).symlink_to(shutil.which(name) or "")
    rig.model.main.then(say("I stop."))
    chat = rig.chat("--plugin-dir", str(ROOT / "plugin"), PATH=str(programs))
    assert chat.ask("Ship it.")["result"] == "I stop."
    chat.close()
    assert rig.sent_back() == []
    assert "no python3 on the PATH: the hook of the plugin cannot run" in chat.shown


def test_two_hook_copies_with_client_count_one_iteration(rig: Rig) -> None:
    rig.ok("init", "--scope", "local", "--yes")
    rig.ok("init", "--plugin", "a plugin", "--yes")
    loop = rig.start(*GOAL)
    rig.model.main.then(say("I stop."), FINISH, say("It is shipped."))
    chat = rig.chat("--plugin-dir", "a plugin")
    chat.ask("Ship it.")
    chat.close()
    assert len(chat.hooks("Stop")) == 6
    counted = [it for it in rig.story(loop) if not it.startswith("session")]
    assert counted == ["start", "iteration", "criterion met", "exit", "complete"]
    assert len(rig.sent_back()) == 1
