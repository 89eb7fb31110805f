"""Whatever a roadmap holds: marking it twice is marking it once, and other bytes stay."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.phase.markdown import lines_of
from gsd_fsm.phase.roadmap import MARK, completed

lines = st.one_of(
    st.sampled_from(
        [
            *(
                "## Phase 1: A",
                "### Phase 1: A [PLANNED]",
                "# Phase 01 [COMPLETE]",
                "## Phase 2: B",
            ),
            *("- [ ] Complete", "- [x] Complete", "- [ ] Not started", "**Status:** PLANNED"),
            *(
                "**Status:** Complete",
                "Status:",
                "```",
                "~~~~",
                "<!--",
                "-->",
                "",
                "text",
                "- item",
            ),
            *("## Phase 1.1: C", "# Other", "  - [ ] complete.", "## **Phase 1** ##", "---"),
        ]
    ),
    st.text(st.characters(exclude_characters="\n")),
    st.binary(max_size=8).map(
        lambda raw: raw.replace(b"\n", b"").decode("utf-8", "surrogateescape")
    ),
)
ends = st.sampled_from(["\n", "\r\n"])


@st.composite
def roadmaps(draw: st.DrawFn) -> str:
    text = "".join(draw(lines) + draw(ends) for _ in range(draw(st.integers(0, 12))))
    return text + draw(st.just("") | lines)


@given(text=roadmaps(), phase=st.sampled_from([1, "01", 2, "1.1"]))
def test_marking_twice_is_marking_once(text: str, phase: int | str) -> None:
    once = completed(text, phase)
    if once is not None:
        assert completed(once, phase) == once


@given(text=roadmaps())
def test_at_most_three_lines_change_and_only_a_mark_is_added(text: str) -> None:
    once = completed(text, 1)
    if once is None:
        return
    before, after = lines_of(text), lines_of(once)
    if len(before) == len(after):
        assert sum(old != new for old, new in zip(before, after, strict=True)) <= 3
        return
    size = len(once) - len(text)
    assert any(
        once[at : at + size].strip() == MARK and once[:at] + once[at + size :] == text
        for at in range(len(text) + 1)
    )


@given(text=roadmaps(), head=roadmaps(), tail=roadmaps())
def test_what_stands_around_the_section_keeps_its_bytes(text: str, head: str, tail: str) -> None:
    calm = {"`", "~", "<!--", "Phase", "phase", "#"}
    if any(word in part for part in (head, tail) for word in calm):
        return
    above, below = f"{head}\n", f"\n# End\n{tail}"
    whole = completed(f"{above}## Phase 1: X\n{below}", 1)
    assert whole is not None
    assert whole.startswith(above)
    assert whole.endswith(below)


def test_hostile_lines_take_no_time() -> None:
    many = 200_000
    for line in ("#" + " " * many + "x", "# " + "*" * many, "## Phase 1" + " -" * many):
        completed(line + "\n## Phase 1: A\n**Status:** complete(" + ")" * many + "a\n", 1)
    for line in ("`" * many + "x`", "<!--" * many, "- [ ] " + " " * many + "x", "[" * many):
        completed(f"## Phase 1: A\n{line}\n" * 2, 1)
    assert completed("## Phase 1: A\n" * 20_000, 1) is not None
