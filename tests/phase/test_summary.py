"""`summary.md`: its form, its escaping, and text of others in the same file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.loop.records import Issue
from gsd_fsm.phase.summary import BEGIN, END, merged, summary
from tests.support.phases import COMMITS, FinishedPhase, plan_of, told

FORM = """\
# Phase 1 Summary

## Completed
- Task 01: Create hooks.json (commit: a1b2c3d)
- Task 02: Create stop-hook.sh
- Task 03: Extend the settings (skipped)

## Auto-Fixes Applied
- add the missing import

## Issues Discovered
- [minor] the old hook leaks

## Token Usage
- Estimated: 45k
- Actual: 45k

## Record
- Loop: lp-1
- Started: 2026-11-15T23:00:02.000Z
- Retries: T01 1
"""


def test_summary_has_the_form_of_the_seeds() -> None:
    assert summary(told().loop, plan_of(Path("plan.md")), COMMITS) == FORM


def test_summary_shows_none_and_unknown_for_missing_facts() -> None:
    story = told("only")
    story.loop.issues, story.loop.spent_tokens = [], 0
    plan = plan_of(Path("plan.md"), "only", estimated_tokens=None)
    text = summary(story.loop, plan, {})
    assert "## Auto-Fixes Applied\n- none\n\n## Issues Discovered\n- none\n" in text
    assert "- Estimated: unknown\n- Actual: unknown\n" in text


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        (999, "999"),
        (1000, "1k"),
        (1549, "1.5k"),
        (9_949, "9.9k"),
        (9_950, "10k"),
        (123_456, "123k"),
    ],
)
def test_summary_shows_tokens_in_thousands(tokens: int, shown: str) -> None:
    story = told()
    story.loop.spent_tokens = tokens
    assert f"- Actual: {shown}\n" in summary(story.loop, plan_of(Path("plan.md")), {})


def test_summary_lists_tasks_in_plan_order_then_the_others() -> None:
    story = told()
    story("task", task="extra", status="pending", title="An extra")
    story.task("extra", "running")
    story.task("extra", "complete")
    plan = plan_of(Path("plan.md"))
    text = summary(story.loop, plan._replace(tasks=plan.tasks[::-1]), {"extra": "not a digest"})
    done = [line for line in text.split("\n") if line.startswith("- Task")]
    assert [line.split(":")[0] for line in done] == [
        *("- Task 03", "- Task 02", "- Task 01", "- Task extra")
    ]
    assert done[-1] == "- Task extra: An extra (commit: not a digest)"


def test_summary_title_names_the_phase_or_the_plan() -> None:
    plan = plan_of(Path("plan.md"), phase=None)
    assert summary(told(phase="01").loop, plan, {}).startswith("# Phase 1 Summary\n")
    assert summary(told(phase="auth").loop, plan, {}).startswith("# Phase auth Summary\n")
    assert summary(told().loop, plan, {}, "2a").startswith("# Phase 2a Summary\n")
    story = told()
    story.loop.phase = None
    assert summary(story.loop, plan, {}).startswith("# Plan Summary\n")


hostile = st.text() | st.sampled_from(
    [END, BEGIN, "x\n" + END, "# Heading", "</details>", "![i](http://x)", "```\ncode", "- [x] a"]
)


@given(title=hostile, fix=hostile, issue=hostile, severity=hostile, commit=hostile)
def test_summary_escapes_foreign_text(
    title: str, fix: str, issue: str, severity: str, commit: str
) -> None:
    story = told("a", "b")
    story.loop.tasks["T01"].fixes = [fix]
    story.loop.issues = [Issue(1, issue, severity)]
    plan = plan_of(Path("plan.md"), title, "b", estimated_tokens=severity, title=title)
    lines = summary(story.loop, plan, {"T01": commit}).split("\n")
    assert len(lines) == 21
    assert all(line == "" or line.startswith(("# ", "## ", "- ")) for line in lines)
    assert not any(line.strip() in (BEGIN, END) for line in lines)
    found = "\n".join(lines).replace("- [", "- ", 1)
    for mark in ("<", "`", "*", "[", "~"):
        for text in found.split(mark)[:-1]:
            assert (len(text) - len(text.rstrip("\\"))) % 2, mark
    "\n".join(lines).encode()


def test_new_summary_file_is_between_markers(phase: FinishedPhase) -> None:
    assert phase.end() == ["summary.md"]
    assert phase.summary.read_text() == f"{BEGIN}\n{FORM}{END}\n"


def test_summary_is_written_before_text_of_others(phase: FinishedPhase) -> None:
    phase.summary.write_bytes(b"\xef\xbb\xbf# My notes\r\n\xff\xfe not UTF-8")
    phase.end()
    ours = f"{BEGIN}\n{FORM}{END}\n".replace("\n", "\r\n").encode()
    assert phase.summary.read_bytes() == (
        b"\xef\xbb\xbf" + ours + b"\r\n# My notes\r\n\xff\xfe not UTF-8"
    )
    assert phase.end() == []


def test_older_summary_is_replaced_in_place(phase: FinishedPhase) -> None:
    phase.summary.write_text(f"above\n{BEGIN}\nold\n{END}\nbelow\n")
    phase.end()
    assert phase.summary.read_text() == f"above\n{BEGIN}\n{FORM}{END}\nbelow\n"


def test_merged_ignores_a_marker_without_end() -> None:
    torn = f"{BEGIN}\nmine\n"
    once = merged(torn, FORM)
    assert once == f"{BEGIN}\n{FORM}{END}\n\n{torn}"
    assert merged(once, FORM) == once
    assert merged(f"{torn}{BEGIN}\nold\n{END}\n", FORM) == f"{torn}{BEGIN}\n{FORM}{END}\n"
    assert merged(f"{END}\n{BEGIN}\nold\n{END}", FORM) == f"{END}\n{BEGIN}\n{FORM}{END}\n"


@given(before=st.lists(st.sampled_from([BEGIN, END, "mine", "", "```"]) | st.text()).map("\n".join))
def test_merged_is_idempotent(before: str) -> None:
    once = merged(before, FORM)
    assert merged(once, FORM) == once
    assert "other" in merged(once, "other\n").splitlines()
