"""What people type first, and what each answers."""

from __future__ import annotations

import pytest

from gsd_fsm.cli.help.words import ALIASES
from tests.support.command_line import AGENT, A, B, Here

NO_LOOP, ENDED = "gsd-fsm: no gsd-fsm project at ", "gsd-fsm: there is no live loop; the last one"
# typed, exit code, beginning of the answer; in a directory without a project
FIRST = (
    ("", 0, "Durable loops for coding agents"),
    ("help", 0, "Usage: gsd-fsm [OPTIONS] [COMMAND]"),
    ("--help", 0, "Usage: gsd-fsm [OPTIONS] [COMMAND]"),
    ("-h", 0, "Usage: gsd-fsm [OPTIONS] [COMMAND]"),
    ("help start", 0, "Usage: gsd-fsm start"),
    ("help stop", 0, "stop is another name for pause.\n\nUsage: gsd-fsm pause"),
    ("help xyzzy", 2, "gsd-fsm: unknown command 'xyzzy'\n  → Run: gsd-fsm --help"),
    ("version", 0, "gsd-fsm, version "),
    ("--version", 0, "gsd-fsm, version "),
    ("init", 2, "gsd-fsm: confirmation required, but there is no terminal\n  → Add --yes."),
    ("install", 2, "gsd-fsm: confirmation required, but there is no terminal\n  → Add --yes."),
    ("doctor", 3, "gsd-fsm: "),
    ("start", 2, "gsd-fsm: missing argument: one of execute, verify, goal\n  → Run: gsd-fsm start"),
    ("start login", 2, "gsd-fsm: 'login' is not one of execute, verify, goal\n  → For a goal loop"),
    ("status", 3, NO_LOOP),
    ("next", 3, NO_LOOP),
    ("why", 3, NO_LOOP),
    ("log", 3, NO_LOOP),
    ("stop", 3, NO_LOOP),
    ("stop --all", 0, "No live loops."),
    ("continue", 3, NO_LOOP),
    ("list", 0, "No live loops."),
    ("ls", 0, "No live loops."),
    ("strat", 2, "gsd-fsm: unknown command 'strat'\n  → Did you mean 'start'? Run: gsd-fsm start"),
    ("run", 2, "gsd-fsm: unknown command 'run'\n  → Did you mean 'start'?"),
    ("done", 2, "gsd-fsm: unknown command 'done'\n  → Did you mean 'complete'?"),
)
# typed, exit code, beginning of the answer; one after the other in one project
THEN = (
    (["Fix login"], 2, "gsd-fsm: unknown command 'Fix login'\n  → To start a loop with this goal"),
    (["start", "Fix login"], 0, "Created the journal in "),
    (["new", "Fix logout", "--fresh"], 0, "Cancelled loop "),
    (["status"], 0, ""),
    (["stop"], 0, "Paused. Loop "),
    (["pause"], 0, "Loop "),
    (["stop", "--all"], 0, "Already paused (manual: paused by hand): "),
    (["continue"], 0, "Resumed. "),
    (["quit"], 0, "Paused. Loop "),
    (["ls"], 0, "lp-"),
    (["log"], 0, "  1  "),
    (["next"], 0, ""),
    (["abort"], 0, "Cancelled. Loop "),
    (["stop"], 3, ENDED),
)


@pytest.mark.parametrize(("typed", "code", "answer"), FIRST, ids=[it[0] or "-" for it in FIRST])
def test_first_word_outside_of_a_project_is_answered(
    here: Here, typed: str, code: int, answer: str
) -> None:
    found = here.run(*typed.split())
    assert (found.code, (found.err or found.out)[: len(answer)]) == (code, answer)
    assert not here.gsd.exists()


def test_first_words_in_a_project_do_what_they_say(here: Here) -> None:
    for typed, code, answer in THEN:
        found = here.run(*typed)
        assert (found.code, (found.err or found.out)[: len(answer)]) == (code, answer), typed
    kinds = [(event["type"], event["data"].get("goal")) for event in here.lines()]
    goals = [goal for kind, goal in kinds if kind == "start"]
    assert goals == ["Fix login", "Fix logout"]
    assert [kind for kind, _ in kinds].count("pause") == 2
    typed = [it[0] for it in THEN] + [it[0].split() for it in FIRST[1:]]
    assert {words[0] for words in typed} >= {*ALIASES}


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


def test_pause_of_paused_loop_says_so_and_appends_nothing(here: Here) -> None:
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
