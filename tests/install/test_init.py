"""`init`: our hook is put into the settings, and nothing else is touched."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from gsd_fsm.documents.json_text import root
from gsd_fsm.install import installer
from gsd_fsm.install.hook_entries import CAP, CODE, EVENTS
from tests.install.conftest import SETTINGS, Client, listing
from tests.support.command_line import Here, git


def lines_of(raw: bytes) -> list[bytes]:
    return raw.splitlines(keepends=True)


def test_a_new_file_names_the_copy_of_the_hook_and_a_real_interpreter(
    here: Here, client: Client
) -> None:
    answer = here.ok("init", "--yes", "--json").json
    assert answer["scope"] == "local"
    assert answer["settings"] == str(client.files["local"])
    for hook in client.hooks():
        assert hook == {
            "type": "command",
            "command": answer["python"],
            "args": ["-I", "-S", "-c", CODE, str(client.hook.parent), "settings-local"],
            "timeout": 10,
        }
    assert len(client.hooks()) == 9
    assert not client.hook.is_relative_to(here.root)
    python = Path(answer["python"])
    assert python.is_absolute()
    assert not (python.parents[1] / "pyvenv.cfg").exists()
    assert client.hook.read_bytes() == installer.packaged_hook().read_bytes()
    assert not here.gsd.exists()


@pytest.mark.parametrize("scope", installer.SCOPES)
def test_each_scope_has_its_file_and_its_name(here: Here, client: Client, scope: str) -> None:
    here.ok("init", "--scope", scope, "--yes")
    assert {hook["args"][-1] for hook in client.hooks(scope)} == {f"settings-{scope}"}
    assert [name for name, path in client.files.items() if path.exists()] == [scope]


def test_the_directory_of_the_client_may_be_elsewhere(here: Here, tmp_path: Path) -> None:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere")}
    here.ok("init", "--scope", "user", "--yes", env=env)
    assert "gsd_fsm_hook" in (tmp_path / "elsewhere" / "settings.json").read_text()


def test_the_project_is_the_top_of_its_repository(repository: Here, client: Client) -> None:
    repository.where = repository.root / "deep" / "down"
    repository.where.mkdir(parents=True)
    repository.ok("init", "--yes")
    client.hooks("local")


def test_at_home_the_settings_of_the_user_are_meant(here: Here, client: Client) -> None:
    here.where = client.home
    here.ok("init", "--yes")
    client.hooks("user")
    here.refused(3, "init", "--scope", "project", "--yes")


def test_every_other_setting_keeps_its_bytes(here: Here, client: Client) -> None:
    path = client.write(SETTINGS)
    before = path.read_bytes()
    here.ok("init", "--yes")
    after = client.read()
    assert list(after) == list(SETTINGS)
    assert list(after["hooks"])[:2] == ["PreToolUse", "Stop"]
    assert after["hooks"]["Stop"][0] == SETTINGS["hooks"]["Stop"][0]  # type: ignore[index]
    kept = iter(lines_of(path.read_bytes()))
    # Every line of before is there, in order; a comma may follow what was the last one.
    for line in lines_of(before):
        assert any(new.replace(b",", b"") == line.replace(b",", b"") for new in kept), line


@pytest.mark.parametrize(
    "style",
    [
        ("", "\n", "  ", ""),
        ("\ufeff", "\r\n", "    ", "\r\n"),
        ("", "\n", "\t", "\n\n"),
        ("\ufeff", "\n", "", "\n"),
    ],
)
def test_the_style_of_a_file_is_kept(
    here: Here, client: Client, style: tuple[str, str, str, str]
) -> None:
    mark, newline, indent, end = style
    text = json.dumps(SETTINGS, indent=indent, ensure_ascii=False)
    path = client.write((mark + text.replace("\n", newline) + end).encode())
    here.ok("init", "--yes")
    written = path.read_bytes().decode()
    assert written.startswith(mark + "{" + newline + indent + '"zebra"')
    assert written.endswith("}" + end)
    assert written.count("\n") == written.count(newline)
    assert "é" in written
    client.hooks()


def test_a_second_run_changes_nothing(here: Here, client: Client) -> None:
    client.write(SETTINGS)
    here.ok("init", "--yes")
    before = listing(client.home) | listing(here.root)
    answer = here.ok("init")
    assert "Nothing to change" in answer.out
    assert here.ok("init", "--json").json["changed"] is False
    assert listing(client.home) | listing(here.root) == before


def test_an_older_entry_of_ours_is_replaced_and_twins_go(here: Here, client: Client) -> None:
    old = {"type": "command", "command": "/old/python", "args": ["/old/gsd_fsm_hook.py"]}
    line = {"type": "command", "command": "python3 ~/gsd_fsm_hook.py"}
    foreign = {"type": "command", "command": "echo hello"}
    client.write(
        {
            "hooks": {
                "Stop": [{"hooks": [foreign, old]}, {"hooks": [line]}],
                "PostToolUse": [{"matcher": "*", "hooks": [old]}],
                "SessionEnd": [{"hooks": [old, foreign]}],
            }
        }
    )
    here.ok("init", "--yes")
    hooks = client.read()["hooks"]
    assert "PostToolUse" not in hooks
    assert len(hooks["Stop"]) == 1
    assert hooks["Stop"][0]["hooks"][0] == foreign
    assert hooks["SessionEnd"][0]["hooks"][1] == foreign
    assert len(client.hooks()) == len(EVENTS)


def test_an_older_copy_of_the_hook_is_replaced(here: Here, client: Client) -> None:
    here.ok("init", "--yes")
    client.hook.write_text("def main(): pass\n")
    answer = here.refused(2, "init")
    assert "--yes" in answer.err
    here.ok("init", "--yes")
    assert client.hook.read_bytes() == installer.packaged_hook().read_bytes()


def test_another_interpreter_takes_the_place_of_the_old(
    here: Here, client: Client, tmp_path: Path
) -> None:
    here.ok("init", "--yes")
    base = client.hooks()[0]["command"]
    link = tmp_path / "my python"
    link.symlink_to(base)
    shim = tmp_path / "shim"
    shim.write_text(f'#!/bin/sh\nexec "{link}" "$@"\n')
    shim.chmod(0o755)
    here.ok("init", "--python", str(shim), "--yes")
    assert {hook["command"] for hook in client.hooks()} == {str(link)}


def test_a_hook_that_does_not_run_is_not_registered(
    here: Here, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "gsd_fsm_hook.py"
    broken.write_text("this is no Python\n")
    monkeypatch.setattr(installer, "packaged_hook", lambda: broken)
    assert "cannot run the hook: SyntaxError" in here.refused(6, "init", "--yes").err
    assert not client.files["local"].exists()


def test_nobody_asked_means_nothing_written(here: Here, client: Client) -> None:
    path = client.write({"a": 1})
    for arguments in (["init"], ["init", "--json"]):
        answer = here.refused(2, *arguments, stdin=b"y\n")
        assert "--yes" in answer.err
    assert path.read_text() == '{\n  "a": 1\n}\n'
    assert not client.data.exists()


def at_terminal(here: Here, typed: bytes, *args: str) -> tuple[int, str]:
    """Run the command at a terminal where somebody types this."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gsd_fsm", *args],
        cwd=here.root,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, typed)
    shown = b""
    try:
        while part := os.read(ours, 65_536):
            shown += part
    except OSError:
        pass  # the other end is closed
    finally:
        os.close(ours)
    return process.wait(), shown.decode()


def test_at_a_terminal_the_change_is_shown_and_asked_for(here: Here, client: Client) -> None:
    path = client.write({"a": 1, "env": {"API_KEY": "sk-ant-api03-" + "x1Y2" * 20}})
    before = path.read_bytes()
    code, shown = at_terminal(here, b"n\n", "init")
    assert (code, path.read_bytes()) == (130, before)
    assert "Nothing was changed." in shown
    assert '+    "Stop": [' in shown
    assert "x1Y2x1Y2" not in shown
    assert not client.data.exists()
    code, shown = at_terminal(here, b"y\n", "init")
    assert code == 0
    client.hooks()


def test_the_cap_of_the_client_is_raised_on_request_only(here: Here, client: Client) -> None:
    client.write({"env": {"A": "b"}})
    assert "--raise-cap" in here.ok("init", "--yes").out
    assert client.read()["env"] == {"A": "b"}
    here.ok("init", "--raise-cap", "30", "--yes")
    assert client.read()["env"] == {"A": "b", CAP: "30"}
    assert "--raise-cap" not in here.ok("init", "--yes").out
    here.refused(2, "init", "--raise-cap", "8", "--yes")
    here.refused(2, "init", "--plugin", "x", "--raise-cap", "9", "--yes")


def test_what_switches_hooks_off_or_doubles_them_is_told(here: Here, client: Client) -> None:
    client.write({"disableAllHooks": True, "enabledPlugins": {"gsd-fsm@team": True}}, "user")
    here.ok("init", "--scope", "project", "--yes")
    notes = " ".join(here.ok("init", "--yes", "--json").json["notes"])
    assert "disableAllHooks is set in " + str(client.files["user"]) in notes
    assert "also installed: project, plugin" in notes


def test_a_file_that_git_would_take_is_told(repository: Here) -> None:
    assert "keep it out of commits" in repository.ok("init", "--yes").out
    (repository.root / ".gitignore").write_text("settings.local.json\n")
    git(repository.root, "add", ".gitignore")
    assert "commits" not in repository.ok("init", "--yes").out


def test_the_real_command_installs_what_the_client_can_start(here: Here, client: Client) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gsd_fsm", "init", "--yes", "--json"],
        cwd=here.root,
        capture_output=True,
        check=True,
    )
    assert root(done.stdout.decode()).value["changed"] is True
    compiled = [
        path.name.split("_")[3:4] for path in (client.hook.parent / "__pycache__").iterdir()
    ]
    assert sorted(compiled) == [[], ["engine"], ["rare"]]
    hook = client.hooks()[0]
    payload = {"hook_event_name": "Stop", "session_id": "s", "cwd": str(here.root)}
    ran = subprocess.run(
        [hook["command"], *hook["args"]],
        input=json.dumps(payload).encode(),
        cwd=here.root,
        capture_output=True,
        check=True,
    )
    assert (ran.stdout, ran.stderr) == (b"", b"")
