from __future__ import annotations

import pytest

from tests.support.foreign_files import RALPH, loop_of, read, refused


def test_everything_that_the_file_says_is_carried() -> None:
    old = read(RALPH)
    loop = loop_of(old)
    assert (old.format, loop.kind, loop.goal) == ("ralph", "goal", "Read PROMPT.md and follow it.")
    assert (loop.iteration, loop.limits.max_iterations) == (3, 20)
    assert loop.started == "2026-01-20T13:29:43.000Z"
    promise = loop.criteria["ALL DONE"]
    assert (promise.check, promise.met) == (None, False)
    assert "'gsd-fsm criterion 1 met', then 'gsd-fsm exit-signal'" in old.notes[0]


@pytest.mark.parametrize("none", ["null", "", '""', '"null"', "~"])
def test_without_a_promise_there_is_no_criterion(none: str) -> None:
    old = read(RALPH.replace('"ALL DONE"', none).replace("max_iterations: 20", "max_iterations: 0"))
    loop = loop_of(old)
    assert (loop.criteria, loop.limits.max_iterations) == ({}, 0)
    assert "the exit signal alone ends the loop" in old.notes[0]


@pytest.mark.parametrize(
    ("written", "promise"),
    [
        ('"He said "done" \\o/"', 'He said "done" \\o/'),
        ("'it''s done'", "it's done"),
        ("All tests: pass # really", "All tests: pass # really"),
        ("42", "42"),
        ("true", "true"),
        ('"', '"'),
        ('"[a, {b"', "[a, {b"),
    ],
)
def test_a_promise_is_read_as_its_own_tool_reads_it(written: str, promise: str) -> None:
    assert list(loop_of(read(RALPH.replace('"ALL DONE"', written))).criteria) == [promise]


def test_fences_and_tags_in_the_prompt_belong_to_it() -> None:
    prompt = "# Do\n\n---\nactive: false\n---\n<promise>ALL DONE</promise>\n\n{}"
    assert loop_of(read(RALPH.replace("Read PROMPT.md and follow it.", prompt))).goal == prompt


def test_a_prompt_above_the_words_about_the_file_is_the_prompt() -> None:
    above = "original_prompt: |\n  Fix the parser.\n\n    all of it\nreview_count: 0\nactive: true"
    old = read(RALPH.replace("active: true", above))
    assert loop_of(old).goal == "Fix the parser.\n\n  all of it"
    assert "Not carried: review_count." in old.notes
    inline = RALPH.replace("active: true", 'original_prompt: "Fix it."')
    assert loop_of(read(inline)).goal == "Fix it."


def test_the_session_of_the_old_tool_owns_nothing() -> None:
    old = read(RALPH.replace("active: true", "session_id: 35012762-a836\nactive: true"))
    assert loop_of(old).owner is None
    assert any(note.startswith("session_id: not carried") for note in old.notes)


def test_windows_and_a_byte_order_mark_change_nothing() -> None:
    plain, odd = read(RALPH), read(b"\xef\xbb\xbf" + RALPH.replace("\n", "\r\n").encode())
    assert plain == odd


def test_an_inactive_loop_has_nothing_to_import() -> None:
    told = refused(RALPH.replace("active: true", "active: false"))
    assert told == "FILE: its loop is not active: there is nothing to import"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("iteration: 3", "iteration: three", "FILE: iteration: it must be a whole number from 0"),
        ("iteration: 3", "iteration: -3", "FILE: iteration: it must be a whole number from 0"),
        ("\niteration: 3", "", "FILE: iteration: it is missing"),
        ("max_iterations: 20", "max_iterations:", "FILE: max_iterations: it is missing"),
        ("active: true", "active: maybe", "FILE: active: it must be true or false, not 'maybe'"),
        ('"2026-01-20T13:29:43Z"', "soon", "FILE: started_at: it must be a time such as"),
        ("Read PROMPT.md and follow it.", "", "FILE: prompt: it is empty"),
        ("Read", "x" * 30_000, "FILE: prompt: it is longer than 24000 bytes"),
        ("ALL DONE", "x" * 3_000, "FILE: completion_promise: it is longer than 2000 bytes"),
        ("active: true", "active: true\nactive: true", "FILE:3: active: it is named twice"),
        ("active: true", "active: true\nwords", "FILE:3: 'words' is not 'name: value'"),
        ("active: true", " indented\nactive: true", "FILE:2: ' indented' is not 'name: value'"),
        ("---\n\nRead", "\nRead", "FILE: the front matter does not end"),
    ],
)
def test_what_is_wrong_is_told_with_its_member_or_line(before: str, after: str, told: str) -> None:
    assert before in RALPH
    assert told in refused(RALPH.replace(before, after, 1))
