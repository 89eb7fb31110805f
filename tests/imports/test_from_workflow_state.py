from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.core.loop.events.goals import STAGES
from gsd_fsm.core.views.loop_json import workflow_state
from tests.support.foreign_files import WORKFLOW, loop_of, read, refused


def test_workflow_state_is_imported_with_all_members() -> None:
    old = read(WORKFLOW)
    loop = loop_of(old)
    assert (old.format, loop.kind) == ("workflow-state", "goal")
    assert workflow_state(loop) == WORKFLOW
    assert "in the client's task list" in old.notes[0]
    assert f"gsd-fsm stage {WORKFLOW['stage']} --shape-file FILE" in old.notes[1]


def test_stages_up_to_the_current_one_are_entered_before_the_score() -> None:
    for number, stage in enumerate(STAGES[:-1], 1):
        old = read({**WORKFLOW, "stage": stage, "spec_score": 2, "shape_chosen": "blocked"})
        types = [kind for kind, _ in old.later]
        assert types.index("score") == types.count("stage") == number
        assert loop_of(old).stage == stage


def test_thorough_review_is_imported_as_begun_failed_or_passed() -> None:
    for passed, blockers, status in (
        (False, None, "reviewing"),
        (False, 0, "fixing"),
        (True, 0, "running"),
    ):
        review = {"passed": passed, "blockers_remaining": blockers, "score": 4.5}
        loop = loop_of(read({**WORKFLOW, "reviews": {"thorough": review}}))
        assert (loop.status, loop.reviews["thorough"].facts()) == (status, review)


def test_workflow_members_that_are_null_are_not_set() -> None:
    first = {"version": 1, "stage": "intent", "task": "t", "spec_score": None, "reviews": {}}
    old = read(first)
    loop = loop_of(old)
    assert [kind for kind, _ in old.later] == ["stage"]
    assert (loop.stage, loop.spec_score, loop.shape, loop.reviews) == ("intent", None, None, {})


def test_notes_name_recalled_texts_and_reviews_that_are_not_imported() -> None:
    texts = [f"lesson {number}" for number in range(60)]
    reviews = {"wave_15": {"score": 8, "by": "panel"}, "design": {"score": 1}, "wave_01": {}}
    old = read({**WORKFLOW, "recall_surfaced": texts, "reviews": reviews})
    assert loop_of(old).recalled == texts[10:]
    assert "recall_surfaced: the first 10 texts are not imported." in old.notes
    assert {name: it.facts() for name, it in loop_of(old).reviews.items()} == {
        "wave_15": {"score": 8}
    }
    assert "Not imported: reviews.wave_15.by, reviews.design, reviews.wave_01." in old.notes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stage": "complete"}, "FILE: nothing to import: its stage is complete"),
        ({"version": True}, "version must be 1, not "),
        ({"stage": "coding"}, "stage must be one of intent, shape, decompose"),
        *(({name: None}, f"{name} is missing") for name in ("stage", "task")),
        ({"task": {}}, "task must be a text, not an object"),
        ({"spec_score": 11}, "spec_score must be a whole number from 0 to 10, not 11"),
        ({"fit_score": -5}, "fit_score must be a whole number from 0 to 100, not -5"),
        ({"shape_chosen": "round"}, "shape_chosen must be one of tool, tool-review, colleague"),
        *(({name: 17}, f"{name} must be a time such as") for name in ("started_at", "last_updated")),
        ({"recall_surfaced": [None]}, "recall_surfaced must be a list of strings"),
        ({"reviews": []}, "reviews must be an object, not a list"),
        ({"reviews": {"wave_1": 8}}, "reviews.wave_1 must be an object, not 8"),
        ({"reviews": {"wave_1": {"score": -1}}}, "reviews.wave_1.score must be a number"),
        ({"reviews": {"wave_1": {"issues": 0.5}}}, "reviews.wave_1.issues must be a whole"),
        ({"reviews": {"thorough": True}}, "reviews.thorough must be an object, not true"),
        ({"reviews": {"thorough": {"passed": "no"}}}, "reviews.thorough.passed must be true"),
        ({"reviews": {"thorough": {"passed": True, "blockers_remaining": 1}}},
         "reviews.thorough has passed, but blockers remain"),
    ],
)  # fmt: skip
def test_workflow_problem_is_reported_with_its_member(change: dict[str, Any], message: str) -> None:
    assert message in refused({**WORKFLOW, **change})
