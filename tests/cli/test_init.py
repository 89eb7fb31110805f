"""`init` shows the change, asks before it writes, and names what a newcomer needs to know."""

from __future__ import annotations

import sys

import pytest

from gsd_fsm.install.permissions import rules
from tests.support.client_settings import Client, _own_client, client, compiled, listing, python
from tests.support.command_line import Here
from tests.support.repositories import git
from tests.support.terminal import at_terminal

__all__ = ["_own_client", "client", "compiled", "python"]


def init_at_terminal(here: Here, typed: bytes, *args: str) -> tuple[int, str]:
    return at_terminal([sys.executable, "-m", "gsd_fsm", "init", *args], typed, here.root)


def test_init_at_a_terminal_shows_the_change_and_asks(here: Here, client: Client) -> None:
    path = client.write({"a": 1, "env": {"API_KEY": "sk-ant-api03-" + "x1Y2" * 20}})
    before = path.read_bytes()
    code, shown = init_at_terminal(here, b"n\nn\n", "--diff")
    assert (code, path.read_bytes()) == (130, before)
    assert "Nothing was changed." in shown
    assert '+    "Stop": [' in shown
    assert "x1Y2x1Y2" not in shown
    assert shown.count("gsd_fsm_hook.py (") == 1
    assert not client.data.exists()
    code, shown = init_at_terminal(here, b"n\nn\n")
    offered, *lines = [line for line in shown.splitlines() if line[:1].isupper()]
    assert code == 130
    assert offered.startswith("Let agents run the gsd-fsm commands")
    assert offered.endswith("Adds one hook for 9 events in .claude/settings.local.json")
    assert lines[0].startswith("Writes ~/.local/share/gsd-fsm/hook/gsd_fsm_hook.py (")
    assert lines[1:] == ["Write this? (--diff shows it) [y/N]: Nothing was changed."]
    code, shown = init_at_terminal(here, b"n\ny\n")
    assert code == 0
    client.hooks()
    assert "permissions" not in client.read()


@pytest.mark.parametrize("typed", [b"", b"y\n"])
def test_init_whose_questions_are_not_answered_changes_nothing(
    here: Here, client: Client, typed: bytes
) -> None:
    before = listing(here.root)
    code, shown = init_at_terminal(here, typed)
    assert (code, shown.splitlines()[-1]) == (130, "Nothing was changed.")
    assert listing(here.root) == before
    assert not client.data.exists()


@pytest.mark.parametrize("installed", [False, True])
def test_init_at_a_terminal_offers_permission_rules_once(
    here: Here, client: Client, installed: bool
) -> None:
    if installed:
        here.ok("init", "--yes")
    code, shown = init_at_terminal(here, b"y\ny\n")
    assert code == 0
    assert "Let agents run the gsd-fsm commands that loops name without asking you?" in shown
    assert shown.index("you?") < shown.index("permission rules in") < shown.index("Write this?")
    assert {*rules()} <= {*client.read()["permissions"]["allow"]}
    assert "Let agents run" not in init_at_terminal(here, b"")[1]
    here.ok("uninstall", "--yes")
    assert not client.files["local"].exists()


def test_init_prints_at_most_fifteen_lines(repository: Here, client: Client) -> None:
    repository.configure(views=["state", "progress"])
    client.write({"disableAllHooks": True, "permissions": {"allow": ["Bash(gsd-fsm:*)"]}}, "user")
    client.write({"statusLine": {"type": "command", "command": "mine"}}, "project")
    client.write({"enabledPlugins": {"gsd-fsm@team": True}})
    repository.patch.setenv("PATH", "/usr/bin:/bin")
    every = ["--raise-cap", "30", "--status-line", "--allow", "--enable-hooks"]
    for arguments in ([], every, ["--scope", "user"], [], ["--plugin", "a plugin"]):
        code, shown = init_at_terminal(repository, b"y\ny\n", *arguments)
        lines = shown.replace("y\r\ny\r\n", "", 1).splitlines()
        assert (code, len(lines) <= 15) == (0, True), shown
    assert len(repository.ok("uninstall", "--all", "--yes").out.splitlines()) <= 15


def test_init_without_a_terminal_writes_nothing(here: Here, client: Client) -> None:
    path = client.write({"a": 1})
    for arguments in (["init"], ["init", "--json"]):
        error = here.refused(2, *arguments, stdin=b"y\n").err
        assert "confirmation required, but there is no terminal" in error
        assert "Add --yes." in error
    assert path.read_text() == '{\n  "a": 1\n}\n'
    assert not client.data.exists()


def test_init_and_uninstall_summarise_each_change_in_one_line(here: Here, client: Client) -> None:
    end = " in .claude/settings.local.json"
    full_init = ("init", "--raise-cap", "30", "--status-line", "--yes")
    shown = here.ok(*full_init).out
    adds = "Adds one hook for 9 events, sets the client's cap to 30 and adds the status line"
    assert adds + end in shown
    assert "restart them, or type /clear" in shown
    again = here.ok(*full_init).out
    assert "one hook" not in again
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
    shown = here.ok("init", "--allow", "--diff", "--yes").out
    assert '+      "Bash(gsd-fsm next:*)",' in shown
    count = len(client.read()["permissions"]["allow"])
    assert f"Adds {count} permission rules in .claude/settings.local.json" in shown
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
    assert "~/.claude/settings.json sets disableAllHooks" in notes
    assert "also installed: project, plugin" in notes
    assert "not on the PATH" in notes
    assert "pipx install" in notes


def test_init_notes_settings_that_git_would_commit(repository: Here) -> None:
    assert "commit" not in repository.ok("init", "--yes").out
    assert "do not commit it" in repository.ok("init", "--scope", "project", "--yes").out
    (repository.root / ".gitignore").write_text("settings.json\n")
    git(repository.root, "add", ".gitignore")
    assert "commit" not in repository.ok("init", "--scope", "project", "--yes").out


def test_init_refuses_an_option_that_has_no_effect_on_a_plugin(here: Here) -> None:
    for option, *value in (
        ["--scope", "user"],
        ["--raise-cap", "9"],
        ["--status-line"],
        ["--allow"],
        ["--enable-hooks"],
    ):
        error = here.refused(2, "init", "--plugin", "x", option, *value, "--yes").err
        assert f"{option} has no effect on a plugin" in error
    assert not (here.root / "x").exists()


def test_init_refuses_a_cap_that_raises_nothing(here: Here, client: Client) -> None:
    error = here.refused(2, "init", "--raise-cap", "8", "--yes").err
    assert "--raise-cap 8 does not raise the client's default of 8" in error
    here.ok("init", "--raise-cap", "0", "--yes")
    assert client.read()["env"] == {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0"}
    here.ok("uninstall", "--yes")
    assert not client.files["local"].exists()


def test_init_with_enable_hooks_removes_the_switch_from_all_settings(
    here: Here, client: Client
) -> None:
    client.write({"disableAllHooks": True, "a": 1}, "user")
    assert "init --enable-hooks" in here.ok("init", "--yes").out
    assert client.read("user") == {"disableAllHooks": True, "a": 1}
    shown = here.ok("init", "--enable-hooks", "--yes").out
    assert "Removes disableAllHooks in ~/.claude/settings.json" in shown
    assert client.read("user") == {"a": 1}
