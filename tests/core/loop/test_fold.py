"""The fold: what each event makes of a loop, beyond its status."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import pytest

from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.fold import TRIGGERS, Loops, findings_of, trigger_of
from gsd_fsm.core.loop.limits import MOST_MUST_NOTS
from gsd_fsm.core.loop.state import ACTIVE, LIVE, Loop, undelivered_notes
from gsd_fsm.engine.status import status_view
from tests.support.chaos import run_random_story
from tests.support.story import PAYLOADS, Story, in_status


@pytest.mark.parametrize("status", ACTIVE)
def test_answer_restores_status_before_wait(status: str) -> None:
    story = in_status(status)
    story("wait", for_="human", question="Which?")
    assert (story.loop.wait_for, story.loop.question) == ("human", "Which?")
    assert story("answer", text="This one.").status == status
    assert (story.loop.answer, story.loop.wait_for, story.loop.question) == (
        "This one.",
        None,
        None,
    )


@pytest.mark.parametrize("status", [*ACTIVE, "waiting"])
def test_resume_restores_status_before_pause(status: str) -> None:
    story = in_status(status)
    assert story("pause", code="manual", reason="tea").status == "paused"
    assert (story.loop.pause_code, story.loop.pause_reason) == ("manual", "tea")
    assert story("resume").status == status
    assert (story.loop.pause_code, story.loop.pause_reason) == (None, None)


@pytest.mark.parametrize("status", ACTIVE)
def test_paused_wait_restores_status_before_it(status: str) -> None:
    story = in_status(status)
    story("wait", for_="human", question="Which?")
    story("pause", code="manual")
    assert story("resume").status == "waiting"
    assert story.loop.question == "Which?"
    assert story("answer", text="This one.").status == status


@pytest.mark.parametrize("status", ACTIVE)
def test_resume_after_pausing_failure_restores_status(status: str) -> None:
    story = in_status(status)
    story.fail(None, "blocking")
    assert story("resume").status == status


def test_throttled_wait_keeps_its_end_and_is_resumed() -> None:
    story = in_status("running")
    story("wait", for_="throttled", until="2026-11-16T00:00:00.000Z", reason="rate limit")
    assert story.loop.until == "2026-11-16T00:00:00.000Z"
    story("resume", _by="agent")
    assert (story.status, story.loop.until) == ("running", None)


def test_iteration_is_counted_in_active_statuses_only() -> None:
    for status in LIVE:
        story = in_status(status)
        if status in ACTIVE:
            assert story("iteration").iteration == 1
            assert story("iteration").iteration == 2
            assert story.loop.last_iteration == story.events[-1]["ts"]
        else:
            story.refused("iteration")


@pytest.mark.parametrize(
    ("before", "allowed"),
    [
        ("pending", {"running", "skipped"}),
        ("running", {"running", "complete", "checkpoint", "skipped"}),
        ("failed", {"running", "skipped"}),
        ("checkpoint", {"running", "complete", "skipped"}),
        ("complete", set()),
        ("skipped", set()),
    ],
)
def test_task_status_changes_along_its_arrows_only(before: str, allowed: set[str]) -> None:
    for wanted in ("pending", "running", "complete", "checkpoint", "skipped"):
        story = Story("execute", tasks=[{"id": "T1"}, {"id": "T2"}])
        if before == "failed":
            story.fail("T1")
        elif before != "pending":
            story.task("T1", "running") if before != "skipped" else None
            story.task("T1", before)
        if wanted in allowed:
            assert story.task("T1", wanted).tasks["T1"].status == wanted
        else:
            story.refused("task", task="T1", status=wanted)


def test_task_keeps_reference_commit_and_question() -> None:
    story = Story("execute", tasks=[{"id": "T1", "title": "Login"}])
    story.task("T1", "running", ref="bg-1")
    story.task("T1", "checkpoint", question="Which port?")
    task = story.task("T1", "complete", commit="abc").tasks["T1"]
    assert (task.ref, task.question, task.commit) == ("bg-1", "Which port?", "abc")
    assert task.title == "Login"


def test_task_cannot_start_before_its_dependencies() -> None:
    story = Story("execute", tasks=[{"id": "T1"}, {"id": "T2", "depends": ["T1"]}])
    assert "T1" in story.refused("task", task="T2", status="running").message
    story.task("T1", "running")
    story.refused("task", task="T2", status="running")
    story.task("T1", "complete")
    story.task("T2", "running")


def test_wave_is_first_with_open_tasks_else_last() -> None:
    tasks = [{"id": "A", "wave": 1}, {"id": "B", "wave": 2}, {"id": "C", "wave": 2}]
    story = Story("execute", tasks=tasks)
    waves = []
    for name in ("A", "B", "C"):
        waves.append(status_view(story.loop, "")["wave"])
        story.task(name, "skipped")
    assert [*waves, status_view(story.loop, "")["wave"]] == [1, 2, 2, 2]
    assert status_view(Story("goal").loop, "")["wave"] is None


def test_green_attempts_are_counted_from_one_each_time_green_is_entered_anew() -> None:
    story = Story("execute", tasks=[{"id": "T1"}])
    seen = []
    for phase in ("red", "green", "green", "green", "refactor", "red", "green"):
        task = story.task("T1", "running", phase=phase).tasks["T1"]
        assert task.phase == phase
        seen.append(task.attempts)
    assert seen == [0, 1, 2, 3, 3, 3, 1]


def test_tdd_phase_needs_running_task() -> None:
    story = Story("execute", tasks=[{"id": "T1"}])
    story.task("T1", "running")
    story.refused("task", task="T1", status="complete", phase="green")


def test_gaps_open_close_and_reopen_under_one_id() -> None:
    story = Story("verify")
    story.gap("G1", kind="missing", file="a.py", description="no login", evidence="404")
    story.gap("G2")
    assert story.gap("G1", "closed").status == "fixing"
    assert story.gap("G2", "closed").status == "running"
    assert "reopen G1" in story.refused("gap", gap="G1", action="found").hint
    story.refused("gap", gap="G1", action="closed")
    assert story.gap("G1", "reopened", evidence="500").status == "fixing"
    story.refused("gap", gap="G1", action="reopened")
    gap = story.loop.gaps["G1"]
    assert (gap.reopened, gap.evidence, gap.description) == (1, "500", "no login")
    for action in ("closed", "reopened"):
        assert "G9" in story.refused("gap", gap="G9", action=action).message


def test_gap_without_auto_loop_pauses_with_report() -> None:
    story = Story("verify", auto_loop=False)
    assert story.gap("G1").status == "paused"
    assert (story.loop.pause_code, "G1" in story.loop.pause_reason) == ("manual", True)
    story("resume")
    assert story.gap("G1", "closed").status == "running"
    assert story.gap("G1", "reopened").status == "paused"


def test_note_is_delivered_once() -> None:
    story = Story("goal")
    story("note", text="first")
    story("note", text="old wisdom", kind="recall")
    story("note", text="second", kind="steer")
    numbers = list(story.loop.notes)
    assert [note.text for note in undelivered_notes(story.loop)] == ["first", "second"]
    assert story.loop.recalled == ["old wisdom"]
    story("iteration", delivered=numbers[:1], _by="hook")
    assert [note.text for note in undelivered_notes(story.loop)] == ["second"]
    story("iteration", delivered=numbers, _by="hook")
    assert not story.loop.notes


def test_stages_follow_each_other_without_skipping_and_may_go_back() -> None:
    stages = ("intent", "shape", "decompose", "executing", "review", "complete")
    story = Story("goal")
    for number, stage in enumerate(stages):
        for later in stages[number + 1 :]:
            assert stage in story.refused("stage", stage=later).hint
        assert story("stage", stage=stage).stage == stage
    assert story("stage", stage="shape").stage == "shape"
    story.refused("stage", stage="executing")


def test_reviews_are_kept_by_wave_and_thorough_verdict() -> None:
    story = Story("goal")
    story("review", action="light", wave=2, score=8, issues=1, blockers=0)
    assert story.loop.reviews["wave_2"].facts() == {"score": 8, "issues": 1, "blockers": 0}
    story("review", action="begun")
    assert story.loop.reviews["thorough"].passed is False
    story.refused("review", action="passed", blockers=1)
    assert story("review", action="failed", blockers=2).status == "fixing"
    assert story.loop.reviews["thorough"].facts() == {"passed": False, "blockers_remaining": 2}
    story("review", action="begun")
    story("review", action="passed", score=9)
    thorough = {"passed": True, "blockers_remaining": 0, "score": 9}
    assert story.loop.reviews["thorough"].facts() == thorough


def test_facts_are_kept_where_they_belong() -> None:
    story = Story("goal", plan={"file": "PLAN.md", "digest": "1"})
    story("score", spec_score=80, fit_score=7, shape="tool")
    story("plan", digest="2", changed=True)
    story("mode", mode="interactive")
    story("issue", text="smell", severity="WARNING")
    story("stop", code="background", reason="a subagent runs")
    story("checkpoint", name="before", commit="abc")
    loop = story.loop
    assert (loop.spec_score, loop.fit_score, loop.shape) == (80, 7, "tool")
    assert (loop.plan.file, loop.plan.digest, loop.plan.changed) == ("PLAN.md", "2", True)
    assert loop.mode == "interactive"
    assert loop.issues[0].text == "smell"
    assert loop.last_stop.code == "background"
    assert loop.checkpoints == {"before": "abc"}


def test_cents_add_up() -> None:
    story = Story("goal")
    for _ in range(100):
        story("spend", usd=0.1, tokens=7)
    assert (story.loop.spent_usd, story.loop.spent_tokens) == (10, 700)


def test_history_has_one_entry_per_status_change() -> None:
    story = in_status("retrying")
    story("iteration")
    story.task("T1", "running")
    story("pause", code="manual")
    moves = [("idle", "running"), ("running", "retrying"), ("retrying", "running")]
    lines = status_view(story.loop, "")["history"]
    assert len(lines) == 4
    for line, (source, dest) in zip(lines, [*moves, ("running", "paused")], strict=True):
        assert source in str(line)
        assert dest in str(line)


def test_history_is_bounded() -> None:
    story = Story("goal")
    for _ in range(300):
        story("pause", code="manual")
        story("resume")
    assert len(story.loop.history) == 200


def test_start_with_duplicate_names_is_refused() -> None:
    story = Story()
    start = PAYLOADS["start"]
    story.refused("start", **start, tasks=[{"id": "A"}, {"id": "A"}])
    story.refused("start", **start, criteria=[{"name": "A"}, {"name": "A"}])
    assert story.loops.by_id == {}


def test_start_limits_override_defaults() -> None:
    story = Story("goal", limits={"stuck_limit": 9})
    assert story.loop.limits.stuck_limit == 9
    assert story.loop.limits.max_iterations == 20
    assert story.loop.limits.max_retries == 3


@pytest.mark.parametrize("seed", range(20))
def test_fold_does_not_change_events(seed: int) -> None:
    _, events = run_random_story(Random(seed), 150)
    before = dumps(events)
    loops = Loops()
    for event in events:
        loops.apply(event)
    assert dumps(events) == before


def test_reopened_gap_without_plan_leaves_task_of_same_name() -> None:
    story = Story("execute", tasks=[{"id": "T1"}])
    story("task", task="T1", status="running")
    story("task", task="T1", status="complete")
    for action in ("found", "closed", "reopened", "closed"):
        story("gap", action=action, gap="T1", kind="stub", description="d")
    story("complete")
    assert story.loop.status == "completed"


# rules


def _paused_by_iterations() -> Story:
    story = Story("goal", limits={"max_iterations": 1})
    story("iteration", _by="hook")
    story("pause", code="iterations", _by="hook")
    return story


def _waiting() -> Story:
    story = Story("goal")
    story("wait", for_="human", question="Which?", _by="hook")
    return story


def _owned_by_sessions(*sessions: str) -> Story:
    """Return a story with a loop for each session: lp-1 for the first one."""
    story = Story()
    for number, session in enumerate(sessions, 1):
        story("start", **PAYLOADS["start"], _loop=f"lp-{number}", _session=session)
    return story


def _with_closed_gap() -> Story:
    story = Story("verify")
    story.gap("G1")
    story.gap("G1", "closed")
    return story


def _unclear() -> Story:
    story = Story("goal", tasks=[{"id": "T1"}])
    story("score", spec_score=2, shape="blocked", _by="agent")
    return story


def _reviewing() -> Story:
    story = Story("goal")
    story("review", action="begun")
    return story


def _with_skipped_task() -> Story:
    story = Story("execute", tasks=[{"id": "T1"}, {"id": "T2"}])
    story.task("T1", "skipped")
    return story


_DEPENDENT = [{"id": "T1"}, {"id": "T2", "depends": ["T1"]}]
_START = PAYLOADS["start"]
# rule -> a story, and an event that the rule refuses in it
REFUSED_BY_RULE: dict[str, tuple[Story, str, dict[str, Any]]] = {
    "require_free_session": (
        _owned_by_sessions("s-1"), "start", {**_START, "_loop": "lp-9", "_session": "s-1"},
    ),
    "require_unique_names": (Story(), "start", {**_START, "tasks": [{"id": "A"}, {"id": "A"}]}),
    "require_startable_tasks": (
        Story(), "start", {**_START, "tasks": [{"id": "A", "depends": ["A"]}]},
    ),
    "require_unproven_start": (
        Story(), "start", {**_START, "criteria": [{"name": "A", "check": "make", "met": True}]},
    ),
    "require_failed_tasks": (Story("execute", tasks=[{"id": "T1"}]), "resume", {"retry": ["T1"]}),
    "require_limits_left": (_paused_by_iterations(), "resume", {}),
    "require_conditions": (Story("execute", tasks=[{"id": "T1"}]), "complete", {}),
    "require_human": (_waiting(), "answer", {"text": "This.", "_by": "agent"}),
    "require_binding": (
        _owned_by_sessions("s-1", "s-2"), "session", {"action": "bind", "_session": "s-2"},
    ),
    "require_task_move": (
        Story("execute", tasks=[{"id": "T1"}]), "task", {"task": "T1", "status": "complete"},
    ),
    "require_no_cycle": (
        Story("goal", tasks=_DEPENDENT), "task",
        {"task": "T1", "status": "pending", "depends": ["T2"]},
    ),
    "require_clear_goal": (_unclear(), "task", {"task": "T1", "status": "running"}),
    "require_dependencies": (
        Story("execute", tasks=_DEPENDENT), "task", {"task": "T2", "status": "running"},
    ),
    "require_unfinished": (
        _with_skipped_task(), "failure", {"task": "T1", "error": "e", "class": "logic"},
    ),
    "require_gap_move": (_with_closed_gap(), "gap", {"action": "closed", "gap": "G1"}),
    "require_passing_check": (
        Story("goal", criteria=[{"name": "A", "check": "make"}]), "criterion",
        {"criterion": "A", "met": True},
    ),
    "require_criteria_met": (Story("goal", criteria=[{"name": "A"}]), "exit", {}),
    "require_no_blockers": (_reviewing(), "review", {"action": "passed", "blockers": 1}),
    "require_next_stage": (Story("goal"), "stage", {"stage": "review"}),
    "require_human_for_looser_shape": (_unclear(), "score", {"shape": "tool", "_by": "agent"}),
    "require_room": (Story("goal"), "plan", {"must_not": [f"N{n}" for n in range(MOST_MUST_NOTS + 1)]}),
}  # fmt: skip


def _refuses(rule: Any, loops: Loops, event: dict[str, Any]) -> bool:
    loop = loops.by_id.get(event["loop"]) or Loop(event["loop"])
    try:
        rule(loop, event, loops)
    except Refused:
        return True
    return False


def test_refused_events_cover_every_rule() -> None:
    declared = {rule.__name__ for trigger in TRIGGERS.values() for rule in trigger.rules}
    assert set(REFUSED_BY_RULE) == declared


@pytest.mark.parametrize("rule", REFUSED_BY_RULE)
def test_append_refuses_what_a_rule_refuses(rule: str) -> None:
    story, kind, words = REFUSED_BY_RULE[rule]
    event = story.event(kind, **words)
    rules = TRIGGERS[trigger_of(event)].rules
    assert rule in [it.__name__ for it in rules if _refuses(it, story.loops, event)]
    story.refused(kind, **words)


@pytest.mark.parametrize("rule", REFUSED_BY_RULE)
def test_fold_accepts_what_a_rule_would_refuse(rule: str) -> None:
    story, kind, words = deepcopy(REFUSED_BY_RULE[rule])
    seq = story.loops.seq
    event = story.event(kind, **words)
    assert findings_of(story.loops, event)
    story.loops.apply(event)
    assert story.loops.seq == seq + 1
    assert story.loops.by_id[event["loop"]].last_seq == seq + 1


def test_fold_refuses_unknown_task_gap_or_criterion() -> None:
    story = Story("execute", tasks=[{"id": "T1"}])
    story.obeys_rules = False
    story.refused("task", task="T9", status="running")
    story.refused("gap", gap="G9", action="closed")
    story.refused("criterion", criterion="C", met=True)


def test_loops_know_ids_dropped_in_snapshot_and_later() -> None:
    for known in (b"", b"lp-a", b"lp-a lp-b lp-c"):
        story = Story()
        story.loops.restore({}, known)
        for name in ("lp-a", "lp-b", "lp-c")[len(known.split()) :]:
            story("start", kind="goal", mode="yolo", limits={}, _loop=name)
            story("cancel", _loop=name)
        story("start", kind="goal", mode="yolo", limits={}, _loop="lp-z")
        story("cancel", _loop="lp-z")
        assert story.loops.ended_ids() == b"lp-a lp-b lp-c"
        assert all(story.loops.has_dropped(name) for name in ("lp-a", "lp-b", "lp-c"))
        assert not any(story.loops.has_dropped(name) for name in ("", "lp-d", "lp-a lp-b", "lp-z"))
        assert story.loops.ended_ids() == b"lp-a lp-b lp-c"
