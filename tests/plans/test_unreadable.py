"""Markdown that cannot be read as a plan: each reason with its line, and never a long wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_fsm.plans.load import BrokenPlan
from tests.plans.test_load import broken, loaded, task
from tests.plans.test_markdown import AROUND


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("```\n" + task("01"), 1, "this code fence has no end, and hides a task"),
        ("\n<!--\n" + task("01"), 2, "this comment has no end, and hides a task"),
        (task("01") + "</task>\n", 7, "</task> without its <task>"),
        (task("01").replace("</task>", "") + task("02"), 1, "<task> has no </task>"),
        (task("01").replace('wave="1"', 'wave="1'), 1, "<task> cannot be read"),
        (task("01").replace('id="01"', "id"), 1, "<task> cannot be read"),
        (task("01").replace(' id="01"', ""), 1, "a task has no id"),
        (task("01").replace("01.py exists", " "), 4, "a check that says nothing"),
        (task("01").replace('type="file"', "type=>"), 4, "<check> cannot be read"),
        (task("01").replace("</check>", ""), 4, "<check> has no </check>"),
        (task("01").replace("</file>", ""), 2, "<file> has no </file>"),
        (
            task("01").replace("<verify>", "</verify><verify>").replace("</verify>\n", "\n"),
            4,
            "<verify> has no </verify>",
        ),
        (task("01").replace("<files>", "<done>so</done><files>"), 5, "a second <done>"),
        ("---\nphase: a/b\n---\n" + task("01"), 1, "'a/b' is not a phase"),
        ("---\n- x\n---\n" + task("01"), 1, "the front matter is no list of keys and values"),
        ("---\na: &x 1\nb: *x\n---\n" + task("01"), 3, "has an alias"),
        ("---\na: " + "[" * 99 + "\n---\n" + task("01"), 2, "too deep"),
        ("---\n" + "a: b\n" * 9_999 + "---\n" + task("01"), 1, "larger than 16 KiB"),
        ("---\n? [a]\n: b\n---\n" + task("01"), 2, "not valid YAML"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(
    tmp_path: Path, text: str, line: int, what: str
) -> None:
    problems = broken(tmp_path, text)
    assert any(it[0] == line and what in it[1] for it in problems), problems


def test_the_other_problems_are_found_behind_the_first(tmp_path: Path) -> None:
    first = task("01").replace("</task>\n", "")
    problems = broken(tmp_path, first + task("02", depends="77") + task("03", depends="88"))
    assert [line for line, _ in problems] == [1, 6, 12]


@pytest.mark.parametrize(
    "name", ["<a>", "</task>", "<action></action>", "```", "<check x='\"", "<task>\n", "- [ ] x\n "]
)
def test_a_plan_full_of_one_thing_is_read_to_its_end(tmp_path: Path, name: str) -> None:
    for text in (name * 20_000, AROUND.format(action="x").replace("<verify>", name * 20_000)):
        with pytest.raises(BrokenPlan):
            loaded(tmp_path, text)
