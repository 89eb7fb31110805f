"""Errors in a command line, and the hint of each."""

from __future__ import annotations

import pytest

from tests.support.command_line import A, B, Here

# typed -> problem, hint
MISTAKES = {
    "verison": ("unknown command 'verison'", "Did you mean 'version'? Run: gsd-fsm version"),
    "hlep": ("unknown command 'hlep'", "Did you mean 'help'? Run: gsd-fsm help"),
    "xyzzy": ("unknown command 'xyzzy'", "Run: gsd-fsm --help"),
    "start": (
        "missing argument: one of execute, verify, goal",
        'Run: gsd-fsm start goal "GOAL"',
    ),
    "start --goal x": ("no such option '--goal'", 'Run: gsd-fsm start goal "GOAL"'),
    "start --budget": ("option '--budget' requires an argument", "Run: gsd-fsm start --help"),
    "init --yes=1": ("option '--yes' does not take a value", "Run: gsd-fsm init --help"),
    "stop --reason": ("option '--reason' requires an argument", "Run: gsd-fsm pause --help"),
    "resume --add-iteration 5": (
        "no such option '--add-iteration'",
        "Did you mean '--add-iterations'? Run: gsd-fsm resume --help",
    ),
    "stop lp-abc234": (
        "got unexpected extra argument (lp-abc234)",
        "Run: gsd-fsm pause --loop lp-abc234",
    ),
    "why lp-abc234": (
        "invalid value: 'lp-abc234' is not a whole number from 1 to 1000000000",
        "Run: gsd-fsm why --loop lp-abc234",
    ),
    "history lp-abc234": (
        "got unexpected extra argument (lp-abc234)",
        "Run: gsd-fsm history --help",
    ),
    "stop all": ("got unexpected extra argument (all)", "Run: gsd-fsm pause --all"),
    "status reason": ("got unexpected extra argument (reason)", "Run: gsd-fsm status --help"),
    "stop reason": ("got unexpected extra argument (reason)", "Run: gsd-fsm pause --help"),
    "config set x": ("got unexpected extra arguments (set x)", "Run: gsd-fsm config --help"),
    "mode fast": (
        "invalid value: 'fast' is not one of 'interactive', 'yolo'",
        "Run: gsd-fsm mode --help",
    ),
    "task T01": (
        "missing argument: one of pending, running, complete, failed, checkpoint, skipped",
        "Run: gsd-fsm task --help",
    ),
    "ps --loop lp-abc234": ("--loop has no effect on ps", "Omit --loop."),
    "--loop lp-abc234 ls": ("--loop has no effect on ps", "Omit --loop."),
    "--loop lp-abc234": (
        "--loop has no effect without a command",
        "Run: gsd-fsm status --loop lp-abc234",
    ),
    "status --project x": (
        "no such option '--project'",
        "Write it before the command: gsd-fsm --project DIR status",
    ),
    "--project": ("option '--project' requires an argument", "Run: gsd-fsm --help"),
    "--verbos": ("no such option '--verbos'", "Did you mean '--version'? Run: gsd-fsm --help"),
}


@pytest.mark.parametrize("typed", MISTAKES)
def test_usage_error_names_one_instruction(here: Here, typed: str) -> None:
    problem, hint = MISTAKES[typed]
    found = here.run(*typed.split())
    assert (found.code, found.out, found.err) == (2, "", f"gsd-fsm: {problem}\n  → {hint}\n")
    assert not here.gsd.exists()


def test_json_option_before_the_command_is_refused_and_its_place_named(here: Here) -> None:
    hint = "Write it after the command: gsd-fsm COMMAND --json"
    assert here.run("--json", "status").json == {
        "error": "no such option '--json'",
        "hint": hint,
        "exit_code": 2,
    }


def test_command_that_needs_one_of_several_loops_names_itself_in_the_hint(here: Here) -> None:
    for session in (A, B):
        here.start("goal", "g", env=session)
    for typed, command in (("stop", "pause"), ("why", "why"), ("status --check", "status")):
        error = here.refused(2, *typed.split()).err
        assert f"\n  → Name one: gsd-fsm {command} --loop ID\n" in error
