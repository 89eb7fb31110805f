"""A planned phase with the real client: executed by subagents, failed, retried, verified, fixed."""

from __future__ import annotations

import json

import pytest

from tests.support.e2e.chat import Chat
from tests.support.e2e.fake_model import bash, say
from tests.support.e2e.phase import hand_over, plan, report, subagent
from tests.support.e2e.project import Rig
from tests.support.repositories import git
from tests.support.verification import document, task

pytestmark = pytest.mark.e2e

HELLO = [("file", "hello.txt exists"), ("content", 'It contains "hello"')]
LOOPS = [("content", 'It contains "loops"'), ("command", "test -s loops.txt")]
WHOLE = task("03", [("file", "all.txt exists")], "all.txt")
PLAN = (
    document(task("01", HELLO, "hello.txt"), task("02", LOOPS, "loops.txt"))
    + "## Wave 2 (Sequential - Whole)\n"
    + WHOLE.replace('wave="1"', 'wave="2" depends="01,02"')
)


@pytest.fixture
def planned(rig: Rig) -> Rig:
    """A repository with a plan, and leave to commit."""
    plan(rig, PLAN, 'commit = true\nmode = "yolo"\n')
    (rig.gsd / "ROADMAP.md").write_text("# Roadmap\n\n### Phase 1: Small\n")
    (rig.gsd / "STATE.md").write_text("---\nmilestone: v1\n---\n\n## Session Context\nMine.\n")
    return rig


def test_phase_is_executed_with_retries_and_verified_without_gaps(planned: Rig) -> None:
    rig = planned
    loop = rig.start("execute", "--phase", "1")
    failed = "TASK FAILED: {}\n\nAnalysis: {}\nSuggested fix: {}"
    first = failed.format("no such word", "the list is empty", "fill the list")
    second = failed.format("still no word", "the list is read too late", "read it first")
    done, issue = "TASK COMPLETE", "TASK COMPLETE\n\nNEW ISSUE: [low] no tests"
    subagent(rig, "T01", ("echo hello > hello.txt", issue))
    subagent(rig, "T02", ("true", first), ("true", second), ("echo loops > loops.txt", done))
    subagent(rig, "T03", ("cat hello.txt loops.txt > all.txt", done))
    rig.model.main.then(
        bash("gsd-fsm next"), hand_over("T01"), report("T01", issue),
        hand_over("T02"), report("T02", first), say("One of them failed."),
        hand_over("T02"), report("T02", second), say("It failed again."),
        hand_over("T02"), report("T02", done), hand_over("T03"), report("T03", done),
        say("All tasks are done."), bash("gsd-fsm complete"), say("The phase is complete."),
    )  # fmt: skip
    chat = rig.chat()
    assert chat.ask("Execute phase 1.")["result"] == "The phase is complete."
    once, twice, last = rig.sent_back()
    assert "this is retry 1 of 3" in once
    assert "no such word" in once
    assert "this is retry 2 of 3" in twice
    assert "still no word" in twice
    assert f"Run: gsd-fsm complete --loop {loop}" in last
    prompts = [request.heard for request in rig.model.asked("T02") if "<task id=" in request.heard]
    assert len(set(prompts)) == 3
    assert "<previous_attempt>" not in prompts[0]
    assert "fill the list" in prompts[1]
    assert "still no word" in prompts[2]
    assert "2 of 3" in prompts[2]
    kinds = ("task", "failure", "iteration", "complete")
    assert [event for event in rig.story(loop) if event.startswith(kinds)] == [
        "task reported", "task complete", "task reported", "failure", "iteration",
        "task reported", "failure", "iteration", "task reported",
        "task reported", "task reported",  # the command begins, and passes
        "task complete", "task reported", "task complete", "iteration", "complete",
    ]  # fmt: skip
    checkpoints = ("T01", "T02", "T03", "post", "pre")
    tags = [f"gsd/checkpoint/phase-1/{name}" for name in checkpoints]
    assert git(rig.root, "tag").splitlines() == tags
    assert git(rig.root, "log", "--format=%s", "-4").splitlines() == [
        "docs: complete phase 1", "feat(1-03): Do it.",
        "feat(1-02): Do it.", "feat(1-01): Do it.",
    ]  # fmt: skip
    summary = (rig.gsd / "plans" / "phase-1" / "summary.md").read_text()
    assert "# Phase 1 Summary" in summary
    assert "- Task 02: Do it. (commit: " in summary
    assert "[low] no tests" in summary
    assert "- [x] Complete" in (rig.gsd / "ROADMAP.md").read_text()
    state = (rig.gsd / "STATE.md").read_text()
    assert "  active: false\n  type: null\n" in state
    assert "milestone: v1" in state
    assert "## Session Context\nMine." in state
    replay = rig.ok("--loop", loop, "replay").out
    assert "retrying" in replay
    assert "completed" in replay
    verify_phase(rig, chat)


def verify_phase(rig: Rig, chat: Chat) -> None:
    for name in ("hello.txt", "loops.txt"):
        (rig.root / name).write_text("nothing\n")
    loop = rig.start("verify", "--phase", "1")
    subagent(rig, "G1", ("echo hello again > hello.txt", "TASK COMPLETE"))
    subagent(rig, "G2", ("echo more loops > loops.txt", "TASK COMPLETE"))
    rig.model.main.then(
        bash("gsd-fsm resume && gsd-fsm verify"), say("It found gaps."), bash("gsd-fsm next"),
        hand_over("G1"), report("G1", "TASK COMPLETE"),
        hand_over("G2"), report("G2", "TASK COMPLETE"), bash("gsd-fsm verify"), say("It passes."),
    )  # fmt: skip
    assert chat.ask("Verify phase 1.")["result"] == "It passes."
    chat.close()
    assert 'It contains "hello"' in rig.sent_back()[-1]
    prompt = next(it.heard for it in rig.model.asked("G1") if "<gap " in it.heard)
    assert 'type="stub" iteration="1/20"' in prompt
    assert "Implement real functionality" in prompt
    story = [it for it in rig.story(loop) if not it.startswith(("session", "checkpoint"))]
    assert story == [
        "start", "resume", "gap", "gap", "verified", "iteration", "gap", "gap", "verified", "complete",
    ]  # fmt: skip
    assert rig.ok("status", "--json").json["gaps_remaining"] == 0
    written = (rig.gsd / "plans" / "phase-1" / "VERIFICATION.md").read_text()
    assert "**Status:** passed" in written
    subjects = git(rig.root, "log", "--format=%s", "-2").splitlines()
    assert [subject.partition(":")[0] for subject in subjects] == ["fix(1-G2)", "fix(1-G1)"]


def test_plugin_provides_command_and_agent(planned: Rig) -> None:
    rig = planned
    rig.install_plugin()
    subagent(rig, "T01", ("echo hello > hello.txt", "TASK COMPLETE"))
    rig.model.main.then(
        bash("gsd-fsm start execute --phase 1"),
        hand_over("T01", "gsd-fsm:executor"),
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
