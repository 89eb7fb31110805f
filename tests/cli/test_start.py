"""start: the event it writes, and the directory it creates."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import Here, git
from tests.support.lines import sums_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Project


def test_start_writes_journal_lines_as_documented_to_the_byte(here: Here) -> None:
    here.ok("start", "goal", "Überall grün 🟢", "--criterion", "c", env={"CLAUDECODE": "1"})
    here.ok("note", "a", env={"CLAUDE_CODE_SESSION_ID": "s-1"})
    raw = here.journal.read_bytes()
    assert raw.isascii()
    assert raw.endswith(b"\n")
    assert b"\r" not in raw
    lines = raw.split(b"\n")[:-1]
    members = [list(json.loads(line)) for line in lines]
    plain = ["v", "seq", "ts", "loop", "type", "by"]
    assert members == [
        [*plain, "data", "sum"],
        [*plain, "client", "data", "sum"],
        [*plain, "session", "client", "data", "sum"],
    ]
    assert [json.loads(line)["sum"] for line in lines] == sums_of(raw)
    for number, line in enumerate(lines, 1):
        event = json.loads(line)
        assert json.dumps(event, separators=(",", ":")).encode() == line
        assert (event["v"], event["seq"]) == (1, number)
        assert len(event["ts"]) == len("2026-11-15T23:00:07.123Z")
        assert event["ts"].endswith("Z")
    first, second, third = map(json.loads, lines)
    assert (first["type"], first["loop"], first["by"]) == ("journal", None, "cli")
    assert list(first["data"]) == ["id", "incompat", "compat"]
    assert (second["by"], second["client"]) == ("agent", "claude")
    assert second["data"]["goal"] == "Überall grün 🟢"
    assert (third["by"], third["session"]) == ("human", "s-1")


def test_start_with_json_prints_loop_seq_status_and_head(here: Here) -> None:
    answer = here.ok("start", "execute", "--task", "T1", "--json").json
    assert list(answer) == ["loop", "seq", "status", "head"]
    assert answer["head"] == f"2:{sums_of(here.journal.read_bytes())[-1]}"
    assert (answer["seq"], answer["status"]) == (2, "running")


def test_start_freezes_every_option_into_its_event(here: Here) -> None:
    (here.root / "PLAN.md").write_bytes(b"the plan\n")
    here.ok(
        *("start", "execute", "the goal", "--phase", "3", "--plan", "PLAN.md", "--mode", "yolo"),
        *("--max-iterations", "7", "--max-retries", "2", "--stuck-limit", "4", "--idle-limit", "1"),
        *("--budget", "2.5", "--max-minutes", "30", "--criterion", "c one", "--check", "t=true"),
        *("--task", "T1:First", "--task", "T2", "--step", "look", "--must-not", "break it"),
    )
    data = here.last()["data"]
    assert data == {
        "kind": "execute",
        "goal": "the goal",
        "criteria": [{"name": "c one"}, {"name": "t", "check": "true"}],
        "tasks": [
            {"id": "T1", "title": "First"},
            {"id": "T2"},
            {"id": "S1", "title": "look", "step": True},
        ],
        "phase": 3,
        "plan": {"file": "PLAN.md", "digest": hashlib.sha256(b"the plan\n").hexdigest()[:16]},
        "must_not": ["break it"],
        "mode": "yolo",
        "auto_loop": True,
        "limits": {
            "max_iterations": 7,
            "max_retries": 2,
            "max_rounds": 20,
            "tdd_max_attempts": 5,
            "stuck_limit": 4,
            "idle_limit": 1,
            "budget_usd": 2.5,
            "max_minutes": 30.0,
        },
    }


def test_start_defaults_to_interactive_mode_and_three_iterations_per_task(here: Here) -> None:
    tasks = [word for n in range(9) for word in ("--task", f"T{n}")]
    here.ok("start", "execute", *tasks)
    status = here.status()
    assert (status["mode"], status["max_iterations"]) == ("interactive", 27)
    here.ok("start", "verify", "--fresh")
    assert here.status()["max_iterations"] == 20
    here.ok("start", "goal", "g", "--fresh", "--max-iterations", "0")
    assert here.status()["max_iterations"] == 0
    steps = [word for n in range(10) for word in ("--step", f"step {n}")]
    here.start("goal", "g", "--fresh", *steps)
    assert here.status()["max_iterations"] == 20
    here.start("execute", "--fresh", *steps)
    assert here.status()["max_iterations"] == 30


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (["start"], "missing argument: one of execute, verify, goal"),
        (["start", "party"], "party"),
        (["start", "goal"], "needs a goal"),
        (["start", "goal", " \n"], "needs a goal"),
        (["start", "goal", "g", "--goal-file", "-"], "twice"),
        (["start", "goal", "--goal-file", "no such file"], "no such file"),
        (["start", "goal", "--goal-file", "."], "not a regular file"),
        (["start", "goal", "g" * 30_000], "longer than"),
        (["start", "execute", "--plan", "missing.md"], "missing.md"),
        (["start", "execute", "--plan", "."], "not a regular file"),
        (["start", "execute", "--task", "../x"], "../x"),
        (["start", "execute", "--task", "T1", "--task", "T1:again"], "duplicate task: T1"),
        (["start", "execute", "--criterion", " "], "empty"),
        (["start", "execute", "--criterion", "a", "--check", "a=true"], "duplicate criterion: a"),
        (["start", "execute", "--check", "no command"], "NAME=CMD"),
        (["start", "execute", "--check", "name="], "NAME=CMD"),
        (["start", "execute", "--max-iterations", "-1"], "max-iterations"),
        (["start", "execute", "--max-iterations", "9" * 5000], "max-iterations"),
        (["start", "execute", "--budget", "nan"], "not a number from 0 to"),
        (["start", "execute", "--max-minutes", "inf"], "not a number from 0 to"),
        (["start", "execute", "--phase", "9" * 5000], "phase"),
        (["start", "execute", "--mode", "turbo"], "turbo"),
        (["start", "execute", "--unknown"], "--unknown"),
    ],
)
def test_start_with_wrong_argument_exits_2_and_names_it(
    here: Here, wrong: list[str], named: str
) -> None:
    answer = here.run(*wrong)
    assert answer.code == 2, answer
    assert named in answer.err
    assert not here.journal.exists() or len(here.lines()) == 1


def test_start_with_pipe_as_plan_exits_2(project: Project) -> None:
    os.mkfifo(project.root / "plan")
    command = [sys.executable, "-m", "gsd_fsm", "start", "execute", "--plan", "plan"]
    done = subprocess.run(command, cwd=project.root, capture_output=True, timeout=10, check=False)
    assert done.returncode == 2, done


def test_start_creates_private_gsd_at_the_top_of_the_repository(here: Here) -> None:
    git(here.root, "init", "-q", "--template=")
    here.where = here.root / "deep" / "down"
    here.where.mkdir(parents=True)
    before = os.umask(0)
    try:
        here.ok("start", "execute", "--task", "T1")
        for _ in range(70):
            here.ok("note", "fill")
    finally:
        os.umask(before)
    assert stat.S_IMODE(here.gsd.stat().st_mode) == 0o700
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in here.gsd.iterdir()}
    files.pop(".gitignore")
    assert files == dict.fromkeys(["journal.jsonl", "journal.lock", "snapshot.json"], 0o600)
    done = subprocess.run(
        ["git", "-C", here.root, "status", "--porcelain", "-uall"], capture_output=True, check=True
    )
    assert done.stdout == b"?? .gsd/.gitignore\n"


def test_start_without_git_creates_gsd_in_the_current_directory(here: Here) -> None:
    here.where = here.root / "sub"
    here.where.mkdir()
    here.ok("start", "execute")
    assert (here.where / ".gsd/journal.jsonl").is_file()
    assert not here.gsd.exists()


def test_start_keeps_mode_and_gitignore_of_existing_gsd(here: Here) -> None:
    here.gsd.mkdir()
    here.gsd.chmod(0o755)
    here.gsd.joinpath(".gitignore").write_bytes(b"mine \xff\n*.tmp")
    here.ok("start", "execute")
    assert stat.S_IMODE(here.gsd.stat().st_mode) == 0o755
    ours = here.gsd.joinpath(".gitignore").read_bytes().split(b"\n")
    assert ours[:2] == [b"mine \xff", b"*.tmp"]
    wanted = {b"journal.jsonl", b"journal.lock", b"hook.log", b"STOP"}
    assert wanted <= set(ours)
    assert all(b"journal" in name or b"snapshot" in name or name in wanted for name in ours[2:-1])
    before = here.gsd.joinpath(".gitignore").read_bytes()
    here.ok("start", "execute", "--fresh")
    assert here.gsd.joinpath(".gitignore").read_bytes() == before


def test_start_is_refused_while_stop_file_exists(here: Here) -> None:
    here.start("execute")
    here.gsd.joinpath("STOP").touch()
    answer = here.refused(4, "start", "execute", "--fresh")
    assert "STOP" in answer.err
    here.gsd.joinpath("STOP").unlink()
    here.ok("start", "execute", "--fresh")


def test_start_completes_a_journal_whose_creation_was_interrupted(here: Here) -> None:
    here.start("goal", "g")
    header = here.journal.read_bytes().split(b"\n")[0]
    for torn in (b"", header[:1], header[:-1], b"\0" * 600):
        here.journal.write_bytes(torn)
        here.start("goal", "again")
        assert (here.lines()[0]["type"], here.last()["type"]) == ("journal", "start")
        assert here.status()["goal"] == "again"


def test_start_refuses_gsd_that_is_a_link(here: Here) -> None:
    other = here.root.parent / "other"
    other.mkdir()
    here.gsd.symlink_to(other)
    here.refused(6, "start", "execute")
    assert list(other.iterdir()) == []


def test_start_does_not_follow_gitignore_that_is_a_link(here: Here) -> None:
    victim = here.root.parent / "victim"
    victim.write_bytes(b"mine\n")
    here.gsd.mkdir()
    here.gsd.joinpath(".gitignore").symlink_to(victim)
    here.run("start", "execute")
    assert victim.read_bytes() == b"mine\n"


def test_start_does_not_block_on_gitignore_that_is_a_pipe(project: Project) -> None:
    project.gsd.mkdir()
    os.mkfifo(project.gsd / ".gitignore")
    command = [sys.executable, "-m", "gsd_fsm", "start", "execute"]
    done = subprocess.run(command, cwd=project.root, capture_output=True, timeout=10, check=False)
    assert done.returncode in (0, 6), done


def test_start_gives_every_loop_and_journal_its_own_id(here: Here, tmp_path: Path) -> None:
    first = here.start("execute")
    here.where = tmp_path / "second"
    here.where.mkdir()
    assert here.start("execute") != first
    other = json.loads((here.where / ".gsd/journal.jsonl").read_bytes().split(b"\n")[0])
    assert other["data"]["id"] != here.lines()[0]["data"]["id"]


@pytest.mark.parametrize(
    "options",
    [
        ["--max-iterations", "99999999999999999999"],
        ["--check", "t=" + "x" * 9000],
        ["--check", "t=\udcff"],
        [word for n in range(3000) for word in ("--task", f"T{n}:title")],
    ],
    ids=["number", "long check", "no text", "tasks"],
)
def test_start_that_is_rejected_creates_nothing(here: Here, options: list[str]) -> None:
    here.refused(2, "start", "goal", "g", *options)
    assert list(here.root.iterdir()) == []


def test_start_fresh_names_the_cancelled_loop(here: Here) -> None:
    old = here.start("goal", "g")
    assert f"Cancelled loop {old}." in here.ok("start", "goal", "h", "--fresh").out
