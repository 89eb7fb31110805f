"""statusline: at most one line, always exit code 0, and the cost of the session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.project import state_directory
from gsd_fsm.core.syscalls import LockedDir
from tests.support.command_line import A, B, Here, install_hook

GOAL = ("goal", "g", "--mode", "yolo", "--criterion", "a", "--criterion", "b")


@pytest.fixture(autouse=True)
def _hook() -> None:
    install_hook()


def signal(here: Here, cost: Any = None, session: str = "session-a", **more: Any) -> bytes:
    """Return what the client writes to the command of its status line."""
    root = str(here.root)
    workspace = {"current_dir": root, "project_dir": root}
    facts = {"session_id": session, "transcript_path": "/t", "cwd": root, "workspace": workspace}
    return json.dumps({**facts, "cost": {"total_cost_usd": cost}, **more}).encode() + b"\n"


def shown(here: Here, stdin: bytes | None = None, *args: str) -> str:
    """Return the line that is printed, or an empty string."""
    answer = here.run("statusline", *args, stdin=signal(here) if stdin is None else stdin)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.count("\n") == bool(answer.out)
    return answer.out.rstrip("\n")


def spends(here: Here) -> list[Any]:
    return [event["data"]["total_usd"] for event in here.lines() if event["type"] == "spend"]


def test_statusline_shows_progress_limits_and_status(here: Here) -> None:
    here.start(*GOAL, "--budget", "25", env=A)
    here.ok("criterion", "a", "met", env=A)
    here.ok("iterate", env=A)
    here.ok("spend", "2.5", env=A)
    assert shown(here) == "gsd-fsm goal ▸ 1/20 · 1/2 criteria · $2.50/$25 · running"
    here.ok("cancel", env=A)
    here.start("execute", "--task", "T1", "--task", "T2", "--max-iterations", "0", env=A)
    here.ok("task", "T1", "running", env=A)
    here.ok("task", "T1", "complete", env=A)
    assert shown(here) == "gsd-fsm execute ▸ 0 · 1/2 tasks · running"
    here.ok("cancel", env=A)
    here.start("verify", "--task", "T1", "--mode", "yolo", env=A)
    here.ok("gap", "found", "--description", "d", env=A)
    assert shown(here) == "gsd-fsm verify ▸ 0/20 · 0/1 tasks · 1 gap open · fixing"


def test_statusline_of_halted_loop_shows_question_or_reason(here: Here) -> None:
    here.start(*GOAL, env=A)
    here.ok("wait", "Which\nof \x1b[31mthem?", env=A)
    assert shown(here).endswith(" · waiting: Which of \\u{1b}[31mthem?")
    here.ok("pause", "--reason", "x" * 500, env=A)
    words = shown(here).rpartition("paused: ")[2]
    assert words == "x" * 79 + "…"


def test_statusline_with_options_is_coloured_or_one_object(here: Here) -> None:
    assert json.loads(shown(here, None, "--json")) == {}
    loop = here.start(*GOAL, env=A)
    assert shown(here, None, "--color").endswith("\x1b[32mrunning\x1b[0m")
    found = json.loads(shown(here, None, "--json"))
    assert found == {"loop": loop, "status": "running", "line": shown(here)}


def test_statusline_shows_the_loop_of_its_option_or_session(here: Here) -> None:
    def line(session: str, *args: str) -> str:
        return shown(here, signal(here, session=session), *args)

    loop = here.start(*GOAL, "--max-iterations", "7", env=A)
    assert line("session-b").endswith("running · owned by another session")
    here.start(*GOAL, "--max-iterations", "9", env=B)
    assert "▸ 0/7 " in line("session-a")
    assert "▸ 0/9 " in line("session-b")
    assert "▸ 0/7 " in line("session-b", "--loop", loop)
    assert line("session-b", "--loop", "lp-none") == ""
    assert line("session-c") == line("") == ""
    pretty = json.dumps(json.loads(signal(here)), indent=2).replace("\n", "\r\n")
    assert "▸ 0/7 " in shown(here, b"\xef\xbb\xbf" + pretty.encode())
    here.ok("cancel", env=B)
    here.ok("cancel", env=A)
    assert line("session-a") == ""
    here.start(*GOAL)
    assert line("session-a").endswith("running · no owner yet")


def test_statusline_finds_the_project_of_the_client(here: Here, tmp_path: Path) -> None:
    here.start(*GOAL, env=A)
    here.where = tmp_path
    nowhere: dict[str, Any] = {"cwd": str(tmp_path), "workspace": {}}
    inside = here.root / "deep"
    inside.mkdir()
    assert shown(here, signal(here, **nowhere)) == ""
    assert shown(here, signal(here, **{**nowhere, "workspace": {"current_dir": str(inside)}}))
    assert shown(here, signal(here, **{**nowhere, "cwd": str(inside)}))
    assert here.run("--project", str(inside), "statusline", stdin=b"{}").out
    here.where = here.root
    assert shown(here, b"")


def test_statusline_with_invalid_input_records_nothing(here: Here) -> None:
    inputs = (
        b"", b"{", b"[]", b"{\xff}", b"{}{}", b"[" * 100_000, b" " * 3_000_000,
        b'{"session_id": [1], "cwd": 7, "workspace": "x", "cost": [], "model": null}',
        b'{"workspace": {"project_dir": "a\\u0000b", "current_dir": ""}, "cwd": "\\ud800"}',
    )  # fmt: skip
    assert [shown(here, stdin) for stdin in inputs] == [""] * len(inputs)
    here.start(*GOAL, "--budget", "5", env=A)
    before = here.journal.read_bytes()
    for stdin in inputs:
        assert shown(here, stdin).startswith("gsd-fsm goal "), stdin[:99]
    assert here.journal.read_bytes() == before


def test_statusline_without_trusted_readable_journal_prints_nothing(here: Here) -> None:
    here.gsd.mkdir()
    assert shown(here) == ""
    here.gsd.rmdir()
    here.start(*GOAL, "--budget", "5", env=A)
    raw = here.journal.read_bytes()
    here.journal.write_bytes(raw.replace(b"criterion", b"kriterion").replace(b'"goal"', b'"gaol"'))
    assert shown(here, signal(here, 1)) == ""
    here.journal.write_bytes(raw)
    for entry in Path(state_directory(), "journals").iterdir():
        entry.unlink()
    assert shown(here, signal(here, 1)) == ""
    assert here.journal.read_bytes() == raw
    here.journal.unlink()
    os.mkfifo(here.journal)
    assert shown(here) == ""
    assert here.run("--project", "/nowhere", "statusline", stdin=signal(here)).code == 0


def test_statusline_records_the_cost_of_the_session_as_it_grows(here: Here) -> None:
    here.start(*GOAL, "--budget", "5", env=A)
    for cost in (1, 1.005, 1.01, 1.01, 1.0, 0.6, 2.5, True, "3", None, -1, 1e300, 2.505):
        shown(here, signal(here, cost))
    assert spends(here) == [1, 1.01, 2.5]
    event = here.last()
    assert (event["by"], event["session"]) == ("cli", "session-a")
    assert event["data"] == {"meter": "session-a", "total_usd": 2.5, "what": "status line"}
    assert "$1.50/$5" in shown(here)
    assert "$1.50/$5" in shown(here, signal(here, 1.2))  # a late one
    here.start(*GOAL, "--budget", "0.004", "--fresh", env=A)
    assert "/$0.0040 " in shown(here, signal(here, 1))


def test_statusline_counts_earlier_cost_of_younger_session(here: Here) -> None:
    transcript = here.root / "t.jsonl"
    for rows, before in (
        ('{"type":"user","timestamp":"2020-01-01T00:00:00.000Z"}\n', 0),
        ('{"type":"assistant","timestamp":"2999-01-01T00:00:00.000Z"}\n', 0),
        ('{"type":"assistant","timestamp":"2020-01-01T00:00:00.000Z"}\n', 1.25),
        ('{"type":"assistant"}\n', 1.25),
        ("x" * (1 << 20), 1.25),
    ):
        here.start(*GOAL, "--budget", "5", "--fresh", env=A)
        transcript.write_text(rows)
        for total in (1.25, 1.5):
            line = shown(here, signal(here, total, transcript_path=str(transcript)))
            assert f"${total - before:.2f}/$5" in line, rows[:99]


def test_statusline_without_budget_records_steps_of_ten_cents(here: Here) -> None:
    here.start(*GOAL, env=A)
    for cost in (1, 1.05, 1.1):
        shown(here, signal(here, cost))
    assert spends(here) == [1, 1.1]
    here.start(*GOAL, "--budget", "5", env=B)
    shown(here, signal(here, 1, session="session-c"))
    assert spends(here) == [1, 1.1]
    shown(here, signal(here, 3, session="session-b"))
    here.ok("pause", env=B)
    shown(here, signal(here, 4, session="session-b"))
    assert spends(here) == [1, 1.1, 3, 4]


def test_statusline_pauses_the_loop_when_its_budget_is_spent(here: Here) -> None:
    here.start(*GOAL, "--budget", "2", env=A)
    shown(here, signal(here, 10))
    assert shown(here, signal(here, 12.25)).endswith("$2.25/$2 · paused: $2.25 of $2.00 are spent")
    shown(here, signal(here, 12.5))
    assert spends(here) == [10, 12.25, 12.5]
    assert [event["type"] for event in here.lines()].count("pause") == 1


def test_statusline_with_held_lock_only_prints(here: Here) -> None:
    here.start(*GOAL, "--budget", "5", env=A)
    hold = LockedDir(str(here.gsd))
    hold.acquire(1)
    try:
        assert shown(here, signal(here, 1)).endswith("running")
    finally:
        hold.close()
    assert spends(here) == []
    shown(here, signal(here, 1))
    assert spends(here) == [1]


@pytest.mark.parametrize("end", [b"\n", b""])
def test_statusline_does_not_wait_for_the_end_of_stdin(here: Here, end: bytes) -> None:
    here.start(*GOAL, env=A)
    command = [sys.executable, "-m", "gsd_fsm", "statusline"]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, cwd=here.root, **streams) as process:
        process.stdin.write(signal(here).rstrip() + end)
        process.stdin.flush()
        assert process.wait(60) == 0
        assert process.stdout.read().decode().startswith("gsd-fsm goal ▸")
        assert process.stderr.read() == b""
