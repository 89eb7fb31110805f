"""An environment of its own: nothing of an agent, nothing of the user's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gsd_fsm.config.caller import CLIENTS, scratch_environment

if TYPE_CHECKING:
    import pytest


def test_no_agent_and_no_home_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = {name for _, markers, session in CLIENTS for name in (*markers, session)}
    outer = {"CLAUDE_PROJECT_DIR", "CLAUDE_PID", "CLAUDE_CONFIG_DIR", "GSD_FSM_DISABLE"}
    for name in agents | outer | {"KEPT"}:
        monkeypatch.setenv(name, "1")
    found = scratch_environment(tmp_path)
    assert not (agents | outer) & set(found)
    assert found["KEPT"] == "1"
    homes = ["HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA"]
    for name in [*homes, "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"]:
        assert tmp_path in Path(found[name]).parents
