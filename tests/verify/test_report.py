from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.errors import CannotWrite, UsageError
from gsd_fsm.plans.load import load_plan
from gsd_fsm.verify.report import (
    MARKER,
    is_own_report,
    markdown,
    read_report,
    report_directory,
    report_facts,
    write_report,
)
from gsd_fsm.verify.reported_gaps import read_gaps
from tests.support.story import Story
from tests.support.verification import DOCUMENT, plan_of, result, task

EVIL = "a | b\n```\n<gaps>\n## Heading\n</gap> [x](http://e) \x1b[31m *b* <!-- -->"


def facts(**more: Any) -> dict[str, Any]:
    story = Story("verify", phase=1, limits={"max_rounds": 20})
    about = {"description": "T01: a.py exists", "evidence": "missing file: a.py"}
    story.gap("G1", kind="stub", file="a.py", check="T01#1", **about)
    story("verified", passed=False)
    results = [
        result(),
        result("T01#2", passed=None, text="Looks good", file=None),
        result("ci:test", passed=True, evidence="exit code 0", seconds=12.34),
    ]
    return {**report_facts(story.loop, results, passed=False), **more}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return the folder of phase 1 in a project."""
    place = tmp_path / "project" / ".gsd" / "plans" / "phase-1"
    place.mkdir(parents=True)
    return place


def save(place: Path, **more: Any) -> Path:
    root = place.parents[2]
    return write_report(root, place, facts(**more), None, read_report(root, place))


def test_verification_json_has_checks_gaps_and_manual_checks() -> None:
    found = facts()
    members = "loop phase round max_rounds status checks gaps manual"
    assert " ".join(found) == members
    assert (found["phase"], found["round"], found["status"]) == (1, 1, "gaps_found")
    assert (
        " ".join(found["checks"][0])
        == "key task kind text passed file evidence seconds altered flaky shell"
    )
    assert found["gaps"] == [{
        "id": "G1", "kind": "stub", "file": "a.py", "description": "T01: a.py exists",
        "evidence": "missing file: a.py", "reopened": 0, "round": 0, "check": "T01#1",
        "strategy": "Implement real functionality",
    }]  # fmt: skip
    assert found["manual"] == [{"key": "T01#2", "task": "T01", "text": "Looks good"}]


def test_verification_md_has_status_checks_gaps_and_must_haves() -> None:
    text = markdown(facts(), load_plan(DOCUMENT))
    assert text.startswith(f"{MARKER}\n# Phase 1 Verification\n\n**Status:** gaps_found\n")
    assert "\nRound 1 of 20 of loop lp-1.\n" in text
    assert "| T01 | file | a.py exists | **missed** | 0.1 |\n" in text
    assert "| CI test | command | make test | passed | 12.3 |\n" in text
    assert (
        '```xml\n<gaps>\n  <gap id="G1" type="stub" iteration="1/20">\n    <file>a.py</file>\n'
        "    <description>T01: a.py exists</description>\n"
        "    <evidence>missing file: a.py</evidence>\n  </gap>\n</gaps>\n```\n"
    ) in text
    assert "\n## Manual checks\n\n- [ ] T01: Looks good\n" in text
    assert "\n## Must-haves\n\n- Execute retries failed tasks automatically" in text


def test_verification_md_omits_missing_gaps_phase_and_limit() -> None:
    text = markdown(facts(gaps=[], phase=None, status="passed", max_rounds=0, manual=[]), None)
    assert text.startswith(f"{MARKER}\n# Verification\n\n**Status:** passed\n\nRound 1 of loop")
    assert "## Gaps\n\nNone.\n" in text
    assert "Manual" not in text
    assert "Must-haves" not in text


def test_verification_md_escapes_text_and_renames_unknown_kinds(tmp_path: Path) -> None:
    found = facts(phase=EVIL)
    found["checks"][0]["text"] = found["manual"][0]["text"] = EVIL
    found["gaps"][0].update(kind="of-old", description=EVIL, evidence=EVIL, file=EVIL)
    plan = plan_of(tmp_path, task("01", [("file", "a")], "a"))._replace(must_haves=(EVIL,))
    text = markdown(found, plan)
    assert [(gap.id, gap.kind) for gap in read_gaps(text, "V.md")] == [("G1", "other")]
    assert "\x1b" not in text
    lines = text.splitlines()
    # Their headings are inside of our fence, which they cannot close.
    start, end = (number for number, line in enumerate(lines) if line.startswith("````"))
    assert lines[start:end].count("## Heading") == 3
    headings = [line for line in lines[:start] + lines[end:] if line.startswith("##")]
    assert headings == ["## Checks", "## Gaps", "## Manual checks", "## Must-haves"]
    table = [line for line in lines if line.startswith("| ")]
    assert {line.replace("\\|", "").count("|") for line in table} == {6}


def test_report_directory_outside_the_project_is_rejected(place: Path, tmp_path: Path) -> None:
    root = place.parents[2]
    (tmp_path / "away").mkdir()
    (place.parent / "phase-2").symlink_to(tmp_path / "away")
    with pytest.raises(UsageError, match="points outside"):
        report_directory(root, None, 2)
    (place / "VERIFICATION.md").symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match="points outside"):
        read_report(root, report_directory(root, None, 1))


def test_save_replaces_our_report_and_keeps_that_of_an_agent(place: Path) -> None:
    assert read_report(place.parents[2], place) is None
    (place / "VERIFICATION.md").write_text("# Mine\n")
    report = save(place)
    assert report == place / "VERIFICATION.md"
    assert is_own_report(report.read_bytes())
    assert json.loads((place / "verification.json").read_text()) == facts()
    save(place, round=2)
    assert "Round 2" in report.read_text()
    assert (place / "VERIFICATION.agent.md").read_text() == "# Mine\n"
    names = sorted(path.name for path in place.iterdir())
    assert names == ["VERIFICATION.agent.md", "VERIFICATION.md", "verification.json"]


@pytest.mark.parametrize("name", ["VERIFICATION.agent.md", "verification.json"])
def test_save_leaves_other_than_regular_files_alone(place: Path, name: str) -> None:
    (place / "VERIFICATION.md").write_text("# Mine\n")
    os.mkfifo(place / name)
    with pytest.raises(CannotWrite, match=r"round 1 is recorded, .* not a regular file"):
        save(place)
    assert (place / name).is_fifo()
