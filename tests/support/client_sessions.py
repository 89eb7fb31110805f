"""Each kind of session of Claude Code: what its hooks were given, as recorded from the client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("claude_sessions.json")
# `given`: the variables it was started with. `command`: its own command line. `user`: whether a user
# can be in front of it.
SESSIONS: list[dict[str, Any]] = json.loads(_FILE.read_text("utf-8"))["sessions"]
