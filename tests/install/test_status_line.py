"""`init --status-line`: the loop below the client's prompt, on request only and beside nobody else's."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.install import doctor, installer, status_line
from gsd_fsm.install.environment import Row
from gsd_fsm.install.status_line import has_foreign_status_line, our_status_line, with_status_line
from tests.install.conftest import SETTINGS, Client, listing, program
from tests.install.test_doctor import rows
from tests.support.command_line import A, Here

FOREIGN = {"type": "command", "command": "~/.claude/my line.sh", "padding": 0}


def test_without_the_option_there_is_none(here: Here, client: Client) -> None:
    here.ok("init", "--yes")
    assert "statusLine" not in client.read()


def test_the_command_needs_no_path_and_works_in_a_shell(here: Here, client: Client) -> None:
    here.ok("init", "--status-line", "--yes")
    entry = client.read()["statusLine"]
    assert entry == {"type": "command", "command": status_line.status_line()}
    words = shlex.split(entry["command"])
    assert words[:2] == [sys.executable, "-I"]
    here.start("goal", "g", "--criterion", "c", env=A)
    # What lies in the project must not be taken for a part of us.
    (here.root / "click.py").write_text("raise SystemExit('hijacked')")
    (here.root / "gsd_fsm").mkdir()
    done = subprocess.run(
        ["/bin/sh", "-c", entry["command"]],
        input=json.dumps({"session_id": "session-a", "cwd": str(here.root)}).encode(),
        env={"HOME": os.environ["HOME"], "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]},
        cwd=here.root,
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == "gsd-fsm goal ▸ 0/20 · 0/1 criteria · running\n"
    assert done.stderr == b""


@pytest.mark.parametrize("scope", installer.SCOPES)
def test_it_goes_into_the_same_file_and_out_of_it_again(
    here: Here, client: Client, scope: str
) -> None:
    raw = client.write(SETTINGS, scope).read_bytes()
    here.ok("init", "--scope", scope, "--status-line", "--yes")
    assert our_status_line(client.read(scope))
    assert [name for name, path in client.files.items() if path.exists()] == [scope]
    assert list(client.read(scope)) == [*SETTINGS, "statusLine"]
    here.ok("uninstall", "--yes")
    assert client.files[scope].read_bytes() == raw


def test_a_second_run_changes_nothing_and_a_run_without_the_option_keeps_it(
    here: Here, client: Client
) -> None:
    here.ok("init", "--status-line", "--yes")
    before = listing(client.home) | listing(here.root)
    assert "Nothing to change" in here.ok("init", "--status-line").out
    assert "Nothing to change" in here.ok("init").out
    assert listing(client.home) | listing(here.root) == before


def test_it_is_added_to_an_installation_and_leaves_with_it(here: Here, client: Client) -> None:
    before = listing(client.home) | listing(here.root)
    here.ok("init", "--yes")
    here.refused(2, "init", "--status-line")
    assert "statusLine" not in client.read()
    told = here.ok("init", "--status-line", "--yes").out
    assert f"Adds the status line to {client.files['local']}; nothing else changes." in told
    assert '+  "statusLine": {' in told
    here.ok("uninstall", "--yes")
    assert listing(client.home) | listing(here.root) == before


def test_the_change_is_summed_up(here: Here, client: Client) -> None:
    end = f"to {client.files['local']}; nothing else changes."
    args = ("init", "--raise-cap", "30", "--status-line", "--yes")
    told = here.ok(*args).out
    first = "Adds one command for 9 events, raises the client's cap to 30 and adds the status line"
    assert f"{first} {end}" in told


@pytest.mark.parametrize("foreign", [FOREIGN, {"type": "command"}, "x", [], {}, 0])
def test_another_program_s_status_line_stays(here: Here, client: Client, foreign: Any) -> None:
    client.write({"statusLine": foreign, "z": 1})
    told = here.ok("init", "--status-line", "--yes").out
    assert f"! {client.files['local']} has a status line already" in told
    assert "gsd-fsm statusline" in told
    assert client.read()["statusLine"] == foreign
    client.hooks()
    client.write({**client.read(), "later": 1})
    here.ok("uninstall", "--yes")
    assert client.read() == {"statusLine": foreign, "z": 1, "later": 1}


def test_a_status_line_of_the_user_is_not_hidden_by_ours(here: Here, client: Client) -> None:
    client.write({"statusLine": FOREIGN}, "user")
    (note,) = here.ok("init", "--status-line", "--yes", "--json").json["notes"]
    assert note.startswith(f"{client.files['user']} has a status line already")
    assert "statusLine" not in client.read("local")


def test_what_others_wrote_since_stays_without_it(here: Here, client: Client) -> None:
    here.ok("init", "--status-line", "--yes")
    document = client.read()
    client.write({**document, "model": "opus"})
    here.ok("uninstall", "--yes")
    assert client.read() == {"model": "opus"}


def test_it_is_taken_out_where_only_the_hooks_were_removed_by_hand(
    here: Here, client: Client
) -> None:
    here.ok("init", "--status-line", "--yes")
    document = client.read()
    del document["hooks"]
    client.write({**document, "model": "opus"})
    here.ok("uninstall", "--yes")
    assert client.read() == {"model": "opus"}


def test_an_older_one_of_ours_is_renewed_and_keeps_its_options(here: Here, client: Client) -> None:
    ours = shlex.split(status_line.status_line())
    old = shlex.join(["/old venv/bin/python", *ours[1:4], "/old/lib", "statusline", "--color"])
    client.write({"statusLine": {"type": "command", "command": old, "padding": 2}})
    told = here.ok("init", "--status-line", "--yes").out
    assert "and renews the status line" in told
    assert client.read()["statusLine"] == {
        "type": "command",
        "command": f"{status_line.status_line()} --color",
        "padding": 2,
    }


@pytest.mark.parametrize(
    "command",
    [
        "gsd-fsm statusline",
        "{} ; echo more",
        "{} | tee /tmp/x",
        "{} $(touch x)",
        "{} --other",
        "A=b {}",
        "'unclosed",
        "",
        7,
        None,
    ],
)
def test_what_is_more_than_our_command_is_not_ours(command: Any) -> None:
    line = command.format(status_line.status_line()) if isinstance(command, str) else command
    document = {"statusLine": {"type": "command", "command": line}}
    assert our_status_line(document) == ""
    assert has_foreign_status_line(document)
    text = json.dumps(document)
    assert with_status_line(text) == text


def test_a_path_with_odd_letters_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = tmp_path / "mit Leer'zeichen $HOME" / "python"
    odd.parent.mkdir()
    odd.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(odd))
    line = status_line.status_line()
    assert our_status_line({"statusLine": {"command": line}}) == line
    done = subprocess.run(
        ["/bin/sh", "-c", f'set -- {line}; printf \'%s\\n\' "$1" "$#"'],
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == f"{odd}\n6\n"


def test_one_that_does_not_run_is_not_registered(
    here: Here, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    told = here.refused(6, "init", "--status-line", "--yes").err
    assert "the status line cannot be run" in told
    assert not client.files["local"].exists()


def test_a_plugin_has_none(here: Here) -> None:
    told = here.refused(2, "init", "--plugin", "x", "--status-line", "--yes").err
    assert "--status-line has no effect in a plugin" in told


@pytest.mark.usefixtures("one_trial")
def test_the_doctor_runs_it_once_and_says_if_there_is_none(here: Here, client: Client) -> None:
    here.ok("init", "--yes")
    told = rows(here)["status line"]
    assert (told["where"], told["state"], told["ms"]) == ("here", "ok", None)
    assert "init --status-line" in told["told"]
    here.ok("init", "--status-line", "--yes")
    told = rows(here)["status line"]
    assert (told["where"], told["state"], told["told"]) == ("local settings", "ok", "")
    assert told["ms"] is not None


def examined(here: Here) -> Row:
    """What the doctor says of the status line here, without its trials of the hook."""
    sources = [s for s in doctor._sources(str(here.root), None) if "statusLine" in s.document]
    (row,) = doctor._status_line(sources[0])
    return row


def test_the_doctor_runs_nobody_else_s(here: Here, client: Client, tmp_path: Path) -> None:
    here.ok("init", "--status-line", "--yes")
    mark = tmp_path / "mark"
    script = program(tmp_path / "evil", f"#!/bin/sh\ntouch {shlex.quote(str(mark))}\n")
    words = shlex.split(status_line.status_line())
    document = client.read()
    document["statusLine"]["command"] = shlex.join([str(script), *words[1:]])
    client.write(document)
    told = examined(here)
    assert (told.state, told.fix) == ("failed", "gsd-fsm init --scope local --status-line")
    document["statusLine"] = {"type": "command", "command": str(script)}
    client.write(document)
    assert examined(here).told == "of another program: not run"
    assert not mark.exists()


def test_the_doctor_finds_one_whose_python_is_gone(
    here: Here, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = program(tmp_path / "my python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(python))
        here.ok("init", "--status-line", "--yes")
    assert examined(here).state == "ok"
    python.unlink()
    told = examined(here)
    assert (told.state, told.told) == ("failed", "it does not show a live loop")
    assert told.fix == "gsd-fsm init --scope local --status-line"
