"""start --baseline: what passes and what fails before any work."""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.support.check_commands import ends, wait_for
from tests.support.command_line import Here
from tests.support.hook_agent import Agent, start
from tests.support.plan_loops import YOLO, write_plan

CHECKS = ("--check", "lint=true", "--check", "tests=echo red; test -e done", "--criterion", "c")
PLAN = """---
phase: 1
title: Parts
---
<task id="01" wave="1">
  <files><file action="create">made.py</file></files>
  <action>Write it.</action>
  <verify>
    <check type="command">test -e made.py</check>
    <check type="command">true</check>
    <check type="file">made.py exists</check>
    <check type="content">README.md contains "hello"</check>
    <check type="manual">Look at it.</check>
  </verify>
  <done>It is there.</done>
</task>
"""


def test_baseline_reports_and_records_what_passes_and_meets_nothing(repository: Here) -> None:
    shown = repository.ok("start", "goal", "g", *CHECKS, "--baseline").out
    assert "Before any work: passed: lint; failed: tests.\n" in shown
    assert "[2/2] tests: echo red; test -e done\nred\n  failed with exit code 1" in shown
    lines = repository.lines()[2:]
    flags = [(it["data"]["met"], it["data"]["baseline"]) for it in lines]
    assert flags == [(False, True)] * 2
    status = repository.status()
    assert [it["met"] for it in status["criteria"]] == [False] * 3
    assert [(it["evidence"] or {}).get("baseline") for it in status["criteria"]] == [
        None, True, True,
    ]  # fmt: skip
    panel = repository.ok("status").out
    assert "baseline   passed before any work: lint\n" in panel
    assert "failed before any work: tests\n" in panel
    assert "unmet: c, lint, tests" in repository.refused(4, "exit-signal").err
    assert "lint before any work, exit code 0" in repository.ok("replay").out
    (repository.root / "done").touch()
    repository.ok("check")
    repository.ok("criterion", "c", "met")
    repository.ok("exit-signal")
    repository.ok("complete")


def test_baseline_in_json_is_one_object_and_warns_in_text_if_everything_passes(
    here: Here,
) -> None:
    answer = here.ok("start", "goal", "g", *CHECKS, "--baseline", "--json")
    assert answer.json["baseline"] == {"passed": ["lint"], "failed": ["tests"], "manual": []}
    assert answer.json["seq"] == here.last()["seq"]
    assert "red" in answer.err
    shown = here.ok("start", "goal", "g", "--check", "a=true", "--baseline", "--fresh").out
    assert "Every check passes already, so a pass does not show that the work is done." in shown
    shown = here.ok("start", "goal", "g", "--baseline", "--fresh").out
    assert "Before any work: there are no checks.\n" in shown


def test_baseline_is_no_failed_verification_and_the_block_says_when_it_was_taken(
    agent: Agent,
) -> None:
    start(agent, "goal", "g", *CHECKS, "--baseline")
    text = agent.blocked()
    assert "Verification has failed" not in text
    assert "Last evidence for tests: echo red; test -e done, exit code 1, before any work" in text
    assert agent.here.run("check", env=agent.shell).code == 7
    text = agent.blocked()
    assert "Verification has failed once." in text
    assert "exit code 1 (quoted" in text


def test_check_that_failed_in_the_baseline_and_passes_on_the_same_content_is_flaky(
    repository: Here,
) -> None:
    (repository.root / ".gitignore").write_text("done\n")
    repository.ok("start", "goal", "g", *CHECKS, "--baseline")
    (repository.root / "done").touch()
    assert "Flaky: tests passed and failed on the same content." in repository.ok("check").out


def test_baseline_of_a_plan_runs_its_machine_checks_and_proves_no_task(here: Here) -> None:
    write_plan(here, PLAN)
    (here.root / "README.md").write_text("hello\n")
    found = here.ok(*YOLO, "--baseline", "--json").json["baseline"]
    assert found == {
        "passed": ["T01#2", "T01#4"], "failed": ["T01#1", "T01#3"], "manual": ["T01#5"],
    }  # fmt: skip
    last = here.last()
    assert last["type"] == "plan"
    results = {it["check"]: (it["passed"], it["evidence"]) for it in last["data"]["baseline"]}
    assert results["T01#1"] == (False, "exit code 1")
    assert results["T01#3"] == (False, "missing file: made.py")
    assert len(results) == 4
    status = here.status()
    assert (status["tasks"][0]["status"], status["gaps"], status["round"]) == ("pending", [], 0)
    assert "passed before any work: T01#2, T01#4" in here.ok("status").out
    here.ok("start", "verify", "--phase", "1", "--baseline", "--fresh")
    assert "ci:test" not in str(here.last())
    here.configure(ci_test="exit 4")
    found = here.ok("start", "verify", "--phase", "1", "--baseline", "--fresh", "--json").json
    assert "ci:test" in found["baseline"]["failed"]
    assert here.status()["round"] == 0


def test_interrupt_during_the_baseline_leaves_a_started_loop_without_the_rest(here: Here) -> None:
    long = "echo $$ > pid.new; mv pid.new pid; sleep 300"
    command = [sys.executable, "-m", "gsd_fsm", "start", "goal", "g", "--baseline"]
    command += ["--check", "a=true", "--check", f"b={long}", "--check", "c=true"]
    with subprocess.Popen(
        command, cwd=here.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        wait_for(here.root / "pid")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Started goal loop" in out
    assert ends(int((here.root / "pid").read_text()))
    types = [(line["type"], line["data"].get("criterion")) for line in here.lines()[1:]]
    assert types == [("start", None), ("criterion", "a")]
    assert here.status()["status"] == "running"
