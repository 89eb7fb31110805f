"""What somebody else has put into settings is neither run nor taken for ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.install.backup import fingerprint
from gsd_fsm.install.hook_entries import CODE, EVENTS, ours
from gsd_fsm.install.installer import packaged_hook
from tests.install.conftest import Client, program
from tests.support.command_line import Here

OLD_CODE = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); import gsd_fsm_hook; gsd_fsm_hook.main()"
)
NOT_RUN = "not installed by you: not run"


def everywhere(hook: dict[str, Any]) -> dict[str, Any]:
    return {"hooks": {event: [{"hooks": [hook]}] for event in EVENTS}}


def spy(tmp_path: Path) -> tuple[Path, Path]:
    """A program that leaves a mark when it is run, and the mark."""
    mark = tmp_path / "mark"
    return program(tmp_path / "bin" / "spy", f"#!/bin/sh\necho run >> '{mark}'\n"), mark


@pytest.mark.usefixtures("one_trial")
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    "args", [["-I", "-S", "-c", CODE, "/x", "settings-project"], ["/x/gsd_fsm_hook.py"]]
)
def test_the_doctor_runs_nothing_that_came_with_a_clone(
    here: Here, client: Client, tmp_path: Path, args: list[str], known: bool
) -> None:
    command, mark = spy(tmp_path)
    if known:
        here.ok("init", "--scope", "project", "--yes")
    client.write(everywhere({"type": "command", "command": str(command), "args": args}), "project")
    answer = here.run("doctor", "--json")
    assert answer.code == 7
    (row,) = (row for row in answer.json["rows"] if row["name"] == "command")
    assert (row["told"], row["fix"]) == (NOT_RUN, "gsd-fsm init --scope project")
    assert all(row["ms"] is None for row in answer.json["rows"])
    assert not mark.exists()
    here.ok("init", "--scope", "project", "--yes")
    here.ok("doctor")


def test_a_word_in_a_comment_does_not_make_a_command_ours(here: Here, client: Client) -> None:
    hook = {"type": "command", "command": "/bin/sh", "args": ["-c", "true; # gsd_fsm_hook"]}
    client.write(everywhere(hook), "project")
    here.refused(3, "doctor")


def test_an_older_entry_that_init_wrote_is_still_run(here: Here, client: Client) -> None:
    here.ok("init", "--yes")
    (record,) = (client.data / "installed").iterdir()
    document = client.read()
    for groups in document["hooks"].values():
        groups[0]["hooks"][0]["args"][3] = OLD_CODE
    path = client.write(document)
    facts = json.loads(record.read_text())
    record.write_text(json.dumps({**facts, "written": fingerprint(path.read_bytes())}))
    rows = {row["name"]: row for row in here.run("doctor", "--json").json["rows"]}
    assert rows["command"]["told"] == "not as this version writes it"
    assert rows["a live loop, odd letters in its path"]["state"] == "ok"


@pytest.mark.parametrize("changed", ["the hook", "the command", "nothing"])
def test_a_plugin_that_was_found_is_run_only_if_it_is_ours(
    here: Here, client: Client, tmp_path: Path, changed: str
) -> None:
    directory, mark = tmp_path / "plugin", tmp_path / "mark"
    here.ok("init", "--plugin", str(directory), "--yes")
    hook = directory / "hooks" / packaged_hook().name
    hooks = directory / "hooks" / "hooks.json"
    evil = f"open({str(mark)!r}, 'w').close()"
    if changed == "the hook":
        hook.write_text(f"{evil}\ndef main(): pass\n")
    elif changed == "the command":
        hooks.write_text(hooks.read_text().replace("gsd_fsm_hook.main()", evil))
    client.write({"enabledPlugins": {"gsd-fsm@team": True}}, "user")
    known = {"plugins": {"gsd-fsm@team": [{"installPath": str(directory)}]}}
    (client.home / ".claude" / "plugins").mkdir()
    (client.home / ".claude" / "plugins" / "installed_plugins.json").write_text(json.dumps(known))
    answer = here.run("doctor", "--json")
    told = [row["told"] for row in answer.json["rows"]]
    assert (answer.code, NOT_RUN in told) == ((0, False) if changed == "nothing" else (7, True))
    assert not mark.exists()
    here.run("doctor", "--plugin", str(directory))
    assert mark.exists() is (changed != "nothing")


@pytest.mark.parametrize(
    ("hook", "is_ours"),
    [
        ({"command": "/home/me/bin/log_gsd_fsm_hook_calls.sh"}, False),
        ({"command": "python3 /x/not_gsd_fsm_hook.py"}, False),
        ({"command": "python3 /x/gsd_fsm_hook.py.old"}, False),
        ({"command": "/bin/sh", "args": ["-c", "cat /x/gsd_fsm_hook.py | wc"]}, False),
        ({"command": "python3", "args": ["-c", "import gsd_fsm_hook"]}, False),
        ({"command": "python3", "args": ["-c", f"import os; {OLD_CODE}"]}, False),
        ({"command": "python3", "args": ["-c", CODE, "/x", "y"]}, True),
        ({"command": "python3", "args": ["-c", OLD_CODE, "/x", "y"]}, True),
        ({"command": "python3", "args": ["/x y/gsd_fsm_hook.py"]}, True),
        ({"command": 'python3 "/x y/gsd_fsm_hook.py"'}, True),
        ({"command": r"py C:\x\gsd_fsm_hook.py"}, True),
        ({"command": 5, "args": [None]}, False),
    ],
)
def test_ours_is_what_starts_our_file(hook: dict[str, Any], is_ours: bool) -> None:
    assert bool(ours(everywhere({"type": "command", **hook}))) is is_ours


def test_a_script_with_a_like_name_survives_init_and_uninstall(here: Here, client: Client) -> None:
    like = {"type": "command", "command": "/home/me/bin/log_gsd_fsm_hook_calls.sh"}
    path = client.write({"hooks": {"Stop": [{"hooks": [like]}]}})
    before = path.read_bytes()
    here.ok("init", "--yes")
    assert client.read()["hooks"]["Stop"][0] == {"hooks": [like]}
    client.write({**client.read(), "more": 1})
    answer = here.ok("uninstall", "--yes")
    assert "Still installed" not in answer.out
    assert client.read() == {**json.loads(before), "more": 1}
    assert not client.data.exists()
