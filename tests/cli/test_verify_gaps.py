"""gap and verified without a plan."""

from __future__ import annotations

from tests.support.command_line import Here


def start_verify(here: Here, settings: str) -> None:
    here.gsd.mkdir()
    here.gsd.joinpath("config.toml").write_text(settings)
    here.start("verify")


def test_gap_is_found_closed_and_reopened_and_the_status_follows(here: Here) -> None:
    here.start("verify")
    found = here.ok(
        *("gap", "found", "--kind", "stub", "--file", "a.py", "--description", "empty body"),
        *("--evidence", "line 3", "--json"),
    ).json
    assert list(found) == ["loop", "seq", "status", "head", "gap"]
    assert (found["gap"], found["status"]) == ("G1", "fixing")
    here.ok("gap", "found", "--description", "another")
    here.ok("gap", "close", "G1", "--evidence", "now full")
    status = here.status()
    assert (status["status"], status["gaps_remaining"]) == ("fixing", 1)
    here.ok("gap", "close", "G2")
    assert here.status()["status"] == "running"
    here.ok("gap", "reopen", "G1")
    status = here.status()
    assert (status["status"], status["gaps_remaining"]) == ("fixing", 1)
    assert status["gaps"][0] == {
        "id": "G1",
        "kind": "stub",
        "file": "a.py",
        "description": "empty body",
        "evidence": "now full",
        "reopened": 1,
        "round": 0,
        "status": "open",
    }


def test_gap_with_invalid_arguments_is_refused(here: Here) -> None:
    here.start("verify")
    assert "--description" in here.refused(2, "gap", "found").err
    assert "missing gap id" in here.refused(2, "gap", "close").err
    here.refused(2, "gap", "lost")
    here.refused(2, "gap", "close", "../G1")
    answer = here.refused(2, "gap", "found", "--kind", "../k", "--description", "d")
    assert "unknown kind of gap: '../k'" in answer.err
    assert (
        "orphan, broken_link, stub, missing_export, wrong_import, ci_failure, other" in answer.err
    )
    assert "no gap G1" in here.refused(4, "gap", "close", "G1").err
    here.ok("gap", "found", "--description", "d")
    assert "already open" in here.refused(4, "gap", "reopen", "G1").err
    here.ok("gap", "close", "G1")
    assert "already closed" in here.refused(4, "gap", "close", "G1").err


def test_verified_at_round_limit_pauses_and_names_gaps_left(here: Here) -> None:
    start_verify(here, "verify_max_iterations = 2\n")
    for text in ("one", "two", "three"):
        here.ok("gap", "found", "--description", text)
    here.ok("gap", "close", "G2")
    here.ok("verified", "fail")
    assert (here.status()["round"], here.status()["iteration"]) == (1, 0)
    here.ok("verified", "fail")
    status = here.status()
    assert (status["status"], status["pause_code"]) == ("paused", "rounds")
    assert status["pause_reason"].endswith("; gaps left: G1, G3")
    assert "--add-rounds" in here.refused(4, "resume").err
    here.ok("resume", "--add-rounds", "1")
    here.ok("iterate")
    here.ok("gap", "close", "G1")
    here.ok("gap", "close", "G3")
    here.ok("verified", "pass")
    assert here.status()["status"] == "running"
    here.ok("complete")


def test_gap_and_failure_pause_without_auto_loop(here: Here) -> None:
    start_verify(here, "auto_loop = false\n")
    here.ok("gap", "found", "--description", "d")
    status = here.status()
    assert (status["status"], status["pause_code"]) == ("paused", "manual")
    here.start("execute", "--task", "T1", "--fresh")
    shown = here.ok("fail", "T1", "--error", "AssertionError").out
    assert "## Task T1 Failed" in shown
    assert "AssertionError" in shown
    status = here.status()
    assert (status["status"], status["pause_code"]) == ("paused", "manual")


def test_gap_reopened_twice_pauses_the_loop(here: Here) -> None:
    loop = here.start("verify")
    found = ("gap", "found", "--kind", "stub", "--description", "d")
    here.ok(*found)
    here.ok("gap", "close", "G1")
    here.ok("gap", "reopen", "G1")
    assert here.status()["status"] == "fixing"
    here.ok("gap", "close", "G1")
    answer = here.ok(*found)
    assert "gap G1 was closed and reopened 2 times" in answer.out
    assert (here.last()["type"], here.last()["by"]) == ("pause", "cli")
    status = here.status()
    assert (status["status"], status["pause_code"]) == ("paused", "oscillation")
    assert f"gsd-fsm --loop {loop} resume" in status["next"]
    here.ok("resume")
    here.ok("gap", "close", "G1")
    here.ok("gap", "reopen", "G1")
    assert here.status()["status"] == "fixing"
