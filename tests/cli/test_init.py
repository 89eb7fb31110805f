"""`init` shows the change, asks before it writes, and names what a newcomer needs to know."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys

from tests.support.client_settings import Client, _own_client, client, compiled, python
from tests.support.command_line import Here, git

__all__ = ["_own_client", "client", "compiled", "python"]


def at_terminal(here: Here, typed: bytes, *args: str) -> tuple[int, str]:
    """Run the command at a terminal where the user types this."""
    ours, theirs = pty.openpty()
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    process = subprocess.Popen([sys.executable, "-m", "gsd_fsm", *args], cwd=here.root, **streams)
    os.close(theirs)
    os.write(ours, typed)
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while part := os.read(ours, 65_536):
            shown += part
    os.close(ours)
    return process.wait(), shown.decode()


def test_init_at_a_terminal_shows_the_change_and_asks(here: Here, client: Client) -> None:
    path = client.write({"a": 1, "env": {"API_KEY": "sk-ant-api03-" + "x1Y2" * 20}})
    before = path.read_bytes()
    code, shown = at_terminal(here, b"n\n", "init")
    assert (code, path.read_bytes()) == (130, before)
    assert "Nothing was changed." in shown
    assert '+    "Stop": [' in shown
    assert "x1Y2x1Y2" not in shown
    assert not client.data.exists()
    lines = shown.splitlines()
    (question,) = (n for n, line in enumerate(lines) if line.startswith("Write this?"))
    assert lines[question - 1] == f"Adds one hook for 9 events in {path}; nothing else changes."
    code, shown = at_terminal(here, b"y\n", "init")
    assert code == 0
    client.hooks()


def test_init_without_a_terminal_writes_nothing(here: Here, client: Client) -> None:
    path = client.write({"a": 1})
    for arguments in (["init"], ["init", "--json"]):
        error = here.refused(2, *arguments, stdin=b"y\n").err
        assert "confirmation required, but there is no terminal" in error
        assert "Add --yes." in error
    assert path.read_text() == '{\n  "a": 1\n}\n'
    assert not client.data.exists()


def test_init_and_uninstall_summarise_each_change_in_one_line(here: Here, client: Client) -> None:
    end = f" in {client.files['local']}; nothing else changes."
    full_init = ("init", "--raise-cap", "30", "--status-line", "--yes")
    shown = here.ok(*full_init).out
    adds = "Adds one hook for 9 events, sets the client's cap to 30 and adds the status line"
    assert adds + end in shown
    assert "restart them, or type /clear" in shown
    again = here.ok(*full_init).out
    assert "nothing else changes" not in again
    assert "restart" not in again
    client.write({**client.read(), "more": 1})
    removes = "Removes one hook for 9 events, sets the client's cap to its default"
    assert f"{removes} and removes the status line{end}" in here.ok("uninstall", "--yes").out
    here.ok("init", "--yes")
    shown = here.ok("init", "--raise-cap", "30", "--yes").out
    assert f"Sets the client's cap to 30{end}" in shown
    document = client.read()
    document["hooks"]["Stop"][0]["hooks"][0]["timeout"] = 9
    client.write(document)
    shown = here.ok("init", "--raise-cap", "40", "--yes").out
    assert f"Updates one hook for 9 events and sets the client's cap to 40{end}" in shown


def test_init_offers_permission_rules_and_adds_them_only_if_asked(
    here: Here, client: Client
) -> None:
    offer = "run: gsd-fsm init --allow"
    assert offer in here.ok("init", "--yes").out
    assert "permissions" not in client.read()
    shown = here.ok("init", "--allow", "--yes").out
    assert '+      "Bash(gsd-fsm next:*)",' in shown
    count = len(client.read()["permissions"]["allow"])
    assert f"Adds {count} permission rules in {client.files['local']}" in shown
    assert offer not in shown
    assert offer not in here.ok("init", "--yes").out
    assert len(client.read()["permissions"]["allow"]) == count
    client.write({**client.read(), "more": 1})
    assert f"removes {count} permission rules" in here.ok("uninstall", "--yes").out


def test_init_warns_of_a_rule_that_allows_everything(here: Here, client: Client) -> None:
    client.write({"permissions": {"allow": ["Bash(gsd-fsm:*)"]}}, "user")
    shown = here.ok("init", "--yes").out
    assert "allows Bash(gsd-fsm:*): agents can run any command" in shown
    assert "To allow those" not in shown
    client.write({"permissions": {"allow": 5}}, "user")
    assert "init --allow" in here.ok("init", "--yes").out
    refused = here.refused(2, "init", "--allow", "--scope", "user", "--yes").err
    assert f"{client.files['user']}: line 3, column 14: permissions.allow is not a list" in refused


def test_init_notes_what_keeps_hook_or_agents_from_working(here: Here, client: Client) -> None:
    assert here.ok("init", "--scope", "project", "--yes", "--json").json["notes"] == []
    client.write({"disableAllHooks": True, "enabledPlugins": {"gsd-fsm@team": True}}, "user")
    here.patch.setenv("PATH", str(here.root))
    notes = " ".join(here.ok("init", "--yes", "--json").json["notes"])
    assert "disableAllHooks is set in " + str(client.files["user"]) in notes
    assert "also installed: project, plugin" in notes
    assert "not on the PATH" in notes
    assert "pipx install" in notes


def test_init_notes_settings_that_git_would_commit(repository: Here) -> None:
    assert "do not commit it" in repository.ok("init", "--yes").out
    (repository.root / ".gitignore").write_text("settings.local.json\n")
    git(repository.root, "add", ".gitignore")
    assert "commit" not in repository.ok("init", "--yes").out


def test_init_refuses_an_option_that_has_no_effect_on_a_plugin(here: Here) -> None:
    for option, *value in (
        ["--scope", "user"],
        ["--raise-cap", "9"],
        ["--status-line"],
        ["--allow"],
    ):
        error = here.refused(2, "init", "--plugin", "x", option, *value, "--yes").err
        assert f"{option} has no effect on a plugin" in error
    assert not (here.root / "x").exists()
