"""The fold: seq and version of events, concurrent loops, history, and rules."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import Newer, Refused
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.fold import TRIGGERS, Loops, findings_of, trigger_of
from gsd_fsm.core.loop.limits import MOST_MUST_NOTS
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.status import status_view
from tests.support.chaos import run_random_story
from tests.support.events import append, draft, new_journal, start_draft
from tests.support.story import PAYLOADS, Story, frozen, in_status


@pytest.mark.parametrize("seq", [0, 2, 4, "3", None, 3.0, True])
def test_event_with_wrong_seq_is_refused(seq: object) -> None:
    loops = in_status("running").loops
    before = frozen(loops)
    story = Story(loops=Loops())
    event = {**story.event("iteration"), "seq": seq}
    with pytest.raises(ValueError):
        loops.apply(event)
    assert frozen(loops) == before


@pytest.mark.parametrize("version", [2, 0, None, "1", True, 1.0])
def test_event_of_later_version_is_refused_as_newer(version: object) -> None:
    story = in_status("running")
    before = frozen(story.loops)
    with pytest.raises((Newer, ValueError)):
        story.loops.apply({**story.event("iteration"), "v": version})
    assert frozen(story.loops) == before


def test_journal_with_unknown_features_is_refused_as_newer() -> None:
    loops = Loops()
    event = Story().event("journal", id="j", incompat=["zstd"], _loop=None)
    with pytest.raises(Newer, match="zstd"):
        loops.apply({**event, "seq": 1})
    assert loops.seq == 0


def test_only_first_event_is_journal() -> None:
    with pytest.raises(ValueError):
        Loops().apply({**Story().event("start", **PAYLOADS["start"]), "seq": 1})
    assert "first" in in_status("running").invalid("journal", id="j", _loop=None)


def test_unknown_event_type_is_ignored_only_if_optional() -> None:
    story = in_status("running")
    assert "telepathy" in story.invalid("telepathy")
    loop = frozen(story.loops)
    story.loops.apply({**story.event("telepathy"), "optional": True})
    assert frozen(story.loops) != loop
    assert story.status == "running"


def test_repairs_and_backward_clock_steps_are_counted() -> None:
    story = in_status("running")
    story("repair", bytes=3, _loop=None)
    story("iteration", _after=-5000)
    assert (story.loops.repairs, story.loops.backwards) == (1, 1)


def test_loops_live_side_by_side() -> None:
    story = Story("goal")
    story("start", **PAYLOADS["start"], _loop="lp-2", _session="s-2")
    story("pause", code="manual", _loop="lp-2")
    assert story.status == "running"
    assert story.loops.by_id["lp-2"].status == "paused"
    with pytest.raises(Refused, match="cannot run 'start'"):
        story("start", **PAYLOADS["start"], _loop="lp-2", _session="s-3")


@pytest.mark.parametrize("loop", [None, 7, "", "../x", [], {}, "lp-1", "lp-9"])
def test_optional_event_with_any_data_is_ignored_or_refused(loop: object) -> None:
    story = in_status("running")
    loops = dict(story.loops.by_id)
    try:
        story.loops.apply({**story.event("telepathy"), "optional": True, "loop": loop})
    except ValueError:
        assert story.loops.seq == 2
    assert story.loops.by_id == loops
    assert story.status == "running"


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


@pytest.mark.parametrize("seed", range(20))
def test_fold_does_not_change_events(seed: int) -> None:
    _, events = run_random_story(Random(seed), 150)
    before = dumps(events)
    loops = Loops()
    for event in events:
        loops.apply(event)
    assert dumps(events) == before


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


def test_id_of_ended_loop_is_never_reused(tmp_path: Path) -> None:
    journal = new_journal(tmp_path / "p" / ".gsd")
    for loop in ("lp-1", "lp-2"):  # of the ended loops only the last is held in memory
        cancel = draft("cancel", loop, "human", {})
        append(journal, start_draft(loop), cancel)
    assert list(journal.loops.by_id) == ["lp-2"]
    for loop in ("lp-1", "lp-2"):
        with pytest.raises(Refused, match=r"already exists|cannot run 'start'"):
            append(journal, start_draft(loop))
    assert Journal(journal.path).read().seq == 5
