"""A whole loop in a temporary project: fail, retry, gap, fix, pause, resume, complete, replay."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from gsd_fsm.caller import CLIENTS

STORY: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("Two tasks, at most one retry each, no questions asked.",
     ("start", "execute", "Add a login page", "--task", "T01:Form", "--task", "T02:Session",
      "--mode", "yolo", "--max-retries", "1"), 0),
    ("The first task fails, and is retried.", ("task", "T01", "running"), 0),
    ("", ("fail", "T01", "--error", "AssertionError: no <form> in the page"), 0),
    ("", ("task", "T01", "running"), 0),
    ("", ("task", "T01", "complete", "--commit", "1a2b3c4"), 0),
    ("Done already? The state machine knows better.", ("complete",), 4),
    ("A gap is found, fixed and closed.",
     ("gap", "found", "--kind", "stub", "--file", "login.py", "--description", "logout does nothing"),
     0),
    ("", ("gap", "close", "G1"), 0),
    ("A token in an error text is not kept.", ("task", "T02", "running"), 0),
    ("", ("fail", "T02", "--error", "401 for https://me:hunter2hunter2@example.org", "--class", "logic"),
     0),
    ("The retries are used up: the loop pauses, it never spins.",
     ("fail", "T02", "--error", "401 again", "--class", "logic"), 0),
    ("", ("next",), 0),
    ("", ("resume",), 4),
    ("A human extends the limit, and the loop goes on where it was.",
     ("resume", "--add-retries", "1"), 0),
    ("", ("task", "T02", "running"), 0),
    ("", ("task", "T02", "complete"), 0),
    ("", ("complete",), 0),
    ("What happened? The journal tells, every line verified.", ("replay",), 0),
    ("", ("why",), 0),
    ("", ("fsck",), 0),
)  # fmt: skip


def main() -> int:
    bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    with tempfile.TemporaryDirectory(prefix="gsd-fsm-demo-") as folder:
        project = Path(folder, "project")
        project.mkdir()
        home = {
            "HOME": folder,
            "XDG_STATE_HOME": f"{folder}/state",
            "XDG_CONFIG_HOME": f"{folder}/config",
        }
        agent = {name for _, markers, session in CLIENTS for name in (*markers, session)}
        env = {k: v for k, v in os.environ.items() if k not in agent} | home
        for title, command, expected in STORY:
            if title:
                print(f"\n{bold}# {title}{plain}")
            shown = " ".join(f'"{word}"' if " " in word else word for word in command)
            print(f"{bold}$ gsd-fsm {shown}{plain}", flush=True)
            done = subprocess.run(
                [sys.executable, "-m", "gsd_fsm", *command], cwd=project, env=env, check=False,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
            if done.returncode != expected:
                print(f"the demo expected exit code {expected}, got {done.returncode}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
