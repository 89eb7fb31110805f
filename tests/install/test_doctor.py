"""`doctor` runs what the settings say, and finds what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Here
from tests.install.conftest import Client, listing

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
        ("import sys; sys.exit(2)", "it left with exit code 2"),
        ("print('hello')", "it printed something"),
        ('print(\'{"decision": "block", "reason": "always"}\')', "it printed something"),
        ("import sys; sys.stdin.read()", "no end after 0.5 seconds"),
    ],
)
def test_a_hook_that_misbehaves_is_found(here: Here, client: Client, code: str, wrong: str) -> None:
    here.ok("init", "--yes")
    hook = client.hooks()[0]
    args = ["-I", "-S", "-c", code + " # gsd_fsm_hook", str(client.hook.parent), "x"]
    rewrite(client, {**hook, "args": args, "timeout": 0.5})
    found = rows(here, code=7)
    assert found["stdin stays open" if "read" in code else "a stop without a loop"]["told"] == wrong
    assert found["a live loop, odd letters in its path"]["state"] == "failed"
    assert found["command"]["fix"] == "gsd-fsm init --scope local"
    assert "timeout" in failed(found)


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
    assert "exit code" in found["a stop without a loop"]["told"]
    here.ok("init", "--yes")
    assert failed(rows(here)) == []


@pytest.mark.parametrize(
    ("python", "wrong"),
    [
        ("/no/such/python", "does not exist"),
        (r"C:\Users\me\AppData\Local\Microsoft\WindowsApps\python.exe", "Microsoft Store"),
    ],
)
def test_an_interpreter_that_is_gone_or_none_is_found(
    here: Here, client: Client, python: str, wrong: str
) -> None:
    here.ok("init", "--yes")
    rewrite(client, {"command": python})
    found = rows(here, code=7)
    assert wrong in found["interpreter"]["told"]
    assert "cannot be started" in found["a stop without a loop"]["told"]


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


def test_a_line_for_a_shell_is_not_what_this_version_writes(here: Here, client: Client) -> None:
    hook = {"type": "command", "command": "python3 /x/gsd_fsm_hook.py"}
    client.write({"hooks": {"Stop": [{"hooks": [hook]}]}})
    found = rows(here, code=7)
    assert failed(found) == ["events", "command", "timeout"]
    assert found["timeout"]["told"] == "not set"


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
