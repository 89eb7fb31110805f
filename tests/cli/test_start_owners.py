"""start, resume and --loop: the loops of sessions."""

from __future__ import annotations

import re

import pytest

from tests.support.command_line import A, B, Here
from tests.support.foreign_files import RALPH


def test_start_in_a_session_with_a_live_loop_is_refused_and_fresh_cancels_it(here: Here) -> None:
    first = here.start("goal", "one", env=A)
    assert (here.status()["owner"], here.last()["session"]) == ("session-a", "session-a")
    answer = here.refused(4, "start", "goal", "two", env=A)
    for words in (first, "running", f"--loop {first} status", f"--loop {first} resume", "--fresh"):
        assert words in answer.err
    second = here.start("goal", "two", "--fresh", env=A)
    assert here.ok("--loop", first, "status", "--json").json["status"] == "cancelled"
    assert here.ok("--loop", second, "status", "--json").json["owner"] == "session-a"
    assert here.lines()[-2]["data"] == {"reason": "start --fresh"}


@pytest.mark.parametrize("session", [A, {}], ids=["own", "unowned"])
@pytest.mark.parametrize("move", [[], ["pause"], ["wait", "Which one?"]])
@pytest.mark.parametrize("command", [["start", "goal", "two"], ["import", "ralph.md"]])
def test_start_and_import_offer_status_resume_and_fresh_and_each_of_them_works(
    here: Here, command: list[str], move: list[str], session: dict[str, str]
) -> None:
    (here.root / "ralph.md").write_text(RALPH)
    first = here.start("goal", "one", env=session)
    if move:
        here.ok(*move, env=session)
    refusal = here.refused(4, *command, env=session).err
    offered = re.findall(r"gsd-fsm (--loop \S+ (?:status|resume))\b", refusal)
    assert offered == [f"--loop {first} status", f"--loop {first} resume"]
    for words in offered:
        here.ok(*words.split(), env=session)
    assert here.status()["status"] == "running"
    assert f"'{command[0]} … --fresh' cancels it" in refusal
    here.ok(*command, "--fresh", env=session)
    assert here.run("--loop", first, "status", "--check").code == 13


def test_start_fresh_cancels_only_the_conflicting_loop(here: Here) -> None:
    here.gsd.mkdir()
    (here.gsd / "config.toml").write_text('views = ["state"]\n')
    other = here.start("goal", "one", env=B)
    free = here.start("goal", "nobody's")
    here.start("goal", "two", env=A)
    before, files = here.journal.read_bytes(), set(here.root.rglob("*"))
    here.start("goal", "three", "--fresh", env=A)
    assert here.journal.read_bytes().startswith(before)
    assert files <= set(here.root.rglob("*"))
    assert here.ok("--loop", other, "status", "--json").json["status"] == "running"
    assert here.ok("--loop", free, "status", "--json").json["status"] == "running"


def test_start_without_session_is_refused_while_another_unowned_loop_lives(here: Here) -> None:
    first = here.start("goal", "one")
    answer = here.refused(4, "start", "goal", "two")
    assert first in answer.err
    assert "no session" in answer.err
    here.ok("pause")
    here.refused(4, "start", "goal", "two")
    here.start("goal", "two", env=A)
    here.ok("--loop", first, "cancel")
    here.start("goal", "three")


def test_command_acts_on_own_loop_then_the_only_one_then_asks(here: Here) -> None:
    one = here.start("goal", "one", env=A)
    assert here.ok("note", "n", "--json", env=B).json["loop"] == one
    assert here.ok("note", "n", "--json").json["loop"] == one
    two = here.start("goal", "two", env=B)
    assert here.ok("note", "n", "--json", env=A).json["loop"] == one
    third = {"CLAUDE_CODE_SESSION_ID": "session-c"}
    for env in ({}, third):
        for verb in (["note", "n"], ["status"], ["next"], ["complete"], ["check"], ["why"]):
            answer = here.refused(2, *verb, env=env)
            assert f"{one} (goal, running)" in answer.err
            assert f"{two} (goal, running)" in answer.err
            assert "--loop" in answer.err
    assert here.ok("--loop", two, "note", "n", "--json", env=third).json["loop"] == two
    assert here.ok("note", "n", "--loop", two, "--json", env=A).json["loop"] == two


def test_empty_session_id_owns_nothing(here: Here) -> None:
    for empty in ("", "  "):
        env = {"CLAUDE_CODE_SESSION_ID": empty}
        here.start("goal", "one", "--fresh", env=env)
        assert here.status()["owner"] is None
        assert "session" not in here.last()
    here.start("goal", "two", env=A)
    here.refused(2, "note", "n", env={"CLAUDE_CODE_SESSION_ID": ""})


def test_resume_moves_the_owner_and_clears_it_outside_a_session(here: Here) -> None:
    loop = here.start("goal", "g", env=A)
    here.ok("resume", env=B)
    assert here.status()["owner"] == "session-b"
    here.ok("pause", env=B)
    here.ok("resume")
    assert here.status()["owner"] is None
    here.ok("resume", env=A)
    here.start("goal", "other", env=B)
    answer = here.refused(4, "--loop", loop, "resume", env=B)
    assert "already belongs to this session" in answer.err
    here.ok("--loop", loop, "resume", env=A)
    here.start("goal", "free")
    assert "no session" in here.refused(4, "--loop", loop, "resume").err


def test_loop_option_with_unknown_or_invalid_id_is_refused(here: Here) -> None:
    loop = here.start("goal", "g")
    answer = here.refused(3, "--loop", "lp-other", "note", "n")
    assert loop in answer.err
    for wrong in ("../lp", "a b", "", "é", "x" * 65):
        here.refused(2, "--loop", wrong, "status")


def test_invalid_session_id_is_recorded_as_its_digest(here: Here) -> None:
    for strange in ("a b\x1b[31m", "x" * 500, "tab\there"):
        env = {"CLAUDE_CODE_SESSION_ID": strange}
        here.start("goal", "g", "--fresh", env=env)
        owner = here.ok("status", "--json", env=env).json["owner"]
        assert owner.startswith("x-")
        assert len(owner) == 18
        here.ok("cancel", env=env)
