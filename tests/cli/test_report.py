"""report: verdicts of subagents, commits of the engine, and the tags of checkpoints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.command_line import AGENT, Here, without_loop
from tests.support.plan_loops import (
    INTERACTIVE,
    deliver,
    report,
    report_complete,
    start_plan,
    tags,
    task_text,
)
from tests.support.repositories import _isolated_git, commit, files_of, git, hook
from tests.support.verification import FILE, failed_round, start_verify

__all__ = ["_isolated_git"]
SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def planned(here: Here) -> Here:
    return start_plan(here)


def reported(here: Here, name: str, words: str, **how: Any) -> list[tuple[str, str, Any]]:
    """Return the events that one report appends."""
    since = len(here.lines())
    report(here, name, words, **how)
    return [(event["type"], event["by"], event["data"]) for event in here.lines()[since:]]


def test_report_complete_records_issues_fixes_and_summary(planned: Here) -> None:
    output = (
        "All good.\n\nTASK COMPLETE\nAUTO-FIX: an import\nAUTO-FIX: a name\n"
        "NEW ISSUE: [High] the login leaks\nNEW ISSUE: a typo in the manual\n"
    )
    first, second, said, complete = reported(planned, "01", output, env=AGENT)
    issue = {"task": "T01", "severity": "high", "text": "the login leaks"}
    assert first == ("issue", "agent", issue)
    assert second[2]["severity"] == "unspecified"
    result = {"task": "T01", "status": "reported", "verdict": "complete", "summary": "All good."}
    assert said == ("task", "agent", {**result, "fixes": ["an import", "a name"]})
    assert (complete[2]["status"], complete[2]["proven"]) == ("complete", True)


def test_report_failed_records_error_cause_and_fix(planned: Here) -> None:
    output = "TASK FAILED: it loops\nRoot cause: a blank\nSuggested Fix: skip blanks\n\n  line 3\n"
    _, (kind, by, data) = reported(planned, "T01", output)
    assert (kind, by, data["task"], data["class"]) == ("failure", "human", "T01", "logic")
    assert data["error"] == "it loops\n\nline 3"
    assert (data["analysis"], data["fix"]) == ("a blank", "skip blanks")


def test_report_checkpoint_waits_and_prints_options_and_how_to_answer(planned: Here) -> None:
    report_complete(planned, "T01")
    words = "CHECKPOINT: Which store?\nOptions:\nA) sqlite\nB) files\nRecommendation: B\n"
    shown = without_loop(planned.ok("report", "T02", stdin=words.encode()).out)
    for text in (
        "## Checkpoint: Which store?", "**Completed:** T01 (1 of 4 tasks)",
        "**Options:**\nA) sqlite\nB) files", "**Recommendation:** B", "answer TEXT",
    ):  # fmt: skip
        assert text in shown
    task, wait = planned.lines()[-2:]
    question = "Which store?\nA) sqlite\nB) files\nRecommendation: B"
    assert task["data"] == {"task": "T02", "status": "checkpoint", "question": question}
    assert (task["by"], wait["by"]) == ("human", "cli")
    assert wait["data"]["question"] == f"Task T02 needs a decision: {question}"


def test_report_without_one_clear_verdict_changes_nothing(planned: Here) -> None:
    for output, message in (
        (b"TASK COMPLETE\nTASK FAILED: no", "has 2 verdicts: TASK COMPLETE at line 1"),
        (b"I think that it is done.", "has no verdict"),
        (b"", "the report is empty"),
    ):
        error = planned.refused(2, "report", "T01", stdin=output).err
        assert message in error
        assert "TASK COMPLETE, TASK FAILED: reason, CHECKPOINT: decision" in error


def test_report_of_unknown_task_or_with_open_dependencies_is_refused(planned: Here) -> None:
    error = planned.refused(2, "report", "T99", stdin=b"TASK COMPLETE").err
    assert "has no task or gap T99" in error
    assert "Use one of: T01, T02, T03, T04" in error
    for words in (b"TASK COMPLETE", b"TASK FAILED: x", b"CHECKPOINT: x"):
        error = planned.refused(4, "report", "T04", stdin=words).err
        assert "task T04 depends on unfinished tasks: T01" in error


def test_report_of_complete_task_says_so_and_refuses_other_verdicts(planned: Here) -> None:
    report_complete(planned, "T01")
    shown = planned.ok("report", "T01", stdin=b"TASK COMPLETE").out
    assert "Task T01 was already complete" in shown
    for words in (b"TASK FAILED: after all", b"CHECKPOINT: hm"):
        assert "task T01 is complete" in planned.refused(4, "report", "T01", stdin=words).err


def test_report_with_many_issues_records_50_and_counts_the_rest(planned: Here) -> None:
    flood = "".join(f"NEW ISSUE: [low] number {number % 60}\n" for number in range(3_000))
    deliver(planned, "T01")
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
    shown = without_loop(shown)
    for text in (
        *("Task T01 failed after 3 retries.", "## Task T01 Failed", "- [x] T02", "a circle"),
        *("other than 3", "resume --add-retries 1"),
        *(f"### Error {number} of 4 (" for number in (1, 2, 3, 4)),
    ):
        assert text in shown


def test_report_of_running_task_records_its_end_and_prints_contract_members(planned: Here) -> None:
    planned.ok("task", "T01", "running")
    since = len(planned.lines())
    answer = report(planned, "T01", "TASK COMPLETE")
    said, end = planned.lines()[since:]
    assert said["data"] == {"task": "T01", "status": "reported", "verdict": "complete"}
    assert (said["v"], end["v"]) == (2, 1)
    assert (end["data"].pop("seconds") >= 0, end["data"]) == (
        True, {"task": "T01", "status": "complete", "proven": True},
    )  # fmt: skip
    assert answer == {
        "loop": end["loop"], "seq": since + 2, "status": "running",
        "head": f"{since + 2}:{end['sum']}", "task": "T01", "verdict": "complete",
        "commit": None, "tag": None, "proven": ["T01"], "claimed": [], "failed": [], "reported": [],
    }  # fmt: skip
    assert report(planned, "T02", "CHECKPOINT: hm")["verdict"] == "checkpoint"
    assert report(planned, "T02", "TASK COMPLETE")["status"] == "waiting"


def test_report_reads_its_output_from_a_file(planned: Here) -> None:
    (planned.root / "output.txt").write_text("TASK COMPLETE")
    deliver(planned, "T01")
    planned.ok("report", "T01", "--file", "output.txt")
    assert planned.status()["tasks"][0]["status"] == "complete"
    error = planned.refused(2, "report", "T02", "--file", ".gsd").err
    assert "not a regular file" in error


def test_report_redacts_secrets_in_journal_and_output(planned: Here) -> None:
    deliver(planned, "T01")
    for name, words in (
        ("T01", f"TASK COMPLETE\nNEW ISSUE: token {SECRET}\nAUTO-FIX: {SECRET}\n\nused {SECRET}"),
        ("T02", f"TASK FAILED: {SECRET}\nRoot cause: {SECRET}\nSuggested Fix: {SECRET}"),
        ("T02", f"CHECKPOINT: use {SECRET}?\nOptions:\nA) {SECRET}\nRecommendation: {SECRET}"),
    ):
        answer = planned.ok("report", name, stdin=words.encode())
        assert SECRET not in planned.journal.read_text()
        assert SECRET not in answer.out + answer.err


def test_report_of_gap_retries_its_fix_closes_it_once_and_again_if_reopened(here: Here) -> None:
    start_verify(here, FILE)
    failed_round(here)
    report(here, "G1", "TASK FAILED: the file is locked")
    status = here.status()
    assert (status["status"], status["task_retries"]) == ("retrying", {"G1": 1})
    assert "Gap G1 is closed" in here.ok("report", "G1", stdin=b"TASK COMPLETE").out
    status = here.status()
    assert (status["status"], status["gaps"][0]["status"]) == ("fixing", "closed")
    closed = reported(here, "G2", "TASK COMPLETE")
    assert closed == [("gap", "human", {"action": "closed", "gap": "G2"})]
    for words in (b"TASK COMPLETE", b"TASK FAILED: hm", b"CHECKPOINT: hm"):
        assert "gap G2 is already closed" in here.refused(4, "report", "G2", stdin=words).err
    failed_round(here)
    assert here.status()["gaps"][0]["status"] == "open"
    report_complete(here, "G1")
    assert here.status()["gaps"][0]["status"] == "closed"


def test_report_complete_with_changed_locked_file_fails_the_task(here: Here) -> None:
    text = task_text("01").replace('wave="1"', 'wave="1" test_required="true"')
    plan = text.replace("</files>", "</files><test_files><file>t.sh</file></test_files>")
    start_plan(here, plan=plan, settings='ci_test = "sh t.sh"\n')
    here.ok("tdd", "T01")
    (here.root / "t.sh").write_text("exit 1\n")
    here.ok("tdd", "T01", "--run")
    (here.root / "t.sh").write_text("exit 0 # cheat\n")
    answer = report(here, "T01", "TASK COMPLETE", 7)
    assert (answer["failed"], answer["status"]) == (["T01"], "retrying")
    assert "locked files were changed: t.sh" in json.dumps(here.lines()[-1]["data"])


@pytest.fixture
def committing(repository: Here) -> Here:
    """Return a planned loop whose engine may commit."""
    return start_plan(repository, settings="commit = true\n")


def head(here: Here) -> str:
    return git(here.root, "rev-parse", "HEAD")


def message(here: Here) -> str:
    return git(here.root, "log", "-1", "--format=%B")


def write(here: Here, *names: str) -> None:
    for name in names:
        (here.root / name).write_text(f"{name}\n")


def test_report_commits_exactly_the_files_of_its_task(committing: Here) -> None:
    write(committing, "01.py", "02.py", "stray.py", "staged.py", "code.py")
    git(committing.root, "add", "staged.py")
    wanted = "feat(1-01): write the first part"
    output = f"Wrote it, with {SECRET}.\n\nTASK COMPLETE\nCommit message: {wanted}\n"
    first = report(committing, "T01", output, env=AGENT)["commit"]
    assert first == head(committing) == committing.status()["tasks"][0]["commit"]
    assert files_of(committing.root) == ["01.py"]
    assert git(committing.root, "diff", "--cached", "--name-only") == "staged.py"
    assert git(committing.root, "diff", "--name-only") == "code.py"
    subject, _, details, *rest = message(committing).splitlines()
    assert (subject, details[:15]) == (wanted, "Wrote it, with ")
    assert SECRET not in details
    assert rest == ["", "Co-Authored-By: Claude <noreply@anthropic.com>"]
    report(committing, "T02", "TASK COMPLETE")
    assert message(committing).strip() == "feat(1-02): Write 02."


def test_report_without_changes_or_completion_makes_no_commit(committing: Here) -> None:
    before = head(committing)
    write(committing, "01.py")
    commit(committing.root, "02.py")
    before = head(committing)
    report(committing, "T01", "TASK FAILED: half of it")
    report(committing, "T01", "CHECKPOINT: which half?")
    assert head(committing) == before
    committing.ok("answer", "both")
    first = report(committing, "T01", "TASK COMPLETE")["commit"]
    assert report(committing, "T02", "TASK COMPLETE")["commit"] is None
    assert head(committing) == first != before


def test_refused_report_commits_and_tags_nothing(committing: Here) -> None:
    before = head(committing)
    write(committing, "01.py", "04.py")
    hook(committing.root, "pre-commit", "echo no such style; exit 1")
    answer = committing.run("report", "T01", stdin=b"TASK COMPLETE")
    assert (answer.code, "no such style" in answer.err) == (4, True)
    assert committing.status()["tasks"][0]["status"] == "reported"
    assert git(committing.root, "diff", "--cached", "--name-only") == ""
    hook(committing.root, "pre-commit", "exit 0")
    committing.refused(4, "report", "T04", stdin=b"TASK COMPLETE")
    committing.refused(2, "report", "T01", stdin=b"TASK COMPLETE\nTASK COMPLETE")
    committing.ok("pause")
    committing.ok("report", "T01", stdin=b"TASK COMPLETE")
    assert head(committing) == before
    assert sorted(tags(committing)) == ["pre"]
    committing.ok("resume")
    committing.ok("check")
    assert committing.status()["tasks"][0]["commit"] == head(committing) != before


def test_report_finds_the_commit_of_the_agent_and_ignores_unrelated_ones(repository: Here) -> None:
    start_plan(repository)
    git(repository.root, "commit", "-q", "--allow-empty", "-m", "unrelated")
    assert report(repository, "T01", "TASK COMPLETE")["commit"] is None
    commit(repository.root, "02.py")
    assert report(repository, "T02", "TASK COMPLETE")["commit"] == head(repository)
    given = ("report", "T03", "--json", "--commit")
    refused = repository.refused(2, *given, "nonsense", stdin=b"TASK COMPLETE")
    assert "not a commit: nonsense" in refused.err
    deliver(repository, "T03")
    answer = repository.ok(*given, "HEAD~1", stdin=b"TASK COMPLETE")
    assert answer.json["commit"] == git(repository.root, "rev-parse", "HEAD~1")


def test_report_of_fix_commits_the_file_of_its_gap_and_those_it_names(committing: Here) -> None:
    committing.ok("cancel")
    start_verify(committing, FILE, commit=True)
    failed_round(committing)
    write(committing, "a.txt", "parent.py", "stray.py")
    report(committing, "G1", "TASK COMPLETE\nFiles modified: parent.py\n")
    assert files_of(committing.root) == ["a.txt", "parent.py"]
    assert message(committing).startswith("fix(1-G1): ")


def test_refused_report_of_closed_gap_commits_nothing(committing: Here) -> None:
    committing.ok("cancel")
    start_verify(committing, FILE, commit=True)
    failed_round(committing)
    committing.ok("gap", "close", "G1")
    write(committing, "a.txt")
    before = head(committing)
    error = committing.refused(4, "report", "G1", stdin=b"TASK COMPLETE").err
    assert ("gap G1 is already closed" in error, head(committing)) == (True, before)


def test_report_tags_each_task_and_complete_tags_the_phase(committing: Here) -> None:
    assert tags(committing) == {"pre": head(committing)}
    for name in ("T01", "T02", "T03", "T04"):
        write(committing, f"{name[1:]}.py")
        answer = report(committing, name, "TASK COMPLETE")
        assert answer["tag"] == f"gsd/checkpoint/phase-1/{name}"
        assert tags(committing)[name] == answer["commit"] == head(committing)
    committing.ok("complete")
    recorded = [event for event in committing.lines() if event["type"] == "checkpoint"]
    names = [event["data"]["name"].rpartition("/")[2] for event in recorded]
    assert names == ["pre", "T01", "T02", "T03", "T04", "post"]
    assert {event["by"] for event in recorded} == {"cli"}


def test_first_tag_is_not_set_after_a_no_to_start(repository: Here) -> None:
    start_plan(repository, *INTERACTIVE).ok("answer", "no")
    assert tags(repository) == {}
