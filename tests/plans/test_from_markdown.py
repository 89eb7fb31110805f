"""Plans in Markdown as people and models write them."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.plans.from_markdown import read_markdown
from gsd_fsm.plans.load import BrokenPlan
from gsd_fsm.plans.plan import Check, PlanFile, Wave
from tests.support import plan_texts
from tests.support.plan_texts import AROUND, broken, loaded, require_problem, task

EXAMPLE = """<task id="{id}">
  <files mode="write">
    <file>b.py</file>
  </files>
  <action>
    {task.action}
  </action>
  <verify>look</verify>
  <done>{task.done}</done>
</task>"""
LINE = '<task id="{}" wave="1"><action>x</action><verify>y</verify><done>z</done></task>\n'


def indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line if line else line for line in text.split("\n"))


def test_task_quoted_in_an_action_is_part_of_the_action(tmp_path: Path) -> None:
    for by, fence in itertools.product(
        (0, 2, 4, 8), ("```xml\n{}\n```", "~~~\n{}\n~~~", "{}", "```\n```x\n{}\n```")
    ):
        action = "Write the prompt:\n" + fence.format(EXAMPLE) + "\nand send it."
        text = AROUND.format(action=indented(action, by)) + task("02")
        first, second = loaded(tmp_path, text).tasks
        assert (first.number, first.action, first.files) == ("01", action, ())
        assert (first.done, len(first.checks), second.number) == ("It is there.", 1, "02")


def test_action_may_contain_anything(tmp_path: Path) -> None:
    for action in (
        "Say </action> and go on.",
        "a\n</action> is how it ends, </action>\nsays the manual",
        "<verify>not yet</verify>\n<done>nor this</done>",
        "Quote:\n    <files>\n    </action>\n    <done>deeper</done>",
        "<task> elements are what a plan is made of.",
        'use <task id="x"> here',
        "    <task>\n    <task>\nthey are only mentioned",
        "end each with </task>",
        "```\n```python\n```\n~~~\n```\nwithout an end",
        "x < y && z > 0 || $(cat <<EOF\n</x>\nEOF\n) \"'",
        *("<!-- <action> -->", "<![CDATA[ a ]]> b", "# Wave 9 (Sequential)", "A\tB\n\n\n    C\n D"),
    ):
        text = AROUND.format(action=indented(action, 4)) + task("02", 2)
        first, second = loaded(tmp_path, text).tasks
        assert first.action == action
        assert (first.done, len(first.checks), second.number) == ("It is there.", 1, "02")
    deep = "Say\n</action>\n      <done>deep</done>\nmore"
    assert loaded(tmp_path, AROUND.format(action=deep)).tasks[0].action == deep


@given(st.lists(st.sampled_from([
    "<action>", "</verify>", "<gap>", "<file>x</file>", "```", "```xml", "~~~", "&&", "<x", ">",
    "<check>", "    </action>", "  <done>", "plain words", "", "$(a)", "<!--", "-->", "# Wave 3",
    "    <task>", "    </task>", "</done>", "<libraries>", "---", "- [ ] must", '"', "'",
]), max_size=12))  # fmt: skip
def test_task_stays_whole_whatever_its_action_contains(found: list[str]) -> None:
    action = "\n".join(["Begin", *found, "end."])
    draft = read_markdown(AROUND.format(action=indented(action, 4)) + task("02"))
    assert draft.problems == []
    assert [it.number for it in draft.tasks] == ["01", "02"]
    assert draft.tasks[0].action == action
    assert (draft.tasks[0].done, len(draft.tasks[0].checks)) == ("It is there.", 1)
    assert draft.waves == {}


def test_task_may_be_one_line_or_end_deeper_or_behind_its_last_section(tmp_path: Path) -> None:
    plan = loaded(tmp_path, LINE.format("01") + LINE.format("02"))
    assert [(it.id, it.action, it.line) for it in plan.tasks] == [("T01", "x", 1), ("T02", "x", 2)]
    deeper = task("01").replace("</task>", "  </task>")
    behind = task("02").replace("</done>\n</task>", "</done></task>")
    plan = loaded(tmp_path, deeper + behind + task("03") + behind.replace("02", "04"))
    assert [it.number for it in plan.tasks] == ["01", "02", "03", "04"]
    assert {it.done for it in plan.tasks} == {"It is there."}


def test_tags_and_attributes_are_read_in_any_spelling(tmp_path: Path) -> None:
    text = """<task
  depends='A1 , B-2'  title="Say &quot;hi&quot; &amp; go"
  wave=2 id = "01" type="fix" reqs="R1, R2" test_required="existing" >
<files>
  <file action='update'>a b.py</file><file
    action="remove">c.py</file><file>d.py</file>
</files><test_files><file>tests/t.py</file></test_files>
<action>  Do it.
    Twice.</action><libraries>React Query,
  zod</libraries><verify><check type="run" cmd="test 1 -lt 2 && echo 'a > b'"/>
<check type="shell">
  cd x
  make
</check></verify><done>
  One
  two </done><skills>one, two
  three</skills>
</task>
"""
    found = loaded(tmp_path, LINE.format("A1") + LINE.format("B-2") + text).tasks[2]
    assert (found.id, found.wave, found.depends) == ("T01", 2, ("A1", "B-2"))
    assert (found.title, found.commit_type, found.reqs) == ('Say "hi" & go', "fix", "R1, R2")
    files = [("a b.py", "modify"), ("c.py", "delete"), ("d.py", "")]
    assert found.files == tuple(PlanFile(*it) for it in files)
    assert (found.test_required, found.test_files) == ("existing", ("tests/t.py",))
    assert (found.action, found.done) == ("Do it.\nTwice.", "One two")
    assert found.libraries == ("React Query", "zod")
    assert found.skills == ("one", "two", "three")
    commands = [check.command for check in found.checks]
    assert commands == ["test 1 -lt 2 && echo 'a > b'", "cd x\nmake"]
    assert [check.text for check in found.checks] == [commands[0], "cd x make"]


def test_elements_may_replace_attributes(tmp_path: Path) -> None:
    more = "<title>One\n two</title><type>docs</type><reqs>R9</reqs><test_required>true</test_required>"
    more += "<context><action>no</action><done>no</done></context><br/><note>\n"  # all unknown
    found = loaded(tmp_path, task("01").replace("  <files>", f"  {more}<files>")).tasks[0]
    assert (found.title, found.commit_type, found.reqs) == ("One", "docs", "R9")
    assert found.test_required == "true"
    assert (found.action, found.done) == ("Write 01.", "It is there.")
    both = task("03").replace('wave="1"', 'wave="1" action="x" files="y" done="z"')
    found = loaded(tmp_path, both).tasks[0]
    assert (found.action, found.files[0].path, found.done) == ("Write 03.", "03.py", "z")
    plain = task("02").replace('<file action="create">02.py</file>', "a.py,\n b.py")
    assert loaded(tmp_path, plain).tasks[0].files == (PlanFile("a.py", ""), PlanFile("b.py", ""))


def test_verify_without_checks_is_read_line_by_line(tmp_path: Path) -> None:
    check = '<check type="file">01.py exists</check>'
    text = task("01").replace(check, "\n  - Look at it\n\n  Ask & see\n")
    first, second = loaded(tmp_path, text).tasks[0].checks
    assert first == Check("manual", "Look at it", None, 5)
    assert second == Check("manual", "Ask & see", None, 7)


def test_tasks_in_code_fences_and_comments_are_ignored(tmp_path: Path) -> None:
    text = (
        f"    ````md\n```\n{task('07')}```\n    ````\n~~~\n```\n{task('08')}~~~\n"
        f"<!-- not now\n{task('09')}-->\n<!-- nor here -->\n```inline``` code\n{task('01')}"
    )
    assert [it.number for it in loaded(tmp_path, text).tasks] == ["01"]


@pytest.mark.parametrize(
    ("heading", "title", "is_sequential"),
    [
        ("## Wave 2 (Sequential - Command Modifications)", "Command Modifications", True),
        ("### Wave 2: API (v2)", "API (v2)", False),
        ("# wave 2 – API (sequential) ##", "API", True),
        ("## Wave 2 (Parallel: Parallel streams)", "Parallel streams", False),
        ("## Wave 2", "", False),
    ],
)
def test_heading_gives_wave_title_and_mode(tmp_path, heading, title, is_sequential) -> None:
    bare = plan_texts.task_without_wave("01")
    plan = loaded(tmp_path, f"{heading}\n## Another heading\n{bare}")
    assert (plan.waves, plan.tasks[0].wave) == ((Wave(2, title, is_sequential),), 2)


def test_must_haves_are_items_with_boxes_or_else_all_items(tmp_path: Path) -> None:
    boxes = "## Must Haves\n\nThese:\n- [ ] one\n  goes on\n* [x] two\n- not this\n"
    text = f"{boxes}### more\n1. [ ] 3\n## Others\n- [ ] never\n{task('01')}- [ ] nor here\n"
    assert loaded(tmp_path, text).must_haves == ("one goes on", "two", "3")
    listed = f"## Must-Haves (Goal-Backward)\n- one\n- two\n{task('01')}"
    assert loaded(tmp_path, listed).must_haves == ("one", "two")
    front = f"---\nmust_haves:\n  truths: [a, one]\n---\n{listed}"
    assert loaded(tmp_path, front).must_haves == ("a", "one", "two")


def test_phase_and_title_are_read_as_text_from_front_matter_or_headings(tmp_path: Path) -> None:
    front = "---\nphase: 010\ntitle: No\nestimated_tokens: 1_0\ntask_count: 1\n"
    plan = loaded(tmp_path, f"{front}wave_count: null\n...\n{task('01')}")
    assert (plan.phase, plan.title, plan.estimated_tokens) == (10, "No", "1_0")
    assert plan.warnings == ("wave_count is null, but the plan has 1",)
    assert loaded(tmp_path, "---\n---\n" + task("01")).phase is None
    plan = loaded(tmp_path, "# Phase 2.1: The API\n# Later\n" + task("01"))
    assert (plan.phase, plan.title) == ("2.1", "The API")
    assert loaded(tmp_path, "[link](x)\n# Plan of it\n" + task("01")).title == "Plan of it"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("```\n" + task("01"), 1, "this code fence has no end and hides a task"),
        ("\n<!--\n" + task("01"), 2, "this comment has no end and hides a task"),
        (task("01") + "</task>\n", 7, "</task> without <task>"),
        (task("01").replace("</task>", ""), 1, "<task> has no </task>"),
        (task("01").replace("</task>", "") + task("02"), 1, "<task> has no </task>"),
        (task("01").replace('id="01"', "id"), 1, "<task> cannot be read"),
        (task("01").replace(' id="01"', ""), 1, "a task has no id"),
        (task("01").replace("01.py exists", " "), 4, "a check is empty"),
        (task("01").replace("</check>", ""), 4, "<check> has no </check>"),
        (task("01").replace("</file>", ""), 2, "<file> has no </file>"),
        (task("01").replace("</action>", ""), 3, "<action> has no </action>"),
        (task("01").replace("</verify>", ""), 4, "<verify> has no </verify>"),
        (task("01").replace("<verify>", "</verify><verify>").replace("</verify>\n", "\n"), 4,
         "<verify> has no </verify>"),
        (task("01").replace("<files>", "<done>so</done><files>"), 5, "a second <done>"),
        ("---\na: [1\n---\n" + task("01"), 2, "not valid YAML"),
        ("---\n- x\n---\n" + task("01"), 1, "the front matter has no keys"),
        ("---\nphase: a/b\n---\n" + task("01"), 1, "'a/b' is not a phase"),
    ],
)  # fmt: skip
def test_malformed_markdown_is_reported_with_its_line(tmp_path: Path, text, line, what) -> None:
    require_problem(tmp_path, text, line, what)


def test_later_problems_are_reported_too(tmp_path: Path) -> None:
    first = task("01").replace("</task>\n", "")
    problems = broken(tmp_path, first + task("02", depends="77") + task("03", depends="88"))
    assert [line for line, _ in problems] == [1, 6, 12]


@pytest.mark.parametrize(
    "name", ["<a>", "</task>", "<action></action>", "```", "<check x='\"", "<task>\n", "- [ ] x\n "]
)
def test_repeated_markup_takes_linear_time(tmp_path: Path, name: str) -> None:
    for text in (name * 20_000, AROUND.format(action="x").replace("<verify>", name * 20_000)):
        with pytest.raises(BrokenPlan):
            loaded(tmp_path, text)
