"""The fold: seq and version of events, concurrent loops, history, and rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.errors import Newer, Refused
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.fold import TRIGGERS, Loops, findings_of, trigger_of
from gsd_fsm.core.loop.limits import MOST_MUST_NOTS
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.status import status_view
from tests.support.events import append, draft, new_journal, start_draft
from tests.support.story import PAYLOADS, Story, error_of, frozen, in_status


@pytest.mark.parametrize(
    "wrong",
    [{"seq": seq} for seq in (0, 2, 4, "3", None, 3.0, True)]
    + [{"v": version} for version in (3, 0, None, "1", True, 1.0)],
    ids=str,
)
def test_event_with_wrong_seq_or_version_is_refused(wrong: dict[str, Any]) -> None:
    story = in_status("running")
    before = frozen(story.loops)
    with pytest.raises(Newer if "v" in wrong else ValueError):
        story.loops.apply({**story.event("iteration"), **wrong})
    assert frozen(story.loops) == before


def test_only_first_event_is_journal_and_one_with_unknown_features_is_newer() -> None:
    loops, event = Loops(), Story().event("journal", id="j", incompat=["zstd"], _loop=None)
    with pytest.raises(Newer, match="zstd"):
        loops.apply({**event, "seq": 1})
    assert loops.seq == 0
    with pytest.raises(ValueError):
        loops.apply({**Story().event("start", **PAYLOADS["start"]), "seq": 1})
    assert "first" in in_status("running").invalid("journal", id="j", _loop=None)


@pytest.mark.parametrize(
    ("loop", "accepted"),
    [(None, True), ("lp-1", True), ("lp-9", True), ("", False), ("../x", False), (7, False)],
)
def test_unknown_event_type_is_ignored_only_if_optional(loop: object, accepted: bool) -> None:
    story = in_status("running")
    assert "telepathy" in story.invalid("telepathy")
    loops, event = dict(story.loops.by_id), {**story.event("telepathy"), "optional": True}
    assert (error_of(story.loops.apply, {**event, "loop": loop}) == "") == accepted
    assert story.loops.seq == 2 + accepted
    assert (story.loops.by_id, story.status) == (loops, "running")


def test_history_has_one_entry_per_status_change_and_is_bounded() -> None:
    story = in_status("retrying")
    story("iteration")
    story.task("T1", "running")
    story("pause", code="manual")
    lines = [str(line) for line in status_view(story.loop, "")["history"]]
    assert len(lines) == 4
    moves = pairwise(("idle", "running", "retrying", "running", "paused"))
    assert all(a in line and b in line for line, (a, b) in zip(lines, moves, strict=True))
    for _ in range(300):
        story("resume")
        story("pause", code="manual")
    assert len(story.loop.history) == 200


# rules

START = PAYLOADS["start"]
ONE = [{"id": "T1"}]
CHECKED = [{"name": "A", "check": "make"}]
MET = [{**CHECKED[0], "met": True}]
SELF = [{"id": "T1", "depends": ["T1"]}]
CYCLE = {"task": "T1", "status": "pending", "depends": ["T2"]}
STORIES: dict[str, Callable[[], Story]] = {
    "new": Story,
    "goal": partial(Story, "goal"),
    "execute": partial(Story, "execute", tasks=ONE),
    "criterion": partial(Story, "goal", criteria=[{"name": "A"}]),
    "checked": partial(Story, "goal", criteria=CHECKED),
    "clean": partial(Story, "goal", criteria=[{"name": "A", "met": True}], rules={"clean": True}),
    "dependent": partial(Story, "execute", tasks=[*ONE, {"id": "T2", "depends": ["T1"]}]),
    "sessions": lambda: Story().then(
        ("start", {**START, "_session": "s-1"}),
        ("start", {**START, "_session": "s-2", "_loop": "lp-2"}),
    ),
    "out of iterations": lambda: Story("goal", limits={"max_iterations": 1}).then(
        ("iteration", {"_by": "hook"}), ("pause", {"code": "iterations", "_by": "hook"})
    ),
    "waiting": lambda: in_status("waiting"),
    "two questions": lambda: Story("execute", tasks=ONE).then(("wait", {
        "for": "human",
        "questions": [{"id": name, "about": name, "question": "?"} for name in ("Q1", "Q2")],
    })),
    "proving": lambda: Story("execute", rules={}, tasks=[{"id": "T1", "checks": 1}]).then(
        ("task", {"task": "T1", "status": "running"})
    ),
    "judged": lambda: Story("verify", rules={}).then(
        ("gap", {"gap": "G1", "action": "found"}),
        ("task", {"task": "G1", "status": "running", "ref": "a-1"}),
        ("gap", {"gap": "G1", "action": "closed"}),
        ("verified", {"passed": True, "verdicts": [{"id": "G1", "kind": "gap"}]}),
    ),
    "reviewing": lambda: in_status("reviewing"),
    "closed gap": lambda: Story("verify").then(
        *[("gap", {"gap": "G1", "action": action}) for action in ("found", "closed")]
    ),
    "unclear": lambda: Story("goal", tasks=ONE).then(
        ("score", {"spec_score": 2, "shape": "blocked"})
    ),
    "skipped": lambda: Story("execute", tasks=ONE).then(
        ("task", {"task": "T1", "status": "skipped"})
    ),
}  # fmt: skip
# a rule, a story, and an event that the rule refuses in it
REFUSED_BY_RULE: list[tuple[str, str, str, dict[str, Any]]] = [
    ("require_free_session", "sessions", "start", {**START, "_loop": "lp-9", "_session": "s-1"}),
    ("require_unique_names", "new", "start", {**START, "tasks": ONE * 2}),
    ("require_unique_names", "new", "start", {**START, "criteria": CHECKED * 2}),
    ("require_startable_tasks", "new", "start", {**START, "tasks": SELF}),
    ("require_unproven_start", "new", "start", {**START, "criteria": MET}),
    ("require_unproven_start", "new", "start",
     {**START, "kind": "goal", "criteria": [{"name": "a"}], "carried": {"exit_signal": True}}),
    ("require_failed_tasks", "execute", "resume", {"retry": ["T1"]}),
    ("require_limits_left", "out of iterations", "resume", {}),
    ("require_conditions", "execute", "complete", {}),
    ("require_human", "waiting", "answer", {"text": "This.", "_by": "agent"}),
    ("require_known_question", "two questions", "answer", {"text": "yes"}),
    ("require_known_question", "two questions", "answer", {"text": "yes", "question": "Q3"}),
    ("require_proof", "proving", "task", {"task": "T1", "status": "complete"}),
    ("require_reviewer", "judged", "verified", {"passed": True, "verdict": "G1", "agent": "a-1"}),
    ("require_binding", "sessions", "session", {"action": "bind", "_session": "s-2"}),
    ("require_task_move", "execute", "task", {"task": "T1", "status": "complete"}),
    ("require_no_cycle", "dependent", "task", CYCLE),
    ("require_clear_goal", "unclear", "task", {"task": "T1", "status": "running"}),
    ("require_dependencies", "dependent", "task", {"task": "T2", "status": "running"}),
    ("require_unfinished", "skipped", "failure", {"task": "T1", "error": "e", "class": "logic"}),
    ("require_gap_move", "closed gap", "gap", {"action": "closed", "gap": "G1"}),
    ("require_passing_check", "checked", "criterion", {"criterion": "A", "met": True}),
    ("require_criteria_met", "criterion", "exit", {}),
    ("require_no_blockers", "reviewing", "review", {"action": "passed", "blockers": 1}),
    ("require_next_stage", "goal", "stage", {"stage": "review"}),
    ("require_human_for_looser_shape", "unclear", "score", {"shape": "tool", "_by": "agent"}),
    ("require_clean_room", "clean", "complete", {}),
    ("require_human_to_accept", "goal", "plan", {"accepted": [{"path": "a"}], "_by": "agent"}),
    ("require_room", "goal", "plan", {"must_not": [f"N{n}" for n in range(MOST_MUST_NOTS + 1)]}),
]  # fmt: skip


def test_refused_events_cover_every_rule() -> None:
    declared = {rule.__name__ for trigger in TRIGGERS.values() for rule in trigger.rules}
    assert {rule for rule, *_ in REFUSED_BY_RULE} == declared


@pytest.mark.parametrize(("rule", "story", "kind", "words"), REFUSED_BY_RULE)
def test_append_refuses_what_a_rule_refuses_and_fold_accepts_it(
    rule: str, story: str, kind: str, words: dict[str, Any]
) -> None:
    written = STORIES[story]()
    event = written.event(kind, **words)
    loop = written.loops.by_id.get(event["loop"]) or Loop(event["loop"])
    (check,) = [it for it in TRIGGERS[trigger_of(event)].rules if it.__name__ == rule]
    with pytest.raises(Refused):
        check(loop, event, written.loops)
    written.refused(kind, **words)
    assert findings_of(written.loops, event)
    written.loops.apply(event)
    assert written.loops.by_id[event["loop"]].last_seq == written.loops.seq == event["seq"]


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
        for name in ("lp-a", "lp-b", "lp-c", "lp-z")[len(known.split()) :]:
            story.then(("start", {**START, "_loop": name}), ("cancel", {"_loop": name}))
        assert story.loops.ended_ids() == b"lp-a lp-b lp-c"
        assert all(story.loops.has_dropped(name) for name in ("lp-a", "lp-b", "lp-c"))
        assert not any(story.loops.has_dropped(name) for name in ("", "lp-d", "lp-a lp-b", "lp-z"))
        assert story.loops.ended_ids() == b"lp-a lp-b lp-c"


def test_id_of_ended_loop_is_never_reused(tmp_path: Path) -> None:
    journal = new_journal(tmp_path / "p" / ".gsd")
    for loop in ("lp-1", "lp-2"):  # of the ended loops only the last is held in memory
        append(journal, start_draft(loop), draft("cancel", loop, "human", {}))
    assert list(journal.loops.by_id) == ["lp-2"]
    for loop in ("lp-1", "lp-2"):
        with pytest.raises(Refused, match=r"already exists|cannot run 'start'"):
            append(journal, start_draft(loop))
    assert Journal(journal.path).read().seq == 5
