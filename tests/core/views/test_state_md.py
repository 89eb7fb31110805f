"""The loop section of STATE.md: its content for YAML and for grep, and the rest of the file."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from gsd_fsm.core.loop.events.lifecycle import KINDS
from gsd_fsm.core.loop.records import Gap, Limits, Task
from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.core.loop.state import LIVE, STATUSES, Loop
from gsd_fsm.core.views.state_md import SECTION, loop_section, with_loop
from tests.support.events import build
from tests.support.story import Story

LOADERS = (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
RESET = (
    "loop:\n  active: false\n  type: null\n  phase: null\n  iteration: 0\n  max_iterations: 20\n"
    "  task_retries: {}\n  gaps_remaining: 0\n  started: null\n  last_iteration: null\n"
    "  paused: false\n  pause_reason: null\n  last_error: null\n  history: []\n"
)
# Ids that YAML would read as another type, and ids that grep would take for our keys.
ODD_IDS = ("01", "1e3", "0x1F", "0b1", "1_0", "null", "Null", "yes", "N", "on", "OFF", "True",
           "1.5", "12-01-2026", "2026-01-01", "e3", "T1.2", "paused", "x-type", "T.active")  # fmt: skip
ODD_TEXTS = (
    "", " ", "null", "3", "a: b", "- a", "# a", "{", "]", "'", '"', "\\", "\\u0041", "---\n...", "\x7f",
    "\x00\x1b[31m", "\x85\u2028\u2029", "\ufeff\uffff", "\U0001f600\U000e0041", "a\r\nloop:\n  active: no",
    "active: true", "paused:paused:", "max_iterations: 1 history: 2", "é" * 500, "type\\u003a x",
)  # fmt: skip

texts = st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=400))
counts = st.integers(0, 2**53)
times = st.sampled_from(["2026-11-15T23:00:07.123Z", "1970-01-01T00:00:00.000Z"])
ids = st.one_of(
    st.sampled_from(ODD_IDS),
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,8}", fullmatch=True).filter(is_id),
)
moves = st.tuples(
    counts, times, st.sampled_from(STATUSES), st.sampled_from(STATUSES),
    st.sampled_from(["failure", "pause"]), st.one_of(st.just(""), ids),
)  # fmt: skip


@st.composite
def loops(draw: st.DrawFn) -> Loop:
    some = lambda values: draw(st.one_of(st.none(), values))  # noqa: E731
    names = st.lists(ids, max_size=5)
    return build(
        Loop, id="lp-1", status=draw(st.sampled_from(LIVE)), kind=draw(st.sampled_from(KINDS)),
        phase=some(st.one_of(counts, texts)), limits=Limits({"max_iterations": draw(counts)}),
        iteration=draw(counts),
        tasks={name: build(Task, retries=draw(counts)) for name in draw(names)},
        gaps={name: build(Gap, is_open=draw(st.booleans())) for name in draw(names)},
        started=draw(times), last_iteration=some(times),
        pause_code=some(st.sampled_from(["manual", "stuck"])), pause_reason=some(texts),
        last_error=some(texts), history=[list(move) for move in draw(st.lists(moves, max_size=4))],
    )  # fmt: skip


def expected(loop: Loop) -> dict[str, Any]:
    """Return the expected section of a live loop."""
    rounds, limits = loop.kind == "verify", loop.limits
    reason = loop.pause_reason or loop.pause_code
    return {
        "active": loop.status != "paused",
        "type": loop.kind,
        "phase": loop.phase[:300] if isinstance(loop.phase, str) else loop.phase,
        "iteration": loop.round if rounds else loop.iteration,
        "max_iterations": limits.max_rounds if rounds else limits.max_iterations,
        "task_retries": {name: task.retries for name, task in loop.tasks.items()},
        "gaps_remaining": sum(gap.status == "open" for gap in loop.gaps.values()),
        "started": loop.started,
        "last_iteration": loop.last_iteration,
        "paused": loop.status == "paused",
        "pause_reason": reason and reason[:300],
        "last_error": loop.last_error and loop.last_error[:300],
        "history": [f"{a} {b} {c} -> {d}: {e} {f}".rstrip() for a, b, c, d, e, f in loop.history],
    }


def read(text: str) -> Any:
    first, second = (yaml.load(text, loader) for loader in LOADERS)
    assert first == second
    return first


def found_by_lines(text: str, key: str) -> str:
    """Return the match of `grep -A 20 "^loop:" | grep "key:" | head -1` after the colon."""
    lines = text.split("\n")
    begin = next(number for number, line in enumerate(lines) if line.startswith("loop:"))
    hit = next(line for line in lines[begin : begin + 21] if f"{key}:" in line)
    return hit.partition(f"{key}:")[2].strip()


@given(loops())
def test_loop_section_is_the_same_for_yaml_and_grep(loop: Loop) -> None:
    section = "\n".join(loop_section(loop)) + "\n"
    assert section.isascii()
    assert read(section) == {"loop": expected(loop)}
    assert list(read(section)["loop"]) == list(SECTION)
    for key in SECTION[:-1]:
        assert read(found_by_lines(section, key)) == expected(loop)[key], key
    assert found_by_lines(section, "history") == ("" if loop.history else "[]")


def test_loop_section_has_the_documented_form() -> None:
    tasks = [{"id": "T01"}, {"id": "T02"}]
    story = Story("execute", phase=1, tasks=tasks, limits={"max_retries": 1})
    story("iteration", _by="hook")
    for _ in range(2):
        story.fail("T01", error='It "broke"\nhere')
    assert "\n".join(loop_section(story.loop)) == (
        "loop:\n  active: false\n  type: execute\n  phase: 1\n  iteration: 1\n  max_iterations: 20\n"
        "  task_retries: {T01: 1, T02: 0}\n  gaps_remaining: 0\n"
        '  started: "2026-11-15T23:00:02.000Z"\n  last_iteration: "2026-11-15T23:00:03.000Z"\n'
        '  paused: true\n  pause_reason: "Task T01 failed after 1 retry"\n'
        '  last_error: "It \\"broke\\"\\nhere"\n'
        "  history:\n"
        '    - "2 2026-11-15T23:00:02.000Z idle -> running: start"\n'
        '    - "4 2026-11-15T23:00:04.000Z running -> retrying: failure T01"\n'
        '    - "5 2026-11-15T23:00:05.000Z retrying -> paused: failure T01"'
    )


# the rest of the file

keys = st.sampled_from(["milestone", "open_issues", "loops", "loop_", "Loop", "a b", "x.loop", "ä"])
plain = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=60))
nested = st.recursive(plain, lambda inner: st.one_of(
    st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
), max_leaves=5)  # fmt: skip
dumped = st.builds(
    lambda value, style, unicode: lambda key: yaml.safe_dump(
        {key: value}, default_flow_style=False, default_style=style, allow_unicode=unicode, width=30
    ),
    nested, st.sampled_from([None, '"', "'", "|", ">"]), st.booleans(),
)  # fmt: skip
by_hand = st.sampled_from(
    ["%s: |\n  loop:\n    active: no\n\n  ---\n\n", "%s:\n- a\n- loop: 1\n", "%s: [1,\n 2]   \n",
     "%s:   # a comment\n  loop: {}\n", '"%s": {loop: 1}\n', "%s: loop\n"]
).map(lambda form: lambda key: form % key)  # fmt: skip
between = st.sampled_from(["", "", "\n", "# loop:\n", "  \n", "# {\n\n"])
OLD = (
    RESET, "loop:\n", "loop: null\n", "loop:   \t\n", "loop : ~\n", '"loop": 1\n', "'loop': {a: 1}\n",
    "loop: {active: true,\n  type: {a: []}}\n", "loop: {active: true,\n  paused: [x]\n}\n", "loop: [\n]\n",
    "loop:\n- a\n-\n  - b\n", "loop: # ours\n  active: yes\n# in between\n\n  type: x\n",
    "loop: |\n  text\n\n\n  more\n", "loop:\n\tactive: true\n", "loop:\n  last_error: '{'\n    # end\n",
    "loop: a long\n text {\n",
)  # fmt: skip
YAML_OLD = [form for form in OLD if "\tactive" not in form]


@st.composite
def entries(draw: st.DrawFn) -> tuple[str, str]:
    """Return two pieces of front matter with different keys."""
    names = draw(st.lists(keys, unique=True, max_size=4))
    made = [draw(st.one_of(dumped, by_hand))(name) for name in names]
    pieces = [draw(between) + entry for entry in made]
    cut = draw(st.integers(0, len(pieces)))
    return "".join(pieces[:cut]), "".join(pieces[cut:])


@st.composite
def files(draw: st.DrawFn) -> tuple[str, str, str, str]:
    """Return the text before the section, the section, the front matter after it, and the rest."""
    before, after = draw(entries())
    old = draw(st.sampled_from(["", *YAML_OLD]))
    fence = draw(st.sampled_from(["---", "---  ", "..."])) + "\n"
    if not old:
        before, after = before + after, ""
    parts = ["---\n" + before, old, after, fence]
    if draw(st.booleans()):
        parts = [part.replace("\n", "\r\n") for part in parts]
    parts[0] = draw(st.sampled_from(["", "\ufeff"])) + parts[0]
    parts[3] += draw(st.one_of(st.text(), st.just("---\nloop:\n  active: x\n")))
    return parts[0], parts[1], parts[2], parts[3]


@given(loops(), files())
def test_with_loop_changes_only_the_section(loop: Loop, file: tuple[str, str, str, str]) -> None:
    before, old, after, rest = file
    first = before.index("\n") + 1
    end = before[:first].lstrip("\ufeff-")
    section = "".join(line + end for line in loop_section(loop))
    new = with_loop(before + old + after + rest, loop)
    assert new == before + section + after + rest
    assert with_loop(new, loop) == new
    front, back = (yaml.safe_load(part) or {} for part in (before[first:], after))
    shown = yaml.safe_load(before[first:] + section + after)
    assert shown == {**front, **back, "loop": expected(loop)}


@pytest.mark.parametrize("old", OLD)
def test_with_loop_replaces_every_form_of_the_first_loop_key(old: str) -> None:
    text = "---\na: 1\n%s\n# about b\nb: 2\nloop: 2\n---\nloop:\n"
    assert with_loop(text % old, None) == text % RESET


@given(st.text().filter(lambda text: not text.startswith(("---", "\ufeff"))), st.booleans())
@example("", False)
@example("\n---\na: 1\n---\n", False)
@example("# State\n\nloop:\n  active: true\n", False)
@example("--- a: 1\n---\n", False)
@example("one\r", False)
def test_with_loop_adds_missing_front_matter(text: str, bom: bool) -> None:
    end = "\r\n" if text.partition("\n")[0].endswith("\r") and "\n" in text else "\n"
    front = f"---\n{RESET}---\n".replace("\n", end)
    mark = "\ufeff" * bom
    assert with_loop(mark + text, None) == mark + front + text
    assert with_loop(mark + front + text, None) == mark + front + text


@pytest.mark.parametrize("text", ["---\n---\n", "---\n\n# only this\n...\nbody", "---\r\n---"])
def test_with_loop_fills_empty_front_matter(text: str) -> None:
    new = with_loop(text, None)
    assert yaml.safe_load(new.split("---")[1].split("...")[0]) == yaml.safe_load(RESET)
    assert with_loop(new, None) == new


@pytest.mark.parametrize(
    "text",
    ["---", "---\n", "---\na: 1\n", "---\nloop: 1\n --- \n", "---\n{a: 1}\n---\n", "---\n- a\n---\n",
     "---\n  a: 1\n---\n", "---\nJust words\n---\n", "---\nloop: {a: [}\n---\n", "---\nloop: {\na: 1\n}\n---\n"],
)  # fmt: skip
def test_with_loop_rejects_front_matter_without_place_for_the_section(text: str) -> None:
    with pytest.raises(ValueError):
        with_loop(text, None)
