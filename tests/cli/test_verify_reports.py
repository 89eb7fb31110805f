"""What an agent reports in VERIFICATION.md, and what becomes of the file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_verify import FILE, PLACE, begin, gaps_found
from tests.support.command_line import AGENT, Here
from tests.support.small_plans import lay

ORPHAN = '<gap type="orphan" file="menu.ts">never imported</gap>'
AGENTS = f"# What I found\n\n<gaps>\n  {ORPHAN}\n</gaps>\n"


@pytest.fixture
def passing(here: Here) -> Here:
    """A loop whose checks pass."""
    begin(here, FILE)
    lay(here.root, {"a.txt": "yes"})
    return here


def report(here: Here) -> Path:
    return here.root / PLACE / "VERIFICATION.md"


def test_the_gaps_of_an_agent_are_opened_in_its_name_and_its_file_is_kept(passing: Here) -> None:
    report(passing).write_text(AGENTS)
    answer = passing.run("verify", env=AGENT)
    assert answer.code == 7
    assert "✗ G1 orphan menu.ts: never imported" in answer.out
    gap = passing.lines()[2]
    assert (gap["type"], gap["by"], "check" in gap["data"]) == ("gap", "agent", False)
    assert gap["data"]["description"] == "never imported"
    assert (report(passing).parent / "VERIFICATION.agent.md").read_text() == AGENTS
    assert '<gap id="G1" type="orphan" iteration="1/20">' in report(passing).read_text()


def test_a_reported_gap_is_closed_by_hand_only(passing: Here) -> None:
    report(passing).write_text(AGENTS)
    assert gaps_found(passing)["opened"] == ["G1"]
    found = gaps_found(passing)
    assert (found["opened"], found["gaps"]) == ([], ["G1"])
    passing.ok("gap", "close", "G1")
    assert passing.ok("verify", "--json").json["status"] == "completed"


def test_a_gap_that_is_reported_again_is_reopened(passing: Here) -> None:
    report(passing).write_text(AGENTS)
    gaps_found(passing)
    passing.ok("gap", "close", "G1")
    report(passing).write_text(AGENTS)
    assert gaps_found(passing)["reopened"] == ["G1"]


def test_what_an_agent_adds_to_our_file_is_read(passing: Here) -> None:
    report(passing).write_text(AGENTS)
    gaps_found(passing)
    ours = report(passing).read_text()
    added = ours.replace("</gaps>", '<gap type="stub" id="mine">empty body</gap></gaps>')
    report(passing).write_text(added)
    found = gaps_found(passing)
    assert (found["opened"], found["gaps"]) == (["G2"], ["G1", "G2"])
    assert (report(passing).parent / "VERIFICATION.agent.md").read_text() == AGENTS


def test_the_id_of_another_gap_does_not_hide_a_new_one(passing: Here) -> None:
    report(passing).write_text(AGENTS)
    gaps_found(passing)
    report(passing).write_text('<gaps><gap id="G1" type="stub">a new one</gap></gaps>')
    assert gaps_found(passing)["opened"] == ["G2"]
    known = '<gaps><gap id="G1" type="orphan">never  imported</gap></gaps>'
    report(passing).write_text(known)
    assert gaps_found(passing)["opened"] == []


def test_another_file_may_be_read_instead(passing: Here) -> None:
    report(passing).write_text(AGENTS)
    lay(passing.root, {"found.xml": '<gaps><gap type="wrong_import">x</gap></gaps>'})
    found = gaps_found(passing, "--gaps", "found.xml")
    assert [passing.status()["gaps"][0][name] for name in ("id", "kind")] == ["G1", "wrong_import"]
    assert len(found["gaps"]) == 1
    passing.ok("gap", "close", "G1")
    answer = passing.run("verify", "--gaps", "-", stdin=AGENTS.encode())
    assert answer.code == 7
    assert passing.status()["gaps"][1]["kind"] == "orphan"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "<gaps>\n<gap type='hole'>x</gap>\n</gaps>",
            "VERIFICATION.md:2: unknown kind of gap: 'hole'",
        ),
        ("\n<gaps>\n<gap type='stub'>x", "VERIFICATION.md:2: <gaps> has no </gaps>"),
    ],
)
def test_a_broken_report_changes_nothing_and_runs_nothing(here: Here, text: str, said: str) -> None:
    begin(here, FILE, ci_test="touch was-run")
    report(here).write_text(text)
    assert said in here.refused(2, "verify").err
    assert report(here).read_text() == text
    assert not (here.root / "was-run").exists()
    here.refused(2, "verify", "--gaps", "nowhere.xml")


@pytest.mark.parametrize("what", ["pipe", "directory", "link", "binary", "tebibyte"])
def test_a_strange_file_in_the_place_of_the_report_is_told_at_once(here: Here, what: str) -> None:
    begin(here, FILE, ci_test="touch was-run")
    path = report(here)
    if what == "pipe":
        os.mkfifo(path)
    elif what == "directory":
        path.mkdir()
    elif what == "link":
        path.symlink_to("/etc/passwd")
    elif what == "binary":
        path.write_bytes(b"\xff\x00\n<gaps>\xfe")
    else:
        path.touch()
        os.truncate(path, 1 << 40)
    here.refused(2, "verify")
    assert not (here.root / "was-run").exists()


def test_a_binary_report_without_gaps_is_kept_as_it_was(passing: Here) -> None:
    content = b"\xff\xfe\x00 not text"
    report(passing).write_bytes(content)
    passing.ok("verify")
    assert (report(passing).parent / "VERIFICATION.agent.md").read_bytes() == content


def test_a_report_that_cannot_be_written_leaves_the_round_recorded(passing: Here) -> None:
    (passing.root / PLACE / "verification.json").mkdir()
    answer = passing.run("verify", "--json")
    assert answer.code == 6
    assert "round 1 is recorded, but its report is not written" in answer.json["error"]
    assert passing.status()["status"] == "completed"
    assert "**Status:** passed" in report(passing).read_text()


def test_a_report_written_while_checks_run_is_not_overwritten(here: Here) -> None:
    begin(here, FILE, ci_test=f"echo mine > {PLACE}/VERIFICATION.md")
    answer = here.run("verify")
    assert answer.code == 6
    assert "changed in the meantime" in answer.err
    assert report(here).read_text() == "mine\n"
    assert here.status()["round"] == 1


def test_a_loop_that_is_paused_while_checks_run_takes_no_round(here: Here) -> None:
    begin(here, FILE, ci_test=f"{sys.executable} -m gsd_fsm pause")
    answer = here.run("verify")
    assert answer.code == 4, answer
    assert here.last()["type"] == "pause"
    assert not report(here).exists()


def test_what_plans_say_reaches_terminal_and_report_harmlessly(here: Here) -> None:
    evil = FILE.replace("It says", "It \u202esays | <!-- # [x](y)").replace(
        "a.txt exists", "a*b.txt"
    )
    begin(here, evil)
    answer = here.run("verify")
    assert answer.code == 7
    text = report(here).read_text()
    for shown in (answer.out, answer.err, text):
        assert "\u202e" not in shown
    row = next(line for line in text.splitlines() if "says" in line and line.startswith("|"))
    assert "\\| \\<!--" in row


def test_a_prompt_for_each_gap_is_ready(here: Here) -> None:
    begin(here, FILE)
    gaps_found(here)
    items: list[Any] = here.ok("next", "--json").json["tasks"]
    assert [item["id"] for item in items] == ["G1", "G2"]
    assert '<gap type="stub" iteration="1/20">' in items[0]["prompt"]
