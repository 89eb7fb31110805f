"""The prompt of a task: what stands in it, where it comes from, and what is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gsd_fsm.subagents.prompt import description, output
from gsd_fsm.subagents.results import read_result
from tests.support.prompts import COMMAND, a_plan, a_task, an_error, between, prompt_of, write

ORDER = (
    "context", "task", "tdd_cycle", "skills", "context7", "known_issues", "mcps", "browser",
    "rules", "previous_attempt", "decision", "left_out", "output",
)  # fmt: skip
FAILED = {"errors": [an_error()], "retries": 1}
TESTED = a_task(test_required="true", test_files=("tests/test_parser.py",))


def elements(prompt: str) -> list[str]:
    """The outermost elements, in their order."""
    return re.findall(r"\n\n<(\w+)", prompt)


def test_a_task_without_sources_has_a_prompt_without_empty_parts(tmp_path: Path) -> None:
    prompt = prompt_of(tmp_path)
    assert prompt.startswith("You are a focused implementation agent. Complete ONLY this task.\n")
    assert elements(prompt) == ["task", "rules", "output"]
    assert not re.search(r"<(\w+)[^>]*>\s*</\1>", prompt)


def test_a_task_with_everything_has_every_part_in_its_order(tmp_path: Path) -> None:
    write(tmp_path / ".gsd/PROJECT.md", "A loop engine.")
    write(tmp_path / ".gsd/ISSUES.md", "- [ ] a leak")
    (tmp_path / ".gsd/codebase/CONVENTIONS.md").mkdir(parents=True)
    prompt = prompt_of(
        tmp_path,
        TESTED._replace(skills=("review",), libraries=("click",)),
        state={**FAILED, "question": "Which?", "answer": "This."},
        mcps=("context7",),
        browser=True,
    )
    assert elements(prompt) == list(ORDER)


def test_the_task_is_told_as_the_plan_tells_it(tmp_path: Path) -> None:
    task = TESTED._replace(reqs="R1,R2", libraries=("click", "attrs"))
    prompt = prompt_of(tmp_path, task)
    assert '<task id="01" reqs="R1,R2">' in prompt
    assert (
        '<files mode="write">\n<file action="create">src/parser.py</file>\n'
        '<file action="modify">src/main.py</file>\n</files>'
    ) in prompt
    assert between(prompt, "test_required") == "true"
    assert '<test_files mode="dynamic">\ntests/test_parser.py\n</test_files>' in prompt
    assert between(prompt, "action") == "Write the parser.\n\n    def parse(): ..."
    assert between(prompt, "libraries") == "click, attrs"
    assert '<check type="file">src/parser.py exists</check>' in between(prompt, "verify")
    assert '<check type="command">`make test` passes</check>' in between(prompt, "verify")
    assert between(prompt, "done") == "the parser parses"


def test_the_cycle_of_new_tests_has_three_phases_with_their_files(tmp_path: Path) -> None:
    body = between(prompt_of(tmp_path, TESTED, ci_test="make test"), "tdd_cycle")
    assert "<max_attempts>5</max_attempts>\n<test_command>make test</test_command>" in body
    red, green, refactor = re.findall(r'<phase name="(\w+)">\n(.*?)</phase>', body, re.DOTALL)
    assert (red[0], green[0], refactor[0]) == ("RED", "GREEN", "REFACTOR")
    tests, code = "tests/test_parser.py", "\nsrc/parser.py\nsrc/main.py\n"
    assert red[1].startswith(
        f"<allowed_files>{tests}</allowed_files>\n<locked_files>{code}</locked_files>\n"
        "<goal>Write a failing test for: the parser parses</goal>\n"
        "<success_condition>Test FAILS"
    )
    for phase in (green, refactor):
        assert f"<allowed_files>{code}</allowed_files>" in phase[1]
        assert f"<locked_files>{tests}</locked_files>" in phase[1]
        assert "<on_failure>" in phase[1]
    assert "do NOT modify tests" in green[1]
    assert "<on_complete>" in red[1]
    assert "<on_complete>" in green[1]


def test_the_cycle_of_existing_tests_begins_at_green(tmp_path: Path) -> None:
    prompt = prompt_of(tmp_path, TESTED._replace(test_required="existing"))
    assert re.findall(r'<phase name="(\w+)">', prompt) == ["GREEN", "REFACTOR"]


def test_a_task_without_tests_has_no_cycle_and_no_command_for_it(tmp_path: Path) -> None:
    prompt = prompt_of(tmp_path)
    assert "<tdd_cycle" not in prompt
    assert f"{COMMAND} tdd" not in prompt
    assert f"`{COMMAND} tdd T01`" in prompt_of(tmp_path, TESTED)


def test_tests_that_no_plan_names_are_named_in_words(tmp_path: Path) -> None:
    body = between(prompt_of(tmp_path, TESTED._replace(test_files=())), "tdd_cycle")
    assert body.count("the tests that you write for this task") == 3


TEN_RULES = [
    "If test_required=true: Execute TDD Red-Green-Refactor cycle",
    "RED phase: Only modify test files, implementation files are LOCKED",
    "GREEN/REFACTOR phases: Only modify implementation files, test files are LOCKED",
    "NEVER modify test files to make them pass - fix the implementation instead",
    "Only modify files listed in files/test_files elements",
    "Follow skills exactly if provided",
    "If libraries listed and Context7 available, fetch current docs before implementing",
    "Complete ALL verification checks before reporting done",
    "Do not expand scope beyond this task",
    "Do not refactor unrelated code",
]


def test_prompt_has_the_ten_rules_of_the_execute_command(tmp_path: Path) -> None:
    rules = re.findall(r"<rule>(.*?)</rule>", between(prompt_of(tmp_path, TESTED), "rules"))
    assert [rule for rule in rules if rule in TEN_RULES] == TEN_RULES
    assert any("gsd-fsm --loop lp-1 tdd T01" in rule for rule in rules)


def test_the_files_of_the_loop_are_off_limits_unless_the_plan_lists_them(tmp_path: Path) -> None:
    assert "<rule>Change no file in .gsd</rule>" in prompt_of(tmp_path)
    listed = a_task(files=(a_task().files[0]._replace(path=".gsd/config.md"),))
    assert "<rule>Change no file in .gsd but those listed above</rule>" in prompt_of(
        tmp_path, listed
    )


def test_a_task_without_files_is_held_to_its_action(tmp_path: Path) -> None:
    prompt = prompt_of(tmp_path, a_task(files=()))
    assert "only modify what the action names" in prompt
    assert "Only modify files listed" not in prompt
    assert "<files" not in prompt


def test_the_forms_of_a_report_are_told_and_are_no_report_themselves(tmp_path: Path) -> None:
    body = between(prompt_of(tmp_path), "output")
    for form in (
        "- TASK COMPLETE (with files modified, test status, and commit message)",
        "- TASK FAILED: {reason} (with blocker details and attempts made)",
        "- CHECKPOINT: {decision needed} (for architecture/manual steps)",
        "- NEW ISSUE: [{severity}] {description}",
        "feat(2-01): {description}",
    ):
        assert form in body
    with pytest.raises(Exception, match="3 verdicts"):
        read_result(prompt_of(tmp_path))


def test_context7_is_used_where_it_is_configured_and_libraries_are_named(tmp_path: Path) -> None:
    task = a_task(libraries=("click",))
    assert "documentation for: click" in between(
        prompt_of(tmp_path, task, mcps=["Context7"]), "context7"
    )
    assert "not configured" in between(prompt_of(tmp_path, task, mcps=["github"]), "context7")
    assert "<context7>" not in prompt_of(tmp_path, mcps=["context7"])


def test_servers_and_the_browser_are_told_where_they_are_set(tmp_path: Path) -> None:
    prompt = prompt_of(tmp_path, mcps=("github", "postgres"), browser=True, base_url='http://a/"b')
    assert between(prompt, "mcps").startswith("github, postgres\n")
    assert '<browser enabled="true" base_url="http://a/&quot;b"/>' in prompt
    assert '<browser enabled="true"/>' in prompt_of(tmp_path, browser=True)
    assert '<browser enabled="false" base_url="http://a"/>' in prompt_of(
        tmp_path, base_url="http://a"
    )


def test_the_same_sources_give_the_same_prompt(tmp_path: Path) -> None:
    write(tmp_path / ".gsd/PROJECT.md", "A loop engine.")
    assert prompt_of(tmp_path, TESTED, state=FAILED) == prompt_of(tmp_path, TESTED, state=FAILED)


@pytest.mark.parametrize(
    ("phase", "title", "words"),
    [
        (1, "Create API endpoints", "P1 T01: Create API endpoints"),
        (None, "Create API endpoints", "T01: Create API endpoints"),
        ("2a", "x" * 30, f"P2a T01: {'x' * 30}"),
        (1, "x" * 31, f"P1 T01: {'x' * 29}…"),
        (1, "Create hooks configuration files now", "P1 T01: Create hooks configuration…"),
        (1, "two\nlines\x1b[1m", "P1 T01: two lines\\u{1b}[1m"),
        (1, "", "P1 T01"),
    ],
)
def test_a_description_is_a_few_words(phase: int | str | None, title: str, words: str) -> None:
    assert description(phase, "T01", title) == words
    assert len(words.partition(": ")[2]) <= 30


def test_a_plan_without_a_phase_names_only_the_task_in_its_commits(tmp_path: Path) -> None:
    assert "feat(01): {description}" in output(a_plan(a_task(), None), a_task())
