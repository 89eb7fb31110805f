"""Notes, costs and other facts that leave the status unchanged."""

from __future__ import annotations

from gsd_fsm.core.loop.state import undelivered_notes
from gsd_fsm.core.loop.waves import current_wave
from tests.support.story import Story


def test_note_is_delivered_once() -> None:
    story = Story("goal")
    for text, more in (
        ("first", {}),
        ("lesson", {"kind": "recall"}),
        ("second", {"kind": "steer"}),
    ):
        story("note", text=text, **more)
    numbers = list(story.loop.notes)
    assert [note.text for note in undelivered_notes(story.loop)] == ["first", "second"]
    assert story.loop.recalled == ["lesson"]
    story("iteration", delivered=numbers[:1], _by="hook")
    assert [note.text for note in undelivered_notes(story.loop)] == ["second"]
    story("iteration", delivered=numbers, _by="hook")
    assert not story.loop.notes


def test_fact_events_set_their_fields_of_the_loop() -> None:
    story = Story("goal", plan={"file": "PLAN.md", "digest": "1"})
    story("score", spec_score=80, fit_score=7, shape="tool")
    story("plan", digest="2", changed=True)
    story("mode", mode="interactive")
    story("issue", text="smell", severity="WARNING")
    story("stop", code="background", reason="a subagent runs")
    loop = story("checkpoint", name="before", commit="abc")
    assert (loop.spec_score, loop.fit_score, loop.shape) == (80, 7, "tool")
    assert (loop.plan.file, loop.plan.digest, loop.plan.changed) == ("PLAN.md", "2", True)
    assert (loop.mode, loop.issues[0].text) == ("interactive", "smell")
    assert (loop.last_stop.code, loop.checkpoints) == ("background", {"before": "abc"})


def test_rollback_drops_later_checkpoints_and_any_other_keeps_them() -> None:
    story = Story("execute", tasks=[{"id": "T1"}])
    for name in ("pre", "T1", "T2"):
        story("checkpoint", name=name, commit="a", snapshot="b" + name, branch="main")
    loop = story("checkpoint", name="T1", commit="a")
    assert (list(loop.checkpoints), loop.snapshots) == (
        ["pre", "T2", "T1"],
        {"pre": "bpre", "T2": "bT2"},
    )
    loop = story("checkpoint", name="T2", commit="a", left="l", head="h", branch="b", reset=[])
    assert (list(loop.checkpoints), list(loop.snapshots)) == (["pre", "T2"], ["pre"])
    assert (loop.rollback.head, loop.rollback.kept, loop.branch) == ("h", "h", "b")
    loop = story("checkpoint", name="new", left="l", head="h", kept="k", reset=[])
    assert (list(loop.checkpoints), loop.rollback.kept) == (["pre", "T2", "new"], "k")


def test_costs_add_up_and_a_meter_counts_from_its_first_total_and_from_zero_after_a_reset() -> None:
    story = Story("goal")
    for _ in range(100):
        story("spend", usd=0.1, tokens=7)
    assert (story.loop.spent_usd, story.loop.spent_tokens) == (10, 700)
    for total in (5, 6.5, 1, 1.25):
        story("spend", meter="s", total_usd=total)
    assert story.loop.spent_usd == 12.75


def test_task_that_a_changed_plan_replaces_keeps_its_new_wave() -> None:
    story = Story("goal", tasks=[{"id": "T1"}, {"id": "T2", "depends": ["T1"]}])
    story("plan", tasks=[{"id": "T2", "wave": 5}])
    assert (current_wave(story.loop), story.loop.tasks["T2"].wave) == (1, 5)


def test_tasks_of_a_plan_continue_where_another_tool_left_them_only_if_carried() -> None:
    tasks = [{"id": "T02", "status": "reported", "commit": "abc", "phase": "refactor"},
             {"id": "T03", "status": "running", "ref": "r", "retries": 1}]  # fmt: skip
    for more, statuses in (({}, ["pending"] * 2), ({"carried": True}, ["reported", "running"])):
        story = Story("execute", tasks=[{"id": "T01"}], carried={})
        found = list(story("plan", tasks=tasks, **more).tasks.values())[1:]
        assert [task.status for task in found] == statuses
    facts = [(task.commit, task.phase, task.ref, task.retries, task.verdict) for task in found]
    assert facts == [("abc", "refactor", None, 0, "complete"), (None, None, "r", 1, None)]
    assert story.loop.plan.file == ""
