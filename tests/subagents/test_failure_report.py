"""What a human is shown after the last failure of a task, and at a checkpoint."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest

from gsd_fsm.core.errors import NotFound
from gsd_fsm.subagents.failure_report import checkpoint_report, failure_report
from gsd_fsm.subagents.results import Result, read_result
from tests.support.prompts import HOSTILE
from tests.support.story import Story

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
    story.fail("T02", **{"error": "E2: it\nbroke", "fix": "mend it", **last})
    assert story.status == "paused"
    return story


def test_a_failed_task_is_told_with_everything_that_is_known() -> None:
    report = failure_report(exhausted(a_story()).loop, "T02")
    assert report == (
        "## Task T02 Failed\n\n"
        "**Reason:** E2: it (Task T02 failed after 1 retry)\n\n"
        "**Progress:**\n- [x] T01: One\n- [ ] T02: Two (failed)\n- [ ] T03\n\n"
        "**Blocker:** E2: it broke\n\n"
        "**Suggested Fix:** mend it\n\n"
        "**Attempts:** 1 of 1 retries used\n\n"
        "### Error 1 of 2 (event 5, logic)\n\n```\nE1: no module\n```\n- Analysis: a typo\n\n"
        "### Error 2 of 2 (event 9, logic)\n\n```\nE2: it\nbroke\n```\n- Suggested fix: mend it\n"
        "- Test attempts: 2\n\n"
        "Execution paused. Fix the issue, then: gsd-fsm --loop lp-1 resume --add-retries 1"
    )


def test_a_failure_that_no_retry_helps_names_the_command_that_does() -> None:
    story = a_story()
    story.fail("T02", "blocking", error="no licence")
    report = failure_report(story.loop, "T02")
    assert "**Reason:** no licence (Task T02 failed with a blocking error)" in report
    assert "**Suggested Fix:** none was suggested" in report
    assert report.endswith("Fix the issue, then: gsd-fsm --loop lp-1 resume")


def test_long_errors_and_long_lists_are_cut() -> None:
    tasks = [{"id": f"T{n}"} for n in range(80)]
    story = Story("execute", tasks=tasks, limits={"max_retries": 0})
    story.fail("T7", error="BEGIN" + "x" * 5_500 + "END")
    report = failure_report(story.loop, "T7")
    assert "and 30 more: gsd-fsm --loop lp-1 status" in report
    assert "BEGIN" in report
    assert "END" in report
    assert len(report) < 8_000


def test_a_task_that_the_loop_has_not_is_not_found() -> None:
    with pytest.raises(NotFound, match="no task T9"):
        failure_report(a_story().loop, "T9")
    with pytest.raises(NotFound, match="no task T9"):
        checkpoint_report(a_story().loop, "T9", Result("checkpoint", "Which?"))


def test_a_checkpoint_is_told_with_its_options_and_how_to_answer() -> None:
    result = read_result(
        "CHECKPOINT: Which database?\n\nBoth would do.\n\nOptions:\n- sqlite\n- postgres\n\n"
        "Recommendation: A"
    )
    assert checkpoint_report(a_story().loop, "T02", result) == (
        "## Checkpoint: Which database?\n\n"
        "**Completed:** T01 (1 of 3 tasks)\n\n"
        "**Decision Needed:** (task T02)\n> Both would do.\n\n"
        "**Options:**\nA) sqlite\nB) postgres\n\n"
        "**Recommendation:** A\n\n"
        "Reply with your choice to continue. For the loop it is: gsd-fsm --loop lp-1 answer TEXT"
    )


def test_a_checkpoint_without_options_has_only_its_question() -> None:
    story = Story("execute", tasks=TASKS)
    report = checkpoint_report(story.loop, "T01", Result("checkpoint", "Which?"))
    assert "**Completed:** none yet (0 of 3 tasks)" in report
    assert "> Which?" in report
    assert "Options" not in report
    assert "Recommendation" not in report


def is_harmless(report: str, ours: str) -> None:
    """Nothing that a terminal obeys, and no line outside of a quotation that is not ours."""
    categories = {unicodedata.category(c) for c in report if c != "\n"}
    assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    quoted = re.sub(r"^(`{3,})\n.*?\n\1$", "", report, flags=re.MULTILINE | re.DOTALL)
    for line in quoted.split("\n"):
        assert not line.startswith("PWNED"), line
        assert not line.startswith(("TASK", "<")), line
    assert quoted.count("\n") == ours.count("\n")


def test_hostile_texts_stay_quotations() -> None:
    hostile, plain = (
        failure_report(
            exhausted(a_story(), error=text, analysis=text, fix=text).loop,
            "T02",
        )
        for text in (HOSTILE, "plain")
    )
    ours = re.sub(r"^(`{3,})\n.*?\n\1$", "", plain, flags=re.MULTILINE | re.DOTALL)
    is_harmless(hostile, ours)
    story = a_story()
    result = Result(
        "checkpoint", HOSTILE, HOSTILE, options=("A) " + HOSTILE,), recommendation=HOSTILE
    )
    report = checkpoint_report(story.loop, "T02", result)
    quotation = report.count("\n>")
    harmless = Result("checkpoint", "q", "d", options=("A) o",), recommendation="r")
    ours = checkpoint_report(story.loop, "T02", harmless)
    is_harmless(report, ours + "\n" * (quotation - 1))
    assert len(re.findall(r"^## ", report, re.MULTILINE)) == 1


def test_what_the_agent_itself_told_stands_where_it_belongs() -> None:
    story = a_story()
    told = "no key\n\n- [x] asked for it\n- [ ] got it\nBlocker: the vault is shut\n"
    story.fail("T02", "blocking", error=told)
    report = failure_report(story.loop, "T02")
    assert "**Reason:** no key (Task T02 failed" in report
    assert "**Progress:**\n- [x] asked for it\n- [ ] got it\n- [x] T01" in report
    assert "**Blocker:** the vault is shut\n" in report
