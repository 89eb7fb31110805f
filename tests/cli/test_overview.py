"""gsd-fsm without a command: the state of the project, and three useful commands."""

from __future__ import annotations

import re

from tests.support.command_line import Here, without_loop
from tests.support.lines import chain, header, plant, start


def commands(here: Here) -> list[str]:
    """Return the commands that the overview offers, without the last line."""
    answer = here.ok()
    assert answer.err == ""
    lines = answer.out.splitlines()
    assert lines[-1] == "All commands: gsd-fsm --help"
    table = lines[[line.split() for line in lines].index(["TO", "RUN"]) + 1 : -1]
    assert 1 <= len(table) <= 3
    return [re.split(r"  +", line, maxsplit=1)[1] for line in table]


def test_overview_without_project_explains_gsd_fsm_and_the_first_steps(here: Here) -> None:
    shown = here.ok().out
    assert "Durable loops for coding agents" in shown
    assert "no loop in this directory yet, and the hook is not installed" in shown
    assert [command.split()[1] for command in commands(here)] == ["init", "start", "start"]
    here.gsd.mkdir()
    (here.gsd / "journal.jsonl").touch()
    assert here.ok().out == shown
    (here.gsd / "journal.jsonl").unlink()
    here.gsd.rmdir()
    here.ok("init", "--yes")
    assert "not installed" not in here.ok().out
    assert commands(here)[-1] == "gsd-fsm ps"
    assert not here.gsd.exists()


def test_overview_of_running_loop_shows_progress_and_names_it_in_commands(here: Here) -> None:
    loop = here.start("goal", "Fix login", "--criterion", "a", "--criterion", "b")
    here.ok("criterion", "a", "met")
    shown = here.ok().out
    for words in (
        f"{loop} · goal · running",
        "Fix login",
        "criteria: 1 of 2 met",
        "iteration 0 of 20",
    ):
        assert words in shown
    assert "The hook is not installed. Run: gsd-fsm init\n" in shown
    assert "No session owns it yet" in shown
    for verbs in (("status", "replay", "pause"), ("status", "why", "pause")):
        assert commands(here) == [f"gsd-fsm {verb} --loop {loop}" for verb in verbs]
        for command in commands(here)[:2]:
            here.ok(*command.split()[1:])
        here.ok("iterate")


def test_overview_of_halted_loop_offers_its_next_step_first(here: Here) -> None:
    here.start("goal", "g", "--max-iterations", "1", "--criterion", "a")
    here.ok("wait", "--until", "2099-01-01T00:00:00Z")
    assert without_loop(commands(here)[1]) == "gsd-fsm why"
    assert "throttled  until 2099-01-01T00:00:00.000Z\n" in here.ok().out
    here.ok("resume")
    here.ok("wait", "Which base?")
    assert "Which base?" in here.ok().out
    assert without_loop(commands(here)[0]) == "gsd-fsm answer TEXT"
    here.ok("answer", "this")
    for _ in range(2):
        here.run("iterate")
    assert "1 of 1 iterations are used" in here.ok().out
    assert without_loop(commands(here)[0]) == "gsd-fsm resume --add-iterations 10"
    here.ok("criterion", "a", "met")
    assert without_loop(commands(here)[0]) == "gsd-fsm complete"


def test_overview_after_the_last_loop_offers_its_history(here: Here) -> None:
    loop = here.start("goal", "Fix login")
    here.ok("cancel")
    assert re.search(rf"last ended +{loop} · goal · cancelled .*: Fix login\n", here.ok().out)
    assert commands(here)[:2] == [f"gsd-fsm replay --loop {loop}", "gsd-fsm history"]


def test_overview_of_several_loops_shows_three_and_counts_the_others(here: Here) -> None:
    sessions = [{"CLAUDE_CODE_SESSION_ID": f"s-{number}"} for number in range(5)]
    loops = [here.start("goal", "g", env=session) for session in sessions]
    shown = here.ok().out
    assert [loop for loop in loops if loop in shown] == loops[2:]
    assert "2 more live loops: gsd-fsm status\n" in shown
    assert commands(here)[0] == "gsd-fsm status --loop ID"
    here.ok("--loop", loops[0], "wait", "Which base?")
    here.ok("--loop", loops[1], "pause")
    assert commands(here) == [
        f"gsd-fsm resume --loop {loops[1]}",
        f"gsd-fsm answer --loop {loops[0]} TEXT",
        "gsd-fsm status --loop ID",
    ]


def test_overview_of_damaged_or_newer_journal_reports_it_and_exits_0(here: Here) -> None:
    here.start("goal", "g")
    here.journal.write_bytes(here.journal.read_bytes().replace(b'"goal":"g"', b'"goal":"h"'))
    assert "The journal cannot be used: journal " in here.ok().out
    assert commands(here)[:2] == ["gsd-fsm fsck", "gsd-fsm fsck --repair"]
    plant(here.root, chain([header(incompat=["more"])]))
    assert "newer gsd-fsm" in here.ok().out
    assert commands(here) == ["gsd-fsm doctor"]


def test_overview_of_untrusted_journal_gives_no_advice_about_its_loop(here: Here) -> None:
    plant(here.root, chain([header(), start(goal="do as I say")]))
    assert "not trusted. Run: gsd-fsm trust" in here.ok().out
    assert commands(here) == ["gsd-fsm replay", "gsd-fsm status", "gsd-fsm trust"]
    assert here.journal.read_bytes().count(b"\n") == 2


def test_overview_reports_that_a_file_disables_the_hook(here: Here) -> None:
    here.start("goal", "g")
    (here.gsd / "STOP").touch()
    assert "disabled by .gsd/STOP" in here.ok().out
