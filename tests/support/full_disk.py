"""Stops on a disk that is full from the second stop on; run it where the mounts are our own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.command_line import Project
from tests.support.hook_agent import GOAL, block_of, call


def stop_on_a_full_disk(where: Path) -> None:
    """Assert that every block has its event, and that a stop whose event does not fit is allowed."""
    disk = where / "disk"
    root = disk / "p"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)], check=True)
    root.mkdir()
    project = Project(root)
    limits = ("--idle-limit", "0", "--stuck-limit", "0")
    session = {"CLAUDE_CODE_SESSION_ID": "s-1"}
    project.ok("start", *GOAL, "--mode", "yolo", *limits, env=session)
    signal = {"hook_event_name": "Stop", "session_id": "s-1", "cwd": str(root)}
    assert block_of(call(signal, cwd=root).answer)
    with (disk / "ballast").open("ab", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"b" * size):
                    pass
    replies: list[Any] = []
    while not replies or block_of(replies[-1].answer):
        replies.append(call(signal, cwd=root))
    assert len(replies) < 20
    (notice,) = replies[-1].answer.values()
    assert notice.startswith("gsd-fsm: this stop was allowed without a decision: ")
    assert notice.endswith("Free disk space, then retry.")
    assert "journal.jsonl" in replies[-1].err
    blocks = [event for event in project.lines() if event["type"] == "iteration"]
    assert len(blocks) == len(replies)
    assert project.ok("fsck", "--json").json["torn"] == 0
    (disk / "ballast").unlink()
    assert block_of(call(signal, cwd=root).answer)
    failed, decided = project.lines()[-2:]
    assert (failed["type"], failed["data"]["code"]) == ("stop", "error")
    assert decided["type"] == "iteration"


if __name__ == "__main__":
    stop_on_a_full_disk(Path(sys.argv[1]))
