"""A phase is marked complete in its roadmap, and nothing else is touched."""

from __future__ import annotations

import pytest

from gsd_fsm.core.errors import UsageError
from gsd_fsm.phase.roadmap import completed, later_phases, roadmap_warning
from tests.support.finished_phase import Phase


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- [ ] Complete", "- [x] Complete"),
        ("  * [ ] **Complete**  ", "  * [x] **Complete**  "),
        ("- [ ] Not started", "- [x] Complete"),
        ("- [ ] In progress", "- [x] Complete"),
        ("**Status:** PLANNED", "**Status:** COMPLETE"),
        ("**Status:** DISCUSSED  ", "**Status:** COMPLETE  "),
        ("- **Status**: in progress (2/5)", "- **Status**: COMPLETE"),
        ("Status: pending", "Status: COMPLETE"),
        ("**Status:**", "**Status:** COMPLETE"),
        ("**Status:** Completely broken", "**Status:** COMPLETE"),
    ],
)
def test_a_mark_in_the_section_is_set(before: str, after: str) -> None:
    frame = (
        "# Roadmap\n\n### Phase 1: Title\n**Goal:** x\n\n{}\n\n### Phase 2: Next\n- [ ] Complete\n"
    )
    assert completed(frame.format(before), 1) == frame.format(after)
    assert completed(frame.format(after), 1) == frame.format(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("## Phase 1: Core [PLANNED]", "## Phase 1: Core [COMPLETE]"),
        ("## Phase 1: Core [IN PROGRESS - Task 3/5]", "## Phase 1: Core [COMPLETE]"),
        ("## **Phase 1: Core [pending]** ##", "## **Phase 1: Core [COMPLETE]** ##"),
        ("# Phase 1 [Not started]", "# Phase 1 [COMPLETE]"),
    ],
)
def test_a_state_in_the_heading_is_set(before: str, after: str) -> None:
    frame = "{}\n\n**Goal:** x\n\n## Phase 2: Next [PENDING]\n"
    assert completed(frame.format(before), 1) == frame.format(after)
    assert completed(frame.format(after), 1) == frame.format(after)


@pytest.mark.parametrize(
    "text",
    [
        "## Phase 1: Core Logging Infrastructure [COMPLETE]\n\n**Goal:** x\n",
        "## Phase 1: Core [DONE ✅]\n",
        "## Phase 1: Core\n**Status:** ✅ Complete (2026-01-02)\n",
        "## Phase 1: Core\n**Status:** Done\n",
        "## Phase 1: Core\n- [X] Complete\n",
    ],
)
def test_what_is_complete_already_stays_as_it_is(text: str) -> None:
    assert completed(text, 1) == text


def test_without_any_mark_one_is_put_right_under_the_heading() -> None:
    assert completed("### Phase 1: Fix Paths\n**Goal:** x\n", 1) == (
        "### Phase 1: Fix Paths\n- [x] Complete\n\n**Goal:** x\n"
    )
    assert completed("## Phase 1: MVP [MVP]\n\ntext\n", 1) == (
        "## Phase 1: MVP [MVP]\n- [x] Complete\n\ntext\n"
    )
    assert completed("## Phase 1\n- one\n- [ ] Complete the manual\n", 1) == (
        "## Phase 1\n- [x] Complete\n- one\n- [ ] Complete the manual\n"
    )
    assert completed("## Phase 1\n- [x] Not started\n", 1) == (
        "## Phase 1\n- [x] Complete\n- [x] Not started\n"
    )
    assert completed("a\r\n## Phase 1", 1) == "a\r\n## Phase 1\r\n- [x] Complete"


def test_line_ends_are_those_of_the_heading() -> None:
    assert completed("## Phase 1: A\r\nGoal\r\n", 1) == (
        "## Phase 1: A\r\n- [x] Complete\r\n\r\nGoal\r\n"
    )
    assert completed("## Phase 1: A\r\n**Status:** PLANNED\r\n", 1) == (
        "## Phase 1: A\r\n**Status:** COMPLETE\r\n"
    )


@pytest.mark.parametrize(
    "heading",
    [
        *("# Phase 1", "###### Phase 1", "## Phase 01: A", "## phase 1 - A", "## Phase 1. A"),
        *("## **Phase 1**: A", "## __Phase 1__", "   ## Phase 1 (A)", "## ✅ Phase 1: A"),
        *("## Phase 1: 2 tools", "## Phase 1 — 3 tools to go", "## Phase 1 ##", "##\tPhase 1"),
    ],
)
def test_a_heading_of_the_phase_is_known(heading: str) -> None:
    assert completed(f"{heading}\n", 1) == f"{heading}\n- [x] Complete\n"


@pytest.mark.parametrize(
    "heading",
    [
        *("## Phase 10: A", "## Phase 1.5: A", "## Phase 1a: A", "## Phases 1", "## Phase", "##"),
        *("## Phase 1-3: A", "## Phase 1 & 2: A", "## Phase 1, 2", "## Phase 1 notes", "Phase 1"),
        *("##Phase 1", "    ## Phase 1", "## The Phase 1: A", "## Phase 11", "## Phase 1.5x9"),
        *("- [ ] **Phase 1: A**", "####### Phase 1", "## Phase one"),
    ],
)
def test_another_heading_is_not_taken_for_it(heading: str) -> None:
    assert completed(f"{heading}\n", 1) is None


def test_phases_may_have_other_names_than_numbers() -> None:
    assert completed("## Phase 1.5: A\n", "1.5") == "## Phase 1.5: A\n- [x] Complete\n"
    assert completed("## Phase 2b: A\n", "2B") == "## Phase 2b: A\n- [x] Complete\n"
    assert completed("## Phase Auth: A\n", "auth") == "## Phase Auth: A\n- [x] Complete\n"
    assert completed("## Phase 1: A\n", "01") == "## Phase 1: A\n- [x] Complete\n"


@pytest.mark.parametrize(
    "hidden",
    [
        "```md\n## Phase 1: A\n- [ ] Complete\n```\n",
        "~~~\n```\n## Phase 1: A\n~~~\n",
        "````\n```\n## Phase 1: A\n````\n",
        "<!--\nhow:\n## Phase 1: A\n-->\n",
        "<!-- one --> x\n```\n## Phase 1\n",
    ],
)
def test_an_example_in_code_or_in_a_comment_is_no_heading(hidden: str) -> None:
    assert completed(hidden, 1) is None
    closed = hidden if hidden.endswith(("```\n", "~~~\n", "````\n", "-->\n")) else hidden + "```\n"
    assert completed(closed + "## Phase 1\n", 1) == closed + "## Phase 1\n- [x] Complete\n"


def test_marks_in_code_and_in_other_sections_are_not_those_of_the_phase() -> None:
    text = (
        "## Phase 1: A\n\n```\n- [ ] Complete\n```\n### Phase 1.1: B\n- [ ] Complete\n"
        "## Other\n**Status:** PLANNED\n"
    )
    assert completed(text, 1) == text.replace("A\n", "A\n- [x] Complete\n", 1)


def test_of_several_headings_the_one_with_the_title_is_meant_else_the_first() -> None:
    text = "# v1\n## Phase 1: Old\n- [ ] Complete\n# v2\n## Phase 1: New\n- [ ] Complete\n"
    new = text.replace("New\n- [ ]", "New\n- [x]")
    assert completed(text, 1, "new") == new
    assert completed(new, 1, "new") == new
    assert completed(text, 1, "Unknown") == text.replace("Old\n- [ ]", "Old\n- [x]")


def test_later_phases_are_told_in_order_and_once() -> None:
    text = "## Phase 1: A\n## Phase 3\n## Phase 02\n### Phase 3: again\n## Phase auth\n"
    assert later_phases(text, 1) == [3, 2]
    assert later_phases(text, "01") == [3, 2]
    assert later_phases(text, "auth") == []


def test_a_roadmap_without_the_phase_is_an_error_and_changes_nothing(phase: Phase) -> None:
    phase.roadmap.write_text("# Roadmap\n\n## Phase 2: Later\n")
    before = phase.everything()
    with pytest.raises(UsageError, match=r"roadmap\.md has no heading for phase 1") as error:
        phase.changes()
    assert "### Phase 1: Loop Mechanism" in error.value.hint
    assert phase.everything() == before


def test_the_warning_at_the_start_tells_what_would_stand_in_the_way(phase: Phase) -> None:
    assert roadmap_warning(phase.root, 1) is None
    phase.roadmap.write_text("## Phase 1: A\n")
    assert roadmap_warning(phase.root, 1) is None
    assert "no heading for phase 7" in (roadmap_warning(phase.root, 7) or "")
    phase.roadmap.write_bytes(b"\0")
    assert "not a text" in (roadmap_warning(phase.root, 1) or "")


def test_of_two_roadmaps_those_that_name_the_phase_are_changed(phase: Phase) -> None:
    large = phase.planning / "ROADMAP.md"
    phase.roadmap.write_text("## Phase 2: B\n")
    large.write_text("## Phase 1: A\n")
    assert phase.end() == ["summary.md", "ROADMAP.md"]
    phase.roadmap.write_text("## Phase 1: A\n")
    assert phase.end() == ["roadmap.md"]
    assert phase.roadmap.read_bytes() == large.read_bytes() == b"## Phase 1: A\n- [x] Complete\n"


def test_a_link_between_the_two_names_is_followed_and_stays(phase: Phase) -> None:
    large = phase.root / "ROADMAP.md"
    large.write_text("## Phase 1: A\n")
    phase.roadmap.symlink_to(large)
    (phase.planning / "ROADMAP.md").symlink_to("roadmap.md")
    assert [change.path for change in phase.changes()][1:] == [large.resolve()]
    phase.end()
    assert phase.roadmap.is_symlink()
    assert large.read_text() == "## Phase 1: A\n- [x] Complete\n"
