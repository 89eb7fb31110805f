"""status, why and next, and the help and JSON of every command."""

from __future__ import annotations

import json
from pathlib import Path

from gsd_fsm.cli import COMMANDS
from tests.support.command_line import Here, git

STATUS_KEYS = [
    "loop",
    "kind",
    "status",
    "mode",
    "goal",
    "phase",
    "wave",
    "round",
    "iteration",
    "max_iterations",
    "last_iteration",
    "task_retries",
    "tasks",
    "background_tasks",
    "steps",
    "gaps",
    "gaps_remaining",
    "criteria",
    "last_unmet",
    "exit_signal",
    "stuck",
    "idle",
    "last_error",
    "started",
    "last_event",
    "pause_code",
    "pause_reason",
    "owner",
    "stage",
    "spec_score",
    "fit_score",
    "shape",
    "reviews",
    "spent_usd",
    "budget_usd",
    "history",
    "head",
    "next",
]
# Every command, in an order in which each succeeds.
JSON_STORY = (
    *("start execute --task T1 --check t=true --criterion c", "status", "next", "iterate"),
    *("task T1 running", "fail T1 --error e", "task T1 running", "gap found --description d"),
    *("gap close G1", "gap reopen G1", "gap close G1", "verified pass", "criterion c met"),
    *("check", "exit-signal", "review begun", "review passed", "stage intent", "spend 0.1"),
    *("note n", "mode yolo", "wait q", "answer a", "pause", "resume", "task T1 complete", "why"),
    *("init --yes", "doctor", "uninstall --yes", "hook --path", "simulate script.txt"),
    "schema events",
    *("complete", "replay", "fsck", "graph", "config", "ps", "trust", "start goal g", "cancel"),
    *("plan show --plan plan.md", "plan check --plan plan.md", "plan graph --plan plan.md"),
    *("start verify --plan plan.md", "verify", "start execute --plan plan.md --mode yolo"),
    *("next", "next T01", "tdd T01", "report T01 --file report.txt", "rollback pre", "complete"),
    *("import state.json", "score --outcome 2 --scope 2 --constraints 2 --success 2 --done 2"),
    *("recall", "statusline"),
)
STATE = (
    '{"spec": "s", "criteria": ["c"], "criteriaStatus": {"c": false}, "exit_signal": false,'
    ' "steps": [], "completedSteps": [], "remainingSteps": [], "iteration": 1,'
    ' "status": "in_progress", "circuitBreaker": {"stuckCount": 0, "lastUnmet": ""}}'
)
PLAN = """---
phase: 1
---
<task id="01" wave="1" test_required="true">
<files><file>code.py</file></files><action>x</action>
<verify><check type="file">code.py</check></verify><done>y</done>
</task>
"""


def test_status_with_json_has_exactly_the_documented_members(here: Here) -> None:
    for kind in ("execute", "verify", "goal"):
        here.start(kind, "g", "--fresh")
        assert list(here.status()) == STATUS_KEYS
    fresh = here.status()
    assert [name for name, value in fresh.items() if value is None] == [
        *("phase", "wave", "last_iteration", "last_unmet", "last_error", "pause_code"),
        *("pause_reason", "owner", "stage", "spec_score", "fit_score", "shape", "budget_usd"),
    ]
    assert [name for name, value in fresh.items() if value in ([], {})] == [
        *("task_retries", "tasks", "background_tasks", "steps", "gaps", "criteria", "reviews"),
    ]
    here.ok("cancel")
    assert list(here.status()) == STATUS_KEYS


def test_status_check_exits_with_the_code_of_the_status(here: Here) -> None:
    assert here.run("status", "--check").code == 3
    here.start("execute", "--task", "T1")
    assert here.run("status", "--check").code == 10
    here.ok("fail", "T1", "--error", "AssertionError")
    assert here.run("status", "--check").code == 10
    here.ok("wait", "q")
    assert here.run("status", "--check").code == 11
    here.ok("pause")
    assert here.run("status", "--check").code == 12
    here.ok("cancel")
    assert here.run("status", "--check").code == 13
    here.start("execute", "--task", "T1")
    here.ok("task", "T1", "skipped")
    here.ok("complete")
    answer = here.run("status", "--check", "--json")
    assert (answer.code, answer.json["status"]) == (0, "completed")


def test_status_without_live_loop_shows_the_last_one(here: Here) -> None:
    assert "gsd-fsm start" in here.refused(3, "status").err
    first = here.start("goal", "one")
    here.ok("cancel")
    second = here.start("goal", "two")
    here.ok("cancel")
    assert here.status()["loop"] == second
    assert here.ok("--loop", first, "status", "--json").json["goal"] == "one"
    assert here.ok("status", "--loop", first, "--json").json["goal"] == "one"


def test_status_shows_criteria_tasks_gaps_and_last_error(here: Here) -> None:
    here.start("goal", "The goal", "--criterion", "one", "--check", "t=true", "--task", "T1:First")
    here.ok("criterion", "one", "met")
    here.ok("fail", "T1", "--error", "first line\nsecond line")
    here.ok("gap", "found", "--kind", "stub", "--file", "a.py", "--description", "empty")
    shown = here.ok("status").out
    for words in (
        *("The goal", "✓ 1 one", "· 2 t  [true]", "✗ T1 failed (retry 1)  First"),
        *("· G1 stub a.py  empty", "interactive", "none yet", "0 of 20"),
    ):
        assert words in shown
    assert "\nlast error first line\n" in shown
    assert "\x1b" not in shown


def test_status_shows_question_answer_notes_and_must_nots(here: Here) -> None:
    here.start("goal", "g", "--must-not", "break the API")
    here.ok("note", "look here")
    here.ok("wait", "Which base?")
    assert "Which base?" in here.ok("status").out
    here.ok("answer", "postgres")
    shown = here.ok("status").out
    for words in ("break the API", "look here", "postgres"):
        assert words in shown


def test_next_names_the_command_that_moves_the_loop(here: Here) -> None:
    loop = here.start("execute", "--task", "T1:First")
    run = f"gsd-fsm --loop {loop} "
    before = here.journal.read_bytes()
    for then in (
        "task T1 running",
        "task T1 complete",
        "complete",
    ):
        advice = here.ok("next", "--json").json
        assert list(advice) == ["loop", "status", "text", "command"]
        assert advice["command"] == run + then
        assert here.ok("next").out == f"{advice['text']}\nRun: {advice['command']}\n"
        assert here.journal.read_bytes() == before
        here.ok(*advice["command"].split()[1:])
        before = here.journal.read_bytes()
    assert here.ok("next", "--json").json["command"] == "gsd-fsm start --help"


def test_next_with_project_option_repeats_it_in_the_command(here: Here, tmp_path: Path) -> None:
    loop = here.start("goal", "g")
    here.where = tmp_path
    told = here.ok("--project", str(here.root), "next", "--json").json
    assert told["command"] == f"gsd-fsm --project {here.root} --loop {loop} exit-signal"


def test_why_explains_the_last_decision_or_any_event(here: Here) -> None:
    here.start("execute", "--task", "T1", "--max-iterations", "1")
    assert "no stop" in here.refused(3, "why").err
    here.ok("iterate")
    facts = here.ok("why", "--json").json
    assert list(facts) == ["loop", "seq", "type", "decision", "code", "why"]
    assert (facts["seq"], facts["decision"]) == (3, "block")
    assert "task T1 is pending" in facts["why"]
    assert "iteration 1/1" in facts["why"]
    here.run("iterate")
    here.ok("note", "later")
    told = here.ok("why").out
    assert told.startswith("Allowed (iterations) at event 4")
    assert "1 of 1 iterations are used" in told
    assert here.ok("why", "3").out.startswith("Blocked")
    assert here.ok("why", "5", "--json").json["decision"] == "none"
    assert "belongs to no loop" in here.refused(2, "why", "1").err
    assert "ends at event 5" in here.refused(2, "why", "6").err
    here.refused(2, "why", "0")


def test_why_explains_pausing_failure_wait_and_cancellation(here: Here) -> None:
    here.start("execute", "--task", "T1")
    here.ok("fail", "T1", "--error", "permission denied")
    facts = here.ok("why", "--json").json
    assert (facts["type"], facts["decision"], facts["code"]) == ("failure", "allow", "blocking")
    here.ok("resume")
    here.ok("wait", "Which?")
    assert "waiting for human: Which?" in here.ok("why").out
    here.ok("answer", "this")
    here.ok("cancel", "--reason", "enough")
    assert "cancelled: enough" in here.ok("why").out


def test_graph_draws_every_status_without_a_project(here: Here) -> None:
    drawn = here.ok("graph").out
    for state in ("running", "retrying", "fixing", "reviewing", "waiting", "paused", "cancelled"):
        assert state in drawn
    assert drawn.startswith("stateDiagram")
    assert here.ok("graph", "--json").json == {"mermaid": drawn.rstrip("\n")}
    assert not here.gsd.exists()


def test_help_of_every_command_has_usage_description_and_common_options(here: Here) -> None:
    for command in COMMANDS:
        shown = here.ok(command, "--help").out
        assert shown.startswith(f"Usage: gsd-fsm {command} ")
        assert "--json" in shown
        assert "--loop ID" in shown
        assert len(shown.split("Options:")[0].split("\n\n")[1].strip()) > 20
    assert not here.gsd.exists()


def test_help_lists_every_command_and_exit_code(here: Here) -> None:
    for option in ("--help", "-h"):
        shown = here.ok(option).out
        assert all(f"\n  {name} " in shown for name in COMMANDS)
        assert all(words in shown for words in ("4 refused", "7 a check", "--project DIR"))
    assert here.ok("--version").out.startswith("gsd-fsm, version ")


def test_every_command_with_json_prints_exactly_one_object(repository: Here) -> None:
    here = repository
    assert {line.split()[0] for line in JSON_STORY} == set(COMMANDS)
    (here.root / "script.txt").write_text("start goal g\n")
    (here.root / "plan.md").write_text(PLAN)
    (here.root / "state.json").write_text(STATE)
    (here.root / "report.txt").write_text("TASK COMPLETE\n")
    git(here.root, "add", ".")
    git(here.root, "commit", "-qm", "all of it")
    appended = 0
    for line in JSON_STORY:
        answer = here.ok(*line.split(), "--json")
        assert answer.out.endswith("}\n")
        assert answer.out.count("\n") == 1
        found = json.loads(answer.out)
        assert isinstance(found, dict), line
        if "seq" in found and not line.startswith("why"):
            appended += 1
            assert list(found)[:4] == ["loop", "seq", "status", "head"], line
            assert found["head"].startswith(f"{found['seq']}:")
            assert found["seq"] == len(here.lines())
    assert appended == 35
