from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.engine.lessons import Lesson, lessons, telling, words_in
from gsd_fsm.history import failures as past
from tests.conftest import start_draft
from tests.support.events import append, draft

TRACE = """\
Traceback (most recent call last):
  File "src/auth.py", line 3, in check
    return token["id"]
TypeError: 'NoneType' object is not subscriptable"""


class Told:
    """Loops told in events, and what they teach."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.path = Path(journal.journal_path())

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
        return lessons(self.path, goal, **how)

    def only(self, goal: str) -> Lesson:
        (found,) = self.lessons(goal)
        return found


@pytest.fixture
def told(journal: Journal) -> Told:
    return Told(journal)


def test_a_failed_task_is_recalled_with_what_ended_it(told: Told) -> None:
    told.start("lp-a", "Add validation", tasks=[{"id": "T1", "title": "Check tokens"}])
    told("lp-a", "task", task="T1", status="running")
    told.fail("lp-a", "T1", TRACE, signature="s1", analysis="it may be None")
    told("lp-a", "task", task="T1", status="running")
    told.fail("lp-a", "T1", TRACE, signature="s1", fix="return early without a token")
    told("lp-a", "task", task="T1", status="running")
    told("lp-a", "task", task="T1", status="complete", summary="checked")
    error = "TypeError: 'NoneType' object is not subscriptable"
    ended = "task T1 completed after retry 2: return early without a token"
    assert told.lessons("Rotate tokens of the auth module") == [
        Lesson(
            loop="lp-a",
            goal="Add validation",
            error=error,
            ended=ended,
            score=2,
            text=f'"{error}" (loop lp-a): ended by {ended}',
        )
    ]


@pytest.mark.parametrize(
    ("data", "remedy"),
    [
        ({"fix": "the fix", "analysis": "the cause"}, ": the fix"),
        ({"analysis": "the cause"}, ": the cause"),
        ({}, ": the summary"),
    ],
)
def test_the_remedy_is_the_fix_or_the_analysis_or_the_summary(
    told: Told, data: dict[str, str], remedy: str
) -> None:
    told.start("lp-a", "Parser", "execute")
    told("lp-a", "task", task="T1", status="running")
    told.fail("lp-a", "T1", "bad", **data)
    told("lp-a", "task", task="T1", status="running")
    told("lp-a", "task", task="T1", status="complete", summary="the summary")
    assert told.only("parser").ended == f"task T1 completed after retry 1{remedy}"


def test_a_failed_check_is_ended_by_its_criterion_being_met(told: Told) -> None:
    told.start("lp-a", "Login", criteria=[{"name": "tests", "check": "make"}])
    tail = "===== FAILURES =====\n____ test_login ____\nE       assert 401 == 200\n1 failed"
    told.check("lp-a", "tests", 1, tail)
    told.check("lp-a", "tests", 1, tail)
    assert told.only("login").text == '"assert 401 == 200" (loop lp-a): never mended'
    told.check("lp-a", "tests", 0, "ok")
    lesson = told.only("login")
    assert (lesson.error, lesson.ended) == ("assert 401 == 200", "criterion met")
    told.check("lp-a", "tests", 2)
    assert {lesson.error for lesson in told.lessons("login")} == {
        "assert 401 == 200",
        "check tests failed",
    }


def test_a_gap_is_ended_by_its_evidence_unless_it_comes_back(told: Told) -> None:
    told.start("lp-a", "Router", "verify")
    gap = {"gap": "G1", "kind": "stub", "file": "src/menu.py", "description": "empty body"}
    told("lp-a", "gap", action="found", **gap)
    told("lp-a", "gap", action="closed", gap="G1", evidence="has 12 lines now")
    lesson = told.only("the menu")
    assert (lesson.error, lesson.ended) == (
        "empty body (src/menu.py)",
        "gap closed: has 12 lines now",
    )
    told("lp-a", "gap", action="reopened", gap="G1")
    assert told.only("the menu").ended == "never"
    told("lp-a", "cancel")
    assert told.only("the menu").text.endswith("not mended: cancelled")


@pytest.mark.parametrize(
    ("events", "ended"),
    [
        ([], "never"),
        ([("pause", {"code": "manual"})], "paused (manual)"),
        ([("pause", {"code": "manual"}), ("resume", {})], "never"),
        ([("pause", {"code": "manual"}), ("cancel", {})], "cancelled"),
        ([("task", {"task": "T1", "status": "skipped"})], "task T1 skipped"),
        ([("failure", {"task": "T1", "error": "e", "class": "logic"})], "paused (retries)"),
        ([("failure", {"task": "T1", "error": "e", "class": "blocking"})], "paused (blocking)"),
    ],
)
def test_what_was_not_mended_says_how_it_was_left(
    told: Told, events: list[tuple[str, dict[str, Any]]], ended: str
) -> None:
    told.start("lp-a", "Parser", "execute", limits={"max_retries": 1})
    told.fail("lp-a", "T1", "e", fix="did not help")
    for kind, data in events:
        told("lp-a", kind, **data)
    assert told.only("parser").ended == ended


def test_a_failure_of_the_loop_itself_is_ended_by_its_completion(told: Told) -> None:
    told.start("lp-a", "Parser")
    told.fail("lp-a", None, "e")
    told("lp-a", "exit")
    told("lp-a", "complete")
    lesson = told.only("parser")
    assert (lesson.ended, lesson.text) == (
        "loop completed",
        '"e" (loop lp-a): ended by loop completed',
    )


def test_the_same_error_is_one_lesson_and_the_one_that_was_mended_tells_it(told: Told) -> None:
    for loop in ("lp-a", "lp-b", "lp-c"):
        told.start(loop, "Parser", "execute")
        told.fail(loop, "T1", f"E in {loop}", signature="same")
    told("lp-b", "task", task="T1", status="running")
    told("lp-b", "task", task="T1", status="complete")
    assert told.only("parser").loop == "lp-b"


def test_the_best_come_first_and_the_loop_itself_does_not_count(told: Told) -> None:
    told.start("lp-a", "Parser of dates", "execute")
    told.fail("lp-a", "T1", "one")
    told.start("lp-b", "Parsers of dates and times", "execute")
    told.fail("lp-b", "T1", "two")
    told.start("lp-c", "Parse", "execute")
    told.fail("lp-c", "T1", "three in parser.py")
    told.start("lp-d", "Parser of dates", "execute")
    told.fail("lp-d", "T1", "four")
    goal = "A parser of times and dates"
    assert [x.error for x in told.lessons(goal)] == ["two", "four", "one"]
    assert [x.score for x in told.lessons(goal, most=9)] == [3, 2, 2, 1]
    assert [x.error for x in told.lessons(goal, before="lp-b", most=2)] == ["four", "one"]


def test_words_of_every_project_or_of_most_goals_are_no_reason(told: Told) -> None:
    for number, what in enumerate(("menu", "cart", "search", "login", "invoices")):
        told.start(f"lp-{number}", f"Shop: fix the {what}", "execute")
        told.fail(f"lp-{number}", "T1", f"error in test {what}")
    assert told.lessons("Shop: test and fix errors") == []
    assert [x.loop for x in told.lessons("Shop: fix tests of the cart")] == ["lp-1"]
    assert told.lessons("of the and") == told.lessons("") == []


def test_a_journal_that_is_no_plain_file_teaches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    assert lessons(path, "goal") == []
    os.mkfifo(path)
    assert lessons(path, "goal") == []
    path.unlink()
    path.mkdir()
    assert lessons(path, "goal") == []
    path.rmdir()
    path.symlink_to("/etc/passwd")
    assert lessons(path, "goal") == []


def line(kind: str, loop: Any, **data: Any) -> bytes:
    event = {"v": 1, "seq": 1, "ts": "", "loop": loop, "type": kind, "by": "human", "data": data}
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


def test_damaged_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    good = line("start", "lp-a", goal="Parser") + line("failure", "lp-a", error="e")
    bad = [
        b'{"type":"failure"\n', b"\xff\0\n", b'["type":"failure"]\n', b'"type":"failure"\n',
        line("failure", 7, error="x"), line("failure", None), line("gap", "lp-a", gap=[], action={}),
        line("start", "lp-b", goal=1, limits=[], tasks=[3, {}], plan=5), line("resume", "lp-a", add=1),
        line("criterion", "lp-a", criterion="c", met=False, evidence=[]), line("add", "lp-a"),
        b'{"type":"failure","loop":"lp-a","seq":1,"data":7}\n', b"[" * 70_000 + b"\n",
        b'{"a":{"type":"failure"},"type":"add","loop":"x","seq":1,"data":{}}\n',
    ]  # fmt: skip
    path.write_bytes(b"".join(bad) + good + b"".join(bad) + line("failure", "lp-a", error="z")[:-1])
    assert [x.error for x in lessons(path, "parser")] == ["e"]


def test_of_a_long_journal_only_whole_lines_of_its_end_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.jsonl"
    old, new = (
        line("failure", "lp-a", error="parser old"),
        line("failure", "lp-b", error="parser new"),
    )
    path.write_bytes(old + new)
    for size, seen in ((len(new), []), (len(new) + 1, ["parser new"]), (1 << 20, None)):
        monkeypatch.setattr(past, "MOST_BYTES", size)
        errors = [x.error for x in lessons(path, "parser")]
        assert sorted(errors) == (["parser new", "parser old"] if seen is None else seen)


@given(st.text(), st.text())
def test_words_do_not_depend_on_order_and_no_line_of_an_error_is_invented(a: str, b: str) -> None:
    assert words_in(f"{a} {b}") == words_in(f"{b} {a}")
    assert all(len(word) >= 2 and word == word.lower() for word in words_in(a))
    assert " ".join(telling(a).split()) in " ".join(a.split())
