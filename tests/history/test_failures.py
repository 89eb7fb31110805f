from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.engine.lessons import Lesson, informative_line, lessons, words_in
from tests.support.events import append, draft, start_draft

TRACE = """\
Traceback (most recent call last):
  File "src/auth.py", line 3, in check
    return token["id"]
TypeError: 'NoneType' object is not subscriptable"""


class History:
    """Append events of loops, and read the lessons from them."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def __call__(self, loop: str, type_: str, /, **data: Any) -> None:
        append(self.journal, draft(type_, loop, "human", data))

    def start(self, loop: str, goal: str, kind: str = "goal", **data: Any) -> None:
        start = start_draft(loop, kind, goal=goal, **data)
        append(self.journal, {**start, "session": loop})

    def fail(self, loop: str, task: str | None, error: str, **data: Any) -> None:
        about = {} if task is None else {"task": task}
        self(loop, "failure", **{**about, "error": error, "class": "logic", **data})

    def check(self, loop: str, name: str, exit_code: int, tail: str = "") -> None:
        proof = {"command": "make", "exit_code": exit_code, "tail": tail, "likeness": tail}
        self(loop, "criterion", criterion=name, met=not exit_code, evidence=proof)

    def lessons(self, goal: str, **how: Any) -> list[Lesson]:
        return lessons(self.journal.path, goal, **how)

    def only(self, goal: str) -> Lesson:
        (found,) = self.lessons(goal)
        return found


@pytest.fixture
def history(journal: Journal) -> History:
    return History(journal)


def test_lessons_of_failed_task_name_what_ended_it(history: History) -> None:
    history.start("lp-a", "Add validation", tasks=[{"id": "T1", "title": "Check tokens"}])
    for data in ({"analysis": "it may be None"}, {"fix": "return early without a token"}):
        history("lp-a", "task", task="T1", status="running")
        history.fail("lp-a", "T1", TRACE, signature="s1", **data)
    history("lp-a", "task", task="T1", status="running")
    history("lp-a", "task", task="T1", status="complete", summary="checked")
    error = "TypeError: 'NoneType' object is not subscriptable"
    ended = "task T1 completed after retry 2: return early without a token"
    text = f'"{error}" (loop lp-a): ended by {ended}'
    assert history.only("Rotate tokens of the auth module") == Lesson("lp-a", error, ended, text)


def test_lesson_remedy_is_fix_else_analysis_else_summary(history: History) -> None:
    about = {"fix": "the fix", "analysis": "the cause"}
    for loop, data in (("a", about), ("b", {"analysis": "the cause"}), ("c", {})):
        history.start(loop, "Parser", "execute")
        history.fail(loop, "T1", f"bad {loop}", **data)
        history(loop, "task", task="T1", status="running")
        history(loop, "task", task="T1", status="complete", summary="the summary")
    ended = {lesson.loop: lesson.ended.rpartition(": ")[2] for lesson in history.lessons("parser")}
    assert ended == {"a": "the fix", "b": "the cause", "c": "the summary"}


def test_lesson_of_failed_check_ends_when_criterion_is_met(history: History) -> None:
    history.start("lp-a", "Login", criteria=[{"name": "tests", "check": "make"}])
    tail = "===== FAILURES =====\n____ test_login ____\nE       assert 401 == 200\n1 failed"
    for _ in range(2):
        history.check("lp-a", "tests", 1, tail)
    assert history.only("login").text == '"assert 401 == 200" (loop lp-a): never fixed'
    history.check("lp-a", "tests", 0, "ok")
    lesson = history.only("login")
    assert (lesson.error, lesson.ended) == ("assert 401 == 200", "criterion met")
    history.check("lp-a", "tests", 2)
    errors = {lesson.error for lesson in history.lessons("login")}
    assert errors == {"assert 401 == 200", "check tests failed"}


def test_check_that_failed_before_any_work_is_not_a_lesson(history: History) -> None:
    history.start("lp-a", "Login", criteria=[{"name": "tests", "check": "make"}])
    proof = {"command": "make", "exit_code": 1, "tail": "red"}
    history("lp-a", "criterion", criterion="tests", met=False, baseline=True, evidence=proof)
    assert history.lessons("login") == []


def test_lesson_of_gap_ends_with_its_evidence_unless_reopened(history: History) -> None:
    history.start("lp-a", "Router", "verify")
    gap = {"gap": "G1", "kind": "stub", "file": "src/menu.py", "description": "empty body"}
    history("lp-a", "gap", action="found", **gap)
    history("lp-a", "gap", action="closed", gap="G1", evidence="has 12 lines now")
    lesson = history.only("the menu")
    assert lesson.error == "empty body (src/menu.py)"
    assert lesson.ended == "gap closed: has 12 lines now"
    history("lp-a", "gap", action="reopened", gap="G1")
    assert history.only("the menu").ended == "never"
    history("lp-a", "cancel")
    assert history.only("the menu").text.endswith("not fixed: cancelled")


PAUSE = ("pause", {"code": "manual"})
FAILURE = {"task": "T1", "error": "e"}


@pytest.mark.parametrize(
    ("events", "ended"),
    [
        ([], "never"), ([PAUSE], "paused (manual)"), ([PAUSE, ("resume", {})], "never"),
        ([PAUSE, ("cancel", {})], "cancelled"),
        ([("task", {"task": "T1", "status": "skipped"})], "task T1 skipped"),
        ([("failure", {**FAILURE, "class": "logic"})], "paused (retries)"),
        ([("failure", {**FAILURE, "class": "blocking"})], "paused (blocking)"),
    ],
)  # fmt: skip
def test_lesson_of_open_failure_says_how_it_was_left(
    history: History, events: list[tuple[str, dict[str, Any]]], ended: str
) -> None:
    history.start("lp-a", "Parser", "execute", limits={"max_retries": 1})
    history.fail("lp-a", "T1", "e", fix="did not help")
    for kind, data in events:
        history("lp-a", kind, **data)
    assert history.only("parser").ended == ended


def test_lesson_of_loop_failure_ends_with_completion_or_before_damage(history: History) -> None:
    history.start("lp-a", "Parser")
    history.fail("lp-a", None, "e")
    history("lp-a", "exit")
    path = Path(history.journal.journal_path())
    valid = path.read_bytes()
    path.write_bytes(valid + b"damage\n" * 3)
    assert history.only("parser").ended == "never"
    path.write_bytes(valid)
    history("lp-a", "complete")
    lesson = history.only("parser")
    assert lesson.ended == "loop completed"
    assert lesson.text == '"e" (loop lp-a): ended by loop completed'


def test_lessons_of_same_error_are_one_preferring_a_fixed_one(history: History) -> None:
    for loop in ("lp-a", "lp-b", "lp-c"):
        history.start(loop, "Parser", "execute")
        history.fail(loop, "T1", f"E in {loop}", signature="same")
    history("lp-b", "task", task="T1", status="running")
    history("lp-b", "task", task="T1", status="complete")
    assert history.only("parser").loop == "lp-b"


def test_lessons_are_sorted_by_shared_words_without_own_loop(history: History) -> None:
    for loop, goal, error in (
        ("lp-a", "Parser of dates", "one"),
        ("lp-b", "Parsers of dates and times", "two"),
        ("lp-c", "Parse", "three in parser.py"),
        ("lp-d", "Parser of dates", "four"),
    ):
        history.start(loop, goal, "execute")
        history.fail(loop, "T1", error)
    goal = "A parser of times and dates"
    assert [x.error for x in history.lessons(goal)] == ["two", "four", "one"]
    ranked = ["two", "four", "one", "three in parser.py"]
    assert [x.error for x in history.lessons(goal, most=9)] == ranked
    assert [x.error for x in history.lessons(goal, except_loop="lp-b", most=2)] == ["four", "one"]


def test_lessons_need_more_than_common_words(history: History) -> None:
    for number, what in enumerate(("menu", "cart", "search", "login", "invoices")):
        history.start(f"lp-{number}", f"Shop: fix the {what}", "execute")
        history.fail(f"lp-{number}", "T1", f"error in test {what}")
    assert history.lessons("Shop: test and fix errors") == []
    assert [x.loop for x in history.lessons("Shop: fix tests of the cart")] == ["lp-1"]
    assert history.lessons("of the and") == history.lessons("") == []


def test_lessons_of_missing_or_unreadable_journal_are_none(tmp_path: Path) -> None:
    assert lessons(str(tmp_path), "goal") == []
    os.mkfifo(tmp_path / "journal.jsonl")
    assert lessons(str(tmp_path), "goal") == []


@example("XES", "")
@given(st.text(), st.text())
def test_words_ignore_order_and_informative_line_is_part_of_error(a: str, b: str) -> None:
    assert words_in(f"{a} {b}") == words_in(f"{b} {a}")
    assert all(len(word) >= 2 and word == word.lower() for word in words_in(a))
    assert " ".join(informative_line(a).split()) in " ".join(a.split())
