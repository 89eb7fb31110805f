"""Wherever the agent has wandered, its loop is found; HOME and strangers' directories never are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Here
from tests.support.hook_agent import COMMAND, Agent, call, judged, start, told, user

GOAL = ("goal", "Ship it", "--criterion", "it is shipped")


def test_a_deleted_working_directory_does_not_end_the_loop(agent: Agent, tmp_path: Path) -> None:
    start(agent, *GOAL)
    gone = tmp_path / "gone"
    gone.mkdir()
    code = (
        "import os, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]);"
        " os.execv(sys.argv[2], sys.argv[2:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(gone), *COMMAND, "one"],
        input=json.dumps({**agent.stop_signal(), "cwd": str(gone)}).encode(),
        env={**user(), **agent.env},
        capture_output=True,
        timeout=60,
        check=False,
    )
    reply = judged(done.returncode, done.stdout, done.stderr)
    assert told(reply.answer), reply


def test_an_unreadable_working_directory_does_not_end_the_loop(
    agent: Agent, tmp_path: Path
) -> None:
    start(agent, *GOAL)
    signal = {**agent.stop_signal(), "cwd": str(tmp_path / "never was")}
    assert told(call(signal, agent.env, cwd=tmp_path).answer)


def test_home_is_no_project(agent: Agent) -> None:
    home = Path(os.environ["HOME"])
    start(agent, *GOAL)
    agent.here.gsd.rename(home / ".gsd")
    env = {**agent.env, "CLAUDE_PROJECT_DIR": str(home)}
    reply = call({**agent.stop_signal(), "cwd": str(home)}, env, cwd=home)
    assert reply == (None, "")


def test_a_home_above_is_not_reached_from_below(agent: Agent) -> None:
    home = Path(os.environ["HOME"])
    start(agent, *GOAL)
    agent.here.gsd.rename(home / ".gsd")
    below = home / "work"
    below.mkdir()
    env = {**agent.env, "CLAUDE_PROJECT_DIR": str(below)}
    assert call({**agent.stop_signal(), "cwd": str(below)}, env, cwd=below) == (None, "")


def test_the_git_top_is_the_end_of_the_way_up(agent: Agent) -> None:
    start(agent, *GOAL)
    inner = agent.here.root / "vendor"
    (inner / ".git").mkdir(parents=True)
    env = {**agent.env, "CLAUDE_PROJECT_DIR": str(inner)}
    assert call({**agent.stop_signal(), "cwd": str(inner)}, env, cwd=inner) == (None, "")


@pytest.mark.parametrize("name", ["with blanks", "ünïcödé", "quote's", "-dash", "new\nline"])
def test_a_project_may_have_any_name(agent: Agent, tmp_path: Path, name: str) -> None:
    there = Here(tmp_path / name, agent.here.patch)
    there.root.mkdir()
    odd = Agent(there, agent.place)
    start(odd, *GOAL)
    odd.blocked()
    odd.env["CLAUDE_PROJECT_DIR"] = ""
    odd.blocked()
    for locale in ({"LC_ALL": "C"}, {"LANG": "C"}, {"PYTHONIOENCODING": "cp1252"}):
        odd.here.ok("note", "on", env=odd.shell)
        odd.blocked(env=locale)


def test_a_link_to_the_project_is_the_project(agent: Agent, tmp_path: Path) -> None:
    start(agent, *GOAL)
    link = tmp_path / "link"
    link.symlink_to(agent.here.root)
    env = {**agent.env, "CLAUDE_PROJECT_DIR": str(link)}
    assert told(call({**agent.stop_signal(), "cwd": str(link)}, env, cwd=tmp_path).answer)


def test_subdirectories_lead_to_the_project(agent: Agent, tmp_path: Path) -> None:
    start(agent, *GOAL)
    deep = agent.here.root / "a b" / "ü"
    deep.mkdir(parents=True)
    env = {**agent.env, "CLAUDE_PROJECT_DIR": ""}
    for place in (deep, Path(f"{agent.here.root}/")):
        signal = {**agent.stop_signal(), "cwd": str(place)}
        assert told(call(signal, env, cwd=tmp_path).answer), place
    assert told(call({**agent.stop_signal(), "cwd": "/"}, env, cwd=deep).answer)


@pytest.mark.parametrize("how", ["copied", "moved", "cloned"])
def test_a_journal_that_nobody_trusted_here_never_speaks(agent: Agent, how: str) -> None:
    start(agent, *GOAL)
    place = agent.here.root.parent / "elsewhere"
    if how == "moved":
        agent.here.root.rename(place)
    else:
        shutil.copytree(agent.here.root, place, symlinks=True)
    there = Agent(Here(place, agent.here.patch), agent.place)
    if how == "cloned":
        agent.here.patch.setenv("XDG_STATE_HOME", os.environ["XDG_STATE_HOME"] + "-of-another")
    before = there.here.journal.read_bytes()
    assert there.stop() is None
    assert there.prompt() == there.starts() == there.ends() == there.fails("rate_limit") == ""
    assert there.err == ""
    assert there.here.journal.read_bytes() == before


def test_the_project_of_the_client_comes_before_the_working_directory(agent: Agent) -> None:
    nested = Here(agent.here.root / "nested", agent.here.patch)
    start(agent, *GOAL)
    nested.root.mkdir()
    (nested.root / ".git").mkdir()
    inner = Agent(nested, agent.place, "s-2")
    start(inner, "goal", "inner", "--criterion", "c")
    signal = {**agent.stop_signal(), "cwd": str(nested.root)}
    reply = call(signal, agent.env, cwd=nested.root)
    assert "Ship it" in told(reply.answer)
    signal = {**inner.stop_signal(), "cwd": str(agent.here.root)}
    assert "inner" in told(call(signal, inner.env, cwd=agent.here.root).answer)
    unset = {**agent.env, "CLAUDE_PROJECT_DIR": ""}
    signal = {**agent.stop_signal(), "cwd": str(nested.root)}
    assert call(signal, unset, cwd=nested.root) == (None, "")


def test_a_foreign_journal_in_the_place_of_a_trusted_one_never_speaks(
    agent: Agent, tmp_path: Path
) -> None:
    start(agent, *GOAL)
    agent.here.journal.unlink()
    somebody = {**agent.shell, "XDG_STATE_HOME": str(tmp_path / "somebody else")}
    agent.here.start(*GOAL, env=somebody)
    before = agent.here.journal.read_bytes()

    assert (agent.stop(), agent.starts("resume"), agent.prompt("hello")) == (None, "", "")
    assert agent.here.journal.read_bytes() == before
