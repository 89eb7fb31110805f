"""`init --status-line` shows the loop below the client's prompt, and replaces no other status line."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from typing import Any

import pytest

from gsd_fsm.cli.display.changes import short_path
from gsd_fsm.install import installer, status_line
from gsd_fsm.install.status_line import has_foreign_status_line, our_status_line
from tests.support.client_settings import SETTINGS, Client
from tests.support.command_line import A, Here

FOREIGN = {"type": "command", "command": "~/.claude/my line.sh", "padding": 0}


def test_status_line_needs_no_path_and_no_file_of_the_project(here: Here, client: Client) -> None:
    here.ok("init", "--status-line", "--yes")
    entry = client.read()["statusLine"]
    assert entry == {"type": "command", "command": status_line.command()}
    assert shlex.split(entry["command"])[:2] == [sys.executable, "-I"]
    here.start("goal", "g", "--criterion", "c", env=A)
    (here.root / "click.py").write_text("raise SystemExit('hijacked')")
    (here.root / "gsd_fsm").mkdir()
    signal = json.dumps({"session_id": "session-a", "cwd": str(here.root)}).encode()
    how = {"env": {name: os.environ[name] for name in ("HOME", "XDG_STATE_HOME")}, "cwd": here.root}
    shell = ["/bin/sh", "-c", entry["command"]]
    done = subprocess.run(shell, input=signal, **how, capture_output=True, check=True)
    assert done.stdout.decode() == "gsd-fsm goal ▸ 0/20 · 0/1 criteria · running\n"
    assert done.stderr == b""


@pytest.mark.parametrize("scope", installer.SCOPES)
def test_init_changes_the_file_of_its_scope_only(here: Here, client: Client, scope: str) -> None:
    raw = client.write(SETTINGS, scope).read_bytes()
    here.ok("init", "--scope", scope, "--yes")
    assert "statusLine" not in client.read(scope)
    assert {hook["args"][-1] for hook in client.hooks(scope)} == {f"settings-{scope}"}
    here.refused(2, "init", "--scope", scope, "--status-line")
    output = here.ok("init", "--scope", scope, "--status-line", "--diff", "--yes").out
    name = short_path(client.files[scope], str(here.root))
    assert f"Adds the status line in {name}" in output
    assert '+  "statusLine": {' in output
    assert our_status_line(client.read(scope))
    assert [name for name, path in client.files.items() if path.exists()] == [scope]
    assert list(client.read(scope)) == [*SETTINGS, "statusLine"]
    here.ok("uninstall", "--yes")
    assert client.files[scope].read_bytes() == raw


@pytest.mark.parametrize("foreign", [FOREIGN, "x", {}])
def test_status_line_of_another_program_stays(here: Here, client: Client, foreign: Any) -> None:
    client.write({"statusLine": foreign, "z": 1})
    output = here.ok("init", "--status-line", "--yes").out
    assert f"! {client.files['local']} already has a status line" in output
    assert "gsd-fsm statusline" in output
    assert client.read()["statusLine"] == foreign
    client.hooks()
    client.write({**client.read(), "later": 1})
    here.ok("uninstall", "--yes")
    assert client.read() == {"statusLine": foreign, "z": 1, "later": 1}


def test_status_line_of_the_user_is_not_hidden_by_ours(here: Here, client: Client) -> None:
    client.write({"statusLine": FOREIGN}, "user")
    (note,) = here.ok("init", "--status-line", "--yes", "--json").json["notes"]
    assert note.startswith(f"{client.files['user']} already has a status line")
    assert "statusLine" not in client.read("local")


def test_older_status_line_of_ours_is_updated_with_its_options(here: Here, client: Client) -> None:
    ours = shlex.split(status_line.command())
    old = shlex.join(["/old venv/bin/python", *ours[1:4], "/old/lib", "statusline", "--color"])
    client.write({"statusLine": {"type": "command", "command": old, "padding": 2}})
    assert "and updates the status line" in here.ok("init", "--status-line", "--yes").out
    new = f"{status_line.command()} --color"
    assert client.read()["statusLine"] == {"type": "command", "command": new, "padding": 2}


def test_status_line_that_does_more_than_ours_is_foreign() -> None:
    for command in (
        *("gsd-fsm statusline", "{} ; echo more", "{} $(touch x)", "{} --other", "A=b {}"),
        *("'unclosed", "", 7),
    ):
        line = command.format(status_line.command()) if isinstance(command, str) else command
        text = json.dumps({"statusLine": {"type": "command", "command": line}})
        assert our_status_line(json.loads(text)) == ""
        assert has_foreign_status_line(json.loads(text))
        assert status_line.add(text) == text


def test_status_line_quotes_a_path_with_special_characters(here: Here) -> None:
    odd = here.root / "mit Leer'zeichen $HOME" / "python"
    odd.parent.mkdir()
    odd.symlink_to(sys.executable)
    here.patch.setattr(sys, "executable", str(odd))
    line = status_line.command()
    assert our_status_line({"statusLine": {"command": line}}) == line
    script = f'set -- {line}; printf \'%s\\n\' "$1" "$#"'
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode() == f"{odd}\n6\n"


def test_status_line_that_cannot_run_is_not_registered(here: Here, client: Client) -> None:
    here.patch.setattr(sys, "executable", "/bin/false")
    refused = here.refused(6, "init", "--status-line", "--yes").err
    assert "the status line cannot be run: exit code 1" in refused
    assert not client.files["local"].exists()
