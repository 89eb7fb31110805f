"""Damaged, foreign, locked or full: the stop is allowed, and the user can find out why."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Project
from tests.support.hook_agent import HOOK, Agent, call, judged, kinds, start, told, user
from tests.support.lines import chain, header
from tests.support.lines import start as forged_start

GOAL = ("goal", "Ship it", "--criterion", "it is shipped")
HERE = Path(__file__).resolve().parents[3]


@pytest.fixture
def looping(agent: Agent) -> Agent:
    start(agent, *GOAL)
    return agent


def log(agent: Agent) -> list[str]:
    path = agent.here.gsd / "hook.log"
    return path.read_text("ascii").splitlines() if path.is_file() else []


def refuses(agent: Agent, words: str) -> None:
    """Every signal is let pass; stderr and the log say why."""
    for answer in (agent.stop(), agent.send(agent.signal("UserPromptSubmit", prompt="x"))):
        assert answer is None
        assert agent.err.startswith("gsd-fsm hook: the stop is allowed: ")
        assert words in agent.err
    assert words in log(agent)[-1]


def test_a_corrupt_journal_is_told_and_left_alone(looping: Agent) -> None:
    data = looping.here.journal.read_bytes()
    broken = data.replace(b"Ship it", b"Skip it", 1)
    looping.here.journal.write_bytes(broken)
    refuses(looping, "line 2")
    assert looping.here.journal.read_bytes() == broken
    assert len(log(looping)) == 2


def test_a_torn_tail_is_mended_and_told_by_an_event(looping: Agent) -> None:
    with looping.here.journal.open("ab") as file:
        file.write(b'{"v":1,"seq":3,"ts"')
    looping.blocked()
    assert kinds(looping.here)[-2:] == ["repair", "iteration continue"]
    assert looping.here.ok("fsck", "--json").json["ok"]


def test_a_journal_of_a_later_version_is_told_and_left_alone(looping: Agent) -> None:
    known = looping.here.lines()[0]["data"]["id"]
    later = chain([header(id=known, incompat=["segments"]), forged_start(goal="Ship it")])
    looping.here.journal.write_bytes(later)
    refuses(looping, "segments")
    assert looping.here.journal.read_bytes() == later


def test_no_journal_is_no_loop(looping: Agent) -> None:
    looping.here.journal.unlink()
    assert (looping.stop(), looping.err) == (None, "")
    assert not looping.here.journal.exists()
    assert not (looping.here.gsd / "hook.log").exists()


@pytest.mark.parametrize("what", ["file", "link", "fifo", "dangling link"])
def test_a_gsd_that_is_no_directory_is_never_followed(
    looping: Agent, tmp_path: Path, what: str
) -> None:
    gsd = looping.here.gsd
    away = tmp_path / "away"
    gsd.rename(away)
    if what == "file":
        gsd.write_text("x")
    elif what == "fifo":
        os.mkfifo(gsd)
    else:
        gsd.symlink_to(away if what == "link" else tmp_path / "nowhere")
    before = {path.name: path.read_bytes() for path in away.iterdir()}
    assert looping.stop() is None
    assert {path.name: path.read_bytes() for path in away.iterdir()} == before


@pytest.mark.parametrize("what", ["fifo", "link", "directory", "hard link"])
def test_a_journal_that_is_no_plain_file_is_never_used(
    looping: Agent, tmp_path: Path, what: str
) -> None:
    journal = looping.here.journal
    away = tmp_path / "away"
    journal.rename(away)
    if what == "fifo":
        os.mkfifo(journal)
    elif what == "link":
        journal.symlink_to(away)
    elif what == "hard link":
        os.link(away, journal)
    else:
        journal.mkdir()
    before = away.read_bytes()
    assert looping.stop() is None
    assert "journal.jsonl" in looping.err
    assert away.read_bytes() == before
    assert log(looping)


@pytest.mark.parametrize("what", ["link", "hard link", "fifo"])
def test_a_log_that_is_no_plain_file_is_never_written(
    looping: Agent, tmp_path: Path, what: str
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = looping.here.gsd / "hook.log"
    if what == "link":
        path.symlink_to(victim)
    elif what == "hard link":
        os.link(victim, path)
    else:
        os.mkfifo(path)
    call(b"garbage", looping.env, cwd=looping.here.root)
    assert victim.read_text() == "precious"
    looping.blocked()


def test_the_log_does_not_grow_for_ever(looping: Agent) -> None:
    path = looping.here.gsd / "hook.log"
    path.write_text("x" * (1 << 19))
    call(b"garbage", looping.env, cwd=looping.here.root)
    assert path.stat().st_size < 1 << 19


def test_a_lock_that_is_held_lets_the_stop_pass(looping: Agent) -> None:
    code = (
        "import fcntl, sys, time; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX);"
        " print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(looping.here.gsd / "journal.lock")],
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout
        holder.stdout.readline()
        holder.send_signal(signal.SIGSTOP)
        before = looping.here.journal.read_bytes()
        assert looping.stop() is None
        assert "held by another process" in looping.err
        assert log(looping)
        assert looping.here.journal.read_bytes() == before
    finally:
        holder.kill()
        holder.wait()
        if holder.stdout:
            holder.stdout.close()
    looping.blocked()


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="needs another user")
@pytest.mark.parametrize("readable", [True, False])
def test_a_project_of_another_user_is_let_be(
    looping: Agent, tmp_path: Path, readable: bool
) -> None:
    nobody = 65_534
    for path in (*tmp_path.parents, tmp_path, *tmp_path.rglob("*")):
        if str(path).startswith("/tmp/pytest"):
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
    looping.here.gsd.chmod(0o755 if readable else 0o700)
    home = Path(os.environ["HOME"])
    for path in (*home.parents, home, *home.rglob("*")):
        if str(path).startswith("/tmp/pytest"):
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
    python = next(p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(p).exists())
    hook = tmp_path / "gsd_fsm_hook.py"
    hook.write_bytes(HOOK.read_bytes())
    hook.chmod(0o644)
    before = looping.here.journal.read_bytes()
    done = subprocess.run(
        [python, "-I", "-S", str(hook), "one"],
        input=json.dumps(looping.stop_signal()).encode(),
        env={**user(), **looping.env},
        cwd=looping.here.root,
        user=nobody,
        group=nobody,
        extra_groups=[],
        capture_output=True,
        timeout=60,
        check=False,
    )
    reply = judged(done.returncode, done.stdout, done.stderr)
    assert reply.answer is None
    assert ("belongs to another user" in reply.err) is readable
    assert looping.here.journal.read_bytes() == before


def in_small_disk(where: Path) -> None:
    """Run where the mounts are our own: a disk that is full from the second stop on."""
    disk = where / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)], check=True)
    root = disk / "p"
    root.mkdir()
    project = Project(root)
    session = {"CLAUDE_CODE_SESSION_ID": "s-1"}
    project.ok(
        "start", *GOAL, "--mode", "yolo", "--idle-limit", "0", "--stuck-limit", "0", env=session
    )
    signal = {"hook_event_name": "Stop", "session_id": "s-1", "cwd": str(root)}
    assert told(call(signal, cwd=root).answer)
    with (disk / "ballast").open("ab", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"b" * size):
                    pass
    replies: list[Any] = []
    while not replies or told(replies[-1].answer):
        replies.append(call(signal, cwd=root))
    assert len(replies) < 20
    assert replies[-1].answer is None
    assert "journal.jsonl" in replies[-1].err
    blocks = [event for event in project.lines() if event["type"] == "iteration"]
    assert len(blocks) == len(replies)
    assert project.ok("fsck", "--json").json["torn"] == 0
    (disk / "ballast").unlink()
    assert told(call(signal, cwd=root).answer)


def test_on_a_full_disk_no_block_is_printed_without_its_event(tmp_path: Path) -> None:
    code = (
        "from tests.core.hook import test_trouble as t; from pathlib import Path;"
        f" t.in_small_disk(Path({str(tmp_path)!r}))"
    )
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(HERE)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


def test_a_read_only_directory_changes_nothing_for_a_plain_append(looping: Agent) -> None:
    looping.here.gsd.chmod(0o500)
    looping.blocked()
    looping.here.gsd.chmod(0o700)
