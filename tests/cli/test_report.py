"""report: the verdicts of subagents, and outputs that change nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import AGENT, Here
from tests.support.plan_loops import report, report_complete, start_plan, task_text
from tests.support.verification import FILE, failed_round, start_verify

SECRET = "ghp_" + "a1B2" * 9
COMPLETE = """All good.

TASK COMPLETE
Files modified: 01.py
AUTO-FIX: added a missing import
AUTO-FIX: spelt a name right
NEW ISSUE: [High] the login leaks
NEW ISSUE: a typo in the manual
"""
FAILED = """TASK FAILED: the parser loops
Root cause: no progress at a blank
Suggested Fix: skip blanks first

  File "01.py", line 3
"""
CHECKPOINT = """CHECKPOINT: Which store?
Options:
A) sqlite
B) files
Recommendation: B
"""


@pytest.fixture
def planned(here: Here) -> Here:
    return start_plan(here)


def reported(here: Here, name: str, words: str, **how: Any) -> list[tuple[str, str, Any]]:
    """Return the events that one report appends."""
    since = len(here.lines())
    report(here, name, words, **how)
    return [(event["type"], event["by"], event["data"]) for event in here.lines()[since:]]


def test_report_complete_records_issues_fixes_and_summary(planned: Here) -> None:
    first, second, running, complete = reported(planned, "01", COMPLETE, env=AGENT)
    issue = {"task": "T01", "severity": "high", "text": "the login leaks"}
    assert first == ("issue", "agent", issue)
    assert second[2]["severity"] == "unspecified"
    assert running == ("task", "agent", {"task": "T01", "status": "running"})
    assert complete[:2] == ("task", "agent")
    assert complete[2] == {
        "task": "T01",
        "status": "complete",
        "summary": "All good.",
        "fixes": ["added a missing import", "spelt a name right"],
    }


def test_report_of_running_task_records_only_its_end(planned: Here) -> None:
    planned.ok("task", "T01", "running")
    appended = reported(planned, "T01", "TASK COMPLETE")
    assert appended == [("task", "human", {"task": "T01", "status": "complete"})]


def test_report_failed_records_error_cause_and_fix(planned: Here) -> None:
    running, failure = reported(planned, "T01", FAILED)
    assert running[2] == {"task": "T01", "status": "running"}
    kind, by, data = failure
    assert (kind, by, data["task"], data["class"]) == ("failure", "human", "T01", "logic")
    assert data["error"] == 'the parser loops\n\nFile "01.py", line 3'
    assert data["analysis"] == "no progress at a blank"
    assert data["fix"] == "skip blanks first"
    assert planned.status()["task_retries"]["T01"] == 1


def test_report_checkpoint_waits_with_its_options(planned: Here) -> None:
    _, task, wait = reported(planned, "T01", CHECKPOINT)
    question = "Which store?\nA) sqlite\nB) files\nRecommendation: B"
    assert task == (
        "task", "human", {"task": "T01", "status": "checkpoint", "question": question},
    )  # fmt: skip
    assert wait[:2] == ("wait", "cli")
    assert wait[2]["question"] == f"Task T01 needs a decision: {question}"


def test_report_checkpoint_prints_progress_options_and_how_to_answer(planned: Here) -> None:
    report_complete(planned, "T01")
    shown = planned.ok("report", "T02", stdin=CHECKPOINT.encode()).out
    assert "## Checkpoint: Which store?" in shown
    assert "**Completed:** T01 (1 of 4 tasks)" in shown
    assert "**Options:**\nA) sqlite\nB) files" in shown
    assert "**Recommendation:** B" in shown
    assert "answer TEXT" in shown


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (b"TASK COMPLETE\nTASK FAILED: no", "has 2 verdicts: TASK COMPLETE at line 1"),
        (b"I think that it is done.", "has no verdict"),
        (b"```\nTASK COMPLETE\n```", "it is in a code fence"),
        (b"", "the report is empty"),
        (b"TASK FAILED:", "has no text after it"),
        (b"\x00\x01\x02 TASK COMPLETE", "the report"),
        (bytes(range(256)) * 40, "the report"),
    ],
)
def test_report_without_one_clear_verdict_changes_nothing(
    planned: Here, output: bytes, error: str
) -> None:
    answer = planned.refused(2, "report", "T01", stdin=output)
    assert error in answer.err
    assert "TASK COMPLETE, TASK FAILED: reason, CHECKPOINT: decision" in answer.err or 0 in output


def test_report_of_unknown_task_names_the_open_ones(planned: Here) -> None:
    answer = planned.refused(2, "report", "T99", stdin=b"TASK COMPLETE")
    assert "has no task or gap T99" in answer.err
    assert "Use one of: T01, T02, T03, T04" in answer.err


def test_report_of_task_with_open_dependencies_is_refused(planned: Here) -> None:
    for words in (b"TASK COMPLETE", b"TASK FAILED: x", b"CHECKPOINT: x"):
        answer = planned.refused(4, "report", "T04", stdin=words)
        assert "task T04 depends on unfinished tasks: T01" in answer.err


def test_report_of_complete_task_records_only_new_issues(planned: Here) -> None:
    report(planned, "T01", "TASK COMPLETE\n", env=AGENT)
    assert reported(planned, "T01", "TASK COMPLETE") == []
    again = reported(planned, "T01", "TASK COMPLETE\nNEW ISSUE: [low] late")
    assert again == [("issue", "human", {"task": "T01", "severity": "low", "text": "late"})]
    assert (
        "Task T01 was already complete" in planned.ok("report", "T01", stdin=b"TASK COMPLETE").out
    )
    for words in (b"TASK FAILED: after all", b"CHECKPOINT: hm"):
        answer = planned.refused(4, "report", "T01", stdin=words)
        assert "task T01 is complete" in answer.err


def test_report_with_many_issues_records_50_and_counts_the_rest(planned: Here) -> None:
    flood = "".join(f"NEW ISSUE: [low] number {number % 60}\n" for number in range(3_000))
    *issues, _, _ = reported(planned, "T01", f"TASK COMPLETE\n{flood}")
    assert len(issues) == 50
    assert issues[48][2]["text"] == "number 48"
    assert issues[49][2]["text"] == "11 more issues were reported and are not kept"


def test_report_failed_without_retries_left_prints_the_failure_report(planned: Here) -> None:
    report_complete(planned, "T02")
    for number in (1, 2, 3):
        words = f"TASK FAILED: way {number}\nSuggested Fix: other than {number}"
        shown = planned.ok("report", "T01", stdin=words.encode()).out
        assert f"Retry {number} of 3." in shown
        assert "next" in shown
    shown = planned.ok("report", "T01", stdin=b"TASK FAILED: way 4\nRoot cause: a circle").out
    assert "Task T01 failed after 3 retries." in shown
    assert planned.status()["pause_reason"] == "Task T01 failed after 3 retries"
    assert "## Task T01 Failed" in shown
    assert "- [x] T02" in shown
    assert "- [ ] T01: Write 01. (failed)" in shown
    for number in (1, 2, 3, 4):
        assert f"### Error {number} of 4 (" in shown
    for error in ("way 1", "way 2", "way 3", "way 4", "a circle", "other than 3"):
        assert error in shown
    assert "**Attempts:** 3 of 3 retries used" in shown
    assert "Execution paused." in shown
    assert "resume --add-retries 1" in shown
    answer = planned.refused(4, "report", "T01", stdin=b"TASK COMPLETE")
    assert "is paused" in answer.err


def test_report_with_json_prints_contract_members(planned: Here) -> None:
    answer = report(planned, "T01", "TASK COMPLETE")
    lines = planned.lines()
    assert answer == {
        "loop": lines[1]["loop"],
        "seq": len(lines),
        "status": "running",
        "head": f"{len(lines)}:{lines[-1]['sum']}",
        "task": "T01",
        "verdict": "complete",
        "commit": None,
        "tag": None,
    }
    assert report(planned, "T02", "CHECKPOINT: hm")["verdict"] == "checkpoint"
    assert report(planned, "T02", "TASK COMPLETE", 4)["exit_code"] == 4


def test_report_reads_its_output_from_a_file(planned: Here, tmp_path: Path) -> None:
    path = tmp_path / "output.txt"
    path.write_bytes(b"\xef\xbb\xbf" + COMPLETE.replace("\n", "\r\n").encode())
    planned.ok("report", "T01", "--file", str(path))
    assert planned.status()["tasks"][0]["status"] == "complete"
    answer = planned.refused(2, "report", "T02", "--file", str(tmp_path))
    assert "not a regular file" in answer.err


def test_report_redacts_secrets_in_journal_and_output(planned: Here) -> None:
    for name, words in (
        ("T01", f"TASK COMPLETE\nNEW ISSUE: token {SECRET}\nAUTO-FIX: {SECRET}\n\nused {SECRET}"),
        ("T02", f"TASK FAILED: {SECRET}\nRoot cause: {SECRET}\nSuggested Fix: {SECRET}"),
        ("T02", f"CHECKPOINT: use {SECRET}?\nOptions:\nA) {SECRET}\nRecommendation: {SECRET}"),
    ):
        answer = planned.ok("report", name, stdin=words.encode())
        assert SECRET not in planned.journal.read_text()
        assert SECRET not in answer.out + answer.err


def test_report_of_gap_closes_it_once(here: Here) -> None:
    start_verify(here, FILE)
    failed_round(here)
    closed = reported(here, "G1", "TASK COMPLETE")
    assert closed == [("gap", "human", {"action": "closed", "gap": "G1"})]
    for words in (b"TASK COMPLETE", b"TASK FAILED: hm", b"CHECKPOINT: hm"):
        answer = here.refused(4, "report", "G1", stdin=words)
        assert "gap G1 is already closed" in answer.err


def test_report_of_failed_fix_retries_and_then_closes_its_gap(here: Here) -> None:
    start_verify(here, FILE)
    failed_round(here)
    report(here, "G1", "TASK FAILED: the file is locked")
    assert here.status()["task_retries"] == {"G1": 1}
    assert here.status()["status"] == "retrying"
    assert "Gap G1 is closed" in here.ok("report", "G1", stdin=b"TASK COMPLETE").out
    gaps = {gap["id"]: gap["status"] for gap in here.status()["gaps"]}
    assert gaps["G1"] == "closed"
    assert here.status()["status"] == "fixing"


def test_report_closes_a_reopened_gap_again(here: Here) -> None:
    start_verify(here, FILE)
    failed_round(here)
    report(here, "G1", "TASK FAILED: not yet")
    report(here, "G1", "TASK COMPLETE")
    failed_round(here)
    assert here.status()["gaps"][0]["status"] == "open"
    report(here, "G1", "TASK COMPLETE")
    assert here.status()["gaps"][0]["status"] == "closed"


def test_report_complete_with_changed_locked_file_fails_the_task(here: Here) -> None:
    text = task_text("01").replace('wave="1"', 'wave="1" test_required="true"')
    plan = text.replace("</files>", "</files><test_files><file>t.sh</file></test_files>")
    start_plan(here, plan=plan, settings='ci_test = "sh t.sh"\n')
    here.ok("tdd", "T01")
    (here.root / "t.sh").write_text("exit 1\n")
    here.ok("tdd", "T01", "--run")
    (here.root / "t.sh").write_text("exit 0 # cheat\n")
    answer: dict[str, Any] = report(here, "T01", "TASK COMPLETE")
    assert (answer["verdict"], answer["status"]) == ("failed", "retrying")
    assert "locked files were changed: t.sh" in json.dumps(here.lines()[-1]["data"])
