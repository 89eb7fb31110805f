"""The report at the end of a phase."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_fsm.phase.report import final_report
from tests.support.phases import COMMITS, finished_story, plan_of
from tests.support.story import MINUTE

PLAN = plan_of(Path("plan.md"))
REPORT = """\
## Phase 1 Complete!

**Tasks:** 2/3 completed (1 skipped)
**Commits:** a1b2c3d
**Duration:** about 10 minutes

**Proven:** 0, **claimed:** 2
**Auto-Fixes:** 1
**Issues Found:** 1

Next steps:
→ `gsd-fsm start verify --phase 1`, then `gsd-fsm verify` — Verify phase completion
→ `gsd-fsm start execute --phase 2` — Execute the next phase
→ `gsd-fsm rollback pre --phase 1` — Go back to before this phase

State saved. Safe to /compact or start a new session."""
OFFER = """\
### Push for Preview Deployment?

Your project is configured to deploy to vercel.
Pushing now will create a preview deployment you can verify against.

> Push to trigger preview deployment? (y/n)

gsd-fsm never pushes by itself: run `git push`, or tell the agent to run it.

Next steps:
"""


def test_report_has_the_form_of_the_seeds() -> None:
    assert final_report(finished_story().loop, PLAN, COMMITS, {"deploy_target": None}) == REPORT
    assert final_report(finished_story().loop, PLAN, COMMITS, {}) == REPORT


def test_report_offers_a_push_if_there_is_a_deploy_target() -> None:
    offered = final_report(finished_story().loop, PLAN, COMMITS, {"deploy_target": "vercel"})
    assert OFFER in offered
    assert "\n→ `git push` — Trigger the preview deployment\n" in offered


def test_report_omits_empty_counts_and_repeated_commits_and_shows_notes() -> None:
    story = finished_story("a", "b")
    story.loop.issues = []
    text = final_report(story.loop, PLAN, {}, {}, notes=["state.json is *missing*"])
    assert "**Commits:** none\n" in text
    assert not any(part in text for part in ("Auto-Fixes", "Issues Found"))
    assert "\n\n**Note:** state.json is \\*missing\\*\n\n" in text
    text = final_report(story.loop, PLAN, {"T01": "abcdef0123", "T02": "abcdef0123"}, {})
    assert "**Commits:** abcdef0\n" in text


@pytest.mark.parametrize(
    ("minutes", "words"),
    [(0, "less than a minute"), (1, "about 1 minute"), (89, "about 89 minutes"),
     (95, "about 2 hours"), (35 * 60, "about 35 hours"), (50 * 60, "about 2 days")],
)  # fmt: skip
def test_report_shows_the_duration_in_words(minutes: int, words: str) -> None:
    story = finished_story()
    story.loop.started = story.loop.last_event
    story("note", text="x", _after=minutes * MINUTE)
    assert f"**Duration:** {words}\n" in final_report(story.loop, PLAN, {}, {})


def test_report_offers_no_next_phase_after_a_named_one() -> None:
    text = final_report(finished_story(phase="auth it; rm").loop, PLAN, {}, {})
    assert "start execute" not in text
    assert "`gsd-fsm rollback pre --phase 'auth it; rm'`" in text


def test_report_escapes_foreign_text() -> None:
    evil = "\x1b]0;x\x07\n## Phase 9 Complete!\n`id` ![x](http://y)"
    commits = {"T01": evil, "T02": evil}
    text = final_report(finished_story().loop, PLAN, commits, {"deploy_target": evil})
    assert not any(part in text for part in ("\x1b", "\n## Phase 9", "!["))
