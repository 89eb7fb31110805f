"""Commands warn if a loop is live and no client runs the hook."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.client_settings import Client
from tests.support.command_line import AGENT_A, HOOK_INSTALLED, Answer, Here, write
from tests.support.hook_agent import Agent

GOAL = ("goal", "g", "--criterion", "c")
LOST = re.compile(r"gsd-fsm: loop \S+ will not continue: ")
COMMANDS = (
    ["status"], ["status", "--json"], ["next"], ["replay"], ["replay", "--json"], ["note", "x"],
    ["criterion", "1", "met"], ["pause"], ["resume"], ["config"], ["fsck"], ["graph"], ["history"],
    ["ps"], ["plan", "show"], ["cancel", "--json"],
)  # fmt: skip
# They do not read the journal of the project, or end its loop.
OTHERS = ("config", "graph", "plan", "cancel")


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
        remove_interpreter, "/gone/python3, which is missing. Run: gsd-fsm init --scope local",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", GONE)
def test_commands_and_status_line_report_a_hook_that_cannot_run_until_it_is_reinstalled(
    live: Here, client: Client, what: str
) -> None:
    remove, problem = GONE[what]
    remove(client)
    for command in COMMANDS[:-1]:
        shown = warning(live.run(*command)).replace(f"--project {live.root} ", "")
        assert problem in shown or command[0] in OTHERS, command
    assert problem in warning(live.run("next", env=AGENT_A))
    assert problem.partition(". Run")[0].lower() in live.ok().out.lower()  # the overview
    line = live.ok("statusline").out.rstrip("\n")
    said, _, fix = problem.partition(". Run: ")
    assert line.endswith(f"{said}: {fix}")
    live.ok(*fix.split()[1:], "--yes")
    assert live.ok("status").err == ""
    assert "missing" not in live.ok("statusline").out


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
    assert live.run("status").err.startswith("gsd-fsm: 2 live loops will not continue: the hook")


@pytest.mark.parametrize("scope", ["user", "project", "local"])
@pytest.mark.parametrize(
    "content",
    [HOOK_INSTALLED, "{damaged", '{"hooks":{"Stop":"gsd_fsm_hook"}}', '"command": "gsd-fsm hook"'],
)
def test_settings_that_may_run_the_hook_cause_no_warning(
    live: Here, client: Client, scope: str, content: str
) -> None:
    client.files["local"].unlink()
    client.write(content.encode(), scope)
    assert bool(warning(live.ok("status"))) is (content == "{damaged")


@pytest.mark.parametrize("copy", ["plugin", "settings-local"])
def test_plugin_that_a_session_loaded_needs_no_settings(
    live: Here, agent: Agent, client: Client, copy: str
) -> None:
    client.files["local"].unlink()
    agent.twin(copy).prompt()
    assert bool(warning(live.ok("status"))) is (copy != "plugin")


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
