"""Which fields a subagent's report has, and which reports are rejected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.subagents.report_parser import MAX_REPORT, Issue, Report, parse_report

FORMS = ("TASK COMPLETE", "TASK FAILED: reason", "CHECKPOINT: decision", "NEW ISSUE: [severity]")


def refusal(text: str) -> UsageError:
    with pytest.raises(UsageError) as refused:
        parse_report(text)
    assert refused.value.exit_code == 2
    return refused.value


def test_complete_report_is_parsed_without_losing_a_line() -> None:
    text = (
        "I wrote the parser.\n\n## TASK COMPLETE\n\n**Files modified:**\n\n"
        "- `src/a.py` (created, 20 lines)\n- src/(app)/b.tsx - the page\n- __init__.py: exports\n\n"
        "**Tests:** 12 passed\nCommit message: `feat(1-01): parse it`\n\n"
        "- NEW ISSUE: [HIGH] the lexer leaks\n  memory\n- AUTO-FIX: an import was missing\n\n"
        "That is all.\n"
    )
    assert parse_report(text) == parse_report(text.replace("\n", "\r\n")) == Report(
        "complete", "", "I wrote the parser.\n\nThat is all.", tests="12 passed",
        issues=(Issue("high", "the lexer leaks\nmemory"),), fixes=("an import was missing",),
        commit_message="feat(1-01): parse it",
        files=("src/a.py", "src/(app)/b.tsx", "__init__.py"),
    )  # fmt: skip


def test_failure_has_reason_analysis_and_suggested_fix() -> None:
    result = parse_report(
        "TASK FAILED: the tests fail\nin two places\n\nBlocker: no network\nAttempts: 5 of 5\n"
        "Root cause: a stale lock\nSuggested fix: remove\nthe lock\n\nBlocker: a second one"
    )
    assert (result.verdict, result.reason) == ("failed", "the tests fail\nin two places")
    assert (result.analysis, result.suggested_fix) == ("a stale lock", "remove\nthe lock")
    assert result.details == "Blocker: no network\nAttempts: 5 of 5\n\nBlocker: a second one"


def test_checkpoint_has_options_and_recommendation() -> None:
    result = parse_report(
        "CHECKPOINT: Which database?\nA) sqlite\n   - simple\n**B)** postgres\n(C) none\n\n"
        "Recommendation: A, it is simple"
    )
    assert (result.verdict, result.reason) == ("checkpoint", "Which database?")
    assert result.options == ("A) sqlite\n- simple", "B) postgres", "C) none")
    assert result.recommendation == "A, it is simple"


def test_options_are_read_from_any_kind_of_list_in_a_checkpoint() -> None:
    for listed, options in (
        ("1. one\n2. two", ("1) one", "2) two")),
        ("- one\n- two", ("A) one", "B) two")),
        ("\n1) one\n\n2) two", ("1) one", "2) two")),
        ("one or two", ("A) one or two",)),
        ("**Option A:** one\n**Option B** — two", ("A) one", "B) two")),
    ):
        result = parse_report(f"CHECKPOINT: Which?\n\n**Options:**\n{listed}\n\nThe end.")
        assert (result.options, result.details) == (options, "The end.")
    result = parse_report("TASK FAILED: nothing helped\n\nI tried:\nA) this\nB) that")
    assert (result.options, result.details) == ((), "I tried:\nA) this\nB) that")


@pytest.mark.parametrize(
    "line",
    [
        "TASK COMPLETE", "## TASK COMPLETE", "## TASK COMPLETE ##", "**TASK COMPLETE**",
        "- TASK COMPLETE", "* **TASK COMPLETE**", "> TASK COMPLETE", "1. TASK COMPLETE",
        "`TASK COMPLETE`", "__TASK COMPLETE__", "  \t TASK COMPLETE  ", "> - **TASK COMPLETE.**",
        "```TASK COMPLETE```", "TASK COMPLETE ✔", "***TASK COMPLETE:***", "\ufeffTASK COMPLETE",
        "TASK COMPLETE\r", "2) _TASK COMPLETE_",
    ],
)  # fmt: skip
def test_verdict_may_have_markdown_around_it(line: str) -> None:
    assert parse_report(line)[:2] == ("complete", "")
    assert parse_report(f"Before.\n\n{line}\n\nAfter.".replace("\ufeff", "")).verdict == "complete"


@pytest.mark.parametrize(
    ("line", "reason"),
    [("**TASK FAILED:** it broke", "it broke"), ("**TASK FAILED**: it broke", "it broke"),
     ("**TASK FAILED: it broke**", "it broke"), ("### TASK FAILED: broken in C#", "broken in C#"),
     ("### TASK FAILED: it broke ###", "it broke"), ("TASK FAILED — it broke", "it broke"),
     ("TASK FAILED: `make` is missing", "`make` is missing"),
     ("TASK FAILED (it broke)", "(it broke)"), ("_TASK FAILED: my_var broke_", "my_var broke"),
     ("TASK FAILED:\nit broke", "it broke"), ("TASK FAILED: a\n# A heading\nb", "a"),
     ("TASK FAILED: a\n```\nb\n```", "a")],
)  # fmt: skip
def test_reason_has_no_markdown_around_it(line: str, reason: str) -> None:
    assert parse_report(line)[:2] == ("failed", reason)


@pytest.mark.parametrize(
    "line",
    [
        "task complete", "Task Complete", "TASK COMPLETED", "✅ TASK COMPLETE", "The TASK COMPLETE",
        "TASK  COMPLETE", "CHECKPOINTS: two", "CHECKPOINT tags were set", "checkpoint: which?",
        "```\nTASK COMPLETE\n```", "~~~\nTASK COMPLETE\n~~~", "````\n```\nTASK COMPLETE\n````",
        "  ```text\n  TASK FAILED: it\n  ```", "> ```\n> TASK FAILED: it\n> ```", "```\nTASK COMPLETE",
        "~~~\n```\nTASK COMPLETE\n```\n~~~",
    ],
)  # fmt: skip
def test_text_that_only_resembles_a_verdict_does_not_count(line: str) -> None:
    error = refusal(f"I am done.\n\n{line}\n")
    assert error.message.startswith("the report has no verdict")
    assert all(form in error.hint for form in FORMS)
    if line.startswith("```\nTASK COMPLETE"):
        assert "TASK COMPLETE at line 4 does not count" in error.message
    assert parse_report(f"TASK COMPLETE\n\n{line}").verdict == "complete"


def test_two_verdicts_are_rejected_with_their_lines() -> None:
    error = refusal("\n\nTASK COMPLETE\n\n\n\n\n\n- TASK FAILED: it broke")
    assert error.message == (
        "the report has 2 verdicts: TASK COMPLETE at line 3, TASK FAILED at line 9"
    )
    assert all(form in error.hint for form in FORMS)
    assert "2 verdicts" in refusal("TASK COMPLETE\nTASK COMPLETE").message
    assert "and 5 more" in refusal("TASK COMPLETE\n" * 10).message


def test_failure_and_checkpoint_without_text_are_rejected() -> None:
    for line in ("TASK FAILED", "TASK FAILED:", "**CHECKPOINT:**", "CHECKPOINT: …"):
        error = refusal(f"{line}\n\nmore")
        assert "at line 1 has no text after it" in error.message
        assert all(form in error.hint for form in FORMS)


def test_empty_binary_and_huge_reports_are_rejected() -> None:
    assert refusal("").message == refusal(" \n\t\n").message == "the report is empty"
    assert "NUL byte at line 2" in refusal("TASK COMPLETE\n\0").message
    assert "4 MiB" in refusal("x" * (MAX_REPORT + 1)).message
    assert "4 MiB" in refusal("TASK COMPLETE\n" + "x" * (16 << 20)).message
    assert parse_report("TASK COMPLETE \ud800").verdict == "complete"


@pytest.mark.parametrize(
    "text",
    ["*", "`", "#", "- ", "> ", "((", " (", "[", "~", "_ ", "1.", ":", "A)", "Files: ", "!", "—", "	"],
)  # fmt: skip
def test_long_line_is_parsed_in_linear_time(text: str) -> None:
    long = text * (300_000 // len(text))
    for line in (long, f"NEW ISSUE: {long}x", f"Files: {long}x", f"A) {long}x"):
        assert parse_report(f"TASK COMPLETE\n\n{line}").verdict == "complete"
    assert parse_report(f"TASK FAILED: {long}x").reason.endswith("x")


def test_issues_have_a_severity_or_unspecified() -> None:
    for line, issues in (
        ("NEW ISSUE: [low] a", [("low", "a")]),
        ("**NEW ISSUE:** [Low] — a", [("low", "a")]),
        ("NEW ISSUE: a", [("unspecified", "a")]),
        ("NEW ISSUE: [] a", [("unspecified", "a")]),
        ("NEW ISSUE [high] a", [("high", "a")]),
        ("NEW ISSUE: [high]\na", [("high", "a")]),
        ("- NEW ISSUE: [low] a\n- NEW ISSUE: [low] b\n- c", [("low", "a"), ("low", "b")]),
        *((f"NEW ISSUE{text}", []) for text in (": none", ":", "S were not found", " tracker")),
    ):
        assert list(parse_report(f"{line}\n\nTASK COMPLETE").issues) == issues, line


def test_files_are_read_from_lines_and_lists() -> None:
    for lines, files in (
        ("Files: a.py, b.py.", ("a.py", "b.py")),
        ("files changed: a.py (new), `my file.py` (x, y)", ("a.py", "my file.py")),
        ("### Files modified\n- a.py\n- a.py\n1. b.py — why", ("a.py", "b.py")),
        ("Files: none", ()),
        ("Files:\n\nI changed nothing else.", ()),
        ("Files:\n```\na.py\nb.py\n```", ("a.py", "b.py")),
        ("Files were changed: a.py", ()),
    ):
        assert parse_report(f"TASK COMPLETE\n{lines}").files == files, lines


def test_commit_message_may_have_a_body_but_is_not_a_hash() -> None:
    fenced = parse_report("TASK COMPLETE\nCommit message:\n```\nfeat: a\n\nbody itself\n```\nmore")
    assert (fenced.commit_message, fenced.details) == ("feat: a\n\nbody itself", "more")
    hashed = parse_report("TASK COMPLETE\nCommit: 0123abc\nCommit message: 'feat: a'")
    assert (hashed.commit_message, hashed.details) == ("feat: a", "Commit: 0123abc")


def test_marks_and_logs_in_code_fences_are_details() -> None:
    fence = "```\nNEW ISSUE: [high] a\nAUTO-FIX: b\nFiles: c\n```"
    result = parse_report(f"TASK COMPLETE\n\n{fence}")
    assert (result.issues, result.fixes, result.files, result.details) == ((), (), (), fence)
    result = parse_report("TASK FAILED: a\n\nBlocker:\n```\nlog\n```\nRoot cause: b")
    assert (result.details, result.analysis) == ("Blocker:\n```\nlog\n```", "b")


def outcome(text: str) -> Report | UsageError:
    try:
        return parse_report(text)
    except UsageError as error:
        return error


POOL = st.sampled_from(
    ["TASK COMPLETE", "TASK FAILED: a", "CHECKPOINT: b", "TASK FAILED", "```", "~~~", "````", "",
     "text", "NEW ISSUE: [low] c", "Files:", "Options:", "- item", "A) option", "Tests: d", "## e"]
)  # fmt: skip


@given(st.lists(POOL, max_size=12))
def test_report_is_parsed_exactly_if_it_has_one_verdict_outside_of_fences(lines: list[str]) -> None:
    found = []
    fence = ""
    for line in lines:
        if line[:3] in ("```", "~~~") and (not fence or line.startswith(fence)):
            fence = "" if fence else line
        elif not fence and line.startswith(("TASK", "CHECKPOINT")):
            found.append(line)
    read = outcome("\n".join(lines))
    if isinstance(read, Report):
        assert len(found) == 1
        assert read.verdict.upper() in found[0]
    elif len(found) == 1:
        assert found == ["TASK FAILED"]
        assert "has no text after it" in read.message
    elif found:
        assert f"{len(found)} verdicts" in read.message
    else:
        assert "no verdict" in read.message or "empty" in read.message


@given(st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=())))
def test_any_text_is_parsed_or_rejected(before: str, after: str) -> None:
    read = outcome(f"{before}\nTASK COMPLETE\n{after}")
    assert read.verdict == "complete" if isinstance(read, Report) else read.hint
