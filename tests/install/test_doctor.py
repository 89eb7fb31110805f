"""`doctor` runs what the settings say, and finds what is wrong with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.project import state_directory
from tests.install.conftest import Client, listing
from tests.support.command_line import Here

RUNS = 12
IDLE = "import sys\nPARTS = {}\ndef main():\n    sys.stdin.readline()\n"


def rows(here: Here, *args: str, code: int = 0, **how: Any) -> dict[str, dict[str, Any]]:
    """What the doctor told, by name; the last of each name."""
    answer = here.run("doctor", *args, "--json", **how)
    assert answer.code == code, answer
    assert answer.json["ok"] is (code == 0)
    return {row["name"]: row for row in answer.json["rows"]}


def failed(found: dict[str, dict[str, Any]]) -> list[str]:
    return [name for name, row in found.items() if row["state"] == "failed"]


def rewrite(client: Client, change: dict[str, Any]) -> None:
    """Change every hook of ours by hand."""
    document = client.read()
    for groups in document["hooks"].values():
        groups[0]["hooks"][0].update(change)
    client.write(document)


def test_without_a_hook_it_says_what_to_run(here: Here, client: Client) -> None:
    answer = here.refused(3, "doctor")
    assert "gsd-fsm init" in answer.err
    client.write(b"{broken")
    assert "line 1, column 2" in here.refused(3, "doctor").err


def test_a_fresh_installation_passes_every_trial_and_nothing_is_touched(
    here: Here, client: Client
) -> None:
    here.start("goal", "g")
    here.ok("init", "--yes")
    before = listing(client.home) | listing(here.root)
    cwd = Path.cwd()
    found = rows(here)
    assert Path.cwd() == cwd
    assert failed(found) == []
    assert sum(row["ms"] is not None for row in found.values()) == RUNS
    assert listing(client.home) | listing(here.root) == before
    shown = here.ok("doctor").out
    assert "✓ a live loop" in shown
    assert " ms" in shown
    assert shown.endswith("All is well.\n")


def test_each_scope_is_run_and_named(here: Here) -> None:
    here.ok("init", "--scope", "user", "--yes")
    here.ok("init", "--scope", "project", "--yes")
    told = here.ok("doctor", "--json").json["rows"]
    assert {row["where"] for row in told} == {"user settings", "project settings", "here"}
    assert sum(row["ms"] is not None for row in told) == 2 * RUNS


def test_it_works_at_home_too(here: Here, client: Client) -> None:
    here.where = client.home
    here.ok("init", "--yes")
    assert failed(rows(here)) == []


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("sys.exit(2)", "it left with exit code 2"),
        ("print('hello')", "it printed something"),
        ('print(\'{"decision": "block", "reason": "always"}\')', "it printed something"),
        ("sys.stdin.read()", "no end after 0.5 seconds"),
    ],
)
def test_a_hook_that_misbehaves_is_found(here: Here, client: Client, code: str, wrong: str) -> None:
    here.ok("init", "--yes")
    client.hook.write_text(f"import sys\ndef main():\n    {code}\n")
    rewrite(client, {"timeout": 0.5})
    found = rows(here, code=7)
    assert found["stdin stays open" if "read" in code else "a stop without a loop"]["told"] == wrong
    assert found["a live loop, odd letters in its path"]["state"] == "failed"
    assert found["hook file"]["fix"] == "gsd-fsm init --scope local"
    assert "timeout" in failed(found)


@pytest.mark.usefixtures("one_trial")
def test_a_remedy_is_told_once_however_much_it_mends(here: Here, client: Client) -> None:
    here.ok("init", "--yes")
    client.hook.write_text(IDLE)
    rewrite(client, {"timeout": 1})
    shown = here.run("doctor").out
    assert shown.count("→ gsd-fsm init --scope local\n") == 1
    assert shown.endswith(" checks failed.\n")


def test_a_hook_that_never_blocks_is_found(here: Here, client: Client) -> None:
    here.ok("init", "--yes")
    client.hook.write_text(IDLE)
    rewrite(client, {"timeout": 1})
    found = rows(here, code=7)
    assert "another version" in found["hook file"]["told"]
    assert found["a live loop, odd letters in its path"]["told"] == "it did not block"
    assert found["a stop without a loop"]["state"] == "ok"


def test_what_is_missing_is_found(here: Here, client: Client) -> None:
    here.ok("init", "--yes")
    client.hook.unlink()
    document = client.read()
    del document["hooks"]["SessionEnd"]
    client.write(document)
    found = rows(here, code=7)
    assert "is missing" in found["hook file"]["told"]
    assert found["events"]["told"] == "not registered for SessionEnd"
    assert found["a live loop, odd letters in its path"]["told"] == "it did not block"
    here.ok("init", "--yes")
    assert failed(rows(here)) == []


@pytest.mark.usefixtures("one_trial")
def test_an_interpreter_that_is_gone_or_none_is_found(
    here: Here, client: Client, tmp_path: Path
) -> None:
    link = tmp_path / "my python"
    here.ok("init", "--yes")
    link.symlink_to(client.hooks()[0]["command"])
    here.ok("init", "--python", str(link), "--yes")
    link.unlink()
    found = rows(here, code=7)
    assert found["interpreter"]["told"] == f"{link} does not exist"
    assert "cannot be started" in found["a stop without a loop"]["told"]
    link.symlink_to("/bin/sh")
    told = rows(here, code=7)["interpreter"]["told"]
    assert told == f"{link} does not answer as a Python does"


@pytest.mark.usefixtures("one_trial")
def test_an_interpreter_of_a_conda_environment_is_told(
    here: Here, client: Client, tmp_path: Path
) -> None:
    here.ok("init", "--yes")
    inside = tmp_path / "conda" / "bin" / "python"
    inside.parent.mkdir(parents=True)
    (tmp_path / "conda" / "conda-meta").mkdir()
    inside.symlink_to(client.hooks()[0]["command"])
    answer = here.ok("init", "--python", str(inside), "--yes")
    assert f"! {inside} belongs to a conda environment" in answer.out
    found = rows(here)["interpreter"]
    assert (found["state"], "conda" in found["told"]) == ("note", True)


@pytest.mark.usefixtures("one_trial")
def test_an_upgraded_interpreter_is_told(here: Here, client: Client) -> None:
    here.ok("init", "--yes")
    (path,) = (client.data / "installed").iterdir()
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "version": "3.8.1"}))
    for bytecode in (client.hook.parent / "__pycache__").iterdir():
        bytecode.unlink()
    found = rows(here)
    assert "it was Python 3.8.1" in found["upgraded"]["told"]
    assert (found["bytecode"]["state"], found["bytecode"]["fix"]) == (
        "note",
        "gsd-fsm init --scope local",
    )


def test_a_line_for_a_shell_is_not_run(here: Here, client: Client) -> None:
    hook = {"type": "command", "command": "python3 /x/gsd_fsm_hook.py"}
    client.write({"hooks": {"Stop": [{"hooks": [hook]}]}})
    found = rows(here, code=7)
    assert failed(found) == ["events", "command"]
    assert found["command"]["told"] == "not installed by you: not run"


def test_a_plugin_is_run_as_the_client_would(here: Here, tmp_path: Path, client: Client) -> None:
    directory = tmp_path / "a plugin"
    here.ok("init", "--plugin", str(directory), "--yes")
    assert rows(here, "--plugin", str(directory))["events"]["where"] == "plugin"
    here.refused(2, "doctor", "--plugin", str(here.root))
    client.write({"enabledPlugins": {"gsd-fsm@team": True, "other@team": True}}, "user")
    known = {"plugins": {"gsd-fsm@team": [{"installPath": str(directory)}]}}
    (client.home / ".claude" / "plugins").mkdir()
    (client.home / ".claude" / "plugins" / "installed_plugins.json").write_text(json.dumps(known))
    assert failed(rows(here)) == []
    (directory / "hooks" / "hooks.json").write_text("{")
    assert "hooks.json: line 1" in here.refused(3, "doctor").err


@pytest.mark.usefixtures("one_trial")
@pytest.mark.parametrize(
    ("switch", "code", "end"),
    [
        ("STOP", 0, "STOP switches every loop here off."),
        ("GSD_FSM_DISABLE", 0, "GSD_FSM_DISABLE=1 switches every loop off."),
        ("trust", 0, "the journal is not trusted: the hook passes it over."),
        ("disableAllHooks", 7, "disableAllHooks is set: the client runs no hook at all."),
    ],
)
def test_it_does_not_call_well_what_is_switched_off(
    here: Here, client: Client, switch: str, code: int, end: str
) -> None:
    here.start("goal", "g")
    here.ok("init", "--yes")
    env = {"GSD_FSM_DISABLE": "1"} if switch == "GSD_FSM_DISABLE" else {}
    if switch == "STOP":
        (here.gsd / "STOP").touch()
    elif switch == "trust":
        shutil.rmtree(state_directory())
    elif switch == "disableAllHooks":
        client.write({"disableAllHooks": True}, "user")
    answer = here.run("doctor", env=env)
    assert answer.code == code
    last = answer.out.splitlines()[-1]
    assert last.startswith("The hook works, but ")
    assert last.endswith(end)
