"""The end of a phase: its documents, its tag and its commit."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command_line import Here
from tests.support.hook_agent import Agent
from tests.support.phases import Phase
from tests.support.plan_loops import YOLO, report, report_complete, write_plan
from tests.support.repositories import git, hook
from tests.support.verification import document, task

TAGS = "gsd/checkpoint/phase-1"


def test_complete_writes_summary_state_roadmap_and_commits_them(repository: Here) -> None:
    foreign = repository.root / ".opti-gsd"
    write_plan(repository, where=".opti-gsd/plans/phase-1/plan.md")
    (foreign / "config.json").write_text('{"deploy": {"target": "vercel"}}')
    (foreign / "state.json").write_text('{"phases_complete": [], "phases_pending": [1, 2]}')
    (foreign / "roadmap.md").write_text("### Phase 1: Parts\n- [ ] Complete\n")
    remote = repository.root.with_name("remote.git")
    git(repository.root, "init", "-q", "--bare", str(remote))
    git(repository.root, "remote", "add", "origin", str(remote))
    repository.gsd.mkdir()
    (repository.gsd / "config.toml").write_text("commit = true\n")
    repository.ok(*YOLO)
    report(repository, "T01", "TASK COMPLETE\nAUTO-FIX: a typo\nNEW ISSUE: [high] it is slow\n")
    report_complete(repository, "T02", "T03", "T04")
    output = repository.ok("complete").out
    push = "> Push to trigger preview deployment? (y/n)"
    for part in ("## Phase 1 Complete!", "**Issues Found:** 1", push):
        assert part in output
    assert git(remote, "for-each-ref") == ""  # a push is offered, never made
    summary = (foreign / "plans" / "phase-1" / "summary.md").read_text()
    for part in ("# Phase 1 Summary", "- Task 01: Write 01.", "- a typo", "- [high] it is slow"):
        assert part in summary
    state = json.loads((foreign / "state.json").read_text())
    assert (state["phases_complete"], state["phases_pending"]) == ([1], [2])
    assert "- [x] Complete" in (foreign / "roadmap.md").read_text()
    assert git(repository.root, "log", "-1", "--format=%s") == "docs: complete phase 1"
    assert git(repository.root, "show", "--format=", "--name-only").split("\n") == [
        ".opti-gsd/plans/phase-1/summary.md", ".opti-gsd/roadmap.md", ".opti-gsd/state.json",
    ]  # fmt: skip


def test_verify_passes_after_complete_although_a_check_names_the_status(here: Here) -> None:
    checks = [("content", 'ROADMAP.md contains "PLANNED"')]
    write_plan(here, document(task("01", checks, ".gsd/ROADMAP.md")))
    (here.gsd / "ROADMAP.md").write_text("## Phase 1: Small\n**Status:** PLANNED\n")
    here.ok(*YOLO)
    report_complete(here, "T01")
    here.ok("complete")
    assert "- [x] Complete\n\n**Status:** PLANNED\n" in (here.gsd / "ROADMAP.md").read_text()
    here.ok("start", "verify", "--phase", "1")
    here.ok("verify")


def test_tag_and_commit_that_git_refuses_are_reported_and_undo_no_event(repository: Here) -> None:
    write_plan(repository)
    (repository.gsd / "config.toml").write_text("commit = true\n")
    git(repository.root, "tag", TAGS)  # no tag can be below a tag
    begun = repository.ok(*YOLO)
    assert f"checkpoint {TAGS}/pre was not set: git refused" in begun.err
    report_complete(repository, "T01", "T02", "T03", "T04")
    hook(repository.root, "pre-commit", "exit 1")
    unfinished = repository.run("complete")
    assert unfinished.code == 6
    assert f"tag {TAGS}/post: git refused" in unfinished.err
    assert "documents of the phase (summary.md, their commit): git refused" in unfinished.err
    status = repository.status()
    assert status["status"] == "completed"
    assert f"loop {status['loop']} is completed, but its effects are unfinished" in unfinished.err
    assert f"run: gsd-fsm complete --loop {status['loop']}" in unfinished.err


def test_complete_on_another_branch_is_refused_and_names_the_switch(phase: Phase) -> None:
    phase.git("checkout", "-q", "-b", "other", "main~1")
    refused = phase.here.refused(4, "complete").err
    assert "its commits are on branch main, which is not checked out" in refused
    assert f"Run: git switch main, then: gsd-fsm complete --loop {phase.loop}" in refused
    phase.git("checkout", "-q", "--detach")
    assert "git switch main" in phase.here.refused(4, "complete").err
    phase.git("checkout", "-q", "-b", "merged", "main")  # which has all commits
    phase.here.ok("complete")


def test_complete_after_rewriting_or_without_the_branch_is_not_refused(phase: Phase) -> None:
    phase.git("checkout", "-q", "-b", "other")
    phase.git("commit", "-q", "--amend", "-m", "reworded")
    phase.here.refused(4, "complete")
    phase.git("branch", "-D", "main")
    phase.here.ok("complete")


def test_complete_without_commits_on_a_branch_with_other_history_is_refused(here: Here) -> None:
    phase = Phase(here, settings="")
    phase.git("checkout", "-q", "-b", "other")
    phase.git("commit", "-q", "--amend", "-m", "other")
    assert "git switch main" in phase.here.refused(4, "complete").err


def test_hook_blocks_until_complete_ends_the_phase(here: Here, tmp_path: Path) -> None:
    agent = Agent(here, tmp_path / "client")
    write_plan(here)
    loop = here.start(*YOLO[1:], env=agent.shell)
    report_complete(here, "T01", "T02", "T03")
    assert "task T04 is pending" in here.refused(4, "complete", env=agent.shell).err
    report_complete(here, "T04")
    assert f"Run: gsd-fsm complete --loop {loop}" in agent.blocked()
    here.ok("complete", env=agent.shell)
    assert (here.gsd / "plans" / "phase-1" / "summary.md").is_file()
