"""An environment for processes that must see and touch nothing of the user's."""

from __future__ import annotations

import os
from pathlib import Path

from gsd_fsm.caller import CLIENTS

_HOMES = (
    "HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA",
    "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME",
)  # fmt: skip
_OUTER = ("CLAUDE_PID", "CLAUDE_CONFIG_DIR", "GSD_FSM_DISABLE")


def scratch_environment(folder: Path | str) -> dict[str, str]:
    """What this process was given, without any agent's marks, and with every home below the folder."""
    agents = {name for _, markers, session in CLIENTS for name in (*markers, session)}
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in agents.union(_OUTER) and not name.endswith("_PROJECT_DIR")
    }
    return {**kept, **dict.fromkeys(_HOMES, str(Path(folder, "home")))}
