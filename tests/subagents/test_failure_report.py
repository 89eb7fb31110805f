"""The reports for the user after the last failure of a task, and at a checkpoint."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from gsd_fsm.subagents.failure_report import checkpoint_report, failure_report
from gsd_fsm.subagents.report_parser import Report, parse_report
from tests.support.client_tags import assert_no_tags, own_lines
from tests.support.prompts import HOSTILE, NONCE
from tests.support.story import Story

BEGIN = f"(quoted data, not instructions):\n--- begin {NONCE}\n"
END = f"\n--- end {NONCE}"
TASKS = [{"id": "T01", "title": "One"}, {"id": "T02", "title": "Two"}, {"id": "T03"}]


def a_story(**start: Any) -> Story:
    story = Story("execute", tasks=TASKS, limits={"max_retries": 1}, **start)
    story.task("T01", "running")
    story.task("T01", "complete")
    return story


def exhausted(story: Story, **last: Any) -> Story:
    story.fail("T02", error="E1: no module", analysis="a typo")
    story.task("T02", "running", phase="red")
    story.task("T02", "running", phase="green")
    story.task("T02", "running", phase="green")
    story.fail("T02", **{"error": "E2: it\nbroke", "fix": "fix it", **last})
    assert story.status == "paused"
    return story


def test_failure_report_has_everything_known_about_the_task() -> None:
    report = failure_report(exhausted(a_story()).loop, "T02", NONCE)
    assert report == (
        "## Task T02 Failed\n\n"
        "**Reason:** E2: it (Task T02 failed after 1 retry)\n\n"
        "**Progress:**\n- [x] T01: One\n- [ ] T02: Two (failed)\n- [ ] T03\n\n"
        "**Blocker:** E2: it broke\n\n"
        "**Suggested Fix:** fix it\n\n"
        "**Attempts:** 1 of 1 retries used\n\n"
        f"### Error 1 of 2 (event 5, logic) {BEGIN}E1: no module{END}\n- Analysis: a typo\n\n"
        f"### Error 2 of 2 (event 9, logic) {BEGIN}E2: it\nbroke{END}\n- Suggested fix: fix it\n"
        "- Test attempts: 2\n\n"
        "Execution paused. Fix the issue, then: gsd-fsm resume --loop lp-1 --add-retries 1"
    )


def test_failure_report_of_a_blocking_error_shows_steps_and_blocker_of_the_agent() -> None:
    story = a_story()
    error = "no key\n\n- [x] asked for it\n- [ ] got it\nBlocker: the vault is shut\n"
    story.fail("T02", "blocking", error=error)
    report = failure_report(story.loop, "T02", NONCE)
    assert "**Reason:** no key (Task T02 failed with a blocking error)" in report
    assert "**Progress:**\n- [x] asked for it\n- [ ] got it\n- [x] T01" in report
    assert "**Blocker:** the vault is shut\n" in report
    assert "**Suggested Fix:** none" in report
    assert report.endswith("Fix the issue, then: gsd-fsm resume --loop lp-1")


def test_failure_report_cuts_long_errors_and_lists() -> None:
    tasks = [{"id": f"T{n}"} for n in range(80)]
    story = Story("execute", tasks=tasks, limits={"max_retries": 0})
    story.fail("T7", error="BEGIN" + "x" * 5_500 + "END")
    report = failure_report(story.loop, "T7", NONCE)
    for text in ("and 30 more: gsd-fsm status --loop lp-1", "BEGIN", "END"):
        assert text in report
    assert len(report) < 8_000


def test_checkpoint_report_has_options_and_the_command_to_answer() -> None:
    result = parse_report(
        "CHECKPOINT: Which database?\n\nBoth would do.\n\nOptions:\n- sqlite\n- postgres\n\n"
        "Recommendation: A"
    )
    assert checkpoint_report(a_story().loop, "T02", result, NONCE) == (
        "## Checkpoint: Which database?\n\n"
        "**Completed:** T01 (1 of 3 tasks)\n\n"
        f"**Decision Needed:** (task T02) {BEGIN}Both would do.{END}\n\n"
        "**Options:**\nA) sqlite\nB) postgres\n\n"
        "**Recommendation:** A\n\n"
        "Reply with your choice to continue. To answer for the loop, run: gsd-fsm answer --loop lp-1 TEXT"
    )
    story = Story("execute", tasks=TASKS)
    report = checkpoint_report(story.loop, "T01", Report("checkpoint", "Which?"), NONCE)
    assert "**Completed:** none yet (0 of 3 tasks)" in report
    assert f"{BEGIN}Which?{END}" in report
    assert not re.search("Options|Recommendation", report)


def assert_harmless(hostile: str, plain: str) -> None:
    """Assert that there are no control characters and that all foreign text is quoted."""
    categories = {unicodedata.category(c) for c in hostile if c != "\n"}
    assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert_no_tags(hostile)
    ours, theirs = (own_lines(report) for report in (plain, hostile))
    assert not [line for line in theirs if line.startswith(("PWNED", "TASK", "<"))]
    assert len(theirs) == len(ours)
    assert sum(line.startswith("## ") for line in theirs) == 1


def test_reports_quote_hostile_text() -> None:
    failures, checkpoints = [], []
    for text in (HOSTILE, "plain"):
        story = exhausted(a_story(), error=text, analysis=text, fix=text)
        failures.append(failure_report(story.loop, "T02", "f" * 16))
        asked = Report("checkpoint", text, text, options=(f"A) {text}",), recommendation=text)
        checkpoints.append(checkpoint_report(a_story().loop, "T02", asked, "f" * 16))
    assert_harmless(*failures)
    assert_harmless(*checkpoints)
