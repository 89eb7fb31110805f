"""Failures of the hook: the user sees one line at the start of a session and at stops."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from gsd_fsm import gsd_fsm_hook
from gsd_fsm.core import syscalls
from tests.support.command_line import Here
from tests.support.hook_agent import COMMAND, GOAL, Agent, block_of, kinds, user
from tests.support.hook_project import run_command
from tests.support.lines import chain, header
from tests.support.lines import start as forged_start

UNDECIDED = "gsd-fsm: this stop was allowed without a decision: "
IDLE = "gsd-fsm: the hook failed at session start: "
Failing = Callable[[Agent], "Iterator[Agent]"]


def corrupt(agent: Agent) -> Iterator[Agent]:
    good = agent.here.journal.read_bytes()
    agent.here.journal.write_bytes(good.replace(b"Ship it", b"Skip it", 1))
    yield agent
    agent.here.journal.write_bytes(good)


def newer(agent: Agent) -> Iterator[Agent]:
    good, known = agent.here.journal.read_bytes(), agent.here.lines()[0]["data"]["id"]
    lines = [header(id=known, incompat=["segments"]), forged_start(goal="Ship it")]
    agent.here.journal.write_bytes(chain(lines))
    yield agent
    agent.here.journal.write_bytes(good)


def replaced(agent: Agent) -> Iterator[Agent]:
    good = agent.here.journal.read_bytes()
    agent.here.journal.unlink()
    of_another = os.environ["XDG_STATE_HOME"] + "-of-another"
    agent.here.start(*GOAL, env={**agent.shell, "XDG_STATE_HOME": of_another})
    yield agent
    agent.here.journal.write_bytes(good)


def moved(agent: Agent) -> Iterator[Agent]:
    place = agent.here.root.parent / "elsewhere"
    agent.here.root.rename(place)
    yield Agent(Here(place, agent.here.patch), agent.place)
    place.rename(agent.here.root)


def disabled(agent: Agent) -> Iterator[Agent]:
    (agent.here.gsd / "STOP").touch()
    yield agent
    (agent.here.gsd / "STOP").unlink()


def locked(agent: Agent) -> Iterator[Agent]:
    gsd_fsm_hook.load("engine")
    lock = syscalls.LockedDir(str(agent.here.gsd))
    lock.acquire(1)
    with mock.patch.object(gsd_fsm_hook, "_hook_respond_LOCK_SECONDS", 0.05):
        yield agent
    lock.close()


# What happens, the line at the start of a session and at a stop, and what the journal has then.
FAILURES: dict[str, tuple[Failing, str, str, list[str]]] = {
    "corrupt": (corrupt, IDLE, UNDECIDED, ["stop error"]),
    "newer": (newer, IDLE, UNDECIDED, ["stop error"]),
    "locked": (locked, IDLE, UNDECIDED, ["stop error"]),
    "replaced": (replaced, "gsd-fsm: the journal was replaced", "gsd-fsm: the journal was repl", []),
    "moved": (moved, "gsd-fsm: the journal was moved here", "gsd-fsm: the journal was moved", []),
    "disabled": (disabled, "gsd-fsm: loop ", "gsd-fsm: loop ", ["stop disabled"]),
}  # fmt: skip
NAMED = {
    "corrupt": "line 2", "newer": "segments", "locked": "held by another process",
    "replaced": "Run: gsd-fsm trust", "moved": "Run: gsd-fsm trust",
    "disabled": "the hook is disabled by .gsd/STOP; remove the file to enable it",
}  # fmt: skip


@pytest.mark.parametrize("what", FAILURES)
def test_user_reads_one_line_at_session_start_and_stop_and_the_journal_gets_the_stop(
    looping: Agent, what: str
) -> None:
    cause, at_start, at_stop, recorded = FAILURES[what]
    before = kinds(looping.here)
    with contextmanager(cause)(looping) as agent:
        agent.starts()
        start, stop = agent.notice, agent.allowed()
    for notice, beginning in ((start, at_start), (stop, at_stop)):
        assert notice.startswith(beginning)
        assert NAMED[what] in notice
        assert "\n" not in notice
    looping.blocked()
    assert kinds(looping.here)[len(before) :] == [*recorded, "iteration continue"]


@pytest.mark.parametrize("what", ["corrupt", "newer"])
def test_unusable_journal_is_logged_and_left_alone(looping: Agent, what: str) -> None:
    with contextmanager(FAILURES[what][0])(looping):
        data = looping.here.journal.read_bytes()
        for send in (looping.allowed, looping.prompt, looping.ends):
            send()
            assert looping.err.startswith("gsd-fsm hook: the stop is allowed: ")
            assert NAMED[what] in looping.err
        log = (looping.here.gsd / "hook.log").read_text("ascii").splitlines()
        assert [NAMED[what] in line for line in log] == [True] * 3
        assert looping.here.journal.read_bytes() == data


def test_unusable_journal_is_not_reported_with_each_prompt(looping: Agent) -> None:
    with contextmanager(corrupt)(looping):
        looping.prompt()
        assert looping.answer is None


def test_prompt_that_could_not_be_recorded_is_reported(looping: Agent) -> None:
    with contextmanager(locked)(looping):
        looping.prompt()
    assert looping.notice.startswith("gsd-fsm: this prompt was not recorded: ")


@pytest.mark.parametrize("live", [True, False])
def test_moved_journal_is_reported_while_it_has_a_live_loop(looping: Agent, live: bool) -> None:
    if not live:
        looping.here.ok("cancel")
        looping.stop()
    with contextmanager(moved)(looping) as agent:
        before = agent.here.journal.read_bytes()
        assert bool(agent.stop()) is live
        assert agent.here.journal.read_bytes() == before
        agent.here.ok("trust")
        assert bool(block_of(agent.stop())) is live


def test_copied_journal_of_this_user_is_not_reported(looping: Agent) -> None:
    place = looping.here.root.parent / "copy"
    shutil.copytree(looping.here.root, place)
    copy = Agent(Here(place, looping.here.patch), looping.place)
    assert copy.stop() is None
    copy.starts()
    assert copy.answer is None


def test_other_session_is_notified_of_a_disabled_hook_at_its_start_only(looping: Agent) -> None:
    other = looping.other("s-2")
    with contextmanager(disabled)(looping):
        other.starts()
        assert "disabled by .gsd/STOP" in other.notice
        assert other.stop() is None


def test_session_is_notified_of_a_disabled_hook_while_a_loop_has_no_owner(agent: Agent) -> None:
    agent.here.start("goal", "g", "--mode", "yolo", "--criterion", "c")
    assert agent.allowed() == ""
    with contextmanager(disabled)(agent):
        assert "disabled by .gsd/STOP" in agent.allowed()
        assert agent.allowed(env={"GSD_FSM_DISABLE": "1"}) == ""
        agent.here.ok("pause")
        assert agent.allowed() == ""
    assert kinds(agent.here)[-1] == "pause manual"


def test_disabling_variable_is_recorded_and_not_reported(looping: Agent) -> None:
    assert looping.allowed(env={"GSD_FSM_DISABLE": "1"}) == ""
    assert kinds(looping.here)[-1] == "stop disabled"


# gsd-fsm is not where the client looks for it


@pytest.fixture
def elsewhere(looping: Agent, tmp_path: Path) -> Path:
    """Return the only program that the client knows, by its path; the PATH has none."""
    program = tmp_path / "it's here" / "gsd-fsm"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    words = "'" + str(program).replace("'", "'\"'\"'") + "'\n"
    Path(os.environ["XDG_STATE_HOME"], "gsd-fsm", "program").write_text(words)
    looping.env["PATH"] = "/usr/bin:/bin"
    return program


def test_session_starts_with_the_path_of_a_program_that_is_not_on_the_path(
    looping: Agent, elsewhere: Path
) -> None:
    looping.starts()
    assert looping.notice.startswith("gsd-fsm: gsd-fsm is not on the PATH of the client; suggested")
    assert "it's here" in looping.notice.replace("'\"'\"'", "'")
    assert "here/gsd-fsm' " in looping.blocked()


def test_stop_is_allowed_if_the_agent_cannot_run_gsd_fsm(looping: Agent, elsewhere: Path) -> None:
    elsewhere.unlink()
    looping.starts()
    for notice in (looping.notice, looping.allowed()):
        assert notice.startswith("gsd-fsm: agents cannot run gsd-fsm: it is not on the PATH")
        assert f"{elsewhere} is missing" in notice
        assert notice.endswith("In a terminal, run: gsd-fsm init")
    assert kinds(looping.here)[-1] == "stop error"
    assert looping.why()["code"] == "error"
    elsewhere.write_text("#!/bin/sh\n")
    elsewhere.chmod(0o755)
    looping.blocked()


def test_program_without_recorded_path_is_left_to_the_shell_of_the_client(
    looping: Agent, elsewhere: Path
) -> None:
    Path(os.environ["XDG_STATE_HOME"], "gsd-fsm", "program").unlink()
    looping.blocked()


# time


def test_stop_without_answer_in_time_is_reported_and_recorded(looping: Agent) -> None:
    before = kinds(looping.here)
    slow = "inject=fsync,fdatasync:delay_enter=8000000"
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", slow]
    env = {**user(), **looping.env}
    signal = json.dumps(looping.stop_signal())
    ran = run_command([*command, *COMMAND, "one"], signal, env=env, cwd=looping.here.root)
    assert ran.code == 0
    assert ran.answer["systemMessage"] == f"{UNDECIDED}no answer within 6 s"
    assert looping.here.ok("fsck", "--json").json["ok"]
    looping.blocked()
    # The event was written, but its sync did not return: no block was printed.
    new = kinds(looping.here)[len(before) :]
    assert new == ["iteration continue", "stop error", "iteration continue"]


RACE = """
import sys, threading, time
from gsd_fsm.core.hook import main
first, slow = sys.argv[1:]
main._WORK_SECONDS, main._REPORT_SECONDS = 1.0, 1.0
printed = main._print
def print_slowly(answer):
    time.sleep(float(slow))
    printed(answer)
def reply(call):
    time.sleep({"answer": 0.0, "watchdog": 1.2}[first])
    return {"decision": "block"}
main._print, main._reply = print_slowly, reply
main.main("one")
"""


@pytest.mark.parametrize(("first", "slow"), [("answer", 0), ("answer", 1.4), ("watchdog", 0.5)])
def test_hook_prints_one_answer_and_what_was_printed_is_not_a_failure(
    looping: Agent, first: str, slow: float
) -> None:
    done = subprocess.run(
        [COMMAND[0], "-c", RACE, first, str(slow)], capture_output=True, check=True, timeout=30,
        input=json.dumps(looping.stop_signal()).encode(), cwd=looping.here.root,
        env={**user(), **looping.env, "PYTHONPATH": str(Path(__file__).parents[3])},
    )  # fmt: skip
    if first == "answer":
        assert done.stdout == b'{"decision":"block"}\n'
        assert done.stderr == b""
    else:
        assert done.stdout == b""  # the reply of this test has no signal to be reported
        assert b"no answer within 1 s" in done.stderr
