from __future__ import annotations

import pytest

from tests.support.foreign_files import RALPH, loop_of, read, refused


def test_ralph_file_is_imported_with_all_counts() -> None:
    old = read(RALPH)
    loop = loop_of(old)
    assert (old.format, loop.kind, loop.goal) == ("ralph", "goal", "Read PROMPT.md and follow it.")
    assert (loop.iteration, loop.limits.max_iterations) == (3, 20)
    assert (loop.started, loop.owner) == ("2026-01-20T13:29:43.000Z", None)
    endless = loop_of(read(RALPH.replace("max_iterations: 20", "max_iterations: 0")))
    assert endless.limits.max_iterations == 0
    promise = loop.criteria["ALL DONE"]
    assert (promise.check, promise.met) == (None, False)
    assert "gsd-fsm criterion 1 met, then gsd-fsm complete" in old.notes[0]


@pytest.mark.parametrize(
    ("written", "criteria"),
    [*((none, []) for none in ("null", "", '""', '"null"', "~")),
     ('"He said "done" \\o/"', ['He said "done" \\o/']), ("'it''s done'", ["it's done"]),
     ("All tests: pass # really", ["All tests: pass # really"]), ("42", ["42"]), ("true", ["true"]),
     ('"', ['"']), ('"[a, {b"', ["[a, {b"])],
)  # fmt: skip
def test_ralph_promise_is_a_criterion_unless_there_is_none(written: str, criteria: list) -> None:
    old = read(RALPH.replace('"ALL DONE"', written))
    assert list(loop_of(old).criteria) == criteria
    assert ("the exit signal alone ends the loop" in old.notes[0]) == (criteria == [])


def test_ralph_prompt_may_contain_front_matter_or_be_in_it() -> None:
    prompt = "# Do\n\n---\nactive: false\n---\n<promise>ALL DONE</promise>\n\n{}"
    assert loop_of(read(RALPH.replace("Read PROMPT.md and follow it.", prompt))).goal == prompt
    above = "original_prompt: |\n  Fix the parser.\n\n    all of it\nreview_count: 0"
    old = read(RALPH.replace("active: true", f"{above}\nsession_id: 35012762-a836"))
    assert (loop_of(old).goal, loop_of(old).owner) == ("Fix the parser.\n\n  all of it", None)
    assert "Not imported: review_count." in old.notes
    assert any(note.startswith("session_id: not imported") for note in old.notes)
    inline = RALPH.replace("active: true", 'original_prompt: "Fix it."')
    assert loop_of(read(inline)).goal == "Fix it."


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("active: true", "active: false", " nothing to import: the loop is not active"),
        ("iteration: 3", "iteration: three", " iteration must be a whole number from 0"),
        ("\niteration: 3", "", " iteration is missing"),
        ("max_iterations: 20", "max_iterations:", " max_iterations is missing"),
        ("active: true", "active: maybe", " active must be true or false, not 'maybe'"),
        ('"2026-01-20T13:29:43Z"', "soon", " started_at must be a time such as"),
        ("Read PROMPT.md and follow it.", "", " prompt is empty"),
        ("Read", "x" * 30_000, " prompt is longer than 24000 bytes"),
        ("ALL DONE", "x" * 3_000, " completion_promise is longer than 2000 bytes"),
        ("active: true", "active: true\nactive: true", "3: duplicate key: active"),
        ("active: true", "active: true\nwords", "3: 'words' is not 'name: value'"),
        ("active: true", " indented\nactive: true", "2: ' indented' is not 'name: value'"),
    ],
)
def test_ralph_problem_is_reported_with_member_or_line(before, after, message) -> None:
    assert before in RALPH
    assert refused(RALPH.replace(before, after, 1)).startswith(f"FILE:{message}")
