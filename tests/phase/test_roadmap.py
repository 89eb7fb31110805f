"""Mark a phase complete in the roadmap; all other bytes stay."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.markdown import split_lines
from gsd_fsm.phase.roadmap import MARK, completed, later_phases, named_texts, roadmap_warning
from gsd_fsm.plans.plan import Check, PlanFile
from tests.support.phases import FinishedPhase
from tests.support.prompts import a_plan, a_task

SECTION = "# Roadmap\n\n### Phase 1: Title\n**Goal:** x\n\n{}\n\n### Phase 2: B\n- [ ] Complete\n"
HEADING = "## {}\n\n**Goal:** x\n\n## Phase 2: Next [PENDING]\n"


@pytest.mark.parametrize(
    ("frame", "before", "after"),
    [
        (SECTION, "- [ ] Complete", "- [x] Complete"),
        (SECTION, "  * [ ] **Complete**  ", "  * [x] **Complete**  "),
        (SECTION, "- [ ] Not started", "- [x] Complete"),
        (SECTION, "**Status:** DISCUSSED  ", "**Status:** COMPLETE  "),
        (SECTION, "- **Status**: in progress (2/5)", "- **Status**: COMPLETE"),
        (SECTION, "Status: pending", "Status: COMPLETE"),
        (SECTION, "**Status:**", "**Status:** COMPLETE"),
        (SECTION, "**Status:** Completely broken", "**Status:** COMPLETE"),
        (HEADING, "Phase 1: Core [PLANNED]", "Phase 1: Core [COMPLETE]"),
        (HEADING, "Phase 1: Core [IN PROGRESS - Task 3/5]", "Phase 1: Core [COMPLETE]"),
        (HEADING, "**Phase 1: Core [pending]** ##", "**Phase 1: Core [COMPLETE]** ##"),
        (HEADING, "Phase 1: Core [DONE ✅]", "Phase 1: Core [DONE ✅]"),
        (SECTION, "**Status:** ✅ Complete (2026-01-02)", "**Status:** ✅ Complete (2026-01-02)"),
        (SECTION, "**Status:** Done", "**Status:** Done"),
        (SECTION, "- [X] Complete", "- [X] Complete"),
    ],
)
def test_completed_sets_the_mark_of_the_section_or_its_heading_once(frame, before, after) -> None:
    assert completed(frame.format(before), 1) == frame.format(after)
    assert completed(frame.format(after), 1) == frame.format(after)


@pytest.mark.parametrize(
    ("frame", "line", "check"),
    [
        (SECTION, "**Status:** PLANNED", 'content: ROADMAP.md contains "PLANNED"'),
        (SECTION, "Status: in progress", "content: .gsd/ROADMAP.md contains `in progress`"),
        (SECTION, "**Status:** PLANNED", "command: grep -q 'Status.*PLANNED' .gsd/ROADMAP.md"),
        (SECTION, "- [ ] Complete", 'content: ROADMAP.md contains "[ ] Complete"'),
        (HEADING, "Phase 1: Core [PLANNED]", 'content: ROADMAP.md contains "[PLANNED]"'),
    ],
)
def test_completed_keeps_a_line_that_a_check_of_the_plan_names(
    frame: str, line: str, check: str
) -> None:
    kind, _, words = check.partition(": ")
    command = words if kind == "command" else None
    named = named_texts(a_plan(a_task(checks=(Check(kind, words, command, 1),))))
    text = frame.format(line)
    once = completed(text, 1, named=named)
    assert once == re.sub(r"(#+ Phase 1.*\n)\n?", rf"\1{MARK}\n\n", text, count=1)
    assert completed(once, 1, named=named) == once
    assert completed(text, 1, named={"Goal", "hooks.json"}) == completed(text, 1)


def test_checks_of_other_files_name_nothing_in_the_roadmap() -> None:
    other = Check("content", 'README.md contains "PLANNED"', None, 1)
    assert named_texts(a_plan(a_task(checks=(other,)))) == set()
    files = (PlanFile(".gsd/ROADMAP.md", "modify"),)
    own = Check("content", 'contains "PLANNED"', None, 1)
    assert named_texts(a_plan(a_task(files=files, checks=(own,)))) == {"PLANNED"}


@pytest.mark.parametrize(
    ("heading", "gap", "text"),
    [
        ("### Phase 1: Fix Paths\n", "\n", "**Goal:** x\n"),
        ("## Phase 1: MVP [MVP]\n", "", "\ntext\n"),
        ("## Phase 1\n", "", "- one\n- [ ] Complete the manual\n"),
        ("## Phase 1\n", "", "- [x] Not started\n"),
        ("## Phase 1: A\r\n", "\r\n", "Goal\r\n"),
        # Marks in code and in other sections are ignored.
        ("## Phase 1\n", "", "\n```\n- [ ] Complete\n```\n"),
        ("## Phase 1\n", "", "\n### Phase 1.1: B\n- [ ] Complete\n## Other\nStatus: PLANNED\n"),
        # Headings in code and comments are, too.
        ("```md\n## Phase 1: A\n- [ ] Complete\n```\n## Phase 1\n", "", ""),
        ("<!--\nhow:\n## Phase 1: A\n-->\n## Phase 1\n", "", ""),
    ],
)
def test_completed_adds_a_mark_below_the_heading(heading: str, gap: str, text: str) -> None:
    newline = "\r\n" if "\r" in heading else "\n"
    assert completed(heading + text, 1) == f"{heading}{MARK}{newline}{gap}{text}"
    assert completed(heading.rpartition("## ")[0], 1) is None
    assert completed(f"a\r\n{heading}".rstrip(), 1) == f"a\r\n{heading}".rstrip() + f"\r\n{MARK}"


@pytest.mark.parametrize(
    ("phase", "headings"),
    [
        (1, ("# Phase 1", "###### Phase 1", "## Phase 01: A", "## phase 1 - A", "## Phase 1. A",
             "## **Phase 1**: A", "## __Phase 1__", "   ## Phase 1 (A)", "## ✅ Phase 1: A",
             "## Phase 1: 2 tools", "## Phase 1 — 3 tools to go", "## Phase 1 ##", "##\tPhase 1")),
        ("1.5", ("## Phase 1.5: A",)),
        ("2B", ("## Phase 2b: A",)),
        ("auth", ("## Phase Auth: A",)),
        ("01", ("## Phase 1: A",)),
    ],
)  # fmt: skip
def test_heading_of_the_phase_is_found(phase: int | str, headings: tuple[str, ...]) -> None:
    for heading in headings:
        assert completed(f"{heading}\n", phase) == f"{heading}\n- [x] Complete\n"


def test_heading_of_another_phase_is_not_marked() -> None:
    for heading in (
        *("## Phase 10: A", "## Phase 1.5: A", "## Phase 1a: A", "## Phases 1", "## Phase", "##"),
        *("## Phase 1-3: A", "## Phase 1 & 2: A", "## Phase 1, 2", "## Phase 1 notes", "Phase 1"),
        *("##Phase 1", "    ## Phase 1", "## The Phase 1: A", "## Phase 11", "## Phase 1.5x9"),
        *("- [ ] **Phase 1: A**", "####### Phase 1", "## Phase one"),
    ):
        assert completed(f"{heading}\n", 1) is None


def test_heading_with_the_title_is_preferred_to_the_first() -> None:
    text = "# v1\n## Phase 1: Old\n- [ ] Complete\n# v2\n## Phase 1: New\n- [ ] Complete\n"
    new = text.replace("New\n- [ ]", "New\n- [x]")
    assert completed(text, 1, "new") == new
    assert completed(new, 1, "new") == new
    assert completed(text, 1, "Unknown") == text.replace("Old\n- [ ]", "Old\n- [x]")


def test_later_phases_are_in_order_without_duplicates() -> None:
    text = "## Phase 1: A\n## Phase 3\n## Phase 02\n### Phase 3: again\n## Phase auth\n"
    assert later_phases(text, 1) == [3, 2]
    assert later_phases(text, "01") == [3, 2]
    assert later_phases(text, "auth") == []


def test_roadmap_warning_predicts_the_refusal_at_the_end(phase: FinishedPhase) -> None:
    assert roadmap_warning(phase.root, 1) is None
    phase.roadmap.write_text("## Phase 1: A\n")
    assert roadmap_warning(phase.root, 1) is None
    for content, problem in (
        (b"## Phase 2: Later\n", r"roadmap\.md has no heading for phase 1"),
        (b"\0", "not a text"),
    ):
        phase.roadmap.write_bytes(content)
        before = phase.everything()
        with pytest.raises(UsageError, match=problem) as error:
            phase.changes()
        assert phase.everything() == before
        assert re.search(problem, roadmap_warning(phase.root, 1) or "")
        assert ("### Phase 1: Loop Mechanism" in error.value.hint) == (content != b"\0")


def test_every_roadmap_that_names_the_phase_is_changed_once_and_links_stay(phase) -> None:
    large, linked = phase.planning / "ROADMAP.md", phase.root / "linked.md"
    phase.roadmap.write_text("## Phase 2: B\n")
    large.write_text("## Phase 1: A\n")
    assert phase.end() == ["summary.md", "ROADMAP.md"]
    phase.roadmap.write_text("## Phase 1: A\n")
    assert phase.end() == ["roadmap.md"]
    assert phase.roadmap.read_bytes() == large.read_bytes() == b"## Phase 1: A\n- [x] Complete\n"
    linked.write_text("## Phase 1: A\n")
    for path, target in ((phase.roadmap, linked), (large, "roadmap.md")):
        path.unlink()
        path.symlink_to(target)
    assert [change.path for change in phase.changes()] == [linked.resolve()]
    phase.end()
    assert phase.roadmap.is_symlink()
    assert linked.read_text() == "## Phase 1: A\n- [x] Complete\n"


lines = st.text() | st.sampled_from([
    "## Phase 1: A", "### Phase 1: A [PLANNED]", "# Phase 01 [COMPLETE]", "## Phase 2: B", "```", "---",
    "- [ ] Complete", "- [x] Complete", "- [ ] Not started", "**Status:** PLANNED", "<!--", "-->", "",
    "**Status:** Complete", "Status:", "## Phase 1.1: C", "# Other", "## **Phase 1** ##", "\udcff",
])  # fmt: skip
ended = st.builds(str.__add__, lines, st.sampled_from(["\n", "\r\n"]))
roadmaps = st.builds(str.__add__, st.lists(ended, max_size=12).map("".join), st.just("") | lines)


@given(roadmaps, st.sampled_from([1, "01", 2, "1.1"]))
def test_completed_changes_nothing_again_and_at_most_three_lines(text, phase) -> None:
    once = completed(text, phase)
    if once is None:
        return
    assert completed(once, phase) == once
    before, after = split_lines(text), split_lines(once)
    if len(before) == len(after):
        assert sum(old != new for old, new in zip(before, after, strict=True)) <= 3
        return
    size = len(once) - len(text)
    assert any(
        once[at : at + size].strip() == MARK and once[:at] + once[at + size :] == text
        for at in range(len(text) + 1)
    )


def test_completed_takes_linear_time_on_hostile_lines() -> None:
    many = 200_000
    for line in ("#" + " " * many + "x", "# " + "*" * many, "## Phase 1" + " -" * many):
        completed(line + "\n## Phase 1: A\n**Status:** complete(" + ")" * many + "a\n", 1)
    for line in ("`" * many + "x`", "<!--" * many, "- [ ] " + " " * many + "x", "[" * many):
        completed(f"## Phase 1: A\n{line}\n" * 2, 1)
    assert completed("## Phase 1: A\n" * 20_000, 1) is not None
