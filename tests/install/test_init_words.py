"""`init` says what a newcomer needs to know, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.install.conftest import Client
from tests.install.test_init import at_terminal
from tests.support.command_line import Here

if TYPE_CHECKING:
    import pytest


def test_the_change_is_summed_up_right_before_the_question(here: Here, client: Client) -> None:
    end = f"{client.files['local']}; nothing else changes."
    adds = f"Adds one command for 9 events to {end}"
    _, shown = at_terminal(here, b"n\n", "init")
    lines = shown.splitlines()
    (question,) = (n for n, line in enumerate(lines) if line.startswith("Write this?"))
    assert lines[question - 1] == adds
    assert adds in here.ok("init", "--yes").out
    assert "nothing else changes" not in here.ok("init", "--yes").out
    raised = here.ok("init", "--raise-cap", "30", "--yes").out
    assert f"Raises the client's cap to 30 in {end}" in raised
    document = client.read()
    document["hooks"]["Stop"][0]["hooks"][0]["timeout"] = 9
    client.write(document)
    both = here.ok("init", "--raise-cap", "40", "--yes").out
    assert f"Renews one command for 9 events and raises the client's cap to 40 in {end}" in both


def test_open_sessions_must_be_restarted_to_see_it(here: Here) -> None:
    assert "restart them, or type /clear" in here.ok("init", "--yes").out
    assert "restart" not in here.ok("init", "--yes").out


def test_the_permission_is_named_as_a_choice_and_not_given(here: Here, client: Client) -> None:
    assert "permissions.allow has Bash(gsd-fsm:*)" in here.ok("init", "--yes").out
    assert "permissions" not in client.read()
    client.write({"permissions": {"allow": ["Bash(gsd-fsm:*)"]}}, "user")
    assert "permissions.allow" not in here.ok("init", "--yes").out
    client.write({"permissions": {"allow": 5}}, "user")
    assert "permissions.allow" in here.ok("init", "--yes").out


def test_a_command_that_no_agent_would_find_is_told(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here.ok("init", "--yes", "--json").json["notes"] == []
    monkeypatch.setenv("PATH", str(tmp_path))
    (note,) = here.ok("init", "--yes", "--json").json["notes"]
    assert "not on the PATH" in note
    assert "pipx install" in note
