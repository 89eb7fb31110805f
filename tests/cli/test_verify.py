from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Answer
from tests.support.command_line import AGENT, Here
from tests.support.small_plans import DOCUMENT, DONE, document, lay, task

FILE = task("01", [("file", "a.txt exists"), ("content", 'It says "yes"')], "a.txt")
PLACE = Path(".gsd/plans/phase-1")


def begin(here: Here, *tasks: str, mode: str = "yolo", **settings: str | int) -> str:
    """A verify loop of phase 1 with this plan."""
    lay(here.root, {f"{PLACE}/plan.md": document(*tasks)})
    if settings:
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
        lay(here.root, {".gsd/config.toml": "".join(lines)})
    return here.start("verify", "--phase", "1", "--mode", mode)


def gaps_found(here: Here, *args: str) -> Any:
    """A round that does not pass, as JSON."""
    answer = here.run("verify", "--json", *args)
    assert answer.code == 7, answer
    return answer.json


def kinds(here: Here) -> list[str]:
    return [event["type"] for event in here.lines()]


def test_a_finished_plan_passes_and_completes_the_loop(here: Here) -> None:
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


def test_a_plan_that_nobody_has_begun_leaves_gaps_to_fix_and_to_close(here: Here) -> None:
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


def test_the_json_answer_says_everything(here: Here) -> None:
    loop = begin(here, FILE, ci_test="exit 4")
    found = gaps_found(here)
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


def test_reports_of_the_same_project_are_the_same_but_for_the_time(here: Here) -> None:
    commands = task("01", [("command", f"sleep 0.{n}; exit {n}") for n in (2, 1, 0)], "a")
    begin(here, commands, FILE.replace("01", "02"))

    def reports() -> list[str]:
        gaps_found(here)
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


def test_two_rounds_close_and_reopen_and_the_third_time_pauses(here: Here) -> None:
    loop = begin(here, FILE)
    gaps_found(here)
    lay(here.root, {"a.txt": "no"})
    assert gaps_found(here)["closed"] == ["G1"]
    (here.root / "a.txt").unlink()
    found = gaps_found(here)
    assert (found["reopened"], found["status"]) == (["G1"], "fixing")
    lay(here.root, {"a.txt": "no"})
    gaps_found(here)
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


def test_at_the_limit_of_rounds_what_remains_is_reported(here: Here) -> None:
    begin(here, FILE, verify_max_iterations=1)
    answer = here.run("verify")
    assert answer.code == 7
    assert "Round 1 of 1: 2 missed; opened G1, G2." in answer.out
    assert "✗ G2 T01#2" in answer.out
    assert "rounds are used; gaps left: G1, G2" in answer.err
    assert "--add-rounds" in answer.err
    assert here.last()["data"]["code"] == "rounds"


def test_verify_without_a_setting_pauses_after_20_failed_rounds(here: Here) -> None:
    loop = begin(here, FILE)
    for number in range(1, 20):
        found = gaps_found(here)
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


def test_an_interactive_loop_asks_before_the_gaps_are_fixed(here: Here) -> None:
    loop = begin(here, FILE, mode="interactive")
    answer = here.run("verify")
    assert answer.code == 7
    assert "Verification found 2 gaps. Attempt automatic fix? (1/20) [Y/n]" in answer.err
    assert f"gsd-fsm --loop {loop} answer" in answer.err
    assert here.status()["status"] == "waiting"
    assert "waiting" in here.refused(4, "verify").err
    here.ok("answer", "y")
    assert gaps_found(here)["status"] == "fixing"


@pytest.mark.parametrize("verb", [["pause"], ["wait", "why?"]])
def test_a_loop_that_stands_still_is_not_verified_and_nothing_is_run(
    here: Here, verb: list[str]
) -> None:
    begin(here, FILE, ci_test="touch was-run")
    here.ok(*verb)
    answer = here.refused(4, "verify")
    assert "cannot be verified now" in answer.err
    assert not (here.root / "was-run").exists()


def test_a_changed_plan_pauses_the_loop_before_anything_of_it_is_run(here: Here) -> None:
    loop = begin(here, FILE)
    new = task("01", [("command", "touch was-run")], "a.txt")
    lay(here.root, {f"{PLACE}/plan.md": document(new)})
    answer = here.run("verify")
    assert answer.code == 4
    assert f"loop {loop} is now paused (plan)" in answer.err
    assert f"gsd-fsm --loop {loop} resume" in answer.err
    assert not (here.root / "was-run").exists()
    assert kinds(here)[-2:] == ["plan", "pause"]
    assert (here.last()["by"], here.last()["data"]["code"]) == ("cli", "plan")
    here.ok("resume")
    assert here.ok("verify", "--json").json["passed"]
    assert (here.root / "was-run").exists()


def test_a_journal_that_is_not_trusted_runs_nothing(here: Here, monkeypatch: Any) -> None:
    begin(here, FILE, ci_test="touch was-run")
    monkeypatch.setenv("XDG_STATE_HOME", str(here.root / "another-user"))
    assert "not trusted" in here.refused(6, "verify").err
    assert not (here.root / "was-run").exists()


def test_a_loop_without_a_plan_verifies_the_ci_commands(here: Here) -> None:
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


def test_checks_by_hand_alone_do_not_pass_by_themselves(here: Here) -> None:
    loop = begin(here, task("01", [("manual", "Looks good")], "a"))
    answer = here.refused(2, "verify")
    assert f"gsd-fsm --loop {loop} verified pass" in answer.err
    here.ok("verified", "pass")
    here.ok("complete")


def test_it_is_told_how_to_start_a_loop_that_is_not_there(here: Here) -> None:
    assert "gsd-fsm start verify --phase 2" in here.refused(3, "verify", "--phase", "2").err
    here.start("goal", "g")
    here.ok("cancel")
    assert (
        "gsd-fsm start verify --plan 'a b.md'" in here.refused(3, "verify", "--plan", "a b.md").err
    )
    here.start("goal", "g")
    answer = here.refused(2, "verify", "--phase", "2")
    assert "is goal, not verify" in answer.err
    assert "gsd-fsm start verify --phase 2" in answer.err


def test_phase_and_plan_must_be_those_of_the_loop(here: Here) -> None:
    begin(here, FILE)
    assert "verifies phase 1, not 2" in here.refused(2, "verify", "--phase", "2").err
    assert f"verifies the plan {PLACE}/plan.md" in here.refused(2, "verify", "--plan", "x.md").err
    gaps_found(here, "--phase", "01", "--plan", f"{PLACE}/plan.md")
    here.start("verify", "--fresh")
    assert "verifies no phase" in here.refused(2, "verify", "--phase", "2").err
    assert "verifies no plan" in here.refused(2, "verify", "--plan", "x.md").err


def test_an_ended_loop_is_not_verified(here: Here) -> None:
    loop = begin(here, FILE)
    here.ok("cancel")
    answer: Answer = here.refused(4, "--loop", loop, "verify")
    assert "cannot be verified now" in answer.err
