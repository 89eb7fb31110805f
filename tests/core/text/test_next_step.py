"""The next step: a sentence and a command that fit the state; following them ends every loop."""

from __future__ import annotations

import shlex
from random import Random
from typing import Any

import pytest

from gsd_fsm.core.codec import dumps
from gsd_fsm.core.loop.limits import reached_limit
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.engine.status import status_view
from tests.support.chaos import run_random_story
from tests.support.command_line import Here
from tests.support.story import Story, in_status

PROOF: dict[str, Any] = {"command": "c", "exit_code": 0}
CHECKED = [{"name": "A", "check": "c"}, {"name": "B", "check": "c"}]
A = [{"name": "A"}]


SCORE = "score --outcome 2 --scope 2 --constraints 2 --success 2 --done 2"  # requires a review
FAILED_BEFORE_REVIEW = f"{SCORE}; criterion 1 met; exit-signal; fail --error x --class logic"


@pytest.mark.parametrize(
    ("start", "commands"),
    [
        ("execute --task A --task B --blocked-by A=B", "iterate"),
        ("verify --task A", "gap found --description 'no login'"),
        ("goal g --criterion A --criterion B", SCORE),
        ("goal g --criterion A", FAILED_BEFORE_REVIEW),
    ],
)
def test_following_the_next_steps_completes_the_loop(here: Here, start: str, commands: str) -> None:
    here.start(*start.split(), "--mode", "yolo")
    for line in commands.split("; "):
        here.ok(*shlex.split(line))
    for _ in range(20):
        if here.status()["status"] == "completed":
            return
        command = here.status()["next"].rpartition(" Run: gsd-fsm ")[2]
        here.ok(*shlex.split(command.replace(" N", " 0")))
    pytest.fail(f"the next step is {here.status()['next']}")


FOUND = ("gap", {"gap": "G1", "action": "found", "description": "no login", "file": "a.py"})
Events = list[tuple[str, dict[str, Any]]]
MET: dict[str, Any] = {"criterion": "A", "met": True}
FAILURE = {"task": "A", "error": "boom", "class": "logic"}
TASK_A = {"tasks": [{"id": "A"}]}
RECORD = (
    "For each gap, run `gsd-fsm gap found --loop lp-1 --kind KIND --file FILE --description TEXT`; "
    "then record the result."
)
# Kind and members of the start, the events after it, the sentence, and the command with `@` for the loop.
STEPS: list[tuple[str, dict[str, Any], Events, str, str]] = [
    ("goal", {}, [], "Reach the goal, then give the exit signal.", "exit-signal"),
    ("goal", {"criteria": CHECKED}, [], "Make the check 'A' pass (c).", "check"),
    ("goal", {"criteria": [{"name": "12"}, {"name": "1"}]}, [],
     "Meet criterion 1: 12.", "criterion @ '12' met"),
    ("goal", {"criteria": [{"name": "-x"}, {"name": "1"}]}, [],
     "Meet criterion 1: -x.", "criterion @ -- '-x' met"),
    ("goal", {"criteria": CHECKED},
     [("criterion", {**MET, "evidence": {**PROOF, "tree": "1"}}),
      ("criterion", {**MET, "criterion": "B", "evidence": {**PROOF, "tree": "2"}})],
     "Files have changed since the check 'A' ran; run the checks again.", "check"),
    ("goal", {"criteria": CHECKED},
     [("criterion", {**MET, "evidence": {**PROOF, "tree": "1"}}),
      ("criterion", {**MET, "criterion": "B", "evidence": PROOF})],
     "Every criterion is met; give the exit signal.", "exit-signal"),
    ("goal", {"rules": {}}, [], "Reach the goal, then complete the loop.", "complete"),
    ("goal", {"criteria": A, "rules": {}}, [("criterion", MET)],
     "Everything is done; complete the loop.", "complete"),
    ("goal", {"criteria": A, "rules": {}, "review": True}, [("criterion", MET)],
     "A thorough review must pass before the loop can complete.", "review begun"),
    ("goal", {"criteria": A, "rules": {}},
     [("criterion", MET), ("pause", {"code": "idle", "reason": "no activity"})],
     "Paused (idle): no activity. Everything is done; complete the loop.", "complete"),
    ("goal", {"criteria": A, "rules": {}},
     [("criterion", MET), ("pause", {"code": "manual", "reason": "by hand"})],
     "Paused (manual): by hand.", "resume"),
    ("goal", {"criteria": A}, [("failure", {"error": "it broke\nbadly", "class": "logic"})],
     "Fix the last error: it broke badly. Then: Meet criterion 1: A.", "criterion @ 1 met"),
    ("goal", {"criteria": A},
     [("criterion", MET), ("review", {"action": "begun"}),
      ("review", {"action": "failed", "blockers": 2})],
     "Fix the blockers that the review found, then review again.", "review begun"),
    ("execute", {"tasks": [{"id": "A", "title": "Login"}]}, [("failure", FAILURE)],
     "Retry task A (Login): retry 1 of 3. Last error: boom.", "task @ A running"),
    ("execute", TASK_A, [("failure", {**FAILURE, "class": "transient"})],
     "Retry task A: retry 1 of 1. Last error: boom.", "task @ A running"),
    ("execute", {"tasks": [{"id": "A", "depends": ["B"]}, {"id": "B"}]}, [("failure", FAILURE)],
     "Start task B.", "task @ B running"),
    ("execute", {"tasks": [{"id": "A"}, {"id": "B"}]}, [("task", {"task": "A", "status": "running"})],
     "Finish task A.", "task @ A complete"),
    ("execute", TASK_A, [("task", {"task": "A", "status": "skipped"})],
     "Everything is done; complete the loop.", "complete"),
    ("execute", TASK_A,
     [("task", {"task": "A", "status": "running"}),
      ("task", {"task": "A", "status": "checkpoint", "question": "Which\nRun: x"})],
     "Task A needs a decision: Which Run: x. Ask the user, then act on the answer.",
     "task @ A running"),
    ("verify", {}, [], f"Verify everything. {RECORD}",
     "verified pass"),
    ("verify", {}, [("verified", {"passed": False})],
     f"Verify everything again. {RECORD}",
     "verified pass"),
    ("verify", {"plan": {"file": "p", "digest": "1", "tasks": 1}}, [], "Verify everything.", "verify"),
    ("verify", {}, [FOUND], "Fix gap G1 (other in a.py): no login.", "gap close @ G1"),
    ("goal", {}, [("pause", {"code": "manual", "reason": "because."})],
     "Paused (manual): because.", "resume"),
    ("execute", {**TASK_A, "limits": {"max_retries": 0}}, [("failure", FAILURE)],
     "Paused (retries): Task A failed after 0 retries.", "resume @ --add-retries 1"),
    ("goal", {}, [("wait", {"for": "human", "question": "Which port?"})],
     "Waiting for the user's answer: Which port?", "answer @ TEXT"),
    ("goal", {}, [("wait", {"for": "throttled", "until": "2026-11-16T00:00:00.000Z"})],
     "Throttled until 2026-11-16T00:00:00.000Z.", "resume"),
]  # fmt: skip


def command_of(line: str) -> str:
    return f"gsd-fsm {line}{'' if '@' in line else ' @'}".replace("@", "--loop lp-1")


@pytest.mark.parametrize("case", STEPS, ids=[case[3] for case in STEPS])
def test_next_step_fits_the_state(case: tuple[str, dict[str, Any], Events, str, str]) -> None:
    kind, start, events, sentence, line = case
    assert next_step(Story(kind, **start).then(*events).loop) == (sentence, command_of(line))


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_next_step_of_an_ended_loop_is_a_new_one(status: str) -> None:
    step = (f"The loop is {status}.", "gsd-fsm start --help")
    assert next_step(in_status(status).loop) == step


def test_next_step_for_used_up_limits_raises_all_of_them() -> None:
    limits = {"max_iterations": 1, "budget_usd": 1, "max_minutes": 1, "max_rounds": 1}
    story = Story("verify", limits=limits)
    story("iteration", _by="hook")
    for _ in range(3):
        story("verified", passed=False)
    story("spend", usd=50)
    story.now += 100 * 60_000
    story("pause", code="budget", reason="50.00 of 1.00 USD are spent")
    options = "--add-iterations 10 --add-rounds 12 --add-budget 49.5 --add-minutes 129"
    assert next_step(story.loop)[1] == command_of(f"resume @ {options}")
    add = {"max_iterations": 10, "max_rounds": 12, "budget_usd": 59, "max_minutes": 129}
    assert story("resume", add=add).status == "running"
    assert reached_limit(story.loop, story.now) is None


def test_every_state_has_a_next_step_and_a_view() -> None:
    def look(loops: Any) -> None:
        for loop in loops.by_id.values():
            words, line = next_step(loop)
            assert words.endswith((".", "?", "!", "…", "[Y/n]", "skipped"))
            assert "\n" not in words
            assert line.startswith("gsd-fsm ")
            # For a plan, `next` shows more than one line; elsewhere it would repeat itself.
            assert (
                loop.is_planned or not line.startswith("gsd-fsm next") or line.endswith(" review")
            )
            dumps(status_view(loop, "1:0"))

    for seed in range(25):
        run_random_story(Random(seed), 60, look)
