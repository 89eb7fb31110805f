"""Stops: the first rule that applies decides, and its decision is journalled with its code."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.command_line import Here
from tests.support.events import append, new_journal, start_draft
from tests.support.faults import everything_below
from tests.support.hook_agent import SHELL, SUBAGENT, Agent, kinds, start
from tests.support.plan_loops import THREE_TASKS, report, write_plan

TWO_TASKS = ("execute", "--task", "T1:first", "--task", "T2:second")
VERIFY = ("verify", "--task", "T1")
TWO_CRITERIA = ("goal", "Ship it", "--criterion", "tests pass", "--criterion", "lint clean")
MARK = "<loop-complete>all done</loop-complete>"


# Commands that bring its situation about, event and code of each rule, in their order.
RULES: dict[str, tuple[list[str], str, str]] = {
    "disabled": ([], "stop disabled", "disabled"),
    "paused": (["pause"], "stop paused", "paused"),
    "background": ([], "stop background", "background"),
    "complete": (
        ["task T1 running", "task T1 complete", "task T2 running", "task T2 complete"],
        "complete",
        "complete",
    ),
    "question": (["mode interactive", "fail T1 --error boom --class logic"], "wait", "human"),
    "limit": (["iterate"], "pause iterations", "iterations"),
}
PAIRS = [
    (first, second)
    for number, first in enumerate(RULES)
    for second in list(RULES)[number + 1 :]
    # A finished loop has no question left, unless it is about the loop: see below.
    if {first, second} != {"complete", "question"}
]


def decided_events(agent: Agent, *rules: str) -> list[str]:
    """Bring the situations of these rules about, stop, and return the events of the stop."""
    start(agent, *TWO_TASKS, "--max-iterations", "1")
    # In this order, no situation undoes or forbids another.
    for rule in ("question", "complete", "limit", "paused"):
        if rule in rules:
            agent.do(*RULES[rule][0])
    if "disabled" in rules:
        (agent.here.gsd / "STOP").touch()
    before = len(agent.here.lines())
    agent.allowed(background_tasks=[{**SUBAGENT, "id": "a1"}] * ("background" in rules))
    return kinds(agent.here)[before:]


@pytest.mark.parametrize("rule", RULES)
def test_rule_alone_allows_the_stop_and_explains_it(agent: Agent, rule: str) -> None:
    _, event, code = RULES[rule]
    assert decided_events(agent, rule) == [event]
    last = agent.here.last()
    assert (last["by"], last["session"], last["client"]) == ("hook", "s-1", "claude")
    why = agent.why()
    assert (why["decision"], why["code"], why["seq"]) == ("allow", code, last["seq"])
    assert "iteration" in why["why"]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[f"{a}-{b}" for a, b in PAIRS])
def test_earlier_one_of_two_rules_decides(agent: Agent, first: str, second: str) -> None:
    assert decided_events(agent, first, second) == [RULES[first][1]]


def test_completion_comes_before_a_question_about_the_loop(agent: Agent) -> None:
    start(agent, "execute", "--task", "T1", by="interactive")
    agent.do("task T1 running", "task T1 complete", "fail --error bang --class logic")
    assert agent.status("status") == "retrying"
    assert "completed" in agent.allowed()


def test_stop_is_blocked_if_no_rule_applies(agent: Agent) -> None:
    loop = start(agent, *TWO_TASKS)
    text = agent.blocked()
    data = agent.here.last()["data"]
    assert (data["code"], data["reason"]) == ("continue", text)
    assert text.startswith("Continuing execute loop iteration 1/20")
    assert f"gsd-fsm task --loop {loop} T1 running" in text
    why = agent.why()
    assert (why["decision"], why["code"]) == ("block", "continue")
    for part in ("task T1 is pending", "iteration 1/20"):
        assert part in why["why"]


def test_stop_hook_active_is_recorded_and_decides_nothing(looping: Agent) -> None:
    for active in (False, True, True):
        looping.blocked(stop_hook_active=active)
        assert looping.here.last()["data"]["active"] is active


@pytest.mark.parametrize(
    "what", ["nothing", "task list", "empty .gsd", "no journal", "completed", "cancelled"]
)
def test_stop_without_a_live_loop_prints_and_writes_nothing(agent: Agent, what: str) -> None:
    if what == "task list":
        place = Path(os.environ["HOME"]) / ".claude" / "tasks" / agent.session
        place.mkdir(parents=True)
        (place / "1.json").write_text('{"id": "1", "subject": "a", "status": "pending"}')
    elif what == "empty .gsd":
        agent.here.gsd.mkdir()
    elif what != "nothing":
        start(agent, "goal", "g")
        agent.do("exit-signal")
        agent.here.ok("complete" if what == "completed" else "cancel")
        if what == "no journal":
            agent.here.journal.unlink()
        else:
            agent.stop()  # the result of the loop is printed once
    before = everything_below(agent.here.root)
    assert agent.stop() is None
    assert agent.prompt() == agent.starts() == agent.ends() == agent.err == ""
    assert everything_below(agent.here.root) == before


def test_only_the_value_1_and_any_file_named_stop_disable_the_hook(looping: Agent) -> None:
    for value in ("0", "", "yes"):
        looping.blocked(env={"GSD_FSM_DISABLE": value})
    assert looping.allowed(env={"GSD_FSM_DISABLE": "1"}) == ""
    assert kinds(looping.here)[-1] == "stop disabled"
    (looping.here.gsd / "STOP").symlink_to("nowhere")
    looping.allowed()
    assert kinds(looping.here)[-1] == "stop disabled"


def test_files_of_other_tools_decide_nothing(agent: Agent) -> None:
    agent.here.configure(views=["state", "workflow-state"])
    start(agent, *TWO_CRITERIA)
    views = agent.here.root / ".loop"
    done = {"criteriaStatus": {"tests pass": True}, "exit_signal": True, "status": "completed"}
    (views / "state.json").write_text(json.dumps(done))
    (views / "workflow-state.json").write_text('{"version": 1, "stage": "complete"}')
    (agent.here.gsd / "STATE.md").write_text("---\nloop:\n  active: false\n---\n")
    assert "criterion not met: tests pass" in agent.blocked()
    for path in views.iterdir():
        path.unlink()
    assert "criterion not met: tests pass" in agent.blocked()
    assert sorted(path.name for path in views.iterdir()) == ["state.json", "workflow-state.json"]


def test_user_is_notified_once_of_a_pause_and_of_a_question(looping: Agent) -> None:
    looping.do("pause --reason 'over night'")
    notice = looping.allowed()
    assert "is paused (manual): over night. To continue, run: gsd-fsm resume --loop" in notice
    assert looping.allowed() == ""
    looping.do("resume", "wait 'Which database?'")
    assert "is waiting for your answer: Which database? Answer here" in looping.allowed()
    assert looping.allowed() == ""
    assert kinds(looping.here)[-1] == "stop waiting"
    looping.prompt("what do you mean?")  # not recorded as the answer
    assert "Which database?" in looping.allowed()


def test_throttled_loop_resumes_at_the_next_stop(agent: Agent) -> None:
    start(agent, *TWO_TASKS)
    agent.fails("rate_limit")
    assert agent.status("status") == "waiting"
    agent.blocked()
    assert kinds(agent.here)[-3:] == ["wait", "resume", "iteration continue"]
    assert agent.status("status", "owner") == ("running", "s-1")
    agent.do(*RULES["complete"][0])
    agent.fails("server_error")
    assert "completed" in agent.allowed()
    assert kinds(agent.here)[-3:] == ["wait", "resume", "complete"]


def test_running_subagents_allow_every_stop_and_use_no_iteration(agent: Agent) -> None:
    start(agent, *TWO_CRITERIA, "--stuck-limit", "0", "--idle-limit", "0")
    task = {**SUBAGENT, "id": "a1"}
    for _ in range(3):
        assert "waiting for running subagents (1)" in agent.allowed(background_tasks=[task])
    assert agent.status("iteration") == 0
    agent.blocked(background_tasks=[{**task, "status": "completed"}])
    for malformed in (None, "x", 7, {}, [7, None, "x", []], [{"status": "done", "id": "b"}]):
        agent.blocked(background_tasks=malformed)


def test_running_shell_allows_only_the_first_stop_that_shows_it(looping: Agent) -> None:
    server = {**SHELL, "id": "b1"}
    assert "one stop is allowed while this runs: b1" in looping.allowed(background_tasks=[server])
    assert looping.here.last()["data"]["background"] == ["b1"]
    looping.blocked(background_tasks=[server])
    two = [server, {**SHELL, "id": "b2"}]
    looping.allowed(background_tasks=two)
    looping.blocked(background_tasks=two)
    looping.do("note more")
    looping.allowed(background_tasks=[*two, {**SHELL, "id": "b3"}, {**SUBAGENT, "id": "a1"}])
    looping.blocked(background_tasks=[{**SHELL, "id": "b3"}])
    many = [{**SHELL, "id": f"background-{number:04}"} for number in range(60)]
    looping.allowed(background_tasks=many)
    looping.blocked(background_tasks=many)


# What the agent does before each stop, and what the block says; after the last one it completes.
LIVES: dict[str, tuple[tuple[str, ...], list[tuple[str, str]]]] = {
    "execute": (TWO_TASKS, [
        ("iterate", "task T1 is pending; task T2 is pending"),
        ("task T1 running; task T1 complete", "task T2 is pending"),
        ("task T2 running; task T2 complete", "completed after 3 iterations"),
    ]),
    "verify": (VERIFY, [
        ("iterate; task T1 running; task T1 complete", "verified pass"),
        ("verified fail", "verified pass"),
        ("verified pass", "completed after 3 iterations"),
    ]),
    "goal": (TWO_CRITERIA, [
        ("criterion 1 met", "criterion not met: lint clean; no exit signal"),
        ("criterion 2 met", "Everything is done; complete the loop.\nRun: gsd-fsm complete --loop LOOP"),
        ("exit-signal; criterion 2 unmet", "criterion not met: lint clean; no exit signal"),
        ("criterion 2 met", "Everything is done"),
        ("exit-signal", "completed after 4 iterations"),
    ]),
    "goal with a check without git": (("goal", "g", "--check", "t=true"), [
        ("check; exit-signal", "completed after 0 iterations"),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("life", LIVES)
def test_loop_is_blocked_until_nothing_is_missing_then_completes(agent: Agent, life: str) -> None:
    options, stops = LIVES[life]
    loop = start(agent, *options)
    for number, (commands, text) in enumerate(stops, 1):
        agent.do(*commands.split("; "))
        answer = agent.blocked() if number < len(stops) else agent.allowed()
        assert text.replace("LOOP", loop) in answer
    assert kinds(agent.here)[-1] == "complete"
    assert agent.status("status", "owner") == ("completed", "s-1")


def test_completion_mark_is_the_exit_signal_if_every_criterion_is_met(looping: Agent) -> None:
    looping.do("criterion 1 met")
    text = looping.blocked(f"{MARK}\nBut there is more to do.")
    assert "You wrote" not in text
    assert "Claimed: 1 criterion. To see its history, run:" in looping.allowed(MARK)
    assert kinds(looping.here)[-2:] == ["exit", "complete"]
    assert looping.status("status") == "completed"


@pytest.mark.parametrize("loop", [TWO_CRITERIA, TWO_TASKS, VERIFY], ids=lambda loop: loop[0])
def test_early_completion_mark_changes_only_the_text(agent: Agent, loop: tuple[str, ...]) -> None:
    start(agent, *loop)
    assert "You wrote" not in agent.blocked("I would write <loop-complete> if I were done.")
    text = agent.blocked(MARK)
    assert "You wrote <loop-complete>, but the loop is not done." in text
    assert ("criterion not met: tests pass" in text) is (loop == TWO_CRITERIA)
    assert kinds(agent.here)[2:] == ["iteration continue"] * 2
    assert agent.status("exit_signal") is False


def test_completion_mark_does_not_replace_a_review(agent: Agent) -> None:
    start(agent, "goal", "Ship it")
    agent.do("review begun", "review failed --blockers 1")
    assert "the thorough review has not passed" in agent.blocked(MARK)
    assert kinds(agent.here)[-2:] == ["exit", "iteration continue"]


def test_evidence_with_tree_leaves_completion_to_a_command(agent: Agent, repository: Here) -> None:
    loop = start(agent, "goal", "Ship it", "--check", "t=true")
    agent.do("check")
    text = agent.blocked(MARK)
    assert kinds(agent.here)[-2:] == ["exit", "iteration continue"]
    assert f"\nRun: gsd-fsm complete --loop {loop}" in text
    assert "complete" in agent.why()["why"]
    (repository.root / "code.py").write_text("two\n")
    assert agent.here.run("complete", env=agent.shell).code == 4
    assert f"gsd-fsm check --loop {loop}" in agent.blocked(MARK)


@pytest.mark.parametrize(
    ("code", "limit"), [("iterations", "--max-iterations"), ("stuck", "--stuck-limit")]
)
def test_limit_of_a_met_loop_names_complete_which_ends_the_loop(
    agent: Agent, repository: Here, code: str, limit: str
) -> None:
    loop = start(agent, "goal", "g", "--check", "t=true", limit, "1")
    agent.do("check")
    agent.blocked()
    if code == "stuck":
        agent.blocked()
    left = "only 'gsd-fsm complete' is left to run. To complete it, run:"
    assert f"{left} gsd-fsm complete --loop {loop}" in agent.allowed()
    assert kinds(agent.here)[-1] == f"pause {code}"
    texts = (agent.prompt(), agent.starts("resume"), agent.here.ok("next").out)
    assert all(f"Run: gsd-fsm complete --loop {loop}" in text for text in texts)
    agent.do("complete")
    exit_, complete = agent.here.lines()[-2:]
    assert (exit_["type"], exit_["v"], exit_["by"]) == ("exit", 1, "agent")
    assert (complete["type"], complete["v"]) == ("complete", 2)
    assert agent.here.ok("replay", "--strict").err == ""
    assert agent.status("status", "pause_code") == ("completed", None)


# auto_loop


def test_stop_without_auto_loop_pauses_with_what_is_open(agent: Agent) -> None:
    agent.here.configure(auto_loop=False)
    loop = start(agent, *TWO_TASKS)
    for left in ("task T1 is pending; task T2 is pending", "task T2 is pending"):
        assert agent.allowed() == (
            f"gsd-fsm: loop {loop} is paused (manual): auto_loop is off; not done yet: {left}. "
            f"To continue, run: gsd-fsm resume --loop {loop}"
        )
        assert kinds(agent.here)[-1] == "pause manual"
        assert agent.allowed() == ""
        done = "T1" if "T1" in left else "T2"
        agent.do("resume", f"task {done} running", f"task {done} complete")
    assert "completed after 0 iterations" in agent.allowed()


def test_stop_without_auto_loop_lets_a_met_loop_wait_for_complete(
    agent: Agent, repository: Here
) -> None:
    repository.configure(auto_loop=False)
    start(agent, "goal", "g", "--check", "t=true")
    agent.do("check")
    notice = agent.allowed()
    assert "everything is met: resume the loop, then run 'gsd-fsm complete'. To continue" in notice
    assert "cannot run 'complete'" in agent.refused("complete")
    agent.do("resume", "complete")


def test_stop_without_auto_loop_is_blocked_in_a_loop_without_rules(agent: Agent) -> None:
    old = {**start_draft(auto_loop=False), "session": agent.session}
    append(new_journal(agent.here.gsd), old)
    agent.blocked()


# questions

TWO_WAVES = ("goal", "g", "--step", "a", "--step", "b", "--blocked-by", "S2=S1")


def test_failed_task_is_asked_about_once(agent: Agent) -> None:
    loop = start(agent, *TWO_TASKS, by="interactive")
    agent.do("task T1 running", "fail T1 --error boom --class logic")
    notice = agent.allowed()
    assert "Task T1 failed. Retry? (0/3 attempts used) [Y/n]" in notice
    assert f"gsd-fsm answer --loop {loop}" in notice
    assert "Retry?" in agent.why()["why"]
    assert agent.status("iteration") == 0
    assert agent.here.run("answer", "yes, with care").code == 2
    agent.here.ok("answer", "Yes, please.".replace(",", ""))
    assert "Yes please." in agent.blocked()
    agent.do("task T1 running", "fail T1 --error bang --class logic")
    assert "(1/3 attempts used)" in agent.allowed()


CHECKPOINT = "task T1 checkpoint --question 'Which one?'"
FIX = "Verification found %s. Attempt automatic fix? (0/20) [Y/n]"


@pytest.mark.parametrize(
    ("loop", "before", "event", "question"),
    [
        (TWO_TASKS, "iterate", "fail T1 --error x --class transient", "Retry? (0/1 attempts used)"),
        (TWO_TASKS, "task T1 running", CHECKPOINT, "Task T1 needs a decision: Which one?"),
        (TWO_WAVES, "task S1 running", "task S1 complete", "Wave 1 complete. Continue to Wave 2?"),
        (VERIFY, "iterate", "gap found --description x", FIX % "1 gap"),
    ],
)
def test_decision_is_asked_about_until_it_is_answered(
    agent: Agent, loop: tuple[str, ...], before: str, event: str, question: str
) -> None:
    start(agent, *loop, by="interactive")
    agent.do(before)
    agent.blocked()
    agent.do(event)
    assert question in agent.allowed()
    agent.here.ok("answer", "y")
    agent.blocked()
    if loop == VERIFY:
        agent.do("gap found --description y")
        assert FIX % "2 gaps" in agent.allowed()


def test_answer_no_pauses_and_is_not_shown_to_an_agent_that_continues_later(agent: Agent) -> None:
    no = "not yet"
    start(agent, *TWO_WAVES, by="interactive")
    agent.do("task S1 running", "task S1 complete")
    agent.allowed()
    agent.prompt(no)
    agent.do(f"answer '{no}'")
    assert agent.status("status") == "paused"
    assert "declined" in agent.status("pause_reason")
    agent.allowed()
    agent.prompt("fine, go on")
    agent.do("resume")
    assert f"\n{no}\n" not in agent.blocked()


# parallel tasks of a plan

COMPLETE, ASKING, FAILED = "TASK COMPLETE", "CHECKPOINT: Which one?", "TASK FAILED: no idea"


def begin(agent: Agent, kind: str, mode: str = "interactive") -> tuple[str, str]:
    """Start a loop with the plan, and two of its tasks (execute) or fixes (verify)."""
    write_plan(agent.here, THREE_TASKS)
    agent.here.start(kind, "--phase", "1", "--mode", mode, env=agent.shell)
    if kind == "verify":
        (agent.here.root / "03.py").write_text("")
        agent.here.run("verify", env=agent.shell)
    if mode == "interactive":
        agent.here.ok("answer", "y")
    one, two = ("T01", "T02") if kind == "execute" else ("G1", "G2")
    agent.do(f"task {one} running", f"task {two} running")
    return one, two


@pytest.mark.parametrize(
    ("kind", "mode", "output", "question"),
    [
        ("execute", "interactive", COMPLETE, "Continue to Wave 2?"),
        ("execute", "interactive", ASKING, "Task T01 needs a decision: Which one?"),
        ("execute", "interactive", FAILED, "Task T01 failed. Retry? (0/3 attempts used) [Y/n]"),
        ("execute", "yolo", ASKING, "Task T01 needs a decision: Which one?"),
        ("verify", "interactive", ASKING, "Task G1 needs a decision: Which one?"),
        ("verify", "interactive", FAILED, "Task G1 failed. Retry? (0/3 attempts used) [Y/n]"),
    ],
)
def test_question_waits_for_the_report_of_a_parallel_task(
    agent: Agent, kind: str, mode: str, output: str, question: str
) -> None:
    first, second = begin(agent, kind, mode)
    assert report(agent.here, first, output, env=agent.shell)["status"] != "waiting"
    agent.blocked()
    answer = report(agent.here, second, COMPLETE, env=agent.shell)
    assert (answer["verdict"], answer["status"]) == ("complete", "waiting")
    assert question in agent.allowed()


def test_gap_found_while_fixes_run_is_asked_about_after_their_reports(agent: Agent) -> None:
    begin(agent, "verify")
    agent.do("gap found --description 'one more'")
    assert "gap G3 is waiting for your decision" in agent.refused("task G3 running")
    agent.blocked()
    assert report(agent.here, "G1", COMPLETE, env=agent.shell)["status"] == "fixing"
    agent.blocked()
    assert report(agent.here, "G2", COMPLETE, env=agent.shell)["status"] == "waiting"
    assert "Verification found 1 gap. Attempt automatic fix?" in agent.allowed()
