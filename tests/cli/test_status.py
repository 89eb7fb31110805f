"""status, why and next, and the help and JSON of every command."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from gsd_fsm.cli import COMMANDS
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.state import ACTIVE, FINAL
from tests.support.command_line import A, B, Here
from tests.support.events import append, draft
from tests.support.lines import chain, header, plant, start
from tests.support.plan_loops import (
    INTERACTIVE,
    TDD_TASK,
    ready,
    report,
    report_complete,
    start_plan,
    task_text,
)
from tests.support.repositories import git

STATUS_KEYS = [
    *("loop", "kind", "status", "mode", "goal", "phase", "wave", "round", "iteration"),
    *("max_iterations", "last_iteration", "task_retries", "tasks", "background_tasks", "steps"),
    *("gaps", "gaps_remaining", "criteria", "last_unmet", "exit_signal", "stuck", "idle"),
    *("last_error", "started", "last_event", "pause_code", "pause_reason", "owner", "stage"),
    *("spec_score", "fit_score", "shape", "reviews", "spent_usd", "budget_usd", "history"),
    *("head", "next"),
]
WHY_KEYS = [
    *("loop", "seq", "type", "decision", "code", "why", "counts", "evidence", "proven", "claimed"),
]
# Every command, in an order in which each succeeds.
JSON_STORY = (
    *("start execute --task T1 --check t=true --criterion c", "status", "next", "iterate"),
    *("task T1 running", "fail T1 --error e", "task T1 running", "gap found --description d"),
    *("gap close G1", "gap reopen G1", "gap close G1", "verified pass", "criterion c met"),
    *("check", "exit-signal", "review begun", "review passed", "stage intent", "spend 0.1"),
    *("note n", "mode yolo", "wait q", "answer a", "pause", "resume", "release"),
    *("task T1 complete", "why"),
    *("init --yes", "doctor", "uninstall --yes", "hook --path", "simulate script.txt"),
    *("schema events", "completion bash"),
    *("complete", "replay", "fsck", "graph", "config", "ps", "trust"),
    *("start goal g --protect script.txt", "restore script.txt", "accept script.txt", "proof"),
    *("cancel",),
    *("plan show --plan plan.md", "plan check --plan plan.md", "plan graph --plan plan.md"),
    *("start verify --plan plan.md", "verify", "start execute --plan plan.md --mode yolo"),
    *(
        "next",
        "next T01",
        "tdd T02",
        "report T01 --file report.txt",
        "rollback pre",
    ),
    *("task T02 skipped", "complete"),
    *("import state.json", "score --outcome 2 --scope 2 --constraints 2 --success 2 --done 2"),
    *("recall", "statusline", "history"),
)
STATE = (
    '{"spec": "s", "criteria": ["c"], "criteriaStatus": {"c": false}, "exit_signal": false,'
    ' "steps": [], "completedSteps": [], "remainingSteps": [], "iteration": 1,'
    ' "status": "in_progress", "circuitBreaker": {"stuckCount": 0, "lastUnmet": ""}}'
)


def test_status_with_json_has_exactly_the_documented_members(here: Here) -> None:
    for kind in ("execute", "verify", "goal"):
        here.start(kind, "g", "--task", "T1", "--fresh")
        assert list(here.status()) == STATUS_KEYS
    here.ok("cancel")
    assert list(here.status()) == STATUS_KEYS


def test_status_check_exits_with_the_code_of_the_status(here: Here) -> None:
    assert here.run("status", "--check").code == 3
    for command, code in (
        ("start execute --task T1", 10),
        ("wait q", 11),
        ("pause", 12),
        ("cancel", 13),
        ("start execute --task T1", 10),
        ("task T1 skipped", 10),
        ("complete", 0),
    ):
        here.ok(*command.split())
        assert here.run("status", "--check").code == code, command
    assert here.ok("status", "--check", "--json").json["status"] == "completed"


def test_status_without_live_loop_shows_the_last_one(here: Here) -> None:
    assert "gsd-fsm start" in here.refused(3, "status").err
    first = here.start("goal", "one")
    here.ok("cancel")
    second = here.start("goal", "two")
    here.ok("cancel")
    assert here.status()["loop"] == second
    assert here.ok("status", "--loop", first, "--json").json["goal"] == "one"


def test_status_shows_every_part_of_the_loop_without_colour(here: Here) -> None:
    here.start(
        *("goal", "The goal", "--criterion", "one", "--check", "t=true", "--task", "T1:First"),
        *("--must-not", "break the API"),
    )
    here.ok("criterion", "one", "met")
    here.ok("fail", "T1", "--error", "first line\nsecond line")
    here.ok("gap", "found", "--kind", "stub", "--file", "a.py", "--description", "empty")
    here.ok("note", "look here")
    here.ok("wait", "Which base?")
    assert "Which base?" in here.ok("status").out
    here.ok("answer", "postgres")
    shown = here.ok("status").out
    for words in (
        *("The goal", "✓ 1 one", "· 2 t  [true]", "✗ T1 failed (retry 1)  First"),
        *("· G1 stub a.py  empty", "interactive", "none yet", "0 of 20"),
        *("break the API", "look here", "postgres"),
    ):
        assert words in shown
    fenced = (
        r"last error \(.*\):\n--- begin (\w{16})\nfirst line\nsecond line\n--- end \1\nstarted "
    )
    assert re.search(fenced, shown)
    assert "\x1b" not in shown


def test_status_shows_the_command_below_a_declined_question(here: Here) -> None:
    loop = start_plan(here, *INTERACTIVE).status()["loop"]
    here.ok("answer", "n")
    lines = here.ok("status").out.splitlines()
    (words,) = (line for line in lines if line.startswith("paused     manual: the user declined: "))
    assert words.endswith("Proceed?")
    assert lines[-1] == f"next       Run: gsd-fsm resume --loop {loop}"


def test_status_of_several_loops_shows_each_and_how_to_see_one(here: Here) -> None:
    one = here.start("goal", "First goal", "--criterion", "a", "--criterion", "b", env=A)
    here.ok("criterion", "a", "met")
    two = here.start("execute", "Second goal", "--task", "T1", env=B)
    here.ok("pause", "--loop", two, "--reason", "lunch")
    lines = here.ok("status").out.splitlines()
    assert lines[0] == f"{two} · execute · paused"
    assert "paused     manual: lunch" in lines
    at = lines.index(f"{one} · goal · running")
    assert lines[at + 1 : at + 3] == ["goal       First goal", "progress   criteria: 1 of 2 met"]
    assert lines[-1] == "To see one of them, run: gsd-fsm status --loop ID"
    assert {"claimed    1 criterion", f"Run: gsd-fsm resume --loop {two}"} <= {*lines}
    for option in ("--json", "--check"):
        assert "several live loops" in here.refused(2, "status", option).err
    assert here.ok("status", "--loop", one, "--json").json["loop"] == one


def test_status_of_several_loops_and_overview_show_a_failed_stop(here: Here) -> None:
    loop = here.start("goal", "First goal", "--criterion", "a", env=A)
    here.start("goal", "Second goal", "--criterion", "a", env=B)
    data = {"code": "error", "reason": "the journal is corrupt"}
    append(Journal(str(here.gsd)), draft("stop", loop, "hook", data, session="session-a"))
    reason = "The last stop was allowed without a decision (event 4): the journal is corrupt"
    for command in (["status"], []):
        shown = here.ok(*command).out
        assert shown.count(reason) == 1, command
        (before,) = re.findall(r"lp-\w+(?= · goal)", shown[: shown.index(reason)])[-1:]
        assert before == loop


def test_status_of_several_loops_shows_the_end_of_a_failing_output(here: Here) -> None:
    loop = here.start("goal", "g", "--check", "t=seq 9; exit 1", env=A)
    here.start("goal", "other", env=B)
    here.run("check", "--loop", loop)
    person = {"FORCE_COLOR": "1", "NO_COLOR": "1"}
    lines = [line.strip("│ ") for line in here.ok("status", env=person).out.splitlines()]
    at = lines.index("check t: seq 9; exit 1 (exit code 1), event 4")
    assert lines[at + 1 : at + 5] == ["… 6 earlier lines", "7", "8", "9"]


def test_status_of_several_loops_in_untrusted_journal_gives_no_advice(here: Here) -> None:
    plant(here.root, chain([header(), start(), start(3, "lp-2")]))
    shown = here.ok("status").out
    assert shown.endswith("This journal is not trusted. Run: gsd-fsm trust\n")
    assert "--loop" not in shown


def test_status_shows_proof_and_output_of_the_last_failed_check(here: Here) -> None:
    checks = ("--check", "t=true", "--check", "u=echo broken; exit 2", "--criterion", "c")
    here.start("goal", "g", *checks, "--max-minutes", "5", "--budget", "2")
    here.run("check")
    here.ok("criterion", "c", "met")
    shown = here.ok("status").out
    for words in (
        *("criteria   2 of 3 met\n", "proven     1 criterion\n", "claimed    1 criterion\n"),
        *("spent      $0.00 of $2.00\n", "active     less than 1 s of 5 min\n"),
    ):
        assert words in shown
    fenced = r"check u: echo broken; exit 2 \(exit code 2\), event \d+ \(quoted .*\):\n--- begin (\w+)\nbroken\n"
    assert re.search(fenced, shown)
    here.ok("cancel")
    shown = here.ok("status").out
    assert "broken\n" not in shown
    assert re.search(r"^duration +less than 1 s", shown, re.MULTILINE)
    assert re.search(r"^started .*, ended 2\d{3}-", shown, re.MULTILINE)
    assert "owner" not in shown


@pytest.mark.parametrize(("option", "shown", "more"), [([], 6, "… 34 more"), (["--all"], 40, "")])
def test_status_at_a_terminal_is_cut_to_fit_without_all(
    here: Here, option: list[str], shown: int, more: str
) -> None:
    tasks = [it for n in range(1, 41) for it in ("--task", f"T{n}:{'漢字' * 40} {n}")]
    here.start("goal", "x" * 1_000, *tasks, "--mode", "yolo")
    here.ok("task", "T39", "running")
    here.ok("fail", "T40", "--error", "\n".join(f"line {n}" for n in range(50)))
    lines = here.ok("status", *option, env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).out.splitlines()
    assert max(map(cell_len, lines)) <= 80
    listed = [line.split()[1] for line in lines if re.match(r" +[✗▸·] T\d", line)]
    assert len(listed) == shown
    assert listed[:2] == (["T1", "T2"] if option else ["T40", "T39"])
    assert more in "\n".join(lines)
    assert ("line 2" in {line.strip() for line in lines}) is bool(option)


def test_next_names_the_command_that_moves_the_loop(here: Here) -> None:
    loop = here.start("execute", "--task", "T1:First")
    for then in ("task @ T1 running", "task @ T1 complete", "complete @"):
        before = here.journal.read_bytes()
        answer = here.ok("next", "--json").json
        assert list(answer) == ["loop", "status", "text", "command"]
        assert answer["command"] == "gsd-fsm " + then.replace("@", f"--loop {loop}")
        assert here.ok("next").out == f"{answer['text']}\nRun: {answer['command']}\n"
        assert here.journal.read_bytes() == before
        here.ok(*answer["command"].split()[1:])
    assert here.ok("next", "--json").json["command"] == "gsd-fsm start --help"


def test_why_explains_the_last_decision_or_any_event(here: Here) -> None:
    here.start("execute", "--task", "T1", "--max-iterations", "1", "--budget", "5")
    assert "no stop" in here.refused(3, "why").err
    here.ok("iterate")
    facts = here.ok("why", "--json").json
    assert list(facts) == WHY_KEYS
    assert (facts["seq"], facts["decision"]) == (3, "block")
    assert "task T1 is pending" in facts["why"]
    assert "(iteration 1/1, stuck 1/5, idle 0/3, spent $0.00 of $5.00)" in facts["why"]
    here.run("iterate")
    here.ok("note", "later")
    shown = here.ok("why").out
    assert shown.startswith("Allowed (iterations) at event 4")
    assert "1 of 1 iterations are used" in shown
    assert here.ok("why", "3").out.startswith("Blocked")
    assert here.ok("why", "5", "--json").json["decision"] == "none"
    assert "does not belong to a loop" in here.refused(2, "why", "1").err
    assert "ends at event 5" in here.refused(2, "why", "6").err
    here.refused(2, "why", "0")


def test_why_explains_pausing_failure_wait_and_cancellation(here: Here) -> None:
    here.start("execute", "--task", "T1")
    here.ok("fail", "T1", "--error", "permission denied")
    facts = here.ok("why", "--json").json
    assert (facts["type"], facts["decision"], facts["code"]) == ("failure", "allow", "blocking")
    here.ok("resume")
    here.ok("wait", "Which?")
    assert "waiting for the user's answer: Which?" in here.ok("why").out
    here.ok("answer", "this")
    here.ok("cancel", "--reason", "enough")
    assert "cancelled: enough" in here.ok("why").out


def test_why_shows_the_output_of_failed_checks_and_counts(here: Here) -> None:
    here.start("goal", "g", "--check", "t=echo broken; exit 2", "--max-iterations", "1")
    here.run("check")
    here.ok("iterate")
    facts = here.ok("why", "--json").json
    (proof,) = facts["evidence"]
    assert proof == {
        "about": "check t", "seq": 3, "command": "echo broken; exit 2", "exit_code": 2,
        "output": "broken",
    }  # fmt: skip
    assert (facts["counts"]["iteration"], facts["counts"]["max_iterations"]) == (1, 1)
    assert facts["counts"]["budget_usd"] is None
    assert (facts["proven"], facts["claimed"]) == (None, None)
    assert re.search(r"check t: echo .*event 3 .*:\n--- begin \w+\nbroken\n", here.ok("why").out)
    assert "broken\n" in here.ok("why", "3").out
    here.run("iterate")
    assert "broken\n" in here.ok("why").out


def test_why_of_completed_loop_shows_proven_and_claimed_work(here: Here) -> None:
    here.start("goal", "g", "--check", "t=true", "--criterion", "c")
    here.run("check")
    here.ok("criterion", "c", "met")
    here.ok("complete")
    facts = here.ok("why", "--json").json
    assert (facts["proven"], facts["claimed"]) == ({"criterion": 1}, {"criterion": 1})
    assert here.ok("why").out.endswith("\nproven     1 criterion\nclaimed    1 criterion\n")


def test_why_shows_at_most_five_outputs_and_counts_the_others(here: Here) -> None:
    checks = [it for n in range(7) for it in ("--check", f"c{n}=echo {n}; exit 1")]
    here.start("goal", "g", *checks)
    here.run("check")
    here.ok("iterate")
    shown = here.ok("why").out
    assert shown.count("--- begin") == 5
    assert "… 2 more; to see all, run: gsd-fsm why --json" in shown
    assert len(here.ok("why", "--json").json["evidence"]) == 7


def test_graph_draws_every_status_without_a_project(here: Here) -> None:
    drawn = here.ok("graph").out
    assert drawn.startswith("stateDiagram")
    assert all(status in drawn for status in (*ACTIVE, "waiting", "paused", *FINAL))
    assert here.ok("graph", "--json").json == {"mermaid": drawn.rstrip("\n")}
    assert not here.gsd.exists()


def test_every_command_with_json_prints_exactly_one_object(repository: Here) -> None:
    here = repository
    assert {line.split()[0] for line in JSON_STORY} == set(COMMANDS)
    (here.root / "script.txt").write_text("start goal g\n")
    tasks = TDD_TASK.format(id="01", tests="false") + TDD_TASK.format(id="02", tests="true")
    (here.root / "plan.md").write_text(f"---\nphase: 1\n---\n{tasks}")
    (here.root / "a.py").touch()
    (here.root / "state.json").write_text(STATE)
    (here.root / "report.txt").write_text("TASK COMPLETE\n")
    git(here.root, "add", ".")
    git(here.root, "commit", "-qm", "all of it")
    appended = 0
    for line in JSON_STORY:
        session = {"CLAUDE_CODE_SESSION_ID": "s-1"} if line in ("resume", "release") else {}
        if line.split()[0] in ("restore", "accept"):
            (here.root / "script.txt").write_text("start goal changed\n")
        answer = here.ok(*line.split(), "--json", env=session)
        assert answer.out.endswith("}\n")
        assert answer.out.count("\n") == 1
        found = answer.json
        assert isinstance(found, dict), line
        if "seq" in found and not line.startswith("why"):
            appended += 1
            assert list(found)[:4] == ["loop", "seq", "status", "head"], line
            assert found["head"].startswith(f"{found['seq']}:")
            assert found["seq"] == len(here.lines())
    assert appended == 39


# next of planned loops


@pytest.fixture
def planned(here: Here) -> Here:
    return start_plan(here)


@pytest.fixture
def with_gaps(here: Here) -> Here:
    """Return a verify loop with two gaps."""
    command = ("start", "verify", "--phase", "1", "--mode", "yolo")
    start_plan(here, *command, plan=task_text("01") + task_text("02"))
    assert here.run("verify").code == 7
    return here


def test_next_offers_a_whole_wave_and_a_sequential_wave_task_by_task(planned: Here) -> None:
    assert ready(planned) == ["T01", "T02"]
    for args, stdin in ((("task", "T03", "running"), b""), (("report", "T03"), b"TASK COMPLETE")):
        refused = planned.refused(4, *args, stdin=stdin).err
        assert "task T03 is in wave 2, but wave 1 is not done" in refused
        assert "Ready: T01, T02" in refused
    report_complete(planned, "T01")
    assert ready(planned) == ["T02"]
    report_complete(planned, "02")
    assert ready(planned) == ["T03"]
    assert "one at a time" in planned.refused(4, "task", "T04", "running").err
    planned.ok("task", "T03", "running")
    assert ready(planned) == []
    assert "run one at a time" in planned.refused(4, "task", "T04", "running").err
    report_complete(planned, "T03")
    assert ready(planned) == ["T04"]
    assert planned.status()["wave"] == 2


def test_next_of_sequential_wave_offers_dependencies_first(here: Here) -> None:
    tasks = task_text("02", 1, "01") + task_text("01")
    start_plan(here, plan="## Wave 1 (Sequential)\n" + tasks)
    assert ready(here) == ["T01"]
    report_complete(here, "T01")
    assert ready(here) == ["T02"]


def test_next_with_json_names_prompt_and_commands_and_changes_nothing(planned: Here) -> None:
    before = planned.journal.read_bytes()
    answer = planned.ok("next", "--json")
    assert planned.ok("next", "--json") == answer
    assert planned.journal.read_bytes() == before
    item = answer.json["tasks"][1]
    assert item["description"] == "P1 T02: Write 02."
    assert (item["subagent_type"], item["background"]) == ("gsd-fsm:executor", True)
    assert item["prompt"].strip() == planned.ok("next", "T02").out.strip()
    assert '<task id="02">' in item["prompt"]
    assert item["report"] == f"gsd-fsm report --loop {answer.json['loop']} T02"
    assert "P1 T02: Write 02." in planned.ok("next").out


def test_next_with_unknown_or_complete_task_is_refused(planned: Here) -> None:
    assert "Use one of: T01" in planned.refused(2, "next", "T99").err
    report_complete(planned, "T01")
    planned.refused(4, "next", "T01")
    planned.ok("cancel")
    planned.ok("start", "goal", "g")
    assert "does not follow a plan" in planned.refused(2, "next", "T01").err


def test_resume_and_next_list_running_tasks_with_their_references(planned: Here) -> None:
    planned.ok("task", "T01", "running", "--ref", "bg-1")
    planned.ok("task", "T02", "running", "--ref", "bg-2")
    assert re.search(r"T01 running.*\n.*T02 running", planned.ok("status").out)
    report_complete(planned, "T02")
    assert [task["task_num"] for task in planned.status()["background_tasks"]] == ["T01"]
    answer = planned.ok("resume", "--json").json
    assert answer["running"] == [{"task": "T01", "ref": "bg-1", "phase": None}]
    assert "Task T01 (bg-1) was running" in planned.ok("resume").out
    assert planned.ok("next", "--json").json["running"][0]["ref"] == "bg-1"


def test_next_does_not_offer_a_running_fix(with_gaps: Here) -> None:
    assert ready(with_gaps) == ["G1", "G2"]
    with_gaps.ok("task", "G1", "running", "--ref", "bg-7")
    assert ready(with_gaps) == ["G2"]
    answer = with_gaps.ok("next", "--json").json
    assert answer["running"][0]["ref"] == "bg-7"
    assert "Fix gap G2" in answer["text"]


def test_next_of_failed_fix_adds_errors_and_decision_to_the_prompt(with_gaps: Here) -> None:
    assert "<previous_attempt>" not in with_gaps.ok("next", "G1").out
    report(with_gaps, "G1", "TASK FAILED: zot\nRoot cause: the moon\n")
    prompt = with_gaps.ok("next", "G1").out
    assert all(words in prompt for words in ("<previous_attempt>", "zot", "the moon", "1 of 3"))
    with_gaps.ok("task", "G2", "running")
    report(with_gaps, "G1", "CHECKPOINT: red or blue?\n")
    with_gaps.refused(4, "report", "G1", stdin=b"TASK COMPLETE")
    assert ready(with_gaps) == []
    report(with_gaps, "G2", "TASK FAILED: later\n")
    with_gaps.ok("answer", "blue")
    assert "blue" in with_gaps.ok("next", "G1").out


def test_next_skips_failed_fix_once_its_gap_is_closed(with_gaps: Here) -> None:
    report(with_gaps, "G1", "TASK FAILED: not yet")
    assert "Fix gap G1" in with_gaps.ok("next").out
    (with_gaps.root / "01.py").touch()
    assert with_gaps.run("verify").code == 7
    assert "Fix gap G2" in with_gaps.ok("next").out


def test_state_md_of_verify_loop_counts_rounds_and_gaps(with_gaps: Here) -> None:
    text = (with_gaps.gsd / "STATE.md").read_text()
    assert "  iteration: 1\n  max_iterations: 20\n" in text
    assert "  gaps_remaining: 2\n" in text
