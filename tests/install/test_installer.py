"""`init` adds the hook to settings of any kind and changes nothing else, or refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gsd_fsm.documents.json_text import root
from gsd_fsm.install import installer
from gsd_fsm.install.hook_entries import CAP, CODE, EVENTS, TIMEOUT
from tests.support.client_settings import SETTINGS, Client
from tests.support.command_line import Here


def test_init_registers_a_copy_of_the_hook_with_a_lasting_interpreter(
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
            "timeout": TIMEOUT,
        }
    python = Path(answer["python"])
    assert python.is_absolute()
    assert not (python.parents[1] / "pyvenv.cfg").exists()
    assert client.hook.read_bytes() == installer.packaged_hook().read_bytes()
    assert not here.gsd.exists()


@pytest.mark.parametrize("scope", installer.SCOPES)
def test_init_uses_the_file_of_the_scope_and_names_it_in_the_hook(
    here: Here, client: Client, scope: str
) -> None:
    here.ok("init", "--scope", scope, "--yes")
    assert {hook["args"][-1] for hook in client.hooks(scope)} == {f"settings-{scope}"}
    assert [name for name, path in client.files.items() if path.exists()] == [scope]


def test_init_respects_the_config_directory_of_the_client(here: Here, tmp_path: Path) -> None:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere")}
    here.ok("init", "--scope", "user", "--yes", env=env)
    assert "gsd_fsm_hook" in (tmp_path / "elsewhere" / "settings.json").read_text()


def test_init_in_a_subdirectory_uses_the_root_of_the_repository(
    repository: Here, client: Client
) -> None:
    repository.where = repository.root / "deep" / "down"
    repository.where.mkdir(parents=True)
    repository.ok("init", "--yes")
    client.hooks("local")


def test_init_at_home_uses_the_settings_of_the_user(here: Here, client: Client) -> None:
    here.where = client.home
    here.ok("init", "--yes")
    client.hooks("user")
    here.refused(3, "init", "--scope", "project", "--yes")


@pytest.mark.parametrize(
    ("bom", "newline", "indent", "end"),
    [
        ("", "\n", "  ", ""),
        ("\ufeff", "\r\n", "    ", "\r\n"),
        ("", "\n", "\t", "\n\n"),
        ("\ufeff", "\n", "", "\n"),
    ],
)
def test_init_keeps_the_bytes_and_the_style_of_other_settings(
    here: Here, client: Client, *, bom: str, newline: str, indent: str, end: str
) -> None:
    text = bom + json.dumps(SETTINGS, indent=indent, ensure_ascii=False) + end.replace("\r", "")
    path = client.write(text.replace("\n", newline).encode())
    here.ok("init", "--yes")
    written = path.read_bytes().decode()
    assert written.endswith("}" + end)
    assert written.count("\n") == written.count(newline)
    lines = iter(written.split(newline))
    # Every old line is there, in order; a comma may follow the last one of a list.
    for old in text.split("\n"):
        assert any(new.replace(",", "") == old.replace(",", "") for new in lines), old
    client.hooks()


def test_init_again_changes_nothing(here: Here, client: Client) -> None:
    client.write(SETTINGS)
    here.ok("init", "--status-line", "--yes")
    before = client.all_files()
    assert "Already installed" in here.ok("init").out
    assert here.ok("init", "--status-line", "--json").json["changed"] is False
    assert client.all_files() == before


def test_init_replaces_older_entries_and_removes_duplicates(here: Here, client: Client) -> None:
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


def test_init_does_not_register_a_hook_that_cannot_run(
    here: Here, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "gsd_fsm_hook.py"
    broken.write_text("def broken(\n")
    monkeypatch.setattr(installer, "packaged_hook", lambda: broken)
    error = here.refused(6, "init", "--yes").err
    assert "cannot run the hook: exit code 1: SyntaxError" in error
    assert not client.files["local"].exists()


def test_init_raises_the_cap_of_the_client_only_on_request(here: Here, client: Client) -> None:
    client.write({"env": {"A": "b"}})
    assert "--raise-cap" in here.ok("init", "--yes").out
    assert client.read()["env"] == {"A": "b"}
    here.ok("init", "--raise-cap", "30", "--yes")
    assert client.read()["env"] == {"A": "b", CAP: "30"}
    assert "--raise-cap" not in here.ok("init", "--yes").out
    here.refused(2, "init", "--raise-cap", "8", "--yes")


def test_installed_command_runs_as_the_client_starts_it(here: Here, client: Client) -> None:
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


# settings files of every kind


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        (b"", "line 1, column 1"),
        (b"{", "line 1, column 2"),
        (b'{"a": 1,}', "line 1, column "),
        (b'{"a": 1} // done', "line 1, column 10"),
        (b'/* why */ {"a": 1}', "line 1, column 1"),
        (b"[]", "line 1, column 1: the file is not an object"),
        (b'"text"', "line 1, column 1"),
        (b'{"hooks": []}', "line 1, column 11: hooks is not an object"),
        (b'{"hooks": null}', "line 1, column 11"),
        (b'{"hooks": {"Stop": {}}}', "line 1, column 20: hooks.Stop is not a list"),
        (b'{"env": ["A"]}', "line 1, column 9: env is not an object"),
        (b'{"a": "\xff"}', "line 1: not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "line 1: not UTF-8"),
        (b'{"a": Infinity}', "Infinity is not a JSON value"),
        (b'{"a":' * 5000, "nested too deeply"),
    ],
)
def test_init_and_uninstall_refuse_a_file_that_is_not_settings(
    here: Here, client: Client, raw: bytes, place: str
) -> None:
    path = client.write(raw)
    for command in ("init", "uninstall"):
        error = here.refused(2, command, "--yes").err
        assert f"{path}: " in error
        assert place in error
    assert path.read_bytes() == raw
    assert not client.data.exists()


def test_init_keeps_unknown_values_beside_ours(here: Here, client: Client) -> None:
    odd = {"hooks": {"Stop": [1, "two", {"hooks": 3}, {"hooks": [None, {"args": {}}]}], "New": 5}}
    client.write(odd)
    here.ok("init", "--yes")
    assert client.read()["hooks"]["Stop"][:4] == odd["hooks"]["Stop"]
    assert client.read()["hooks"]["New"] == 5


def test_init_edits_the_last_of_duplicate_keys(here: Here, client: Client) -> None:
    path = client.write(b'{"hooks": {"Stop": []}, "a": 1, "hooks": {}}')
    here.ok("init", "--yes")
    assert path.read_bytes().startswith(b'{"hooks": {"Stop": []}, "a": 1, "hooks": {"Stop": [{')
    client.hooks()


def test_init_and_uninstall_handle_a_megabyte_of_settings(here: Here, client: Client) -> None:
    path = client.write({"permissions": {"allow": [f"Bash(command {n}:*)" for n in range(36_000)]}})
    before = path.read_bytes()
    assert len(before) > 1_000_000
    here.ok("init", "--yes")
    assert len(client.hooks()) == len(EVENTS)
    here.ok("uninstall", "--yes")
    assert path.read_bytes() == before


def test_init_and_uninstall_follow_a_link_and_keep_it(
    here: Here, client: Client, tmp_path: Path
) -> None:
    target = tmp_path / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_text('{"a": 1}\n')
    path = client.files["user"]
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    here.ok("init", "--scope", "user", "--yes")
    assert path.is_symlink()
    assert "gsd_fsm_hook" in target.read_text()
    here.ok("uninstall", "--yes")
    assert (path.is_symlink(), target.read_text()) == (True, '{"a": 1}\n')
    target.unlink()
    assert "broken link" in here.refused(2, "init", "--scope", "user", "--yes").err


@pytest.mark.parametrize(("mask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_init_creates_files_with_the_mode_of_the_umask_and_keeps_other_modes(
    here: Here, client: Client, mask: int, mode: int
) -> None:
    kept = client.write({"a": 1}, "user")
    kept.chmod(0o640)
    before = os.umask(mask)
    try:
        here.ok("init", "--scope", "user", "--yes")
        here.ok("init", "--yes")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    paths = (client.files["local"], client.hook, kept)
    assert [path.stat().st_mode & 0o777 for path in paths] == [mode, 0o600, 0o640]


@pytest.mark.parametrize(
    ("obstacle", "code", "message"),
    [
        ("read-only file", 6, "is read-only"),
        ("file as directory", 6, "cannot be written"),
        ("directory", 2, "not a regular file"),
        ("pipe", 2, "not a regular file"),
    ],
)
def test_init_refuses_settings_that_it_cannot_replace(
    here: Here, client: Client, obstacle: str, code: int, message: str
) -> None:
    path = client.files["local"]
    if obstacle == "file as directory":
        path.parent.write_text("mine")
    elif obstacle == "read-only file":
        client.write({"a": 1}).chmod(0o444)
    else:
        path.parent.mkdir()
        path.mkdir() if obstacle == "directory" else os.mkfifo(path)
    assert message in here.refused(code, "init", "--yes").err
    if obstacle == "file as directory":
        assert path.parent.read_text() == "mine"
    elif obstacle == "read-only file":
        assert client.read() == {"a": 1}


def test_init_does_not_overwrite_a_change_made_in_the_meantime(
    here: Here, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = client.write({"a": 1})
    warm = installer.warm

    def slow(python: str, directory: Path) -> None:
        path.write_text('{"a": 2}')
        warm(python, directory)

    monkeypatch.setattr(installer, "warm", slow)
    assert "in the meantime" in here.refused(6, "init", "--yes").err
    assert path.read_text() == '{"a": 2}'
    here.ok("uninstall", "--yes")
    assert path.read_text() == '{"a": 2}'
