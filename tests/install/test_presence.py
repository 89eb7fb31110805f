"""Commands warn if a loop is live and no client runs the hook."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.client_settings import Client
from tests.support.command_line import AGENT_A, HOOK_INSTALLED, Answer, Here, write
from tests.support.hook_agent import HOOK, Agent

GOAL = ("goal", "g", "--criterion", "c")
LOST = re.compile(r"gsd-fsm: loop \S+ will not continue: ")
COMMANDS = (
    ["status"], ["status", "--json"], ["next"], ["replay"], ["replay", "--json"], ["note", "x"],
    ["criterion", "1", "met"], ["spend", "1"], ["release"], ["fsck"], ["history"], ["ps"],
    ["answer", "yes"],
)  # fmt: skip


@pytest.fixture
def live(here: Here) -> Here:
    """Return a project with a live loop and an installed hook."""
    here.ok("init", "--scope", "local", "--yes")
    assert here.ok("start", *GOAL).err == ""
    return here


def warning(answer: Answer) -> str:
    """Return the warning in the answer to a command, without its beginning; "" if there is none."""
    found = [LOST.sub("", line) for line in answer.err.splitlines() if LOST.match(line)]
    assert len(found) <= 1
    return found[0] if found else ""


def remove_settings(client: Client) -> None:
    client.files["local"].unlink()


def remove_hook_file(client: Client) -> None:
    client.hook.unlink()


def remove_interpreter(client: Client) -> None:
    settings = client.read()
    for groups in settings["hooks"].values():
        groups[0]["hooks"][0]["command"] = "/gone/python3"
    client.write(settings)


GONE: dict[str, tuple[Callable[[Client], None], str]] = {
    "settings": (remove_settings, "the hook is not installed. Run: gsd-fsm init"),
    "hook file": (remove_hook_file, "gsd_fsm_hook.py, which is missing. Run: gsd-fsm init --scope local"),
    "interpreter": (
        remove_interpreter, "/gone/python3, which cannot be run. Run: gsd-fsm init --scope local",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", GONE)
def test_commands_and_status_line_report_a_hook_that_cannot_run_until_it_is_reinstalled(
    live: Here, client: Client, what: str
) -> None:
    remove, problem = GONE[what]
    remove(client)
    for command in COMMANDS:
        shown = warning(live.run(*command)).replace(f"--project {live.root} ", "")
        assert problem in shown, command
    assert live.run("graph").err == ""  # it is not about a project
    assert problem in warning(live.run("next", env=AGENT_A))
    assert problem.partition(". Run")[0].lower() in live.ok().out.lower()  # the overview
    line = live.ok("statusline").out.rstrip("\n")
    said, _, fix = problem.partition(". Run: ")
    assert line.endswith(f"{said}: {fix}")
    live.ok(*fix.split()[1:], "--yes")
    assert live.ok("status").err == ""
    assert "which" not in live.ok("statusline").out


def test_refused_command_also_reports_that_the_hook_cannot_run(live: Here, client: Client) -> None:
    client.files["local"].unlink()
    answer = live.refused(4, "answer", "yes")
    assert warning(answer) == "the hook is not installed. Run: gsd-fsm init"


@pytest.mark.parametrize("end", ["cancel", "nothing"])
def test_warning_ends_with_the_loop(live: Here, client: Client, end: str) -> None:
    client.files["local"].unlink()
    live.run(end)
    assert bool(warning(live.ok("status"))) is (end == "nothing")


def test_several_live_loops_are_counted(live: Here, client: Client) -> None:
    client.files["local"].unlink()
    live.ok("start", *GOAL, env=AGENT_A)
    live.ok("start", *GOAL, env={"CODEX_SESSION_ID": "t-1"})
    assert live.run("status").err.startswith("gsd-fsm: 2 live loops will not continue: the hook")


def stop_hooks(command: str, *args: str) -> dict[str, object]:
    """Return settings with one hook for stops; without arguments, `command` is a line for a shell."""
    hook = {"type": "command", "command": command, **({"args": [*args]} if args else {})}
    return {"hooks": {"Stop": [{"hooks": [hook]}]}}


PYTHON = sys.executable
SETTINGS: dict[str, tuple[object, str]] = {
    "plugin": ({"enabledPlugins": {"gsd-fsm@team": True}}, ""),
    "disabled plugin": ({"enabledPlugins": {"gsd-fsm@team": False}}, "not installed"),
    "another plugin": ({"enabledPlugins": {"gsd-fsm-extras@team": True}}, "not installed"),
    "command": (stop_hooks("gsd-fsm hook"), ""),
    "rule for the command": ({"permissions": {"allow": ["Bash(gsd-fsm hook:*)"]}}, "not installed"),
    "script": (stop_hooks(PYTHON, "-I", "-S", str(HOOK), "x"), ""),
    "script in a shell": (stop_hooks(f'"{PYTHON}" -I -S "{HOOK}" x'), ""),
    "missing script": (stop_hooks(PYTHON, "-I", "/gone/gsd_fsm_hook.py", "x"), "/gone/gsd_fsm"),
    "missing script in a shell": (stop_hooks("python3 '/gone/gsd_fsm_hook.py'"), "gone/gsd_fsm"),
    "not executable": (stop_hooks("/etc/passwd", "-c", "import gsd_fsm_hook", "/x", "y"), "passwd"),
    "all disabled": ({"disableAllHooks": True, **stop_hooks("gsd-fsm hook")}, "disables all hooks"),
    "other events": ({"hooks": {"SessionEnd": [{"hooks": [{"command": "gsd-fsm hook"}]}]}}, "not in"),
    "unknown form": ({"hooks": {"Stop": [{"hooks": ["gsd_fsm_hook.py"]}, 7], "x": 1}}, "not installed"),
    "list": ([], "not installed"),
    "not JSON": (b"{damaged", "not installed"),
    "with BOM": (b"\xef\xbb\xbf" + json.dumps(stop_hooks("gsd-fsm hook")).encode(), ""),
}  # fmt: skip


@pytest.mark.parametrize("scope", ["user", "project", "local"])
@pytest.mark.parametrize("what", SETTINGS)
def test_warning_depends_on_the_hook_for_stops_in_any_settings(
    live: Here, client: Client, scope: str, what: str
) -> None:
    content, problem = SETTINGS[what]
    client.files["local"].unlink()
    client.write(content, scope)
    shown = warning(live.ok("status"))
    assert problem in shown
    assert bool(shown) is bool(problem)


@pytest.mark.parametrize("copy", ["plugin", "my-own", "settings-local"])
def test_hook_that_was_called_from_elsewhere_needs_no_settings(
    live: Here, agent: Agent, client: Client, copy: str
) -> None:
    client.files["local"].unlink()
    agent.twin(copy).prompt()
    assert bool(warning(live.ok("status"))) is (copy == "settings-local")


def test_paused_loop_causes_no_warning_until_it_is_resumed(live: Here, client: Client) -> None:
    client.files["local"].unlink()
    assert warning(live.ok("pause")) == ""
    assert warning(live.ok("status")) == ""
    assert warning(live.ok("resume"))


def test_status_line_and_ps_look_where_the_client_was_started(live: Here, client: Client) -> None:
    below = live.root / "below"
    write(below / ".claude" / "settings.json", HOOK_INSTALLED)
    client.files["local"].unlink()
    workspace = {"current_dir": str(live.root), "project_dir": str(below)}
    shown = live.ok("statusline", stdin=json.dumps({"workspace": workspace}).encode()).out
    assert "running" in shown
    assert "installed" not in shown
    assert "installed" in live.ok("statusline").out
    live.where = below
    assert live.ok("ps").err == ""


def test_settings_of_the_current_directory_cause_no_warning(live: Here, client: Client) -> None:
    below = live.root / "below"
    write(below / ".claude" / "settings.json", HOOK_INSTALLED)
    client.files["local"].unlink()
    live.where = below
    assert live.ok("status").err == ""
    (below / ".claude" / "settings.json").unlink()
    assert warning(live.ok("status")).endswith("Run: gsd-fsm init --scope user")


def test_loop_of_another_client_and_untrusted_journal_cause_no_warning(
    here: Here, agent: Agent, tmp_path: Path
) -> None:
    codex = {"CODEX_SESSION_ID": "t-1"}
    here.ok("start", *GOAL, env=codex)
    assert here.status()["owner"] == "t-1"
    assert here.ok("status").err == ""
    here.ok("cancel")
    here.ok("start", *GOAL)
    assert here.ok("status").err
    stranger = {"XDG_STATE_HOME": str(tmp_path / "another")}
    assert here.ok("status", env=stranger).err == ""
