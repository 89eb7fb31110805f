"""The form of the commands that texts name."""

from __future__ import annotations

import shlex

import pytest

from gsd_fsm.core.command_line import command_line, program, set_program
from tests.support.command_line import Here, here

__all__ = ["here"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("next",), "gsd-fsm next"),
        (("gap close", "lp-1", "G1"), "gsd-fsm gap close --loop lp-1 G1"),
        (("criterion", "lp-1", "-- '-x' met"), "gsd-fsm criterion --loop lp-1 -- '-x' met"),
    ],
)
def test_command_line_names_the_loop_after_the_verb(words: tuple[str, ...], expected: str) -> None:
    assert command_line(*words) == expected


def test_command_line_begins_with_the_program_that_was_set() -> None:
    before = program()
    set_program("'/a b/gsd-fsm'")
    try:
        assert command_line("resume", "lp-1") == "'/a b/gsd-fsm' resume --loop lp-1"
    finally:
        set_program(before)


def test_hints_name_the_project_that_the_command_was_given(here: Here) -> None:
    here.start("goal", "g")
    refused = here.refused(4, "--project", str(here.root), "review", "passed").err
    project = shlex.quote(str(here.root))
    assert f"Run: gsd-fsm --project {project} review begun" in refused
    assert "Run: gsd-fsm review begun" in here.refused(4, "review", "passed").err
