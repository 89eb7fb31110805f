"""Rules of planned loops that show only from end to end: each by the command that a user runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from gsd_fsm.core.journal.journal import Journal
from tests.support.command_line import AGENT, Here, here, repository
from tests.support.events import append, draft
from tests.support.hook_agent import Agent
from tests.support.plan_loops import PLAN, YOLO, ready, report, report_complete, write_plan
from tests.support.repositories import git

__all__ = ["here", "repository"]

INTERACTIVE = ("start", "execute", "--phase", "1")
TAGS = "gsd/checkpoint/phase-1/"


def tags(root: Path) -> list[str]:
    return [tag.removeprefix(TAGS) for tag in git(root, "tag").split("\n") if tag]


def settle(here: Here, text: str) -> None:
    here.gsd.mkdir(exist_ok=True)
    (here.gsd / "config.toml").write_text(text)


def section(here: Here) -> dict[str, object]:
    """The loop section of STATE.md."""
    front = (here.gsd / "STATE.md").read_text().split("---\n")[1]
    found = yaml.safe_load(front)["loop"]
    assert isinstance(found, dict)
    return found


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@example.org")


def test_before_the_first_wave_a_human_is_asked_and_only_then_the_checkpoint_is_set(
    repository: Here,
) -> None:
    write_plan(repository)
    begun = repository.ok(*INTERACTIVE, "--json").json
    assert begun["question"] == "Ready to execute Phase 1: Parts (4 tasks in 2 waves). Proceed?"
    assert begun["status"] == "waiting"
    assert ready(repository) == tags(repository.root) == []
    repository.ok("answer", "y")
    assert tags(repository.root) == ["pre"]
    assert repository.last()["type"] == "checkpoint"
    assert repository.last()["data"]["name"] == f"{TAGS}pre"
    assert ready(repository) == ["T01", "T02"]


def test_a_no_before_the_first_wave_pauses_and_nothing_is_tagged(repository: Here) -> None:
    write_plan(repository)
    repository.ok(*INTERACTIVE)
    assert repository.ok("answer", "no, later", "--json").json["status"] == "paused"
    assert "the user declined" in repository.status()["pause_reason"]
    assert tags(repository.root) == []


def test_in_yolo_mode_a_phase_goes_from_wave_to_wave_without_a_question(repository: Here) -> None:
    write_plan(repository)
    repository.ok(*YOLO)
    report_complete(repository, "T01", "T02", "T03", "T04")
    repository.ok("complete")
    assert "wait" not in [event["type"] for event in repository.lines()]
    assert set(tags(repository.root)) == {"pre", "T01", "T02", "T03", "T04", "post"}


def test_between_two_waves_a_human_is_asked(here: Here) -> None:
    write_plan(here)
    here.ok(*INTERACTIVE)
    here.ok("answer", "y")
    assert report(here, "T01", "TASK COMPLETE")["status"] == "running"
    assert report(here, "T02", "TASK COMPLETE")["status"] == "waiting"
    assert "Wave 1 complete. Continue to Wave 2?" in here.ok("status").out
    here.ok("answer", "y")
    assert ready(here) == ["T03"]


def test_a_retry_is_asked_for_with_the_attempts_used_and_the_limit(here: Here) -> None:
    write_plan(here)
    settle(here, "execute_max_retries = 2\n")
    here.ok(*INTERACTIVE)
    here.ok("answer", "y")
    for used in range(2):
        asked = here.run("report", "T01", stdin=f"TASK FAILED: error {used}".encode()).out
        assert f"Task T01 failed. Retry? ({used}/2 attempts used) [Y/n]" in asked
        here.ok("answer", "y")
    answer = report(here, "T01", "TASK FAILED: error 2")
    assert answer["status"] == "paused"
    assert here.status()["pause_reason"] == "Task T01 failed after 2 retries"


def test_the_view_follows_a_failing_task_into_its_pause_and_is_cleared_at_the_end(
    here: Here,
) -> None:
    write_plan(here)
    here.ok(*YOLO)
    for number in range(4):
        out = here.run("report", "T01", stdin=f"TASK FAILED: error {number}".encode()).out
        view = section(here)
        assert (view["type"], view["phase"], view["iteration"]) == ("execute", 1, 0)
        assert view["task_retries"]["T01"] == min(number + 1, 3)  # type: ignore[index]
        assert view["last_error"] == f"error {number}"
        assert (view["active"], view["paused"]) == (number < 3, number == 3)
    assert view["pause_reason"] == "Task T01 failed after 3 retries"
    for part in ("## Task T01 Failed", "**Reason:**", "**Progress:**", "**Blocker:** error 3",
                 "**Suggested Fix:**", "Execution paused. Fix the issue, then:"):  # fmt: skip
        assert part in out
    here.ok("resume", "--add-retries", "1")
    report_complete(here, "T01", "T02", "T03", "T04")
    here.ok("complete")
    assert (section(here)["active"], section(here)["task_retries"]) == (False, {})


def test_the_limit_of_retries_is_three_and_either_file_of_settings_may_change_it(
    here: Here,
) -> None:
    write_plan(here)
    limits = []
    for name, text in (
        (".gsd/plans/none", ""),
        (".gsd/config.md", "loop:\n  execute_max_retries: 5\n"),
        (".opti-gsd/config.json", '{"loop": {"execute_max_retries": 2}}'),
    ):
        (here.root / name).parent.mkdir(exist_ok=True)
        (here.root / name).write_text(text)
        here.ok(*YOLO, "--plan", ".gsd/plans/phase-1/plan.md", "--fresh")
        start = [event for event in here.lines() if event["type"] == "start"][-1]
        limits.append(start["data"]["limits"]["max_retries"])
    assert limits == [3, 5, 2]


def test_a_task_is_one_commit_of_its_own_files_with_the_message_of_the_plan(
    repository: Here,
) -> None:
    write_plan(repository)
    settle(repository, "commit = true\n")
    repository.ok(*YOLO)
    for name in ("01.py", "02.py", "other.py"):
        (repository.root / name).write_text(name)
    report(repository, "T01", "TASK COMPLETE\n\nIt was easy.", env=AGENT)
    report(repository, "T02", "TASK COMPLETE\nCommit message: fix the second part")
    log = git(repository.root, "log", "-2", "--reverse", "--format=%s|%b", "--name-only")
    assert log.split("\n") == [
        "feat(1-01): Write 01.|It was easy.",
        "",
        "Co-Authored-By: Claude <noreply@anthropic.com>",
        "",
        "",
        "01.py",
        "feat(1-02): fix the second part|",
        "",
        "02.py",
    ]


def test_without_leave_the_engine_tags_but_never_commits(repository: Here) -> None:
    write_plan(repository)
    before = git(repository.root, "rev-parse", "HEAD")
    repository.ok(*YOLO)
    (repository.root / "01.py").write_text("x")
    report_complete(repository, "T01", "T02", "T03", "T04")
    repository.ok("complete")
    assert git(repository.root, "rev-parse", "HEAD") == before
    settle(repository, "checkpoints = false\n")
    write_plan(repository, PLAN.replace("phase: 1", "phase: 2"), ".gsd/plans/phase-2/plan.md")
    repository.ok("start", "execute", "--phase", "2", "--mode", "yolo")
    assert "phase-2" not in git(repository.root, "tag")


def test_a_checkpoint_asks_also_in_yolo_mode_and_its_answer_reaches_the_next_attempt(
    here: Here,
) -> None:
    write_plan(here)
    here.ok(*YOLO)
    words = b"CHECKPOINT: which format?\n\nA) JSON\nB) YAML\n\nRecommendation: A\n"
    report_complete(here, "T02")
    asked = here.run("report", "T01", stdin=words).out
    for part in ("## Checkpoint: which format?", "**Completed:** T02", "**Decision Needed:**",
                 "**Options:**\nA) JSON\nB) YAML", "**Recommendation:** A",
                 "Reply with your choice to continue."):  # fmt: skip
        assert part in asked
    assert here.status()["status"] == "waiting"
    here.ok("answer", "A, but indented")
    assert "A, but indented" in here.ok("next", "T01").out


def test_the_end_of_a_phase_reaches_summary_state_roadmap_and_git(repository: Here) -> None:
    foreign = repository.root / ".opti-gsd"
    write_plan(repository, where=".opti-gsd/plans/phase-1/plan.md")
    (foreign / "config.json").write_text('{"deploy": {"target": "vercel"}}')
    (foreign / "state.json").write_text('{"phases_complete": [], "phases_pending": [1, 2]}')
    (foreign / "roadmap.md").write_text("### Phase 1: Parts\n- [ ] Complete\n")
    settle(repository, "commit = true\n")
    remote = repository.root.with_name("remote.git")
    git(repository.root, "init", "-q", "--bare", str(remote))
    git(repository.root, "remote", "add", "origin", str(remote))
    repository.ok(*YOLO)
    report(repository, "T01", "TASK COMPLETE\nAUTO-FIX: a typo\nNEW ISSUE: [high] it is slow\n")
    report_complete(repository, "T02", "T03", "T04")
    told = repository.ok("complete").out
    for part in ("## Phase 1 Complete!", "**Tasks:** 4/4 completed", "**Auto-Fixes:** 1",
                 "**Issues Found:** 1", "> Push to trigger preview deployment? (y/n)",
                 "→ `gsd-fsm start verify --phase 1`", "Safe to /compact"):  # fmt: skip
        assert part in told
    summary = (foreign / "plans" / "phase-1" / "summary.md").read_text()
    for part in ("# Phase 1 Summary", "- Task 01: Write 01.", "- a typo", "- [high] it is slow"):
        assert part in summary
    state = json.loads((foreign / "state.json").read_text())
    assert (state["phases_complete"], state["phases_pending"]) == ([1], [2])
    assert "- [x] Complete" in (foreign / "roadmap.md").read_text()
    assert git(repository.root, "log", "-1", "--format=%s") == "docs: complete phase 1"
    assert git(remote, "for-each-ref") == ""  # a push is offered, never made
    assert git(repository.root, "show", "--format=", "--name-only").split("\n") == [
        ".opti-gsd/plans/phase-1/summary.md", ".opti-gsd/roadmap.md", ".opti-gsd/state.json",
    ]  # fmt: skip


def test_each_gap_is_a_fix_with_a_commit_of_its_own_until_verification_passes(
    repository: Here,
) -> None:
    write_plan(repository)
    settle(repository, "commit = true\n")
    repository.ok("start", "verify", "--phase", "1", "--mode", "yolo")
    assert repository.run("verify").code == 7
    assert section(repository)["gaps_remaining"] == 4
    for number, gap in enumerate(repository.ok("next", "--json").json["tasks"], 1):
        assert gap["description"].startswith(f"P1 G{number}: ")
        assert '<gap type="stub" iteration="1/20">' in gap["prompt"]
        (repository.root / f"0{number}.py").write_text("x")
        report(repository, f"G{number}", "TASK COMPLETE")
    assert git(repository.root, "log", "-4", "--reverse", "--format=%s").split("\n") == [
        f"fix(1-G{n}): T0{n}: 0{n}.py exists" for n in (1, 2, 3, 4)
    ]
    assert repository.ok("verify", "--json").json["status"] == "completed"
    assert (section(repository)["active"], section(repository)["gaps_remaining"]) == (False, 0)


def test_the_orchestrator_is_told_where_a_prompt_is_and_not_the_prompt(here: Here) -> None:
    write_plan(here, PLAN.replace("Write 01.", "Write 01.\n" + "A long story. " * 2_000))
    here.ok(*YOLO)
    told = here.ok("next").out
    assert "next T01" in told
    assert len(told) < 1_000
    assert len(here.ok("next", "T01").out) > 20_000


def test_a_plan_of_which_a_part_was_never_recorded_cannot_complete(here: Here) -> None:
    write_plan(here)
    here.ok(*YOLO)
    more = draft("plan", here.status()["loop"], "cli", {"count": 5})  # and then it was killed
    append(Journal(str(here.gsd)), more)
    report_complete(here, "T01", "T02", "T03", "T04")
    assert "only 4 of the 5 tasks of the plan are recorded" in here.refused(4, "complete").err


def test_a_tag_or_a_commit_that_git_refuses_is_told_and_costs_no_record(repository: Here) -> None:
    write_plan(repository)
    settle(repository, "commit = true\n")
    git(repository.root, "tag", TAGS.rstrip("/"))  # where this is a tag, no tag can lie below it
    begun = repository.ok(*YOLO)
    assert f"checkpoint {TAGS}pre was not set: git refused" in begun.err
    report_complete(repository, "T01", "T02", "T03", "T04")
    hook = repository.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    unfinished = repository.run("complete")
    assert unfinished.code == 6
    assert f"tag {TAGS}post: git refused" in unfinished.err
    assert "documents of the phase (summary.md, their commit): git refused" in unfinished.err
    assert repository.status()["status"] == "completed"


def test_the_hook_leaves_the_end_of_a_phase_to_its_command(here: Here, tmp_path: Path) -> None:
    write_plan(here)
    agent = Agent(here, tmp_path / "client")
    loop = here.start(*YOLO[1:], env=agent.shell)
    report_complete(here, "T01", "T02", "T03")
    assert "task T04 is pending" in here.refused(4, "complete", env=agent.shell).err
    report_complete(here, "T04")
    assert f"Run: gsd-fsm --loop {loop} complete" in agent.blocked()
    here.ok("complete", env=agent.shell)
    assert (here.gsd / "plans" / "phase-1" / "summary.md").is_file()
