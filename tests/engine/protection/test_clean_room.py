"""A loop with --clean completes only if its checks pass in a copy of what is delivered."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command_line import AGENT, A, Here, here, repository
from tests.support.hook_agent import Agent
from tests.support.plan_loops import start_plan
from tests.support.repositories import git, posix_only
from tests.support.verification import task

__all__ = ["here", "repository"]
IGNORED_PROOF = "test -e build/out && grep -q ok app.txt"


@pytest.fixture
def room(repository: Here) -> Here:
    """Return a project that ignores `build`, with a loop whose check passes here."""
    (repository.root / ".gitignore").write_text("build/\n")
    (repository.root / "app.txt").write_text("no\n")
    git(repository.root, "add", "-A")
    git(repository.root, "commit", "-qm", "app")
    return repository


def pass_here(room: Here, command: str, *options: str) -> str:
    loop = room.start("goal", "g", "--check", f"c={command}", "--clean", *options)
    (room.root / "build").mkdir()
    (room.root / "build" / "out").touch()
    (room.root / "app.txt").write_text("ok\n")
    room.ok("check")
    return loop


def clean_results(room: Here) -> list[tuple[str, int]]:
    events = [event["data"]["clean"] for event in room.lines() if "clean" in event["data"]]
    return [(it["check"], it["exit_code"]) for it in events if isinstance(it, dict)]


def test_complete_is_refused_if_a_check_needs_an_ignored_file(room: Here) -> None:
    pass_here(room, IGNORED_PROOF)
    before = git(room.root, "status", "--porcelain"), git(room.root, "worktree", "list")
    answer = room.run("complete")
    assert answer.code == 7
    assert "check c failed with exit code 1" in answer.err
    assert "where ignored files and running programs are missing" in answer.err
    assert clean_results(room) == [("c", 1)]
    assert room.status()["status"] == "running"
    assert [it["met"] for it in room.status()["criteria"]] == [False]
    assert (git(room.root, "status", "--porcelain"), git(room.root, "worktree", "list")) == before
    room.ok("check")
    assert "flaky" not in room.lines()[-1]["data"]["evidence"]  # on other content than here


def test_complete_passes_with_delivered_files_and_records_what_ran(room: Here) -> None:
    pass_here(room, "grep -q ok app.txt")
    answer = room.ok("complete")
    assert "Preparing a clean copy of the work tree." in answer.out
    assert "c: grep -q ok app.txt" in answer.out
    *_, tested, _signal, end = room.lines()
    assert tested["data"]["clean"].items() >= {"check": "c", "exit_code": 0}.items()
    assert end["data"]["clean"] is True
    assert end["data"]["tree"] == tested["data"]["clean"]["tree"]
    proof = room.ok("proof", "--json").json
    assert [(it["check"], it["exit_code"]) for it in proof["clean"]] == [("c", 0)]
    assert "clean room c passed, tree" in room.ok("proof").out


def test_clean_setup_prepares_the_room_and_only_a_user_may_change_it(room: Here) -> None:
    room.gsd.mkdir()
    room.configure(clean_setup="exit 5")
    loop = pass_here(room, IGNORED_PROOF)
    refused = room.run("complete")
    assert refused.code == 7
    assert "the clean room cannot be prepared" in refused.err
    assert clean_results(room) == []  # a problem of the environment, not of the check
    assert [it["met"] for it in room.status()["criteria"]] == [True]
    room.configure(clean_setup="mkdir build && touch build/out")
    assert f"gsd-fsm accept --loop {loop} clean_setup" in room.run("complete").err
    assert "agents cannot accept" in room.refused(4, "accept", "clean_setup", env=AGENT).err
    room.ok("accept", "clean_setup")
    room.ok("complete")
    assert not (room.root / "build" / "more").exists()


def test_clean_room_has_protected_files_as_they_were_frozen(room: Here) -> None:
    (room.root / "check.py").write_text(
        "import sys\nsys.exit(not open('app.txt').read() == 'ok\\n')\n"
    )
    pass_here(room, f"{sys.executable} check.py && ! grep -q formatted check.py")
    (room.root / "check.py").write_text(
        "import sys  # formatted\n\nsys.exit(not open('app.txt').read() == 'ok\\n')\n"
    )
    assert room.run("check").code == 7  # here, the comment counts
    (room.root / "check.py").write_text(
        "import sys\nsys.exit(not open('app.txt').read()   == 'ok\\n')\n"
    )
    room.ok("check")
    room.ok("complete")


def test_repeated_complete_runs_only_what_has_not_passed(room: Here) -> None:
    room.start("goal", "g", "--check", "a=true", "--check", "b=test -e build/b", "--clean")
    (room.root / "build").mkdir()
    (room.root / "build" / "b").touch()
    room.ok("check")
    assert room.run("complete").code == 7
    room.ok("check")
    assert room.run("complete").code == 7
    assert clean_results(room) == [("a", 0), ("b", 1), ("b", 1)]
    (room.root / "app.txt").write_text("other content\n")
    room.ok("check")
    assert room.run("complete").code == 7
    assert clean_results(room)[3:] == [("a", 0), ("b", 1)]


def test_change_while_the_clean_room_runs_prevents_the_end(room: Here) -> None:
    pass_here(room, f"echo x >> {room.root}/app.txt; true")
    answer = room.run("complete")
    assert answer.code == 7
    assert "files were changed while the checks ran in the clean room" in answer.err


def test_clean_room_without_git_is_refused_at_start(here: Here) -> None:
    answer = here.refused(4, "start", "goal", "g", "--check", "a=true", "--clean")
    assert "a clean room needs git" in answer.err
    here.gsd.mkdir()
    here.configure(clean_checks=True)
    assert "clean_checks = false" in here.refused(4, "start", "goal", "g", "--check", "a=true").err


def test_task_whose_check_fails_in_the_clean_room_is_failed_again(room: Here) -> None:
    (room.root / "build").mkdir()
    (room.root / "build" / "out").touch()
    plan = task("01", [("command", "test -e build/out")], "app.txt")
    room.gsd.mkdir(exist_ok=True)
    room.configure(clean_checks=True)
    start_plan(room, plan=plan, settings="clean_checks = true\n")
    room.ok("task", "T01", "running")
    (room.root / "app.txt").write_text("changed\n")
    room.ok("report", "T01", stdin=b"TASK COMPLETE\n")
    answer = room.run("complete")
    assert answer.code == 7
    assert "a check of T01 fails now" in answer.err
    assert room.status()["tasks"][0]["status"] == "failed"


@posix_only
def test_interrupted_clean_room_leaves_nothing_and_can_be_repeated(room: Here) -> None:
    pass_here(room, 'test "$PWD" = "$HERE" || { touch "$HERE/build/at"; sleep 300; }')
    before = git(room.root, "worktree", "list")
    command = [sys.executable, "-m", "gsd_fsm", "complete"]
    with subprocess.Popen(command, cwd=room.root, stdout=subprocess.PIPE) as process:
        while not (room.root / "build" / "at").exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 130
    assert git(room.root, "worktree", "list") == before
    assert room.status()["status"] == "running"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    for name in ("room", "here"):
        if name in request.fixturenames:
            monkeypatch.setenv("HERE", str(Path(request.getfixturevalue(name).root).resolve()))


def test_proof_in_markdown_has_no_markup_of_others(room: Here) -> None:
    room.start("goal", "<b>*bold*</b> @team", "--check", "a=true")
    room.ok("check", "--complete")
    text = room.ok("proof", "--markdown").out
    assert r"\*bold\*" in text
    assert "<b>" not in text
    assert "@team" not in text


def test_verify_round_does_not_complete_a_loop_that_needs_a_clean_room(room: Here) -> None:
    (room.root / "build").mkdir()
    (room.root / "build" / "out").touch()
    room.gsd.mkdir()
    room.configure(clean_checks=True, ci_test="test -e build/out")
    room.start("verify", "--task", "T1")
    room.ok("verify")
    assert room.status()["status"] == "running"
    answer = room.run("complete")
    assert (answer.code, clean_results(room)) == (4, [("ci:test", 1)])
    assert "check ci:test failed" in answer.err
    assert "no verification has passed" in room.run("complete").err


def test_hook_leaves_the_end_of_a_loop_that_needs_a_clean_room_to_complete(
    room: Here, tmp_path: Path
) -> None:
    agent = Agent(room, tmp_path, "session-a")
    room.start("goal", "g", "--criterion", "c", "--clean", env=A)
    agent.do("criterion c met", "exit-signal")
    assert "gsd-fsm complete" in agent.blocked()
    agent.do("complete")
