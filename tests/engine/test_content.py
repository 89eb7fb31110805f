"""The content that evidence belongs to: frozen at start, read around checks, and never missing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.completion import NO_TREE
from gsd_fsm.engine.criteria import run_checks
from tests.support.check_commands import watching
from tests.support.command_line import Here
from tests.support.events import EngineProject, write
from tests.support.hook_agent import Agent, start
from tests.support.repositories import content_tree, git, new_repository

NO_GIT = {"PATH": "/nowhere"}


def rules(here: Here) -> Any:
    return next(line for line in here.lines() if line["type"] == "start")["data"]["rules"]


def evidence(here: Here, name: str = "t") -> Any:
    return next(it for it in here.status()["criteria"] if it["name"] == name)["evidence"]


# frozen at start


def test_start_in_a_work_tree_that_git_refuses_names_the_git_command(repository: Here) -> None:
    program = write(
        repository.root.parent / "bin" / "git",
        f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {shutil.which("git")} "$@"\n',
    )
    program.chmod(0o755)
    refused = repository.refused(4, "start", "goal", "g", env={"PATH": str(program.parent)})
    assert "dubious ownership" in refused.err
    command = f"git config --global --add safe.directory {repository.root}"
    assert refused.err.endswith(f"→ Run: {command}\n")
    assert not repository.gsd.exists()
    repository.start("goal", "g", "--check", "t=true")
    assert rules(repository)["tree"] is True
    paused = repository.run("check", env={"PATH": str(program.parent)})
    assert (paused.code, repository.status()["pause_code"]) == (4, "blocking")
    assert command in paused.err
    assert "\n" not in repository.status()["pause_reason"]


@pytest.mark.parametrize("in_git", [False, True])
def test_loop_without_git_has_no_tree_and_every_report_says_so(
    in_git: bool, request: pytest.FixtureRequest
) -> None:
    here: Here = request.getfixturevalue("repository" if in_git else "here")
    assert NO_TREE in here.ok("start", "goal", "g", "--check", "t=true", env=NO_GIT).out
    assert rules(here)["tree"] is False
    assert NO_TREE in here.ok("check").out  # with git again: the rule is frozen
    assert here.ok("check", "--json").json["tree"] is None
    assert (evidence(here)["tree"], evidence(here)["exit_code"]) == (None, 0)
    warning = "evidence   changes of files after a check are not detected (no git)\n"
    assert warning in here.ok("status").out
    here.ok("exit-signal")
    assert NO_TREE in here.ok("complete").out


def test_loop_in_git_or_without_checks_does_not_mention_trees(repository: Here) -> None:
    repository.ok("start", "goal", "g", "--check", "t=true")
    done = [repository.ok(*words.split()).out for words in ("check", "status", "exit-signal")]
    shown = "".join([*done, repository.ok("complete").out])
    assert "tree" not in shown
    assert "not detected" not in shown
    assert evidence(repository)["tree"] == content_tree(repository.root)
    repository.ok("start", "goal", "g", "--criterion", "c", env=NO_GIT)
    assert "not detected" not in repository.ok("status").out


def test_hook_that_completes_a_loop_without_a_tree_says_so(agent: Agent) -> None:
    agent.here.configure(views=["report"])
    start(agent, "goal", "g", "--check", "t=true")
    agent.do("check", "exit-signal")
    notice = agent.allowed()
    assert f"Claimed: nothing. {NO_TREE} To see its history, run: " in notice
    assert f"Risk: {NO_TREE.rstrip('.')}" in notice


# git is gone


@pytest.mark.parametrize("is_hidden_by_check", [False, True])
def test_check_without_git_since_start_pauses_the_loop_and_meets_nothing(
    repository: Here, is_hidden_by_check: bool
) -> None:
    hide = "mv .git hidden" if is_hidden_by_check else "true"
    loop = repository.start("goal", "g", "--check", f"t=touch .gsd/ran; {hide}")
    refused = repository.run("check", env={} if is_hidden_by_check else NO_GIT)
    assert refused.code == 4
    assert f"loop {loop} is paused: evidence needs the content of the work tree" in refused.err
    assert f"run: gsd-fsm resume --loop {loop}" in refused.err
    assert (repository.gsd / "ran").exists() is is_hidden_by_check
    last = repository.last()
    assert (last["type"], last["by"], last["data"]["code"]) == ("pause", "cli", "blocking")
    assert repository.status()["criteria"][0]["met"] is False
    repository.refused(4, "check", env=NO_GIT)  # it is paused already


def test_notice_of_a_loop_paused_without_git_names_no_earlier_error(agent: Agent) -> None:
    git(agent.here.root, "init", "-q", "--template=")
    start(agent, "goal", "g", "--check", "t=true", "--task", "T1")
    agent.do("task T1 running", "fail T1 --class logic --error 'assert 1 == 2'")
    assert agent.here.run("check", env={**agent.shell, **NO_GIT}).code == 4
    notice = agent.allowed()
    assert "is paused (blocking): evidence needs the content of the work tree" in notice
    assert "assert 1 == 2" not in notice


def test_complete_without_git_pauses_the_loop_until_it_is_resumed_with_git(
    repository: Here,
) -> None:
    repository.start("goal", "g", "--check", "t=true")
    repository.ok("check")
    repository.ok("exit-signal")
    assert repository.run("complete", env=NO_GIT).code == 4
    status = repository.status()
    assert (status["status"], status["pause_code"]) == ("paused", "blocking")
    repository.ok("resume")
    repository.ok("complete")


def test_evidence_without_a_tree_meets_no_criterion_of_a_loop_with_one(tmp_path: Path) -> None:
    criteria = [{"name": "t", "check": "true"}]
    project = EngineProject(tmp_path, "goal", goal="g", criteria=criteria, rules={"tree": True})
    proof: dict[str, Any] = {"command": "true", "exit_code": 0}
    for tree in ({}, {"tree": None}):
        with pytest.raises(Refused, match="this evidence has no tree"):
            project.append("criterion", criterion="t", met=True, evidence={**proof, **tree})
    project.append("criterion", criterion="t", met=True, evidence={**proof, "tree": "abc"})
    assert project.loop.criteria["t"].met


def test_loop_of_version_1_takes_the_tree_once_and_only_if_git_works(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "old")
    criteria = [{"name": "t", "check": "echo x >> log"}]
    project = EngineProject(root, "goal", goal="g", criteria=criteria)
    run = run_checks(project.context)
    assert (run.tree, (root / "log").read_text()) == (content_tree(root), "x\n")
    with patch.dict("os.environ", NO_GIT):
        assert run_checks(project.context).tree is None
    assert {event["v"] for event in project.events()} == {1}
    assert project.loop.criteria["t"].met


# files that change while checks run


def test_checks_that_write_files_run_once_more_and_their_evidence_is_of_the_result(
    repository: Here,
) -> None:
    checks = ("--check", "a=echo 1 > made", "--check", "b=echo x >> log")
    repository.start("goal", "g", *checks)
    shown = repository.ok("check").out
    assert "Files changed while the checks ran: log, made. Running the checks that" in shown
    assert (repository.root / "log").read_text() == "x\nx\n"
    found = evidence(repository, "a")
    assert found["tree"] == content_tree(repository.root) != found["before"]
    assert found["changed"] == ["log", "made"]
    repository.start("goal", "g", "--check", "a=echo 1 > made", "--fresh")
    assert "[1/1]" in repository.ok("check").out
    assert not {"before", "changed"} & evidence(repository, "a").keys()
    repository.ok("exit-signal")
    repository.ok("complete")


def test_files_that_others_change_while_checks_run_make_the_evidence_stale(
    repository: Here,
) -> None:
    # Every run creates another file, as somebody who edits meanwhile would.
    edit = "echo x > edited-$(ls | wc -l)"
    loop = repository.start("goal", "g", "--check", f"t={edit}", "--check", "bad=exit 3")
    answer = repository.run("check", "t")
    assert answer.code == 7
    assert "evidence is stale: files were changed while they ran: edited-2" in answer.err
    assert f"run: gsd-fsm check --loop {loop}" in answer.err
    status = repository.status()
    flags = [(it["met"], it["stale"]) for it in status["criteria"]]
    assert flags == [(False, True), (False, False)]
    answer = repository.run("check", "--json")
    assert (answer.code, answer.json["failed"], len(answer.json["edited"])) == (7, ["bad"], 1)
    refused = repository.refused(4, "exit-signal").err
    assert "unmet: t, bad" in refused


def test_interrupted_git_does_not_pause_the_loop(tmp_path: Path) -> None:
    criteria = [{"name": "t", "check": "true"}]
    project = EngineProject(tmp_path, "goal", goal="g", criteria=criteria, rules={"tree": True})
    before = project.events()
    with pytest.raises(KeyboardInterrupt):  # this is not a git work tree
        run_checks(project.context, watch=watching(poll=Mock(side_effect=KeyboardInterrupt)))
    assert project.events() == before
