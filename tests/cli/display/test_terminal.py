"""Pages at a terminal and in a pipe."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gsd_fsm.cli.display import plain, terminal
from gsd_fsm.cli.display.page import (
    Bar,
    Box,
    Clock,
    Command,
    Fields,
    Line,
    Moment,
    Part,
    Quote,
    Rows,
    Styled,
    Table,
    status_word,
)
from gsd_fsm.core.clock import ms_of

NOW = ms_of("2026-11-19T12:00:00.000Z")
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=120)


def page_about(text: str) -> list[Part]:
    """Return a page with every kind of part, each with this text in it."""
    rows: list[tuple[str, list[plain.Words]]] = [("goal", [text]), ("empty", [])]
    return [
        Line(["Goal: ", Styled(text, "bad")]),
        Box(text, [Fields(rows), Quote(text, text)]),
        Table(("loop", "goal"), [["lp-1", text]]),
        Rows((3, 8), [["  1", Clock("2026-11-19T11:00:00.000Z"), text]]),
    ]


def controls(text: str) -> set[str]:
    return {char for char in text if ord(char) < 32 or 127 <= ord(char) < 160}


@given(ANY_TEXT)
def test_page_keeps_foreign_text_in_its_place_and_escapes_it(text: str) -> None:
    shown = ESCAPE.sub("", terminal.render(page_about(text), 80, NOW, colour=True))
    assert max(map(cell_len, shown.split("\n"))) <= 80
    assert controls(shown) <= {"\n"}
    assert controls(plain.render(page_about(text))) <= {"\n", "\t"}  # tabs of quoted output


@pytest.mark.parametrize("width", [1, 9, 20, 40])
def test_narrow_page_keeps_every_text(width: int) -> None:
    shown = terminal.render(page_about("Login works"), width, NOW, colour=False)
    assert shown.count("works") >= 2
    if width == 40:
        assert max(map(cell_len, shown.split("\n"))) <= width


def test_narrow_page_may_have_empty_cells() -> None:
    assert terminal.render([Rows((3,), [["a", []]])], 2, NOW, colour=False) == "a"


def test_without_colour_a_page_has_no_escapes() -> None:
    shown = terminal.render(page_about("Login works"), 80, NOW, colour=False)
    assert "\x1b" not in shown
    assert "Login works" in shown


def test_paused_is_not_red() -> None:
    shown = terminal.render([Line(status_word("paused"))], 80, NOW, colour=True)
    assert shown == "\x1b[94mpaused\x1b[0m"


@pytest.mark.parametrize(("done", "full"), [(0, 0), (5, 10), (10, 20), (15, 20), (-1, 0)])
def test_bar_is_filled_in_proportion_and_never_overflows(done: int, full: int) -> None:
    for colour in (True, False):
        shown = terminal.render([Line(Bar(done, 10, "of 10"))], 80, NOW, colour=colour)
        assert ESCAPE.sub("", shown) == f"{'━' * full}{'─' * (20 - full)} of 10"


def test_empty_lines_separate_tables_and_quotations_from_other_parts() -> None:
    rows: list[tuple[str, list[plain.Words]]] = [("goal", ["g"])]
    page: list[Part] = [Line("one"), Line("two"), Table(("to",), [["do"]]), Line("three")]
    shown = terminal.render(page, 80, NOW, colour=False)
    assert shown == "one\ntwo\n\nto\ndo\n\nthree"
    page = [Fields(rows), Quote("one", "a"), Quote("two", "b"), Fields(rows)]
    shown = terminal.render(page, 80, NOW, colour=False)
    assert shown == "goal       g\n\none\n  a\ntwo\n  b\n\ngoal       g"


def test_moment_is_relative_at_a_terminal_and_exact_in_a_pipe() -> None:
    page: list[Part] = [Fields([("started", [Moment("2026-11-19T11:00:00.000Z")])])]
    assert terminal.render(page, 80, NOW, colour=False) == "started    1 h ago"
    assert plain.render(page) == "started    2026-11-19T11:00:00.000Z"


def test_last_cell_of_a_row_has_a_hanging_indent() -> None:
    rows = Rows((3, 5), [["  1", Styled("agent", "strong"), "some more than eleven words"]])
    shown = terminal.render([rows], 30, NOW, colour=False)
    assert shown == "  1  agent  some more than\n            eleven words"
    assert plain.render([rows]) == "  1  agent  some more than eleven words"


def test_last_cell_without_space_begins_on_a_line_of_its_own() -> None:
    rows = Rows((3, 5), [["  1", Styled("agent", "strong"), "more than eleven words"]])
    shown = terminal.render([rows], 21, NOW, colour=False)
    assert shown == "  1  agent\n     more than eleven\n     words"


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (40, "next       Please run: gsd-fsm -l ID"),
        (30, "next       Please run:\n           gsd-fsm -l ID"),
        (20, "next\n     Please run:\n     gsd-fsm -l ID"),
        (16, "next\n     Please run: gsd-fsm -l ID"),
    ],
)
def test_command_is_on_one_line_whatever_the_width(width: int, shown: str) -> None:
    words: plain.Words = ["Please run: ", Command("gsd-fsm -l ID")]
    found = terminal.render([Fields([("next", [words])])], width, NOW, colour=False)
    assert [line.rstrip() for line in found.splitlines()] == shown.splitlines()
    assert plain.render([Line(words)]) == "Please run: gsd-fsm -l ID"


def test_table_that_does_not_fit_is_cut_or_becomes_records() -> None:
    rows: list[list[plain.Words]] = [["number one", "a" * 40, "default"]]
    page: list[Part] = [Table(("setting", "value", "source"), rows)]
    assert terminal.render(page, 60, NOW, colour=False) == (
        f"setting     {'value':<39}  source\nnumber one  {'a' * 38}…  default"
    )
    page = [Table(("setting", "value", "source"), [["one", Styled("a" * 90, "bad"), "default"]])]
    assert f"\x1b[31m{'a' * 61}…\x1b[0m  default" in terminal.render(page, 80, NOW, colour=True)
    page = [Table(("to", "run"), [["see its status", Command("gsd-fsm status")]] * 2)]
    record = "to         see its status\nrun        gsd-fsm status"
    assert terminal.render(page, 28, NOW, colour=False) == f"{record}\n\n{record}"
