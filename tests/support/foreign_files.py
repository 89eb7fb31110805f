"""Files of other tools, and helpers that import them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.imports.findings import OldLoop
from gsd_fsm.imports.load import read_loop
from tests.support.events import NOW, draft

STATE: dict[str, Any] = {
    "spec": "original user request verbatim",
    "criteria": ["tests pass", "lint clean", "no type errors"],
    "criteriaStatus": {"tests pass": False, "lint clean": True, "no type errors": False},
    "steps": ["step1", "step2", "step3"], "completedSteps": ["step1"],
    "remainingSteps": ["step2", "step3"], "exit_signal": False, "iteration": 2,
    "status": "in_progress", "circuitBreaker": {"stuckCount": 1, "lastUnmet": "tests pass"},
}  # fmt: skip
WORKFLOW: dict[str, Any] = {
    "version": 1, "stage": "executing", "task": "original user request",
    "spec_score": 7, "fit_score": 35, "shape_chosen": "tool-review",
    "started_at": "2026-02-05T10:00:00Z", "last_updated": "2026-02-05T10:15:00Z",
    "recall_surfaced": ["auth edge cases", "validation patterns"],
    "reviews": {
        "wave_1": {"score": 8, "issues": 2, "blockers": 0},
        "wave_2": {"score": 7, "issues": 3, "blockers": 1},
        "thorough": {"passed": False, "blockers_remaining": 1},
    },
}  # fmt: skip
STATE_MD = """\
---
milestone: v1
loop:
  active: true
  type: execute
  phase: 1
  iteration: 4
  max_iterations: 30
  task_retries:
    T02: 2
    T05: 1
  gaps_remaining: 0
  started: 2026-02-05T10:00:00Z
  last_iteration: "2026-02-05T11:30:00+01:00"
  paused: false
  pause_reason: null
  last_error: Type error in auth.ts
  history:
    - "iteration 1: T02 failed"
    - iteration: 2
      result: T05 failed
open_issues: []
---
# State
"""
RALPH = """\
---
active: true
iteration: 3
max_iterations: 20
completion_promise: "ALL DONE"
started_at: "2026-01-20T13:29:43Z"
---

Read PROMPT.md and follow it.
"""

# The state of the execute command: its YAML example as JSON.
PHASE_STATE = """\
{
  "loop": {
    "active": true,
    "type": "execute",
    "phase": 1,
    "wave": 2,
    "background_tasks": [
      {
        "task_id": "abc123",
        "task_num": 1,
        "status": "running"
      },
      {
        "task_id": "def456",
        "task_num": 2,
        "status": "running"
      }
    ],
    "task_retries": {
      "T01": 0,
      "T02": 1
    },
    "last_error": "Type error in auth.ts",
    "started": "2026-01-19T10:30:00"
  }
}
"""
# The task of the goal loop with a tag.
TASK = """\
{
  "id": "task-uuid",
  "subject": "Complete: [spec summary]",
  "description": "Full spec with success criteria",
  "status": "in_progress",
  "metadata": {
    "iteration": 3,
    "cost": 4.50,
    "shape": "tool",
    "budget": 25,
    "maxIterations": 10,
    "startedAt": "ISO-timestamp",
    "lastCheckpoint": "ISO-timestamp",
    "completedSteps": ["step1", "step2"],
    "remainingSteps": ["step3", "step4"],
    "errors": []
  }
}
"""


def read(content: str | bytes | dict[str, Any], file: str = "FILE") -> OldLoop:
    if isinstance(content, dict):
        content = json.dumps(content)
    return read_loop(content.encode() if isinstance(content, str) else content, file)


def refused(content: str | bytes | dict[str, Any]) -> str:
    """Return the error message for a file that cannot be imported."""
    with pytest.raises(UsageError) as error:
        read(content)
    assert error.value.hint
    return error.value.message


def loop_of(old: OldLoop) -> Loop:
    """Return the loop after the events of an import."""
    loops = Loops()
    header = draft("journal", None, "cli", {"id": "j-1"})
    events = old.events({"mode": "yolo", "auto_loop": True, "limits": {}})
    drafts = [draft(kind, "lp-1", "human", data) for kind, data in events]
    for seq, fields in enumerate((header, *drafts), 1):
        loops.apply({"v": 1, "seq": seq, "ts": to_iso(NOW), **fields})
    return loops.by_id["lp-1"]
