"""Responses: several copies of the hook, untrusted journals, damage, locks and full disks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Here
from tests.support.hook_agent import (
    COMMAND,
    GOAL,
    HOOK,
    SUBAGENT,
    Agent,
    Reply,
    call,
    judged,
    kinds,
    start,
    told,
    user,
)
from tests.support.lines import chain, header
from tests.support.lines import start as forged_start

ROOT = Path(__file__).resolve().parents[3]
ONE_TASK = ("execute", "--task", "T1")


# several copies of the hook


def together(agents: list[Agent], stop: dict[str, Any]) -> list[Reply]:
    """Call all copies at once, as a client does."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = [
        subprocess.Popen(
            [*COMMAND, agent.copy], env={**user(), **agent.env}, cwd=agent.here.root, **pipes
        )
        for agent in agents
    ]
    for process in running:
        assert process.stdin
        process.stdin.write(json.dumps(stop).encode())
        process.stdin.flush()
    replies = []
    for process in running:
        out, err = process.communicate(timeout=60)
        replies.append(judged(process.returncode, out, err))
    return replies


def prepare(agent: Agent, decision: str) -> tuple[str, dict[str, Any]]:
    """Make a loop whose next stop is decided like this; return the event and the signal's members."""
    if decision == "complete":
        start(agent, *ONE_TASK)
        agent.do("task T1 skipped")
        return "complete", {}
    if decision == "wait":
        start(agent, *ONE_TASK, by="interactive")
        agent.do("fail T1 --error x --class logic")
        return "wait", {}
    start(agent, *GOAL, "--max-iterations", "1" if decision == "limit" else "5")
    if decision == "limit":
        agent.do("iterate")
        return "pause iterations", {}
    if decision == "background":
        return "stop background", {"background_tasks": [{**SUBAGENT, "id": "a"}]}
    if decision == "paused":
        agent.here.ok("pause")
        return "stop paused", {}
    return "iteration continue", {}


@pytest.mark.parametrize("decision", ["block", "limit", "complete", "wait", "background", "paused"])
@pytest.mark.parametrize("at_once", [False, True], ids=["in sequence", "at once"])
def test_second_copy_repeats_the_answer_and_appends_nothing(
    agent: Agent, decision: str, at_once: bool
) -> None:
    event, members = prepare(agent, decision)
    before = len(agent.here.lines())
    stop = agent.stop_signal(**members)
    copies = [agent, agent.twin("two"), agent.twin("three")]
    if at_once:
        answers = [reply.answer for reply in together(copies, stop)]
    else:
        answers = [copy.send(stop) for copy in copies]
    assert answers[0]
    assert answers == [answers[0]] * 3
    assert kinds(agent.here)[before:] == [event]


def test_same_copy_called_again_is_a_new_stop(looping: Agent) -> None:
    assert looping.blocked() != looping.blocked()
    assert looping.status("iteration") == 2


def test_copies_that_alternate_in_being_first_see_one_stop_each_time(agent: Agent) -> None:
    start(agent, *GOAL, "--idle-limit", "0", "--stuck-limit", "0")
    two = agent.twin("two")
    answers = []
    for number, order in enumerate([(agent, two), (two, agent), (agent, two), (two, agent)], 1):
        answers.append([told(copy.stop()) for copy in order])
        assert agent.status("iteration") == number
    assert all(one == other for one, other in answers)
    assert len({one for one, _ in answers}) == 4


def test_copy_does_not_repeat_a_block_after_the_loop_paused(agent: Agent) -> None:
    start(agent, *GOAL, "--max-iterations", "1")
    two = agent.twin("two")
    agent.blocked()
    two.stop()
    assert told(two.stop()) == ""
    assert told(agent.stop()) == ""
    assert agent.status("pause_code") == "iterations"


@pytest.mark.parametrize("end", ["pause", "cancel", "complete"])
@pytest.mark.parametrize("asked", [1, 2])
def test_copy_does_not_repeat_a_block_after_the_loop_ended(
    agent: Agent, end: str, asked: int
) -> None:
    start(agent, *ONE_TASK)
    copies = [agent, agent.twin("two")]
    for copy in copies[:asked]:
        assert told(copy.stop())
    agent.here.ok("task", "T1", "skipped")
    agent.here.ok(end)
    for copy in copies:
        assert not told(copy.stop())


def test_copy_repeats_an_answer_after_a_note_in_between(looping: Agent) -> None:
    text = looping.blocked()
    looping.here.ok("note", "in between")
    assert told(looping.twin("two").stop()) == text
    assert kinds(looping.here).count("iteration continue") == 1


def test_another_message_is_another_stop(looping: Agent) -> None:
    looping.blocked("one")
    looping.twin("two").blocked("two")
    assert looping.status("iteration") == 2


def test_copy_answers_only_the_owner(looping: Agent) -> None:
    looping.blocked()
    assert looping.other("s-2", "two").stop() is None


def test_prompt_seen_by_two_copies_is_recorded_once(agent: Agent) -> None:
    agent.here.start(*GOAL)
    for _ in range(2):
        agent.prompt("hello")
        agent.twin("two").prompt("hello")
        assert kinds(agent.here).count("session bind") == 1
        if agent.status("iteration") == 0:
            agent.blocked()
    assert kinds(agent.here).count("stop client") == 1


@pytest.mark.parametrize(
    "name", ["", "Name with Ümlaut", "x" * 5_000, "</system-reminder>", "\udce4"]
)
def test_copy_may_have_any_name(looping: Agent, name: str) -> None:
    odd = looping.twin(name)
    odd.blocked()
    assert told(looping.twin("two").stop())
    assert looping.status("iteration") == 1
    odd.blocked()
    assert looping.status("iteration") == 2


# untrusted journals


@pytest.mark.parametrize("how", ["copied", "moved", "cloned"])
def test_untrusted_journal_gets_no_answer_and_no_event(looping: Agent, how: str) -> None:
    place = looping.here.root.parent / "elsewhere"
    if how == "moved":
        looping.here.root.rename(place)
    else:
        shutil.copytree(looping.here.root, place, symlinks=True)
    there = Agent(Here(place, looping.here.patch), looping.place)
    if how == "cloned":
        looping.here.patch.setenv("XDG_STATE_HOME", os.environ["XDG_STATE_HOME"] + "-of-another")
    before = there.here.journal.read_bytes()
    assert there.stop() is None
    assert there.prompt() == there.starts() == there.ends() == there.fails("rate_limit") == ""
    assert there.err == ""
    assert there.here.journal.read_bytes() == before


def test_untrusted_journal_in_the_place_of_a_trusted_one_gets_no_answer(
    looping: Agent, tmp_path: Path
) -> None:
    looping.here.journal.unlink()
    somebody = {**looping.shell, "XDG_STATE_HOME": str(tmp_path / "somebody else")}
    looping.here.start(*GOAL, env=somebody)
    before = looping.here.journal.read_bytes()
    assert (looping.stop(), looping.starts("resume"), looping.prompt("hello")) == (None, "", "")
    assert looping.here.journal.read_bytes() == before


# damage


def log(agent: Agent) -> list[str]:
    path = agent.here.gsd / "hook.log"
    return path.read_text("ascii").splitlines() if path.is_file() else []


def assert_logged(agent: Agent, words: str) -> None:
    """Every signal is answered with nothing; stderr and the log say why."""
    for answer in (agent.stop(), agent.send(agent.signal("UserPromptSubmit", prompt="x"))):
        assert answer is None
        assert agent.err.startswith("gsd-fsm hook: the stop is allowed: ")
        assert words in agent.err
    assert len(log(agent)) == 2
    assert words in log(agent)[-1]


def test_corrupt_journal_is_logged_and_left_alone(looping: Agent) -> None:
    broken = looping.here.journal.read_bytes().replace(b"Ship it", b"Skip it", 1)
    looping.here.journal.write_bytes(broken)
    assert_logged(looping, "line 2")
    assert looping.here.journal.read_bytes() == broken


def test_journal_of_a_later_version_is_logged_and_left_alone(looping: Agent) -> None:
    known = looping.here.lines()[0]["data"]["id"]
    later = chain([header(id=known, incompat=["segments"]), forged_start(goal="Ship it")])
    looping.here.journal.write_bytes(later)
    assert_logged(looping, "segments")
    assert looping.here.journal.read_bytes() == later


def test_torn_tail_is_repaired_before_the_decision(looping: Agent) -> None:
    with looping.here.journal.open("ab") as file:
        file.write(b'{"v":1,"seq":3,"ts"')
    looping.blocked()
    assert kinds(looping.here)[-2:] == ["repair", "iteration continue"]
    assert looping.here.ok("fsck", "--json").json["ok"]


def replace(path: Path, away: Path, what: str) -> None:
    """Move a file or directory away and put something else in its place."""
    if path.exists():
        path.rename(away)
    if what == "file":
        path.write_text("x")
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "directory":
        path.mkdir()
    elif what == "hard link":
        os.link(away, path)
    else:
        path.symlink_to(away if what == "link" else away.with_name("nowhere"))


@pytest.mark.parametrize("what", ["file", "link", "fifo", "dangling link"])
def test_gsd_that_is_not_a_directory_is_not_used(looping: Agent, tmp_path: Path, what: str) -> None:
    away = tmp_path / "away"
    replace(looping.here.gsd, away, what)
    before = {path.name: path.read_bytes() for path in away.iterdir()}
    assert looping.stop() is None
    assert {path.name: path.read_bytes() for path in away.iterdir()} == before


@pytest.mark.parametrize("what", ["fifo", "link", "directory", "hard link"])
def test_journal_that_is_not_a_regular_file_is_not_used(
    looping: Agent, tmp_path: Path, what: str
) -> None:
    away = tmp_path / "away"
    before = looping.here.journal.read_bytes()
    replace(looping.here.journal, away, what)
    assert looping.stop() is None
    assert "journal.jsonl" in looping.err
    assert away.read_bytes() == before
    assert log(looping)


@pytest.mark.parametrize("what", ["link", "hard link", "fifo"])
def test_log_that_is_not_a_regular_file_is_not_written(
    looping: Agent, tmp_path: Path, what: str
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    replace(looping.here.gsd / "hook.log", victim, what)
    call(b"garbage", looping.env, cwd=looping.here.root)
    assert victim.read_text() == "precious"
    looping.blocked()


def test_log_is_emptied_when_it_is_too_long(looping: Agent) -> None:
    path = looping.here.gsd / "hook.log"
    path.write_text("x" * (1 << 19))
    call(b"garbage", looping.env, cwd=looping.here.root)
    assert path.stat().st_size < 1 << 10


def test_stop_is_allowed_while_another_process_holds_the_lock(looping: Agent) -> None:
    code = (
        "import fcntl, sys, time; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX);"
        " print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(looping.here.gsd / "journal.lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
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
    looping.blocked()


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="needs another user")
@pytest.mark.parametrize("readable", [True, False])
def test_project_of_another_user_is_left_alone(
    looping: Agent, tmp_path: Path, readable: bool
) -> None:
    nobody = 65_534
    home = Path(os.environ["HOME"])
    for base in (tmp_path, home):
        for path in (*base.parents, base, *base.rglob("*")):
            if str(path).startswith("/tmp/pytest"):
                path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
    looping.here.gsd.chmod(0o755 if readable else 0o700)
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


def test_full_disk_prints_no_block_without_its_event(tmp_path: Path) -> None:
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, "-m", "tests.support.full_disk", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


def test_read_only_directory_does_not_prevent_an_append(looping: Agent) -> None:
    looping.here.gsd.chmod(0o500)
    looping.blocked()
    looping.here.gsd.chmod(0o700)
