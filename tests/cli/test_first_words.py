"""The words that people type first, and the answer to each."""

from __future__ import annotations

import re
import shlex

import pytest

from gsd_fsm.cli.help.words import ALIASES
from tests.support.command_line import AGENT, A, B, Here, install_hook

USAGE = "Usage: gsd-fsm [OPTIONS] [COMMAND]"
HELP_OF_STOP = "stop is an alias of pause.⏎⏎Usage: gsd-fsm pause"
NO_PROJECT = "gsd-fsm: no gsd-fsm project at … → Run: gsd-fsm start --help"
NO_HOOK = "gsd-fsm: the hook is not installed⏎  → Run: gsd-fsm init"
ASKS = "gsd-fsm: confirmation required"  # at a terminal it asks
NO_GOAL = "gsd-fsm: missing argument: one of execute, verify, goal⏎  → Run: gsd-fsm start goal "
QUOTE = "gsd-fsm: 'Fix' is not one of … → For a goal loop, run: gsd-fsm start goal 'Fix login'"
TO_START = "gsd-fsm: unknown command 'Fix login'⏎  → … run: gsd-fsm start 'Fix login'"
NOT_RUN = "gsd-fsm: unknown command 'run'⏎  → Did you mean 'start'? Run: gsd-fsm start --help"
NOT_STATS = "gsd-fsm: unknown command 'stats'⏎  → Did you mean 'status'? Run: gsd-fsm status --help"
LIVE = "gsd-fsm: live loop … → Run: gsd-fsm status --loop …"
# The 25 things that people type first. Typed after gsd-fsm | exit code and beginning of the answer
# in a new directory | the same in a project with a running loop. "…" is any text, "⏎" a new line.
TABLE = (
    ("",                  0, "Durable loops for coding agents…",      0, "…lp-… · goal · running"),
    ("--help",            0, USAGE,                                   0, USAGE),
    ("help",              0, USAGE,                                   0, USAGE),
    ("help stop",         0, HELP_OF_STOP,                            0, HELP_OF_STOP),
    ("version",           0, "gsd-fsm, version ",                     0, "gsd-fsm, version "),
    ("init",              2, ASKS,                                    2, ASKS),
    ("install",           2, ASKS,                                    2, ASKS),
    ("doctor",            3, NO_HOOK,                                 3, NO_HOOK),
    ("start",             2, NO_GOAL,                                 2, NO_GOAL),
    ("start 'Fix login'", 0, "Created the journal … Started goal",    4, LIVE),
    ("new 'Fix login'",   0, "Created the journal … Started goal",    4, LIVE),
    ("start Fix login",   2, QUOTE,                                   2, QUOTE),
    ("'Fix login'",       2, TO_START,                                2, TO_START),
    ("run",               2, NOT_RUN,                                 2, NOT_RUN),
    ("status",            3, NO_PROJECT,                              0, "loop       lp-… · goal · running"),
    ("stats",             2, NOT_STATS,                               2, NOT_STATS),
    ("list",              0, "No live loops.",                        0, "lp-…  goal  running  iteration 1"),
    ("ls",                0, "No live loops.",                        0, "lp-…  goal  running  iteration 1"),
    ("log",               3, NO_PROJECT,                              0, "…start…Do it…"),
    ("why",               3, NO_PROJECT,                              0, "Blocked (continue) at event 3"),
    ("stop",              3, NO_PROJECT,                              0, "Paused. Loop lp-… is paused."),
    ("stop --all",        0, "No live loops.",                        0, "Paused lp-… in "),
    ("quit",              3, NO_PROJECT,                              0, "Paused. Loop lp-… is paused."),
    ("continue",          3, NO_PROJECT,                              0, "Resumed. … is running."),
    ("abort",             3, NO_PROJECT,                              0, "Cancelled. … remaining: a. … is cancelled."),
)  # fmt: skip


def check_answer(here: Here, typed: str, code: int, answer: str) -> None:
    """Type the words; compare what the result, or the error, begins with."""
    found = here.run(*shlex.split(typed))
    pattern = re.escape(answer.replace("⏎", "\n")).replace("…", ".*?")
    assert found.code == code
    assert re.match(pattern, found.err if found.code else found.out, re.DOTALL), found


def test_table_has_25_rows_and_every_alias() -> None:
    typed = [row[0] for row in TABLE]
    assert len({*typed}) == 25
    assert {words.split(" ")[0] for words in typed} >= {*ALIASES}


@pytest.mark.parametrize("row", TABLE, ids=[row[0] or "-" for row in TABLE])
def test_first_words_are_answered_in_a_new_directory(
    here: Here, row: tuple[str, int, str, int, str]
) -> None:
    typed, code, answer, _, _ = row
    check_answer(here, typed, code, answer)
    assert here.gsd.exists() is ("Created" in answer)


@pytest.mark.parametrize("row", TABLE, ids=[row[0] or "-" for row in TABLE])
def test_first_words_are_answered_in_a_project_with_a_running_loop(
    here: Here, row: tuple[str, int, str, int, str]
) -> None:
    typed, _, _, code, answer = row
    install_hook()
    here.start("goal", "Do it", "--criterion", "a")
    here.ok("iterate")
    check_answer(here, typed, code, answer)


def test_first_words_in_sequence_act_on_one_project(here: Here) -> None:
    for typed in (
        "start 'Fix login'", "new 'Fix logout' --fresh", "stop", "pause", "stop --all",
        "continue --add-iterations 5", "quit", "list --json", "log --json", "abort",
    ):  # fmt: skip
        here.ok(*shlex.split(typed))
    here.refused(3, "stop")
    kinds = [event["type"] for event in here.lines()]
    assert kinds == ["journal", "start", "cancel", "start", "pause", "resume", "pause", "cancel"]
    goals = [event["data"]["goal"] for event in here.lines() if event["type"] == "start"]
    assert goals == ["Fix login", "Fix logout"]
    assert here.lines()[5]["data"]["add"] == {"max_iterations": 5}


def test_start_with_several_words_starts_a_goal_loop_with_its_options(here: Here) -> None:
    here.ok("start", "--check", "t=true", "Fix the login", "--mode", "yolo")
    data = here.lines()[1]["data"]
    assert (data["kind"], data["goal"], data["mode"]) == ("goal", "Fix the login", "yolo")
    assert (
        "For a goal loop, run: gsd-fsm start goal 'Fix it'"
        in here.refused(2, "start", "Fix", "it").err
    )
    here.refused(2, "start", "Fix it", "now")
    here.refused(2, "start", "Fix it", "--goal-file", "-", stdin=b"and this")


def test_pause_of_paused_loop_reports_it_and_appends_nothing(here: Here) -> None:
    loop = here.start("goal", "g")
    paused = here.ok("pause", "--reason", "lunch\nfake line", "--json").json
    before = here.journal.read_bytes()
    for env in ({}, AGENT):
        shown = here.ok("stop", "--reason", "again", env=env).out
        assert shown == f"Loop {loop} is already paused (manual: lunch fake line).\n"
        assert here.ok("pause", "--json", env=env).json == paused
    assert here.journal.read_bytes() == before


def test_pause_all_pauses_the_loops_of_every_project_despite_a_broken_one(here: Here) -> None:
    ids = {}
    for name in ("one", "two", "broken"):
        here.where = here.root / name
        here.where.mkdir()
        ids[name] = [here.start("goal", name, env=session) for session in (A, B)]
    here.where = here.root / "two"
    here.ok("--loop", ids["two"][0], "pause")
    journal = here.root / "broken" / ".gsd" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"start"', b'"stort"', 1))
    here.where = here.root
    answer = here.run("stop", "--all", "--json")
    assert answer.code == 5
    assert [row["loop"] for row in answer.json["loops"]] == ids["one"] + ids["two"]
    assert {row["status"] for row in answer.json["loops"]} == {"paused"}
    (problem,) = answer.json["problems"]
    assert problem["project"] == str(here.root / "broken")
    assert "corrupt" in problem["error"]
    for name in ("one", "two"):
        here.where = here.root / name
        for loop in ids[name]:
            assert here.ok("--loop", loop, "status", "--json").json["status"] == "paused"
    shown = here.run("pause", "--all").out.splitlines()
    assert [line.partition(" ")[0] for line in shown] == ["!", *["Already"] * 4]


def test_pause_all_by_an_agent_is_refused(here: Here) -> None:
    loop = here.start("goal", "g", env=AGENT)
    error = here.refused(6, "pause", "--all", env=AGENT).err
    assert error == (
        "gsd-fsm: agents cannot pause all loops on this machine\n"
        "  → Ask the user to run: gsd-fsm pause --all\n"
    )
    here.refused(2, "--loop", loop, "pause", "--all")
    here.refused(2, "pause", "--all", "--loop", loop)
