"""verify and verified: rounds of a verify loop."""

from __future__ import annotations

import json

import pytest

from tests.support.command_line import AGENT, Here
from tests.support.plan_loops import start_plan, task_text
from tests.support.verification import (
    DOCUMENT,
    DONE,
    FILE,
    PLACE,
    document,
    failed_round,
    lay,
    start_verify,
    task,
)


def test_verify_of_finished_plan_passes_and_completes_the_loop(here: Here) -> None:
    lay(here.root, {**DONE, f"{PLACE}/plan.md": DOCUMENT.read_text()})
    loop = here.start("verify", "--phase", "1")
    answer = here.ok("verify")
    assert "[1/23] " in answer.out
    assert "? T02#4 Script reads loop state from STATE.md: check by hand" in answer.out
    assert "Round 1 of 20: 22 passed, 1 manual." in answer.out
    assert f"Verification passed. Loop {loop} is completed." in answer.out
    assert [(e["type"], e["by"]) for e in here.lines()[-2:]] == [
        ("verified", "human"),
        ("complete", "cli"),
    ]
    report = here.root / PLACE / "VERIFICATION.md"
    assert "**Status:** passed" in report.read_text()
    assert str(report) in answer.out


def test_verify_of_unfinished_plan_opens_gaps_and_a_later_round_closes_them(here: Here) -> None:
    lay(here.root, {f"{PLACE}/plan.md": DOCUMENT.read_text()})
    loop = here.start("verify", "--phase", "1", "--mode", "yolo")
    answer = here.run("verify", env=AGENT)
    assert answer.code == 7
    # The checks of T06 pass already: the view of the loop is what it wants.
    assert "✗ G1 T01#1 hooks/hooks.json exists: missing file: hooks/hooks.json" in answer.out
    assert "verification found 19 open gaps: G1, G2" in answer.err
    assert f"then run: gsd-fsm --loop {loop} verify" in answer.err
    gap = here.status()["gaps"][4]
    assert (gap["kind"], gap["description"]) == (
        "stub",
        'T02: Script contains shebang "#!/usr/bin/env bash"',
    )
    by = {(event["type"], event["by"]) for event in here.lines()[2:]}
    assert by == {("gap", "cli"), ("verified", "agent")}
    lay(here.root, DONE)
    found = here.ok("verify", "--json").json
    assert (found["passed"], found["status"], len(found["closed"])) == (True, "completed", 19)


def test_verify_with_json_prints_contract_members_and_writes_them(here: Here) -> None:
    loop = start_verify(here, FILE, ci_test="exit 4")
    found = failed_round(here)
    assert list(found) == [
        *("loop", "seq", "status", "head", "round", "max_rounds", "passed", "checks", "gaps"),
        *("opened", "closed", "reopened", "manual", "report"),
    ]
    assert (found["loop"], found["status"], found["round"]) == (loop, "fixing", 1)
    assert found["gaps"] == found["opened"] == ["G1", "G2", "G3"]
    assert [check["key"] for check in found["checks"]] == ["T01#1", "T01#2", "ci:test"]
    assert found["checks"][2]["evidence"] == "exit code 4"
    assert found["report"] == str(here.root / PLACE / "VERIFICATION.md")
    written = json.loads((here.root / PLACE / "verification.json").read_text())
    assert written["checks"] == found["checks"]
    assert [gap["strategy"] for gap in written["gaps"]] == [
        *("Implement real functionality", "Implement real functionality"),
        "Apply specific fix for error",
    ]
    assert here.status()["gaps"][2]["description"] == "CI test: exit 4"


def test_verify_reports_of_two_rounds_differ_only_in_times(here: Here) -> None:
    commands = task("01", [("command", f"sleep 0.{n}; exit {n}") for n in (2, 1, 0)], "a")
    start_verify(here, commands, FILE.replace("01", "02"))

    def reports() -> list[str]:
        failed_round(here)
        texts = [(here.root / PLACE / name).read_text() for name in
                 ("VERIFICATION.md", "verification.json")]  # fmt: skip
        return [
            "\n".join(
                line.rsplit("|", 2)[0] if line.startswith("|") else line
                for line in text.splitlines()
                if '"seconds"' not in line and "ound" not in line and "iteration" not in line
            )
            for text in texts
        ]

    assert reports() == reports()


def test_verify_pauses_when_a_gap_is_reopened_twice(here: Here) -> None:
    loop = start_verify(here, FILE)
    failed_round(here)
    lay(here.root, {"a.txt": "no"})
    assert failed_round(here)["closed"] == ["G1"]
    (here.root / "a.txt").unlink()
    found = failed_round(here)
    assert (found["reopened"], found["status"]) == (["G1"], "fixing")
    lay(here.root, {"a.txt": "no"})
    failed_round(here)
    (here.root / "a.txt").unlink()
    answer = here.run("verify")
    assert answer.code == 7
    assert "paused (oscillation): gap G1 was closed and reopened 2 times" in answer.err
    assert f"Fix the gaps by hand, then run: gsd-fsm --loop {loop}" in answer.err
    assert here.status()["pause_code"] == "oscillation"
    assert "gsd-fsm" in here.refused(4, "verify").err
    here.ok("resume")
    lay(here.root, {"a.txt": "yes"})
    assert here.ok("verify", "--json").json["status"] == "completed"


def test_verify_without_a_setting_pauses_after_20_failed_rounds(here: Here) -> None:
    loop = start_verify(here, FILE)
    for number in range(1, 20):
        found = failed_round(here)
        assert (found["round"], found["max_rounds"], found["status"]) == (number, 20, "fixing")
    answer = here.run("verify")
    assert answer.code == 7
    assert "Round 20 of 20: 2 missed" in answer.out
    assert "20 of 20 verification rounds are used; gaps left: G1, G2" in answer.err
    status = here.status()
    assert (status["status"], status["pause_code"], status["round"]) == ("paused", "rounds", 20)
    assert f"gsd-fsm --loop {loop} resume --add-rounds" in here.refused(4, "resume").err
    here.refused(4, "verify")
    here.ok("resume", "--add-rounds", "1")
    lay(here.root, {"a.txt": "yes"})
    assert here.ok("verify", "--json").json["status"] == "completed"


def test_verify_of_interactive_loop_asks_before_gaps_are_fixed(here: Here) -> None:
    loop = start_verify(here, FILE, mode="interactive")
    answer = here.run("verify")
    assert answer.code == 7
    assert "Verification found 2 gaps. Attempt automatic fix? (1/20) [Y/n]" in answer.err
    assert f"gsd-fsm --loop {loop} answer" in answer.err
    assert here.status()["status"] == "waiting"
    assert "waiting" in here.refused(4, "verify").err
    here.ok("answer", "y")
    assert failed_round(here)["status"] == "fixing"


@pytest.mark.parametrize("command", [["pause"], ["wait", "why?"], ["cancel"]])
def test_verify_of_halted_loop_is_refused_and_runs_nothing(here: Here, command: list[str]) -> None:
    loop = start_verify(here, FILE, ci_test="touch was-run")
    here.ok(*command)
    assert "cannot be verified now" in here.refused(4, "--loop", loop, "verify").err
    assert not (here.root / "was-run").exists()


def test_verify_of_changed_plan_pauses_before_running_it(here: Here) -> None:
    loop = start_verify(here, FILE)
    new = task("01", [("command", "touch was-run")], "a.txt")
    lay(here.root, {f"{PLACE}/plan.md": document(new)})
    answer = here.run("verify")
    assert answer.code == 4
    assert f"loop {loop} is now paused (plan)" in answer.err
    assert f"gsd-fsm --loop {loop} resume" in answer.err
    assert not (here.root / "was-run").exists()
    assert [event["type"] for event in here.lines()[-2:]] == ["plan", "pause"]
    assert (here.last()["by"], here.last()["data"]["code"]) == ("cli", "plan")
    here.ok("resume")
    assert here.ok("verify", "--json").json["passed"]
    assert (here.root / "was-run").exists()


def test_verify_of_untrusted_journal_runs_nothing(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_verify(here, FILE, ci_test="touch was-run")
    monkeypatch.setenv("XDG_STATE_HOME", str(here.root / "another-user"))
    assert "not trusted" in here.refused(6, "verify").err
    assert not (here.root / "was-run").exists()


def test_verify_without_plan_runs_the_ci_commands(here: Here) -> None:
    here.start("verify")
    answer = here.refused(2, "verify")
    assert "nothing to verify" in answer.err
    assert "--plan FILE" in answer.err
    assert "ci_test" in answer.err
    lay(here.root, {".gsd/config.toml": 'ci_test = "true"\nci_lint = "true"\n'})
    found = here.ok("verify", "--json").json
    assert [check["key"] for check in found["checks"]] == ["ci:lint", "ci:test"]
    assert found["report"] == str(here.root / ".gsd/plans/VERIFICATION.md")
    assert (here.root / ".gsd/plans/VERIFICATION.md").read_text().count("# Verification") == 1


def test_verify_with_manual_checks_only_is_refused(here: Here) -> None:
    loop = start_verify(here, task("01", [("manual", "Looks good")], "a"))
    answer = here.refused(2, "verify")
    assert f"gsd-fsm --loop {loop} verified pass" in answer.err
    here.ok("verified", "pass")
    here.ok("complete")


def test_verify_without_verify_loop_says_how_to_start_one(here: Here) -> None:
    assert "gsd-fsm start verify --phase 2" in here.refused(3, "verify", "--phase", "2").err
    here.start("goal", "g")
    here.ok("cancel")
    assert (
        "gsd-fsm start verify --plan 'a b.md'" in here.refused(3, "verify", "--plan", "a b.md").err
    )
    here.start("goal", "g")
    answer = here.refused(2, "verify", "--phase", "2")
    assert "is not a verify loop" in answer.err
    assert "gsd-fsm start verify --phase 2" in answer.err


def test_verify_with_another_phase_or_plan_is_refused(here: Here) -> None:
    start_verify(here, FILE)
    assert "verifies phase 1, not 2" in here.refused(2, "verify", "--phase", "2").err
    assert f"verifies the plan {PLACE}/plan.md" in here.refused(2, "verify", "--plan", "x.md").err
    failed_round(here, "--phase", "01", "--plan", f"{PLACE}/plan.md")
    here.start("verify", "--fresh")
    assert "verifies no phase" in here.refused(2, "verify", "--phase", "2").err
    assert "verifies no plan" in here.refused(2, "verify", "--plan", "x.md").err


def test_agent_can_neither_skip_a_task_nor_declare_a_plan_verified(here: Here) -> None:
    start_plan(here, plan=task_text("01") + task_text("02"))
    here.ok("iterate", env=AGENT)
    refused = here.refused(4, "task", "T01", "skipped", env=AGENT)
    assert "until the user sends a message" in refused.err
    here.ok("task", "T01", "skipped")
    here.ok("cancel")
    here.ok("start", "verify", "--phase", "1", "--mode", "yolo")
    here.ok("iterate", env=AGENT)
    assert "until the user sends a message" in here.refused(4, "verified", "pass", env=AGENT).err
    here.ok("verified", "fail", env=AGENT)
    here.ok("verified", "pass")


def test_next_after_failed_round_has_a_prompt_for_each_gap(here: Here) -> None:
    start_verify(here, FILE)
    failed_round(here)
    items = here.ok("next", "--json").json["tasks"]
    assert [item["id"] for item in items] == ["G1", "G2"]
    assert '<gap type="stub" iteration="1/20">' in items[0]["prompt"]
