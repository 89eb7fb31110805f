"""A planned phase with the real client: executed by subagents, failed, retried, verified, mended."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.support.e2e.fake_model import Turn, bash, delegate, say
from tests.support.e2e.project import Rig
from tests.support.repositories import git

pytestmark = pytest.mark.e2e

PLAN = """---
phase: 1
title: Greetings
---
## Wave 1 (Parallel - Parts)

<task id="01" wave="1">
  <files><file action="create">hello.txt</file></files>
  <action>Write a greeting.</action>
  <verify>
    <check type="file">hello.txt exists</check>
    <check type="content">File contains "hello"</check>
  </verify>
  <done>There is a greeting.</done>
</task>

<task id="02" wave="1">
  <files><file action="create">loops.txt</file></files>
  <action>Write whom to greet.</action>
  <verify>
    <check type="content">loops.txt contains "loops"</check>
    <check type="command">test -s loops.txt</check>
  </verify>
  <done>Somebody is greeted.</done>
</task>

## Wave 2 (Sequential - Whole)

<task id="03" wave="2" depends="01,02">
  <files><file action="create">all.txt</file></files>
  <action>Put the parts together.</action>
  <verify><check type="file">all.txt exists</check></verify>
  <done>The parts are one.</done>
</task>
"""


@pytest.fixture
def planned(rig: Rig) -> Rig:
    """A repository with one commit, a plan, and leave to commit."""
    place = rig.root / ".gsd" / "plans" / "phase-1"
    place.mkdir(parents=True)
    (place / "plan.md").write_text(PLAN)
    (rig.gsd / "config.toml").write_text('commit = true\nmode = "yolo"\n')
    (rig.gsd / "ROADMAP.md").write_text("# Roadmap\n\n### Phase 1: Greetings\n**Goal:** greet\n")
    (rig.gsd / "STATE.md").write_text("---\nmilestone: v1\n---\n\n## Session Context\nMine.\n")
    git(rig.root, "config", "user.name", "T")
    git(rig.root, "config", "user.email", "t@example.org")
    git(rig.root, "commit", "-q", "--allow-empty", "-m", "first")
    return rig


def subagent(rig: Rig, name: str, *attempts: tuple[str, str]) -> None:
    """What the subagents of a task do, attempt by attempt: a command, and their last words."""
    lane = rig.model.lane(name, f"SUBTASK {name}")
    for work, words in attempts:
        lane.then(
            bash(f"gsd-fsm next {name} > told-{name}.txt; cat told-{name}.txt; {work}"), say(words)
        )


def hand_over(name: str) -> Turn:
    return delegate(f"{name}: do what 'gsd-fsm next {name}' prints.", background=False)


def report(name: str, words: str) -> Turn:
    return bash(f"gsd-fsm report {name} <<'REPORT'\n{words}\nREPORT")


def lines(rig: Rig, *args: str) -> list[str]:
    done = subprocess.run(
        ["git", "-C", str(rig.root), *args], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_phase_is_executed_with_retries_and_verified_without_gaps(
    planned: Rig,
) -> None:
    rig = planned
    loop = rig.start("execute", "--phase", "1")
    failed = "TASK FAILED: {}\n\nAnalysis: {}\nSuggested fix: {}"
    first = failed.format("no such word", "the list is empty", "fill the list")
    second = failed.format("still no word", "the list is read too late", "read it first")
    subagent(rig, "T01", ("echo nothing > hello.txt", "TASK COMPLETE\n\nNEW ISSUE: [low] no tests"))
    subagent(
        rig, "T02", ("true", first), ("true", second), ("echo earth > loops.txt", "TASK COMPLETE")
    )
    subagent(rig, "T03", ("cat hello.txt loops.txt > all.txt", "TASK COMPLETE"))
    rig.model.main.then(
        bash("gsd-fsm next"),
        hand_over("T01"),
        report("T01", "TASK COMPLETE\n\nNEW ISSUE: [low] no tests"),
        hand_over("T02"),
        report("T02", first),
        say("One of them failed."),
        hand_over("T02"),
        report("T02", second),
        say("It failed again."),
        hand_over("T02"),
        report("T02", "TASK COMPLETE"),
        hand_over("T03"),
        report("T03", "TASK COMPLETE"),
        say("All tasks are done."),
        bash("gsd-fsm complete"),
        say("The phase is complete."),
    )
    chat = rig.chat()
    assert chat.ask("Execute phase 1.")["result"] == "The phase is complete."
    once, twice, done = rig.sent_back()
    assert "this is retry 1 of 3" in once
    assert "no such word" in once
    assert "this is retry 2 of 3" in twice
    assert "still no word" in twice
    assert f"Run: gsd-fsm --loop {loop} complete" in done
    prompts = [request.heard for request in rig.model.asked("T02") if "<task id=" in request.heard]
    assert len(set(prompts)) == 3
    assert "<previous_attempt>" not in prompts[0]
    assert "fill the list" in prompts[1]
    assert "still no word" in prompts[2]
    assert "2 of 3" in prompts[2]
    told = [
        it for it in rig.story(loop) if it.startswith(("task", "failure", "iteration", "complete"))
    ]
    assert told == [
        "task running", "task complete", "task running", "failure", "iteration", "task running",
        "failure", "iteration", "task running", "task complete", "task running", "task complete",
        "iteration", "complete",
    ]  # fmt: skip
    tags = lines(rig, "tag", "--sort=creatordate")
    assert sorted(tags) == [
        f"gsd/checkpoint/phase-1/{it}" for it in ("T01", "T02", "T03", "post", "pre")
    ]
    subjects = lines(rig, "log", "--format=%s")
    assert subjects[:4] == [
        "docs: complete phase 1",
        "feat(1-03): Put the parts together.",
        "feat(1-02): Write whom to greet.",
        "feat(1-01): Write a greeting.",
    ]
    summary = (rig.gsd / "plans" / "phase-1" / "summary.md").read_text()
    assert "# Phase 1 Summary" in summary
    assert "- Task 02: Write whom to greet. (commit: " in summary
    assert "[low] no tests" in summary
    assert "- [x] Complete" in (rig.gsd / "ROADMAP.md").read_text()
    state = (rig.gsd / "STATE.md").read_text()
    assert "  active: false\n  type: null\n" in state
    assert "milestone: v1" in state
    assert "## Session Context\nMine." in state
    replay = rig.ok("--loop", loop, "replay").out
    assert "retrying" in replay
    assert "completed" in replay
    verify_it(rig, chat)


def verify_it(rig: Rig, chat) -> None:
    loop = rig.start("verify", "--phase", "1")
    subagent(rig, "G1", ("echo hello > hello.txt", "TASK COMPLETE"))
    subagent(rig, "G2", ("echo loops > loops.txt", "TASK COMPLETE"))
    rig.model.main.then(
        bash("gsd-fsm verify"),
        say("It found gaps."),
        bash("gsd-fsm next"),
        hand_over("G1"),
        report("G1", "TASK COMPLETE"),
        hand_over("G2"),
        report("G2", "TASK COMPLETE"),
        bash("gsd-fsm verify"),
        say("It passes."),
    )
    assert chat.ask("Verify phase 1.")["result"] == "It passes."
    chat.close()
    sent = rig.sent_back()[-1]
    assert 'File contains "hello"' in sent
    prompt = next(it.heard for it in rig.model.asked("G1") if "<gap " in it.heard)
    assert 'type="stub" iteration="1/20"' in prompt
    assert "Implement real functionality" in prompt
    story = [it for it in rig.story(loop) if not it.startswith(("session", "checkpoint"))]
    assert story == [
        "start", "gap", "gap", "verified", "iteration", "gap", "gap", "verified", "complete",
    ]  # fmt: skip
    assert rig.ok("status", "--json").json["gaps_remaining"] == 0
    told = (rig.gsd / "plans" / "phase-1" / "VERIFICATION.md").read_text()
    assert "**Status:** passed" in told
    subjects = lines(rig, "log", "--format=%s")
    assert subjects[0].startswith("fix(1-G2): ")
    assert subjects[1].startswith("fix(1-G1): ")


def test_task_without_retries_pauses_with_failure_report(planned: Rig) -> None:
    rig = planned
    loop = rig.start("execute", "--phase", "1", "--max-retries", "1")
    words = "TASK FAILED: {}\n\nBlocker: no key"
    subagent(rig, "T01", ("true", words.format("one")), ("true", words.format("two")))
    rig.model.main.then(
        hand_over("T01"),
        report("T01", words.format("one")),
        say("It failed."),
        hand_over("T01"),
        report("T01", words.format("two")),
        say("I give up."),
    )
    chat = rig.chat()
    chat.ask("Execute phase 1.")
    chat.close()
    last = rig.model.asked()[-1].heard
    assert "## Task" in last
    assert "T01 failed after 1 retry" in last
    assert f"gsd-fsm --loop {loop} resume --add-retries 1" in last
    assert rig.status()["pause_code"] == "retries"
    assert "paused: true" in (rig.gsd / "STATE.md").read_text()
    assert 'pause_reason: "Task T01 failed after 1 retry"' in (rig.gsd / "STATE.md").read_text()


def test_plugin_provides_command_and_agent(planned: Rig) -> None:
    rig = planned
    rig.ok("init", "--plugin", "a plugin", "--yes")
    rig.ok("uninstall", "--scope", "project", "--yes")
    subagent(rig, "T01", ("echo hello > hello.txt", "TASK COMPLETE"))
    prompt = "T01: do what 'gsd-fsm next T01' prints."
    rig.model.main.then(
        bash("gsd-fsm start execute --phase 1"),
        delegate(prompt, background=False, agent="gsd-fsm:executor"),
        report("T01", "TASK COMPLETE"),
        bash("gsd-fsm pause"),
        say("One task is done."),
    )
    chat = rig.chat("--plugin-dir", "a plugin")
    assert chat.ask("/gsd-fsm:execute 1")["result"] == "One task is done."
    chat.close()
    assert "gsd-fsm:executor" in chat.of("system", "init")[0]["agents"]
    assert "gsd-fsm start execute" in rig.model.asked()[0].heard
    first = rig.model.asked("T01")[0]
    assert "You do one task and nothing else" in json.dumps(first.body["system"])
    assert rig.status()["tasks"][0]["status"] == "complete"
    assert (rig.root / "hello.txt").read_text() == "hello\n"
