"""`init` meets settings files of every kind: it edits them with care, or refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gsd_fsm.install import installer
from gsd_fsm.install.hook_entries import EVENTS
from tests.install.conftest import Client
from tests.support.command_line import Here


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b'{"a": 1,}',
        b'{"a": 1} // done',
        b'/* why */ {"a": 1}',
        b"[]",
        b'"text"',
        b'{"hooks": []}',
        b'{"hooks": null}',
        b'{"hooks": {"Stop": {}}}',
        b'{"env": ["A"]}',
        b'{"a": "\xff"}',
        '{"a": 1}'.encode("utf-16"),
        b'{"a": Infinity}',
        b'{"a":' * 5000,
    ],
)
def test_what_cannot_be_edited_is_refused_with_its_place(
    here: Here, client: Client, raw: bytes
) -> None:
    path = client.write(raw)
    answer = here.refused(2, "init", "--yes")
    assert str(path) in answer.err
    if len(raw) < 100 and b"Infinity" not in raw:
        assert "line 1" in answer.err
    assert path.read_bytes() == raw
    assert not client.data.exists()
    here.refused(2, "uninstall", "--yes")


def test_odd_things_beside_ours_are_left_alone(here: Here, client: Client) -> None:
    odd = {"hooks": {"Stop": [1, "two", {"hooks": 3}, {"hooks": [None, {"args": {}}]}], "New": 5}}
    client.write(odd)
    here.ok("init", "--yes")
    assert client.read()["hooks"]["Stop"][:4] == odd["hooks"]["Stop"]
    assert client.read()["hooks"]["New"] == 5


def test_of_a_key_given_twice_the_one_that_counts_is_edited(here: Here, client: Client) -> None:
    path = client.write(b'{"hooks": {"Stop": []}, "a": 1, "hooks": {}}')
    here.ok("init", "--yes")
    assert path.read_bytes().startswith(b'{"hooks": {"Stop": []}, "a": 1, "hooks": {"Stop": [{')
    client.hooks()


def test_a_file_of_a_megabyte_is_edited(here: Here, client: Client) -> None:
    big = {"permissions": {"allow": [f"Bash(command {n}:*)" for n in range(36_000)]}}
    path = client.write(big)
    before = path.read_bytes()
    assert len(before) > 1_000_000
    here.ok("init", "--yes")
    assert len(client.hooks()) == len(EVENTS)
    here.ok("uninstall", "--yes")
    assert path.read_bytes() == before


def test_a_link_stays_a_link(here: Here, client: Client, tmp_path: Path) -> None:
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


def test_the_mode_of_a_file_is_kept(here: Here, client: Client) -> None:
    path = client.write({"a": 1})
    path.chmod(0o640)
    here.ok("init", "--yes")
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(("mask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_a_new_file_obeys_the_umask(here: Here, client: Client, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        here.ok("init", "--yes")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert client.files["local"].stat().st_mode & 0o777 == mode
    assert client.hook.stat().st_mode & 0o777 == 0o600


def test_a_read_only_file_is_refused(here: Here, client: Client) -> None:
    path = client.write({"a": 1})
    path.chmod(0o444)
    before = path.read_bytes()
    assert "read-only" in here.refused(6, "init", "--yes").err
    assert path.read_bytes() == before


def test_a_file_in_the_place_of_the_directory_is_refused(here: Here, client: Client) -> None:
    (here.root / ".claude").write_text("mine")
    assert "cannot be written" in here.refused(6, "init", "--yes").err
    assert (here.root / ".claude").read_text() == "mine"


@pytest.mark.parametrize("what", ["directory", "pipe"])
def test_what_is_no_file_is_refused(here: Here, client: Client, what: str) -> None:
    path = client.files["local"]
    path.parent.mkdir()
    path.mkdir() if what == "directory" else os.mkfifo(path)
    assert "not a regular file" in here.refused(2, "init", "--yes").err


def test_a_change_in_the_meantime_is_not_overwritten(
    here: Here, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = client.write({"a": 1})
    real = installer.warm

    def slowly(*args: object) -> None:
        path.write_text('{"a": 2}')
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(installer, "warm", slowly)
    assert "in the meantime" in here.refused(6, "init", "--yes").err
    assert path.read_text() == '{"a": 2}'
    here.ok("uninstall", "--yes")
    assert path.read_text() == '{"a": 2}'
