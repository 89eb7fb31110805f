"""Install the hook, let it hold a loop as the client starts it, check it, remove it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gsd_fsm.evidence.shell import find_shell
from gsd_fsm.install.hook_entries import ours
from tests.support.client_settings import SETTINGS, Client, listing
from tests.support.command_line import A, Here
from tests.support.hook_project import blocks, run_command, signal_of, text_of
from tests.support.programs import make_program, on_path


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """Return a project whose name has characters that shells and code pages treat in their own way."""
    root = tmp_path / "it's & 100% größer 日本"
    root.mkdir()
    command = make_program(tmp_path / "bin" / "gsd-fsm", "")
    monkeypatch.setenv("PATH", on_path(command.parent, os.environ["PATH"]))
    return Here(root, monkeypatch)


def test_installed_hook_holds_a_loop_and_leaves_nothing_when_removed(odd: Here) -> None:
    client = Client(odd.root)
    client.write(SETTINGS)
    before = client.all_files()
    assert odd.ok("init", "--yes", "--status-line", "--json").json["changed"]
    assert not odd.ok("init", "--yes", "--status-line", "--json").json["changed"]
    (hook,) = {str(each.hook): each.hook for each in ours(client.read())}.values()
    odd.start("goal", "Ende → gut", "--criterion", "c", "--mode", "yolo", env=A)
    reply = run_command(
        [hook["command"], *hook["args"]], signal_of(odd.root, session="session-a"), cwd=odd.root
    )
    assert blocks(reply.answer), reply
    assert "Ende → gut" in text_of(reply.answer)
    rows = {row["name"]: row for row in odd.ok("doctor", "--json").json["rows"]}
    assert {row["state"] for row in rows.values()} <= {"ok", "note"}, rows
    assert rows["trial run"]["told"] == "blocks the stop of a live loop"
    assert rows["status line"]["told"] == "shows a live loop"
    assert rows["shell of checks"]["told"] == find_shell(odd.root)
    odd.ok("uninstall", "--yes")
    left = listing(client.home) | listing(odd.root)
    assert {name: left.get(name) for name in before} == before
    assert not [name for name in left if "gsd_fsm_hook" in name]
