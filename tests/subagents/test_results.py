"""What is read from a subagent's report, and which reports are refused."""

from __future__ import annotations

import pytest

from gsd_fsm.core.errors import UsageError
from gsd_fsm.subagents.results import MAX_REPORT, Issue, Result, read_result

FORMS = ("TASK COMPLETE", "TASK FAILED: reason", "CHECKPOINT: decision", "NEW ISSUE: [severity]")


def refusal(text: str) -> UsageError:
    with pytest.raises(UsageError) as refused:
        read_result(text)
    assert refused.value.exit_code == 2
    return refused.value


def test_a_whole_report_is_taken_apart_and_nothing_is_lost() -> None:
    result = read_result(
        "I wrote the parser.\n\n"
        "## TASK COMPLETE\n\n"
        "**Files modified:**\n\n- `src/a.py` (created, 20 lines)\n- src/(app)/b.tsx - the page\n"
        "- __init__.py: exports\n\n"
        "**Tests:** 12 passed\n"
        "Commit message: `feat(1-01): parse it`\n\n"
        "- NEW ISSUE: [HIGH] the lexer leaks\n  memory\n"
        "- AUTO-FIX: an import was missing\n\n"
        "That is all.\n"
    )
    assert result == Result(
        verdict="complete",
        reason="",
        details="I wrote the parser.\n\nThat is all.",
        issues=(Issue("high", "the lexer leaks\nmemory"),),
        fixes=("an import was missing",),
        commit_message="feat(1-01): parse it",
        files=("src/a.py", "src/(app)/b.tsx", "__init__.py"),
        tests="12 passed",
    )


def test_a_failure_has_its_reason_its_cause_and_what_to_try() -> None:
    result = read_result(
        "TASK FAILED: the tests fail\nin two places\n\nBlocker: no network\nAttempts: 5 of 5\n"
        "Root cause: a stale lock\nSuggested fix: remove\nthe lock\n\nBlocker: a second one"
    )
    assert (result.verdict, result.reason) == ("failed", "the tests fail\nin two places")
    assert (result.analysis, result.suggested_fix) == ("a stale lock", "remove\nthe lock")
    assert result.details == "Blocker: no network\nAttempts: 5 of 5\n\nBlocker: a second one"


def test_a_checkpoint_has_its_options_and_a_recommendation() -> None:
    result = read_result(
        "CHECKPOINT: Which database?\nA) sqlite\n   - simple\n**B)** postgres\n(C) none\n\n"
        "Recommendation: A, it is simple"
    )
    assert (result.verdict, result.reason) == ("checkpoint", "Which database?")
    assert result.options == ("A) sqlite\n- simple", "B) postgres", "C) none")
    assert result.recommendation == "A, it is simple"


@pytest.mark.parametrize(
    ("listed", "options"),
    [
        ("1. one\n2. two", ("1) one", "2) two")),
        ("- one\n- two", ("A) one", "B) two")),
        ("\n1) one\n\n2) two", ("1) one", "2) two")),
        ("one or two", ("A) one or two",)),
        ("**Option A:** one\n**Option B** — two", ("A) one", "B) two")),
    ],
)
def test_options_may_be_listed_in_several_ways(listed: str, options: tuple[str, ...]) -> None:
    result = read_result(f"CHECKPOINT: Which?\n\n**Options:**\n{listed}\n\nThe end.")
    assert (result.options, result.details) == (options, "The end.")


def test_what_looks_like_options_in_another_report_stays_a_detail() -> None:
    result = read_result("TASK FAILED: nothing helped\n\nI tried:\nA) this\nB) that")
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
def test_a_verdict_may_be_decorated(line: str) -> None:
    assert read_result(line)[:2] == ("complete", "")
    assert read_result(f"Before.\n\n{line}\n\nAfter.".replace("\ufeff", "")).verdict == "complete"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("**TASK FAILED:** it broke", "it broke"),
        ("**TASK FAILED**: it broke", "it broke"),
        ("**TASK FAILED: it broke**", "it broke"),
        ("### TASK FAILED: broken in C#", "broken in C#"),
        ("### TASK FAILED: it broke ###", "it broke"),
        ("TASK FAILED: `make` is missing", "`make` is missing"),
        ("TASK FAILED — it broke", "it broke"),
        ("TASK FAILED (it broke)", "(it broke)"),
        ("_TASK FAILED: my_var broke_", "my_var broke"),
        ("TASK FAILED:\nit broke", "it broke"),
        ("TASK FAILED: a\n# A heading\nb", "a"),
        ("TASK FAILED: a\n```\nb\n```", "a"),
    ],
)
def test_a_reason_is_what_follows_without_the_decoration(line: str, reason: str) -> None:
    assert read_result(line)[:2] == ("failed", reason)


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
def test_what_is_not_written_as_a_verdict_is_none(line: str) -> None:
    error = refusal(f"I am done.\n\n{line}\n")
    assert error.message.startswith("the report has no verdict")
    assert all(form in error.hint for form in FORMS)
    assert read_result(f"TASK COMPLETE\n\n{line}").verdict == "complete"


def test_a_verdict_in_a_fence_is_named_where_there_is_no_other() -> None:
    assert "TASK COMPLETE at line 3 is none" in refusal("Done:\n```\nTASK COMPLETE\n```").message


def test_two_verdicts_are_refused_by_their_lines() -> None:
    error = refusal("\n\nTASK COMPLETE\n\n\n\n\n\n- TASK FAILED: it broke")
    assert (
        error.message == "the report has 2 verdicts: TASK COMPLETE at line 3, TASK FAILED at line 9"
    )
    assert all(form in error.hint for form in FORMS)
    assert "2 verdicts" in refusal("TASK COMPLETE\nTASK COMPLETE").message
    assert "and 5 more" in refusal("TASK COMPLETE\n" * 10).message


def test_the_instructions_themselves_are_no_report() -> None:
    echoed = (
        "Report exactly ONE of:\n- TASK COMPLETE (with files modified)\n"
        "- TASK FAILED: {reason} (with details)\n- CHECKPOINT: {decision needed}\n"
    )
    assert "3 verdicts" in refusal(echoed).message
    assert "4 verdicts" in refusal(f"{echoed}\nTASK COMPLETE").message


@pytest.mark.parametrize(
    "line", ["TASK FAILED", "TASK FAILED:", "**CHECKPOINT:**", "CHECKPOINT: …"]
)
def test_a_failure_and_a_checkpoint_need_words(line: str) -> None:
    error = refusal(f"{line}\n\nmore")
    assert "at line 1 has nothing after it" in error.message
    assert all(form in error.hint for form in FORMS)


def test_what_is_no_text_is_refused_at_once() -> None:
    assert refusal("").message == refusal(" \n\t\n").message == "the report is empty"
    assert "NUL at line 2" in refusal("TASK COMPLETE\n\0").message
    assert "4 MiB" in refusal("x" * (MAX_REPORT + 1)).message
    assert "4 MiB" in refusal("TASK COMPLETE\n" + "x" * (16 << 20)).message
    assert read_result("TASK COMPLETE \ud800").verdict == "complete"


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "`",
        "#",
        "- ",
        "> ",
        "((",
        " (",
        "[",
        "~",
        "_ ",
        "1.",
        ":",
        "A)",
        "Files: ",
        "!",
        "—",
        "\t",
    ],
)
def test_a_long_line_of_anything_is_read_without_effort(text: str) -> None:
    long = text * (300_000 // len(text))
    for line in (long, f"NEW ISSUE: {long}x", f"Files: {long}x", f"A) {long}x"):
        assert read_result(f"TASK COMPLETE\n\n{line}").verdict == "complete"
    assert read_result(f"TASK FAILED: {long}x").reason.endswith("x")


@pytest.mark.parametrize(
    ("line", "issues"),
    [
        ("NEW ISSUE: [low] a", [("low", "a")]),
        ("**NEW ISSUE:** [Low] — a", [("low", "a")]),
        ("NEW ISSUE: a", [("unspecified", "a")]),
        ("NEW ISSUE: [] a", [("unspecified", "a")]),
        ("NEW ISSUE [high] a", [("high", "a")]),
        ("NEW ISSUE: [high]\na", [("high", "a")]),
        ("- NEW ISSUE: [low] a\n- NEW ISSUE: [low] b\n- c", [("low", "a"), ("low", "b")]),
        ("NEW ISSUE: none", []),
        ("NEW ISSUE:", []),
        ("NEW ISSUES were not found", []),
        ("NEW ISSUE tracker", []),
    ],
)
def test_issues_have_a_severity_or_say_that_they_have_none(
    line: str, issues: list[tuple[str, str]]
) -> None:
    assert list(read_result(f"{line}\n\nTASK COMPLETE").issues) == issues


@pytest.mark.parametrize(
    ("lines", "files"),
    [
        ("Files: a.py, b.py.", ("a.py", "b.py")),
        ("files changed: a.py (new), `my file.py` (x, y)", ("a.py", "my file.py")),
        ("### Files modified\n- a.py\n- a.py\n1. b.py — why", ("a.py", "b.py")),
        ("Files: none", ()),
        ("Files:\n\nI changed nothing else.", ()),
        ("Files:\n```\na.py\nb.py\n```", ("a.py", "b.py")),
        ("Files were changed: a.py", ()),
    ],
)
def test_files_are_read_from_lines_and_lists(lines: str, files: tuple[str, ...]) -> None:
    assert read_result(f"TASK COMPLETE\n{lines}").files == files


def test_a_commit_message_may_have_a_body_and_a_hash_is_none() -> None:
    fenced = read_result("TASK COMPLETE\nCommit message:\n```\nfeat: a\n\nbody\n```\nmore")
    assert (fenced.commit_message, fenced.details) == ("feat: a\n\nbody", "more")
    hashed = read_result("TASK COMPLETE\nCommit: 0123abc\nCommit message: 'feat: a'")
    assert (hashed.commit_message, hashed.details) == ("feat: a", "Commit: 0123abc")


def test_marks_in_code_stay_code() -> None:
    result = read_result("TASK COMPLETE\n\n```\nNEW ISSUE: [high] a\nAUTO-FIX: b\nFiles: c\n```")
    assert (result.issues, result.fixes, result.files) == ((), (), ())
    assert result.details == "```\nNEW ISSUE: [high] a\nAUTO-FIX: b\nFiles: c\n```"


def test_a_blocker_keeps_its_log_as_it_is() -> None:
    result = read_result("TASK FAILED: a\n\nBlocker:\n```\nlog\n```\nRoot cause: b")
    assert (result.details, result.analysis) == ("Blocker:\n```\nlog\n```", "b")
