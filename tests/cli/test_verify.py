"""verify, gap and verified: rounds of a verify loop, and the gaps that an agent reports."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.command_line import AGENT, Here
from tests.support.plan_loops import report_complete, start_plan, task_text
from tests.support.plan_texts import LOOP_MECHANISM
from tests.support.verification import DONE, FILE, PLACE, failed_round, lay, start_verify, task

REPORT = '# Findings\n\n<gaps>\n  <gap type="orphan" file="menu.ts">never imported</gap>\n</gaps>\n'


@pytest.fixture
def passing(here: Here) -> Here:
    """Return a loop whose checks pass."""
    start_verify(here, FILE)
    lay(here.root, {"a.txt": "yes"})
    return here


def report_file(here: Here) -> Path:
    return here.root / PLACE / "VERIFICATION.md"


def test_verify_of_finished_plan_passes_and_verdicts_complete_the_loop(here: Here) -> None:
    lay(here.root, {**DONE, f"{PLACE}/plan.md": LOOP_MECHANISM.read_text()})
    loop = here.start("verify", "--phase", "1")
    answer = here.ok("verify")
    assert "[1/23] " in answer.out
    assert "? T02#4 Script reads loop state from STATE.md: check by hand" in answer.out
    assert "Round 1 of 20: 22 passed, 1 manual." in answer.out
    assert f"The checks passed. Loop {loop} is waiting." in answer.out
    due = ["T02#4", *(f"MH{number}" for number in range(1, 8))]
    assert [it["id"] for it in here.last()["data"]["questions"]] == due
    assert "a verdict needs evidence" in here.refused(2, "answer", "MH1", "yes").err
    for name in due:
        here.refused(4, "complete")
        here.ok("verify", "--verdict", name, "pass", "--evidence", f"read {name}")
    assert here.status()["status"] == "running"
    here.ok("complete")
    assert "**Status:** passed" in report_file(here).read_text()
    assert str(report_file(here)) in answer.out


def test_verify_of_unfinished_plan_opens_gaps_and_a_later_round_closes_them(here: Here) -> None:
    lay(here.root, {f"{PLACE}/plan.md": LOOP_MECHANISM.read_text()})
    loop = here.start("verify", "--phase", "1", "--mode", "yolo")
    answer = here.run("verify", env=AGENT)
    assert answer.code == 7
    # The checks of T06 pass already: the view of the loop contains the wanted text.
    assert "✗ G1 T01#1 hooks/hooks.json exists: missing file: hooks/hooks.json" in answer.out
    assert "verification found 19 open gaps: G1, G2" in answer.err
    assert f"then run: gsd-fsm verify --loop {loop}" in answer.err
    gap = here.status()["gaps"][4]
    assert gap["kind"] == "stub"
    assert gap["description"] == 'T02: Script contains shebang "#!/usr/bin/env bash"'
    offered = here.ok("next", "--json").json["tasks"]
    assert [item["id"] for item in offered] == [f"G{number}" for number in range(1, 20)]
    assert '<gap type="stub" iteration="1/20">' in offered[4]["prompt"]
    lay(here.root, DONE)
    found = here.ok("verify", "--json").json
    assert (found["passed"], found["status"], len(found["closed"])) == (True, "running", 19)
    assert found["verdicts"] == ["T02#4", *(f"MH{number}" for number in range(1, 8))]


def test_verify_with_json_prints_contract_members_and_writes_them(here: Here) -> None:
    start_verify(here, FILE, ci_test="exit 4")
    found = failed_round(here)
    assert list(found) == [
        *("loop", "seq", "status", "head", "round", "max_rounds", "passed", "checks", "gaps"),
        *("opened", "closed", "reopened", "manual", "report", "verdicts"),
    ]
    assert found["gaps"] == found["opened"] == ["G1", "G2", "G3"]
    assert [check["key"] for check in found["checks"]] == ["T01#1", "T01#2", "ci:test"]
    assert found["checks"][2]["evidence"] == "exit code 4"
    assert found["report"] == str(report_file(here))
    written = json.loads((here.root / PLACE / "verification.json").read_text())
    assert written["checks"] == found["checks"]
    assert written["gaps"][2]["strategy"] == "Apply specific fix for error"
    assert here.status()["gaps"][2]["description"] == "CI test: exit 4"


def test_verify_without_a_setting_pauses_after_20_failed_rounds(here: Here) -> None:
    loop = start_verify(here, FILE)
    for number in range(1, 20):
        found = failed_round(here)
        assert (found["round"], found["max_rounds"], found["status"]) == (number, 20, "fixing")
    answer = here.run("verify")
    assert answer.code == 7
    assert "Round 20 of 20: 2 missed" in answer.out
    limit = "20 of 20 verification rounds are used; gaps left: G1, G2"
    assert f"loop {loop} is now paused (rounds): {limit}" in answer.err
    add = f"gsd-fsm resume --loop {loop} --add-rounds"
    assert f"Fix the gaps by hand, then run: {add}" in answer.err
    assert (here.status()["round"], here.status()["iteration"]) == (20, 0)
    assert add in here.refused(4, "resume").err


def test_verify_of_interactive_loop_asks_before_gaps_are_fixed(here: Here) -> None:
    loop = start_verify(here, FILE, mode="interactive")
    answer = here.run("verify")
    assert answer.code == 7
    assert "Verification found 2 gaps. Attempt automatic fix? (1/20) [Y/n]" in answer.err
    assert f"gsd-fsm answer --loop {loop}" in answer.err
    assert here.status()["status"] == "waiting"
    assert "waiting" in here.refused(4, "verify").err
    here.ok("answer", "y")
    # The next round asks again, also about the same gaps.
    assert failed_round(here)["status"] == "waiting"
    assert "(2/20) [Y/n]" in here.status()["next"]


def test_verify_that_is_refused_runs_nothing(here: Here) -> None:
    loop = start_verify(here, FILE, ci_test="touch was-run")
    report_file(here).write_text("<gaps>\n<gap type='hole'>x</gap>\n</gaps>")
    refused = here.refused(2, "verify").err
    assert "VERIFICATION.md:2: unknown kind of gap: 'hole'" in refused
    report_file(here).unlink()
    os.mkfifo(report_file(here))
    assert "not a regular file" in here.refused(2, "verify").err
    report_file(here).unlink()
    stranger = {"XDG_STATE_HOME": str(here.root / "another-user")}
    assert "not trusted" in here.refused(6, "verify", env=stranger).err
    for command in ("pause", "cancel"):
        here.ok(command)
        assert "cannot be verified now" in here.refused(4, "--loop", loop, "verify").err
    assert not (here.root / "was-run").exists()


def test_verify_of_changed_plan_pauses_before_running_it(here: Here) -> None:
    loop = start_verify(here, FILE)
    plan = here.root / PLACE / "plan.md"
    plan.write_text(plan.read_text() + task("02", [("command", "touch was-run")], "b"))
    answer = here.run("verify")
    assert answer.code == 4
    assert f"loop {loop} is now paused (plan)" in answer.err
    assert f"gsd-fsm resume --loop {loop}" in answer.err
    assert not (here.root / "was-run").exists()
    assert here.last()["by"] == "cli"
    here.ok("resume")
    failed_round(here)
    assert (here.root / "was-run").exists()


def test_verify_without_plan_runs_the_ci_commands(here: Here) -> None:
    here.start("verify", "--task", "T1")
    refused = here.refused(2, "verify").err
    assert all(words in refused for words in ("nothing to verify", "--plan FILE", "ci_test"))
    here.configure(ci_test="true", ci_lint="true")
    assert "accept --loop" in here.refused(2, "verify").err
    for name in ("ci:lint", "ci:test"):
        assert "agents cannot accept" in here.refused(4, "accept", name, env=AGENT).err
        here.ok("accept", name)
    found = here.ok("verify", "--json").json
    assert [check["key"] for check in found["checks"]] == ["ci:lint", "ci:test"]
    assert found["report"] == str(here.gsd / "plans" / "VERIFICATION.md")


def test_verify_with_manual_checks_only_needs_verdicts_with_evidence(here: Here) -> None:
    loop = start_verify(here, task("01", [("manual", "Looks good")], "a"))
    assert "? T01#1 needs a verdict: Looks good" in here.ok("verify").out
    verdict = ("verify", "--verdict", "T01#1")
    assert "needs evidence" in here.refused(2, *verdict, "pass").err
    seen = ("--evidence", "I looked")
    assert "Use one of: T01#1" in here.refused(2, *verdict[:2], "T09#1", "pass", *seen).err
    refused = here.refused(4, *verdict, "pass", *seen, env=AGENT).err
    assert "until the user sends a message" in refused
    assert "no verdict on T01#1" in here.refused(4, "complete").err
    here.ok(*verdict, "fail", *seen)
    status = here.status()
    assert (status["status"], status["gaps"][0]["evidence"]) == ("fixing", "I looked")
    report_complete(here, "G1")
    here.ok("verify")
    assert f"Run: gsd-fsm complete --loop {loop}" in here.ok(*verdict, "pass", *seen).out
    here.ok("complete")


@pytest.mark.parametrize("text", ["no\n", "yes, and more\n"], ids=["failing", "passing"])
def test_verdict_and_complete_are_refused_if_content_changed_since_the_round(
    repository: Here, text: str
) -> None:
    here = repository
    checks = [("content", 'It says "yes"'), ("manual", "Looks good")]
    loop = start_verify(here, task("01", checks, "a.txt"))
    lay(here.root, {"a.txt": "yes\n"})
    here.ok("verify")
    verdict = ("verify", "--verdict", "T01#2", "pass", "--evidence", "I looked")
    lay(here.root, {"a.txt": text})
    answer = here.run(*verdict)
    assert (answer.code, "the content has changed since round 1" in answer.err) == (4, True)
    lay(here.root, {"a.txt": "yes\n"})
    here.ok("verify")
    assert f"Run: gsd-fsm complete --loop {loop}" in here.ok(*verdict).out
    lay(here.root, {"a.txt": text})
    answer = here.run("complete")
    assert (answer.code, "the content has changed since round 2" in answer.err) == (4, True)
    assert here.status()["next"].endswith(f"Run: gsd-fsm verify --loop {loop}")
    assert (here.last()["v"], here.last()["data"]["stale"], here.status()["round"]) == (2, True, 2)
    assert here.refused(4, *verdict).err
    lay(here.root, {"a.txt": "yes\n"})
    here.refused(4, "complete")
    here.ok("verify")
    here.ok(*verdict)
    here.ok("complete")


def test_verdict_on_changed_content_is_refused_and_ends_the_wait(repository: Here) -> None:
    here = repository
    loop = start_verify(here, task("01", [("manual", "Looks good")], "a.txt"), mode="interactive")
    lay(here.root, {"a.txt": "yes\n"})
    here.ok("verify")
    assert here.status()["status"] == "waiting"
    lay(here.root, {"a.txt": "no\n"})
    verdict = ("verify", "--verdict", "T01#1", "pass", "--evidence", "I looked")
    answer = here.run(*verdict)
    assert (answer.code, "the content has changed since round 1" in answer.err) == (4, True)
    assert here.status()["status"] == "running"
    assert here.status()["next"].endswith(f"Run: gsd-fsm verify --loop {loop}")
    here.ok("verify")
    here.ok(*verdict)
    here.ok("complete")


def test_verify_without_verify_loop_says_how_to_start_one(here: Here) -> None:
    assert "gsd-fsm start verify --phase 2" in here.refused(3, "verify", "--phase", "2").err
    here.start("goal", "g")
    refused = here.refused(2, "verify", "--plan", "a b.md").err
    assert "is not a verify loop" in refused
    assert "gsd-fsm start verify --plan 'a b.md'" in refused


def test_verify_with_another_phase_or_plan_is_refused(here: Here) -> None:
    start_verify(here, FILE)
    assert "verifies phase 1, not 2" in here.refused(2, "verify", "--phase", "2").err
    assert f"verifies the plan {PLACE}/plan.md" in here.refused(2, "verify", "--plan", "x.md").err
    failed_round(here, "--phase", "01", "--plan", f"{PLACE}/plan.md")
    here.start("verify", "--task", "T1", "--fresh")
    assert "verifies no phase" in here.refused(2, "verify", "--phase", "2").err
    assert "verifies no plan" in here.refused(2, "verify", "--plan", "x.md").err


def test_agent_can_neither_skip_a_task_nor_declare_a_plan_verified(here: Here) -> None:
    start_plan(here, plan=task_text("01") + task_text("02"))
    here.ok("iterate", env=AGENT)
    asked = here.ok("task", "T01", "skipped", env=AGENT).out
    assert "The user will be asked whether to skip task T01." in asked
    assert here.status()["tasks"][0]["status"] == "pending"
    report_complete(here, "T02")
    assert here.status()["status"] == "waiting"
    here.ok("answer", "yes")
    assert here.status()["tasks"][0]["status"] == "skipped"
    here.ok("cancel")
    here.ok("start", "verify", "--phase", "1", "--mode", "yolo")
    here.ok("iterate", env=AGENT)
    assert "its plan has checks" in here.refused(4, "verified", "pass", env=AGENT).err
    here.ok("verified", "fail", env=AGENT)
    here.ok("verified", "pass")


def test_gap_is_found_closed_and_reopened_and_pauses_the_second_time(here: Here) -> None:
    loop = here.start("verify", "--task", "T1")
    found = ("gap", "found", "--kind", "stub", "--file", "a.py", "--description", "empty body")
    answer = here.ok(*found, "--evidence", "line 3", "--json").json
    assert list(answer) == ["loop", "seq", "status", "head", "gap"]
    assert (answer["gap"], answer["status"]) == ("G1", "fixing")
    here.ok("gap", "close", "G1", "--evidence", "now full")
    assert here.ok("gap", "reopen", "G1", "--json").json["status"] == "fixing"
    assert here.status()["gaps"] == [{
        "id": "G1", "kind": "stub", "file": "a.py", "description": "empty body",
        "evidence": "now full", "reopened": 1, "round": 0, "status": "open",
    }]  # fmt: skip
    here.ok("gap", "close", "G1")
    assert "gap G1 was closed and reopened 2 times" in here.ok(*found).out
    assert f"gsd-fsm resume --loop {loop}" in here.status()["next"]


def test_gap_with_invalid_arguments_is_refused(here: Here) -> None:
    here.start("verify", "--task", "T1")
    assert "--description" in here.refused(2, "gap", "found").err
    assert "missing gap id" in here.refused(2, "gap", "close").err
    here.refused(2, "gap", "close", "../G1")
    refused = here.refused(2, "gap", "found", "--kind", "../k", "--description", "d").err
    assert "unknown kind of gap: '../k'" in refused
    assert "orphan, broken_link, stub, missing_export, wrong_import, ci_failure, other" in refused
    assert "no gap G1" in here.refused(4, "gap", "close", "G1").err


def test_gap_and_failure_pause_without_auto_loop(here: Here) -> None:
    here.configure(auto_loop=False)
    here.start("verify", "--task", "T1")
    here.ok("gap", "found", "--description", "d")
    assert here.status()["pause_code"] == "manual"
    here.start("execute", "--task", "T1", "--fresh")
    shown = here.ok("fail", "T1", "--error", "AssertionError").out
    assert ("## Task T1 Failed" in shown, "AssertionError" in shown) == (True, True)
    assert here.status()["pause_code"] == "manual"


def test_verify_opens_gaps_that_the_agent_reports_and_keeps_its_file(passing: Here) -> None:
    report = REPORT.encode() + b"\xff\x00"
    report_file(passing).write_bytes(report)
    answer = passing.run("verify", env=AGENT)
    assert answer.code == 7
    assert "✗ G1 orphan menu.ts: never imported" in answer.out
    gap = passing.lines()[2]
    assert (gap["type"], gap["by"], "check" in gap["data"]) == ("gap", "agent", False)
    assert gap["data"]["description"] == "never imported"
    ours = report_file(passing).read_text()
    assert '<gap id="G1" type="orphan" iteration="1/20">' in ours
    added = ours.replace("</gaps>", '<gap type="stub" id="mine">empty body</gap></gaps>')
    report_file(passing).write_text(added)
    found = failed_round(passing)
    assert (found["opened"], found["gaps"]) == (["G2"], ["G1", "G2"])
    assert report_file(passing).with_name("VERIFICATION.agent.md").read_bytes() == report


def test_verify_opens_a_new_gap_that_has_the_id_of_another(passing: Here) -> None:
    for text, opened in (
        (REPORT, ["G1"]),
        ('<gaps><gap id="G1" type="stub">a new one</gap></gaps>', ["G2"]),
        ('<gaps><gap id="G1" type="orphan">never  imported</gap></gaps>', []),
    ):
        report_file(passing).write_text(text)
        assert failed_round(passing)["opened"] == opened


def test_verify_reads_gaps_from_another_file_or_stdin(passing: Here) -> None:
    report_file(passing).write_text(REPORT)
    lay(passing.root, {"found.xml": '<gaps><gap type="wrong_import">x</gap></gaps>'})
    assert failed_round(passing, "--gaps", "found.xml")["gaps"] == ["G1"]
    assert passing.run("verify", "--gaps", "-", stdin=REPORT.encode()).code == 7
    assert [gap["kind"] for gap in passing.status()["gaps"]] == ["wrong_import", "orphan"]
    passing.refused(2, "verify", "--gaps", "nowhere.xml")


def test_verify_exits_6_if_round_is_recorded_but_report_was_written_meanwhile(here: Here) -> None:
    start_verify(here, FILE, ci_test=f"echo mine > {PLACE}/VERIFICATION.md")
    answer = here.run("verify", "--json")
    assert answer.code == 6
    assert "round 1 is recorded, but its report is not written" in answer.json["error"]
    assert report_file(here).read_text() == "mine\n"
    assert here.status()["round"] == 1


def test_verify_escapes_plan_text_in_terminal_and_report(here: Here) -> None:
    start_verify(here, FILE.replace("It says", "It \u202esays"))
    answer = here.run("verify")
    assert answer.code == 7
    assert "\u202e" not in answer.out + answer.err + report_file(here).read_text()
