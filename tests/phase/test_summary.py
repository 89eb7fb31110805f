"""`summary.md`: its form, its escaping, and text of others in the same file."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.loop.records import Issue
from gsd_fsm.phase.summary import BEGIN, END, merged, summary
from tests.support.phases import COMMITS, finished_story, plan_of

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
- Claimed, not proven: T01, T02
- Retries: T01 1
"""


PLAN = plan_of(Path("plan.md"))


def test_summary_has_the_form_of_the_seeds() -> None:
    assert summary(finished_story().loop, PLAN, COMMITS) == FORM


def test_summary_shows_none_and_unknown_for_missing_facts() -> None:
    story = finished_story("only")
    story.loop.issues, story.loop.spent_tokens = [], 0
    plan = plan_of(Path("plan.md"), "only", estimated_tokens=None)
    text = summary(story.loop, plan, {})
    assert "## Auto-Fixes Applied\n- none\n\n## Issues Discovered\n- none\n" in text
    assert "- Estimated: unknown\n- Actual: unknown\n" in text


def test_summary_shows_tokens_in_thousands() -> None:
    loop = finished_story().loop
    shown = {999: "999", 1000: "1k", 1549: "1.5k", 9_949: "9.9k", 9_950: "10k", 123_456: "123k"}
    for loop.spent_tokens, text in shown.items():
        assert f"- Actual: {text}\n" in summary(loop, PLAN, {})


def test_summary_lists_tasks_in_plan_order_then_the_others() -> None:
    story = finished_story()
    for status in ("pending", "running", "complete"):
        story("task", task="extra", status=status, title="An extra")
    text = summary(story.loop, PLAN._replace(tasks=PLAN.tasks[::-1]), {"extra": "not a digest"})
    done = [line for line in text.split("\n") if line.startswith("- Task")]
    assert [line.split(":")[0][7:] for line in done] == ["03", "02", "01", "extra"]
    assert done[-1] == "- Task extra: An extra (commit: not a digest)"


def test_summary_title_names_the_phase_or_the_plan() -> None:
    plan, loop = PLAN._replace(phase=None), finished_story().loop
    assert summary(loop, plan, {}, "2a").startswith("# Phase 2a Summary\n")
    for loop.phase, name in (("01", "Phase 1"), ("auth", "Phase auth"), (None, "Plan")):
        assert summary(loop, plan, {}).startswith(f"# {name} Summary\n")


hostile = st.text() | st.sampled_from(
    [END, BEGIN, "x\n" + END, "# Heading", "</details>", "![i](http://x)", "```\ncode", "- [x] a"]
)


@given(title=hostile, fix=hostile, issue=hostile, severity=hostile, commit=hostile)
def test_summary_escapes_foreign_text(title, fix, issue, severity, commit) -> None:
    story = finished_story("a", "b")
    story.loop.tasks["T01"].fixes = [fix]
    story.loop.issues = [Issue(1, issue, severity)]
    plan = plan_of(Path("plan.md"), title, "b", estimated_tokens=severity, title=title)
    lines = summary(story.loop, plan, {"T01": commit}).split("\n")
    assert len(lines) == 22
    assert all(line == "" or line.startswith(("# ", "## ", "- ")) for line in lines)
    assert not any(line.strip() in (BEGIN, END) for line in lines)
    found = "\n".join(lines).replace("- [", "- ", 1)
    for mark in ("<", "`", "*", "[", "~"):
        for text in found.split(mark)[:-1]:
            assert (len(text) - len(text.rstrip("\\"))) % 2, mark
    "\n".join(lines).encode()


def test_summary_replaces_an_older_one_or_is_written_before_text_of_others(phase) -> None:
    ours = f"{BEGIN}\n{FORM}{END}\n"
    phase.summary.write_bytes(b"\xef\xbb\xbf# My notes\r\n\xff\xfe not UTF-8")
    for more in (["summary.md"], []):
        assert phase.end() == more
        assert phase.summary.read_bytes() == (
            b"\xef\xbb\xbf" + ours.replace("\n", "\r\n").encode()
            + b"\r\n# My notes\r\n\xff\xfe not UTF-8"
        )  # fmt: skip
    old, torn = f"{BEGIN}\nold\n{END}", f"{BEGIN}\nmine\n"
    assert merged("", FORM) == ours
    assert merged(f"above\n{old}\nbelow\n", FORM) == f"above\n{ours}below\n"
    assert merged(torn, FORM) == f"{ours}\n{torn}"
    assert merged(f"{torn}{old}\n", FORM) == f"{torn}{ours}"
    assert merged(f"{END}\n{old}", FORM) == f"{END}\n{ours}"


@given(before=st.lists(st.sampled_from([BEGIN, END, "mine", "", "```"]) | st.text()).map("\n".join))
def test_merged_is_idempotent(before: str) -> None:
    once = merged(before, FORM)
    assert merged(once, FORM) == once
    assert "other" in merged(once, "other\n").splitlines()
