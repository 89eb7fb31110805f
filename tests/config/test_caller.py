"""The environment for commands that must not see the agent or the user's files."""

from __future__ import annotations

from pathlib import Path

from gsd_fsm.config.caller import CLIENTS, scratch_environment


def test_scratch_environment_has_no_agent_and_only_homes_in_its_folder(
    tmp_path, monkeypatch
) -> None:
    agents = {name for _, markers, session in CLIENTS for name in (*markers, session)}
    dropped = agents | {"CLAUDE_PROJECT_DIR", "CLAUDE_PID", "CLAUDE_CONFIG_DIR", "GSD_FSM_DISABLE"}
    for name in dropped | {"KEPT"}:
        monkeypatch.setenv(name, "1")
    found = scratch_environment(tmp_path)
    assert not dropped & set(found)
    assert found["KEPT"] == "1"
    homes = ["HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA"]
    for name in [*homes, "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"]:
        assert tmp_path in Path(found[name]).parents
