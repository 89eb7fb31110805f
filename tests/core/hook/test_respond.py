"""Responses: several copies of the hook, untrusted journals, damage, locks and full disks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gsd_fsm.core.hook import main, respond
from gsd_fsm.core.syscalls import LockedDir
from tests.support.command_line import Here
from tests.support.faults import KINDS, NOBODY, everything_below
from tests.support.hook_agent import (
    GOAL,
    HOOK,
    SUBAGENT,
    Agent,
    block_of,
    call,
    judged,
    kinds,
    start,
    user,
)
from tests.support.lines import chain, header
from tests.support.lines import start as forged_start

ROOT = Path(__file__).resolve().parents[3]
BACKGROUND = {"background_tasks": [{**SUBAGENT, "id": "a"}]}
# Options, mode, commands, and the event of the next stop.
DECISIONS = {
    "block": (GOAL, "yolo", [], "iteration continue"),
    "limit": ((*GOAL, "--max-iterations", "1"), "yolo", ["iterate"], "pause iterations"),
    "complete": (("execute", "--task", "T1"), "yolo", ["task T1 skipped"], "complete"),
    "wait": (("execute", "--task", "T1"), "interactive", ["fail T1 --error x"], "wait"),
    "background": (GOAL, "yolo", [], "stop background"),
    "paused": (GOAL, "yolo", ["pause"], "stop paused"),
}


@pytest.mark.parametrize("decision", DECISIONS)
def test_second_copy_repeats_the_answer_and_appends_nothing(agent: Agent, decision: str) -> None:
    options, mode, commands, event = DECISIONS[decision]
    start(agent, *options, by=mode)
    agent.do(*commands)
    before = len(agent.here.lines())
    stop = agent.stop_signal(**(BACKGROUND if decision == "background" else {}))
    copies = (agent, agent.twin("two"), agent.twin("three"))
    answers = [copy.send(stop) for copy in copies]
    assert answers[0]
    assert answers == [answers[0]] * 3
    assert kinds(agent.here)[before:] == [event]


def test_stop_is_new_unless_another_copy_of_the_owner_reported_the_same_message(
    looping: Agent,
) -> None:
    two = looping.twin("two")
    first, text = looping.blocked("one"), looping.blocked("one")
    assert first != text
    looping.here.ok("note", "in between")
    assert block_of(two.stop("one")) == text
    assert looping.other("s-2", "three").stop("one") is None
    assert kinds(looping.here).count("iteration continue") == 2
    assert "in between" in two.blocked("two")


def test_copies_that_alternate_in_being_first_see_one_stop_each_time(agent: Agent) -> None:
    start(agent, *GOAL, "--idle-limit", "0", "--stuck-limit", "0")
    two = agent.twin("two")
    answers = []
    for number, order in enumerate([(agent, two), (two, agent), (agent, two), (two, agent)], 1):
        answers.append([block_of(copy.stop()) for copy in order])
        assert agent.status("iteration") == number
    assert all(one == other for one, other in answers)
    assert len({one for one, _ in answers}) == 4


@pytest.mark.parametrize("end", ["pause", "cancel", "complete"])
@pytest.mark.parametrize("asked", [1, 2])
def test_copy_does_not_repeat_a_block_after_the_loop_ended(
    agent: Agent, end: str, asked: int
) -> None:
    start(agent, "execute", "--task", "T1")
    copies = [agent, agent.twin("two")]
    for copy in copies[:asked]:
        assert block_of(copy.stop())
    agent.here.ok("task", "T1", "skipped")
    agent.here.ok(end)
    for copy in copies:
        assert not block_of(copy.stop())


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
    assert block_of(looping.twin("two").stop())
    assert looping.status("iteration") == 1
    odd.blocked()
    assert looping.status("iteration") == 2


# untrusted journals


@pytest.mark.parametrize("how", ["copied", "moved", "cloned", "replaced"])
def test_untrusted_journal_gets_no_answer_and_no_event(looping: Agent, how: str) -> None:
    here, place = looping.here, looping.here.root.parent / "elsewhere"
    of_another = os.environ["XDG_STATE_HOME"] + "-of-another"
    if how == "replaced":
        here.journal.unlink()
        here.start(*GOAL, env={**looping.shell, "XDG_STATE_HOME": of_another})
        place = here.root
    elif how == "moved":
        here.root.rename(place)
    else:
        shutil.copytree(here.root, place, symlinks=True)
    if how == "cloned":
        here.patch.setenv("XDG_STATE_HOME", of_another)
    there = Agent(Here(place, here.patch), looping.place)
    before = there.here.journal.read_bytes()
    assert there.stop() is None
    assert there.prompt() == there.starts() == there.ends() == there.fails("rate_limit") == ""
    assert there.err == ""
    assert there.here.journal.read_bytes() == before


# damage


def log(agent: Agent) -> list[str]:
    path = agent.here.gsd / "hook.log"
    return path.read_text("ascii").splitlines() if path.is_file() else []


@pytest.mark.parametrize("what", ["corrupt", "newer"])
def test_journal_that_cannot_be_read_is_logged_and_left_alone(looping: Agent, what: str) -> None:
    known = looping.here.lines()[0]["data"]["id"]
    data = looping.here.journal.read_bytes().replace(b"Ship it", b"Skip it", 1)
    if what == "newer":
        data = chain([header(id=known, incompat=["segments"]), forged_start(goal="Ship it")])
    looping.here.journal.write_bytes(data)
    problem = "line 2" if what == "corrupt" else "segments"
    for answer in (looping.stop(), looping.send(looping.signal("UserPromptSubmit", prompt="x"))):
        assert answer is None
        assert looping.err.startswith("gsd-fsm hook: the stop is allowed: ")
        assert problem in looping.err
    assert [problem in line for line in log(looping)] == [True, True]
    assert looping.here.journal.read_bytes() == data


def test_torn_tail_is_repaired_before_the_decision(looping: Agent) -> None:
    with looping.here.journal.open("ab") as file:
        file.write(b'{"v":1,"seq":3,"ts"')
    looping.blocked()
    assert kinds(looping.here)[-2:] == ["repair", "iteration continue"]
    assert looping.here.ok("fsck", "--json").json["ok"]


@pytest.mark.parametrize("kind", ["a file", "a link", "a dangling link", "a pipe"])
def test_gsd_that_is_not_a_directory_is_not_used(looping: Agent, tmp_path: Path, kind: str) -> None:
    gsd, away = looping.here.gsd, looping.here.gsd.rename(tmp_path / "away")
    if kind == "a link":
        gsd.symlink_to(away)
    else:
        gsd.touch()
        KINDS.get(kind, lambda *_: None)(gsd, tmp_path / "nowhere")
    before = everything_below(away)
    assert looping.stop() is None
    assert everything_below(away) == before


@pytest.mark.parametrize("kind", ["a link", "a hard link", "a pipe", "a directory"])
def test_journal_that_is_not_a_regular_file_is_not_used(
    looping: Agent, tmp_path: Path, kind: str
) -> None:
    away, before = tmp_path / "away", looping.here.journal.read_bytes()
    KINDS[kind](looping.here.journal, away)
    assert looping.stop() is None
    assert "journal.jsonl" in looping.err
    assert log(looping)
    assert not away.exists() or away.read_bytes() == before


@pytest.mark.parametrize("kind", ["a link", "a hard link", "a pipe"])
def test_log_that_is_not_a_regular_file_is_not_written(
    looping: Agent, tmp_path: Path, kind: str
) -> None:
    (looping.here.gsd / "hook.log").write_text("precious")
    KINDS[kind](looping.here.gsd / "hook.log", tmp_path / "away")
    before = everything_below(tmp_path)
    call(b"garbage", looping.env, cwd=looping.here.root)
    assert everything_below(tmp_path) == before
    looping.blocked()


def test_log_is_emptied_when_it_is_too_long(looping: Agent) -> None:
    path = looping.here.gsd / "hook.log"
    path.write_text("x" * (1 << 19))
    call(b"garbage", looping.env, cwd=looping.here.root)
    assert path.stat().st_size < 1 << 10


def test_stop_is_allowed_while_the_lock_is_held(
    looping: Agent, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert respond._LOCK_SECONDS < main._WORK_SECONDS  # the watchdog
    monkeypatch.setattr(respond, "_LOCK_SECONDS", 0.1)
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(looping.here.root))
    before = looping.here.journal.read_bytes()
    lock = LockedDir(str(looping.here.gsd))
    lock.acquire(1)
    assert main.reply(json.dumps(looping.stop_signal()), "one") == {}
    assert "held by another process" in capfd.readouterr().err
    assert log(looping)
    assert looping.here.journal.read_bytes() == before
    lock.close()
    looping.blocked()


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="needs another user")
@pytest.mark.parametrize("readable", [True, False])
def test_project_of_another_user_is_left_alone(
    looping: Agent, tmp_path: Path, readable: bool
) -> None:
    home = Path(os.environ["HOME"])
    for base in (tmp_path, home):
        for path in (*base.parents, base, *base.rglob("*")):
            if str(path).startswith("/tmp/pytest"):
                path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
    looping.here.gsd.chmod(0o755 if readable else 0o700)
    python = next(p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(p).exists())
    hook = Path(shutil.copyfile(HOOK, tmp_path / "gsd_fsm_hook.py"))
    before = looping.here.journal.read_bytes()
    done = subprocess.run(
        [python, "-I", "-S", str(hook), "one"],
        input=json.dumps(looping.stop_signal()).encode(),
        env={**user(), **looping.env},
        cwd=looping.here.root,
        user=NOBODY,
        group=NOBODY,
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
