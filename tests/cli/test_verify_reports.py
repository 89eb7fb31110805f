"""verify: gaps that an agent reports in VERIFICATION.md, and the report that replaces the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.command_line import AGENT, Here
from tests.support.verification import FILE, PLACE, failed_round, lay, start_verify

ORPHAN = '<gap type="orphan" file="menu.ts">never imported</gap>'
REPORT = f"# What I found\n\n<gaps>\n  {ORPHAN}\n</gaps>\n"


@pytest.fixture
def passing(here: Here) -> Here:
    """Return a loop whose checks pass."""
    start_verify(here, FILE)
    lay(here.root, {"a.txt": "yes"})
    return here


def report_file(here: Here) -> Path:
    return here.root / PLACE / "VERIFICATION.md"


def test_verify_opens_reported_gaps_in_the_name_of_the_agent_and_keeps_its_file(
    passing: Here,
) -> None:
    report_file(passing).write_text(REPORT)
    answer = passing.run("verify", env=AGENT)
    assert answer.code == 7
    assert "✗ G1 orphan menu.ts: never imported" in answer.out
    gap = passing.lines()[2]
    assert (gap["type"], gap["by"], "check" in gap["data"]) == ("gap", "agent", False)
    assert gap["data"]["description"] == "never imported"
    assert (report_file(passing).parent / "VERIFICATION.agent.md").read_text() == REPORT
    assert '<gap id="G1" type="orphan" iteration="1/20">' in report_file(passing).read_text()


def test_reported_gap_stays_open_until_closed_and_is_reopened_when_reported_again(
    passing: Here,
) -> None:
    report_file(passing).write_text(REPORT)
    assert failed_round(passing)["opened"] == ["G1"]
    found = failed_round(passing)
    assert (found["opened"], found["gaps"]) == ([], ["G1"])
    passing.ok("gap", "close", "G1")
    report_file(passing).write_text(REPORT)
    assert failed_round(passing)["reopened"] == ["G1"]
    passing.ok("gap", "close", "G1")
    assert passing.ok("verify", "--json").json["status"] == "completed"


def test_verify_reads_gaps_that_the_agent_added_to_its_report(passing: Here) -> None:
    report_file(passing).write_text(REPORT)
    failed_round(passing)
    ours = report_file(passing).read_text()
    added = ours.replace("</gaps>", '<gap type="stub" id="mine">empty body</gap></gaps>')
    report_file(passing).write_text(added)
    found = failed_round(passing)
    assert (found["opened"], found["gaps"]) == (["G2"], ["G1", "G2"])
    assert (report_file(passing).parent / "VERIFICATION.agent.md").read_text() == REPORT


def test_verify_opens_a_new_gap_that_has_the_id_of_another(passing: Here) -> None:
    report_file(passing).write_text(REPORT)
    failed_round(passing)
    report_file(passing).write_text('<gaps><gap id="G1" type="stub">a new one</gap></gaps>')
    assert failed_round(passing)["opened"] == ["G2"]
    known = '<gaps><gap id="G1" type="orphan">never  imported</gap></gaps>'
    report_file(passing).write_text(known)
    assert failed_round(passing)["opened"] == []


def test_verify_reads_gaps_from_another_file_or_stdin(passing: Here) -> None:
    report_file(passing).write_text(REPORT)
    lay(passing.root, {"found.xml": '<gaps><gap type="wrong_import">x</gap></gaps>'})
    found = failed_round(passing, "--gaps", "found.xml")
    assert [passing.status()["gaps"][0][name] for name in ("id", "kind")] == ["G1", "wrong_import"]
    assert len(found["gaps"]) == 1
    passing.ok("gap", "close", "G1")
    answer = passing.run("verify", "--gaps", "-", stdin=REPORT.encode())
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
def test_verify_with_broken_report_names_its_line_and_runs_nothing(
    here: Here, text: str, said: str
) -> None:
    start_verify(here, FILE, ci_test="touch was-run")
    report_file(here).write_text(text)
    assert said in here.refused(2, "verify").err
    assert report_file(here).read_text() == text
    assert not (here.root / "was-run").exists()
    here.refused(2, "verify", "--gaps", "nowhere.xml")


@pytest.mark.parametrize("what", ["pipe", "directory", "link", "binary", "tebibyte"])
def test_verify_with_special_file_as_report_is_refused_and_runs_nothing(
    here: Here, what: str
) -> None:
    start_verify(here, FILE, ci_test="touch was-run")
    path = report_file(here)
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


def test_verify_keeps_a_binary_report_unchanged(passing: Here) -> None:
    content = b"\xff\xfe\x00 not text"
    report_file(passing).write_bytes(content)
    passing.ok("verify")
    assert (report_file(passing).parent / "VERIFICATION.agent.md").read_bytes() == content


def test_verify_exits_6_if_round_is_recorded_but_report_cannot_be_written(passing: Here) -> None:
    (passing.root / PLACE / "verification.json").mkdir()
    answer = passing.run("verify", "--json")
    assert answer.code == 6
    assert "round 1 is recorded, but its report is not written" in answer.json["error"]
    assert passing.status()["status"] == "completed"
    assert "**Status:** passed" in report_file(passing).read_text()


def test_verify_does_not_overwrite_a_report_written_meanwhile(here: Here) -> None:
    start_verify(here, FILE, ci_test=f"echo mine > {PLACE}/VERIFICATION.md")
    answer = here.run("verify")
    assert answer.code == 6
    assert "changed in the meantime" in answer.err
    assert report_file(here).read_text() == "mine\n"
    assert here.status()["round"] == 1


def test_verify_escapes_plan_text_in_terminal_and_report(here: Here) -> None:
    evil = FILE.replace("It says", "It \u202esays | <!-- # [x](y)").replace(
        "a.txt exists", "a*b.txt"
    )
    start_verify(here, evil)
    answer = here.run("verify")
    assert answer.code == 7
    text = report_file(here).read_text()
    for shown in (answer.out, answer.err, text):
        assert "\u202e" not in shown
    row = next(line for line in text.splitlines() if "says" in line and line.startswith("|"))
    assert "\\| \\<!--" in row
