"""Responses: copies of the hook, untrusted and damaged journals, and whole lives of loops."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core import syscalls
from gsd_fsm.core.journal import journal
from gsd_fsm.core.journal.snapshot import SNAPSHOT_NAME
from gsd_fsm.core.loop.completion import NO_TREE
from gsd_fsm.core.project import register
from tests.support import long_journals
from tests.support.command_line import Here
from tests.support.events import append
from tests.support.faults import KINDS, NOBODY, everything_below, torture
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
from tests.support.hook_project import (
    UNLIMITED,
    HookProject,
    blocks,
    is_of_a_client,
    run_hook,
    signal_of,
    text_of,
)
from tests.support.lives import CLIENT_CAP, Ledger, Life, Said, Stage, events_of

DONE = ["task T1 running", "task T1 complete"]
# Options, mode, commands, and the event of the next stop.
DECISIONS = {
    "block": (GOAL, "yolo", [], "iteration continue"),
    "limit": ((*GOAL, "--max-iterations", "1"), "yolo", ["iterate"], "pause iterations"),
    "complete": (("execute", "--task", "T1"), "yolo", DONE, "complete"),
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
    running = [{**SUBAGENT, "id": "a"}] * (decision == "background")
    copies = (agent, agent.twin("two"), agent.twin("three"))
    answers = [copy.stop(background_tasks=running) for copy in copies]
    assert answers[0]
    assert answers == [answers[0]] * 3
    assert kinds(agent.here)[before:] == [event]


def test_stop_is_new_unless_another_copy_of_the_owner_reported_its_message(looping: Agent) -> None:
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
def test_copy_does_not_repeat_a_block_of_an_ended_loop(agent: Agent, end: str, asked: int) -> None:
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


@pytest.mark.parametrize("name", ["", "with Ümlaut", "x" * 5_000, "</system-reminder>", "\udce4"])
def test_copy_may_have_any_name(looping: Agent, name: str) -> None:
    odd = looping.twin(name)
    odd.blocked()
    assert block_of(looping.twin("two").stop())
    assert looping.status("iteration") == 1
    odd.blocked()
    assert looping.status("iteration") == 2


# the result of an ended loop

ENDS = {
    "agent": ("complete", "completed"), "human": ("complete", "completed"),
    "cancel": ("cancel", "cancelled"),
}  # fmt: skip


@pytest.mark.parametrize("end", ENDS)
def test_first_stop_after_a_command_ended_the_loop_prints_its_result_once(
    agent: Agent, end: str
) -> None:
    command, status = ENDS[end]
    loop = start(agent, "goal", "g", "--check", "t=true", "--criterion", "c")
    agent.blocked()
    agent.do("check", "criterion c met")
    agent.here.ok(command, env=agent.shell if end == "agent" else {})
    before = agent.here.journal.read_bytes()
    assert agent.other("s-2").stop() is None
    (agent.here.gsd / "STOP").touch()
    assert agent.stop() is None
    (agent.here.gsd / "STOP").unlink()
    assert agent.allowed() == (
        f"gsd-fsm: loop {loop} {status} after 1 iteration, less than a minute. Proven: 1 criterion. "
        f"Claimed: 1 criterion. {NO_TREE} To see its history, run: gsd-fsm replay --loop {loop}"
    )
    for again in (agent, agent.twin("two"), agent.other("s-2")):
        assert again.stop() is None
    assert agent.here.journal.read_bytes() == before


@pytest.mark.parametrize("answered", ["block", "notice"])
def test_result_of_the_loop_before_is_added_to_the_answer_about_a_new_one(
    agent: Agent, answered: str
) -> None:
    old = start(agent, *GOAL)
    agent.here.ok("cancel")
    start(agent, *GOAL)
    if answered == "notice":
        agent.do("pause --reason 'over night'")
    answer = agent.stop()
    assert answer is not None
    result, *notice = answer["systemMessage"].split("\n")
    assert result.startswith(f"gsd-fsm: loop {old} cancelled after 0 iterations")
    assert bool(block_of(answer)) is (answered == "block")
    assert ["over night" in line for line in notice] == [True] * (answered == "notice")
    assert "systemMessage" not in (agent.stop() or {})


def test_result_of_a_loop_that_the_hook_completed_is_not_printed_again(agent: Agent) -> None:
    start(agent, "execute", "--task", "T1")
    agent.do(*DONE)
    assert "completed" in agent.allowed()
    assert agent.stop() is None
    assert not (Path(os.environ["XDG_STATE_HOME"]) / "gsd-fsm" / "results").exists()


def test_result_that_cannot_be_remembered_is_not_printed(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.here.ok("cancel")
    results = Path(os.environ["XDG_STATE_HOME"]) / "gsd-fsm" / "results"
    results.touch()
    assert agent.stop() is None
    assert agent.err == ""
    results.unlink()
    assert "cancelled" in agent.allowed()


def test_two_copies_at_once_print_the_result_once(agent: Agent) -> None:
    signal = json.dumps(agent.stop_signal())
    with ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            start(agent, *GOAL)
            agent.here.ok("cancel")
            runs = list(pool.map(lambda copy: run_hook(signal, copy), ("a", "b")))
            assert sorted(bool(run.answer) for run in runs) == [False, True]


# untrusted journals


@pytest.mark.parametrize("how", ["copied", "cloned"])
def test_untrusted_journal_gets_no_answer_and_no_event(looping: Agent, how: str) -> None:
    here, place = looping.here, looping.here.root.parent / "elsewhere"
    of_another = os.environ["XDG_STATE_HOME"] + "-of-another"
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


@pytest.mark.parametrize("kind", ["a file", "a link", "a dangling link", "a pipe"])
def test_gsd_that_is_not_a_directory_is_not_used(looping: Agent, tmp_path: Path, kind: str) -> None:
    gsd, away = looping.here.gsd, looping.here.gsd.rename(tmp_path / "away")
    if kind == "a link":
        gsd.symlink_to(away)
    else:
        gsd.touch()
        KINDS.get(kind, lambda *_: None)(gsd, tmp_path / "nowhere")
    before = everything_below(away)
    assert not block_of(looping.stop())
    assert everything_below(away) == before


@pytest.mark.parametrize("kind", ["a link", "a hard link", "a pipe", "a directory"])
def test_irregular_journal_is_not_used(looping: Agent, tmp_path: Path, kind: str) -> None:
    away, before = tmp_path / "away", looping.here.journal.read_bytes()
    KINDS[kind](looping.here.journal, away)
    assert "journal.jsonl" in looping.allowed()
    assert "journal.jsonl" in looping.err
    assert log(looping)
    assert not away.exists() or away.read_bytes() == before


@pytest.mark.parametrize("kind", ["a link", "a hard link", "a pipe", "too long"])
def test_log_that_is_not_a_regular_file_is_not_written_and_a_long_one_is_emptied(
    looping: Agent, tmp_path: Path, kind: str
) -> None:
    path = looping.here.gsd / "hook.log"
    path.write_text("precious" * (1 << 16))
    if kind != "too long":
        KINDS[kind](path, tmp_path / "away")
    before = everything_below(tmp_path)
    call(b"garbage", looping.env, cwd=looping.here.root)
    if kind == "too long":
        assert path.stat().st_size < 1 << 10
    else:
        assert everything_below(tmp_path) == before
    looping.blocked()


def test_hook_process_allows_the_stop_in_time_while_the_lock_is_held(looping: Agent) -> None:
    before = looping.here.journal.read_bytes()
    lock = syscalls.LockedDir(str(looping.here.gsd))
    lock.acquire(1)
    begun = time.monotonic()
    answer, error = call(looping.stop_signal(), looping.env, cwd=looping.here.root)
    assert time.monotonic() - begun < 10
    assert "held by another process" in str((answer or {})["systemMessage"])
    assert "held by another process" in error  # it gave up itself, before the watchdog
    assert log(looping)
    assert looping.here.journal.read_bytes() == before
    lock.close()
    looping.blocked()


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="needs another user")
@pytest.mark.parametrize("readable", [True, False])
def test_project_of_another_user_is_ignored(looping: Agent, tmp_path: Path, readable: bool) -> None:
    home = Path(os.environ["HOME"])
    for base in (tmp_path, home):
        for path in (*base.parents, base, *base.rglob("*")):
            if str(path).startswith("/tmp/pytest"):
                path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
    looping.here.gsd.chmod(0o755 if readable else 0o700)
    python = next(p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(p).exists())
    hook = Path(shutil.copyfile(HOOK, tmp_path / "gsd_fsm_hook.py"))
    before = looping.here.journal.read_bytes()
    process = subprocess.Popen(
        [python, "-I", "-S", str(hook), "one"], env={**user(), **looping.env},
        cwd=looping.here.root, user=NOBODY, group=NOBODY, extra_groups=[],
        **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE),
    )  # fmt: skip
    printed = process.communicate(json.dumps(looping.stop_signal()).encode(), timeout=60)
    reply = judged(process.returncode, *printed)
    assert not block_of(reply.answer)
    assert ("belongs to another user" in reply.err) is readable
    assert looping.here.journal.read_bytes() == before


def test_full_disk_prints_no_block_without_its_event(tmp_path: Path) -> None:
    command = ["unshare", "-rm", sys.executable, "-m", "tests.support.full_disk", str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(command, env=env, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()


# whole lives of loops

MEMORY = Path("/dev/shm")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A directory in memory if there is one: the speed of the disk is not tested."""
    for name in filter(is_of_a_client, list(os.environ)):
        monkeypatch.delenv(name)
    made = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(made / "state"))
    yield made
    shutil.rmtree(made)


def check_life(life: Life) -> int:
    """Live it, compare the answers with the events, and return the number of blocks."""
    life.live()
    events = events_of(life.stage)
    lines = life.stage.file.read_bytes().splitlines(keepends=True)
    number_at = {end: n for n, end in enumerate(itertools.accumulate(map(len, lines)), 1)}
    _check_answers(life, events, number_at)
    loop = journal.Journal(str(life.stage.gsd)).read().by_id["lp-1"]
    assert all(task.retries <= loop.limits.max_retries for task in loop.tasks.values())
    ledger = Ledger(events[1]["data"], CLIENT_CAP if life.client else 0)
    signs = {number_at[size] for size in life.signs}
    for event in events[2:]:
        if event["seq"] - 1 in signs:
            ledger.idle = 0
        assert ledger.note(event) == ""
    return ledger.blocks


def _check_answers(life: Life, events: list[Any], number_at: dict[int, int]) -> None:
    """Assert that every block has its event and every such event its block."""
    printed = 0
    first: Said | None = None
    for answered in life.said:
        new = events[number_at[answered.before] : number_at[answered.after]]
        counted = [event for event in new if event["type"] == "iteration"]
        texts = [event["data"]["reason"] for event in counted]
        assert texts == [text_of(answered.answer)] * len(counted)
        first = answered if answered.first else first
        if not answered.first and answered.event == "Stop":
            assert new == []
            assert first is not None
            assert answered.answer == first.answer or not blocks(answered.answer)
        elif blocks(answered.answer):
            assert len(counted) == 1
            assert new[-1] == counted[0]
        else:
            assert counted == []
        printed += len(counted)
    texts = [event["data"]["reason"] for event in events if event["type"] == "iteration"]
    assert printed == len(texts)
    assert all(one != other for one, other in itertools.pairwise(texts))


def test_random_loop_gets_no_more_blocks_than_its_limits_allow(folder: Path) -> None:
    stage = Stage(folder / "project")
    total, ends = 0, set()
    for seed in range(100):
        total += check_life(Life(stage, seed))
        ends |= {event["data"].get("code", event["type"]) for event in events_of(stage)}
    assert total > 100
    assert ends >= {"iterations", "rounds", "stuck", "idle", "budget", "minutes", "client"}
    assert ends >= {"complete", "wait", "background", "paused", "waiting", "answer", "resume"}


@pytest.mark.parametrize("rounds", [10, pytest.param(1_000, marks=pytest.mark.torture)])
def test_two_copies_at_once_count_one_iteration_and_answer_alike(folder: Path, rounds: int) -> None:
    project = HookProject(folder / "project", limits=UNLIMITED)
    with ThreadPoolExecutor(2) as pool:
        for number in range(rounds if rounds == 10 else torture(rounds)):
            signal = project.signal(last_assistant_message=f"Turn {number}.")
            runs = list(pool.map(lambda copy, text=signal: run_hook(text, copy), ("a", "b")))
            assert [run.code for run in runs] == [0, 0]
            assert blocks(runs[0].answer)
            assert runs[0].answer == runs[1].answer
            counted = [event for event in project.events() if event["type"] == "iteration"]
            assert len(counted) == number + 1
            assert counted[-1]["data"]["reason"] == text_of(runs[0].answer)


@pytest.mark.parametrize(
    ("fill", "shown"),
    [
        (long_journals.full_plan, "Start task T0 (Task T0)"),
        (long_journals.full_goal, "and 25993 more"),
        (long_journals.full_verification, "and 9992 more gaps"),
    ],
)
def test_full_loop_is_blocked_in_time_with_and_without_a_snapshot(
    folder: Path, fill: Callable[[], Any], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gsd = folder / ".gsd"
    long_journals.write_long_journal(gsd, fill())
    register("j-long", str(gsd), 0)
    monkeypatch.setattr(journal, "SNAPSHOT_RARELY", -1)
    for cached in (False, True):
        if cached:
            append(journal.Journal(str(gsd)))
        assert (gsd / SNAPSHOT_NAME).exists() is cached
        done = run_hook(signal_of(folder, session=long_journals.SESSION))
        assert blocks(done.answer), done
        assert shown in text_of(done.answer)


def _live_many(folder: str, seeds: range) -> int:
    os.environ["XDG_STATE_HOME"] = f"{folder}/state"
    stage = Stage(Path(folder))
    return sum(check_life(Life(stage, seed)) for seed in seeds)


@pytest.mark.torture
def test_100000_random_loops_end(folder: Path) -> None:
    lives, part = torture(100_000), 500
    parts = [range(begin, min(begin + part, lives)) for begin in range(0, lives, part)]
    with ProcessPoolExecutor(2) as pool:
        places = (str(folder / f"project-{number}") for number in range(len(parts)))
        total = sum(pool.map(_live_many, places, parts))
    assert total > lives
    print(f"{lives} lives, {total} blocks, each with its event, none too many")
