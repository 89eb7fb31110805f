"""Mark a phase complete in the roadmap; all other bytes stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.markdown import split_lines
from gsd_fsm.phase.roadmap import MARK, completed, later_phases, roadmap_warning
from tests.support.phases import FinishedPhase


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
def test_completed_sets_the_mark_in_the_section(before: str, after: str) -> None:
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
def test_completed_sets_the_status_in_the_heading(before: str, after: str) -> None:
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
def test_completed_keeps_a_phase_that_is_already_complete(text: str) -> None:
    assert completed(text, 1) == text


def test_completed_adds_a_mark_below_the_heading() -> None:
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
    windows = "## Phase 1: A\r\n{}Goal\r\n"
    assert completed(windows.format(""), 1) == windows.format("- [x] Complete\r\n\r\n")


@pytest.mark.parametrize(
    "heading",
    [
        *("# Phase 1", "###### Phase 1", "## Phase 01: A", "## phase 1 - A", "## Phase 1. A"),
        *("## **Phase 1**: A", "## __Phase 1__", "   ## Phase 1 (A)", "## ✅ Phase 1: A"),
        *("## Phase 1: 2 tools", "## Phase 1 — 3 tools to go", "## Phase 1 ##", "##\tPhase 1"),
    ],
)
def test_heading_of_the_phase_is_found(heading: str) -> None:
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
def test_heading_of_another_phase_is_not_marked(heading: str) -> None:
    assert completed(f"{heading}\n", 1) is None


def test_heading_may_name_a_phase_without_number() -> None:
    assert completed("## Phase 1.5: A\n", "1.5") == "## Phase 1.5: A\n- [x] Complete\n"
    assert completed("## Phase 2b: A\n", "2B") == "## Phase 2b: A\n- [x] Complete\n"
    assert completed("## Phase Auth: A\n", "auth") == "## Phase Auth: A\n- [x] Complete\n"
    assert completed("## Phase 1: A\n", "01") == "## Phase 1: A\n- [x] Complete\n"


def test_headings_in_code_and_comments_are_ignored() -> None:
    for hidden in (
        "```md\n## Phase 1: A\n- [ ] Complete\n```\n",
        "<!--\nhow:\n## Phase 1: A\n-->\n",
    ):
        assert completed(hidden, 1) is None
        assert completed(hidden + "## Phase 1\n", 1) == hidden + "## Phase 1\n- [x] Complete\n"


def test_marks_in_code_and_other_sections_are_ignored() -> None:
    text = (
        "## Phase 1: A\n\n```\n- [ ] Complete\n```\n### Phase 1.1: B\n- [ ] Complete\n"
        "## Other\n**Status:** PLANNED\n"
    )
    assert completed(text, 1) == text.replace("A\n", "A\n- [x] Complete\n", 1)


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


def test_roadmap_without_the_phase_is_refused(phase: FinishedPhase) -> None:
    phase.roadmap.write_text("# Roadmap\n\n## Phase 2: Later\n")
    before = phase.everything()
    with pytest.raises(UsageError, match=r"roadmap\.md has no heading for phase 1") as error:
        phase.changes()
    assert "### Phase 1: Loop Mechanism" in error.value.hint
    assert phase.everything() == before


def test_roadmap_warning_predicts_the_refusal_at_the_end(phase: FinishedPhase) -> None:
    assert roadmap_warning(phase.root, 1) is None
    phase.roadmap.write_text("## Phase 1: A\n")
    assert roadmap_warning(phase.root, 1) is None
    assert "no heading for phase 7" in (roadmap_warning(phase.root, 7) or "")
    phase.roadmap.write_bytes(b"\0")
    assert "not a text" in (roadmap_warning(phase.root, 1) or "")


def test_every_roadmap_that_names_the_phase_is_changed(phase: FinishedPhase) -> None:
    large = phase.planning / "ROADMAP.md"
    phase.roadmap.write_text("## Phase 2: B\n")
    large.write_text("## Phase 1: A\n")
    assert phase.end() == ["summary.md", "ROADMAP.md"]
    phase.roadmap.write_text("## Phase 1: A\n")
    assert phase.end() == ["roadmap.md"]
    assert phase.roadmap.read_bytes() == large.read_bytes() == b"## Phase 1: A\n- [x] Complete\n"


def test_linked_roadmap_is_changed_once_and_the_link_stays(phase: FinishedPhase) -> None:
    large = phase.root / "ROADMAP.md"
    large.write_text("## Phase 1: A\n")
    phase.roadmap.symlink_to(large)
    (phase.planning / "ROADMAP.md").symlink_to("roadmap.md")
    assert [change.path for change in phase.changes()][1:] == [large.resolve()]
    phase.end()
    assert phase.roadmap.is_symlink()
    assert large.read_text() == "## Phase 1: A\n- [x] Complete\n"


lines = st.one_of(
    st.sampled_from([
        "## Phase 1: A", "### Phase 1: A [PLANNED]", "# Phase 01 [COMPLETE]", "## Phase 2: B",
        "- [ ] Complete", "- [x] Complete", "- [ ] Not started", "**Status:** PLANNED",
        "**Status:** Complete", "Status:", "```", "~~~~", "<!--", "-->", "", "text", "- item",
        "## Phase 1.1: C", "# Other", "  - [ ] complete.", "## **Phase 1** ##", "---",
    ]),
    st.text(st.characters(exclude_characters="\n")),
    st.binary(max_size=8).map(
        lambda raw: raw.replace(b"\n", b"").decode("utf-8", "surrogateescape")
    ),
)  # fmt: skip
ends = st.sampled_from(["\n", "\r\n"])


@st.composite
def roadmaps(draw: st.DrawFn) -> str:
    text = "".join(draw(lines) + draw(ends) for _ in range(draw(st.integers(0, 12))))
    return text + draw(st.just("") | lines)


@given(text=roadmaps(), phase=st.sampled_from([1, "01", 2, "1.1"]))
def test_completed_is_idempotent(text: str, phase: int | str) -> None:
    once = completed(text, phase)
    if once is not None:
        assert completed(once, phase) == once


@given(text=roadmaps())
def test_completed_changes_at_most_three_lines_or_adds_a_mark(text: str) -> None:
    once = completed(text, 1)
    if once is None:
        return
    before, after = split_lines(text), split_lines(once)
    if len(before) == len(after):
        assert sum(old != new for old, new in zip(before, after, strict=True)) <= 3
        return
    size = len(once) - len(text)
    assert any(
        once[at : at + size].strip() == MARK and once[:at] + once[at + size :] == text
        for at in range(len(text) + 1)
    )


@given(head=roadmaps(), tail=roadmaps())
def test_completed_keeps_the_bytes_around_the_section(head: str, tail: str) -> None:
    if any(word in head + tail for word in ("`", "~", "<!--", "Phase", "phase", "#")):
        return
    above, below = f"{head}\n", f"\n# End\n{tail}"
    whole = completed(f"{above}## Phase 1: X\n{below}", 1)
    assert whole is not None
    assert whole.startswith(above)
    assert whole.endswith(below)


def test_completed_takes_linear_time_on_hostile_lines() -> None:
    many = 200_000
    for line in ("#" + " " * many + "x", "# " + "*" * many, "## Phase 1" + " -" * many):
        completed(line + "\n## Phase 1: A\n**Status:** complete(" + ")" * many + "a\n", 1)
    for line in ("`" * many + "x`", "<!--" * many, "- [ ] " + " " * many + "x", "[" * many):
        completed(f"## Phase 1: A\n{line}\n" * 2, 1)
    assert completed("## Phase 1: A\n" * 20_000, 1) is not None
