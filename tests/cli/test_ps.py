from __future__ import annotations

import os
from pathlib import Path

from tests.support.command_line import A, Here
from tests.support.forge import chain, header, plant, start


def test_ps_lists_the_live_loops_of_all_projects(here: Here, tmp_path: Path) -> None:
    assert here.ok("ps").out == "No live loops.\n"
    assert here.ok("ps", "--json").json == {"loops": [], "problems": []}
    one = here.start("goal", "one", env=A)
    here.start("verify")
    here.ok("--loop", one, "iterate")
    other = here.where = tmp_path / "z other"
    other.mkdir()
    here.start("execute")
    here.start("execute", "--fresh")
    here.where = Path("/")
    found = here.ok("ps", "--json").json
    assert found["problems"] == []
    rows = [(row["project"], row["kind"], row["status"]) for row in found["loops"]]
    assert rows == [
        (str(here.root), "goal", "running"),
        (str(here.root), "verify", "running"),
        (str(other), "execute", "running"),
    ]
    assert list(found["loops"][0]) == [
        "project",
        "loop",
        "kind",
        "status",
        "iteration",
        "owner",
        "goal",
        "last_event",
    ]
    assert (found["loops"][0]["owner"], found["loops"][0]["iteration"]) == ("session-a", 1)
    shown = here.ok("ps").out
    assert one in shown
    assert str(other) in shown


def test_ps_passes_over_gone_projects_and_tells_of_damaged_ones(here: Here, tmp_path: Path) -> None:
    here.start("goal", "g")
    here.journal.write_bytes(b"rubbish\n")
    gone = here.where = tmp_path / "gone"
    gone.mkdir()
    here.start("goal", "g")
    here.where = tmp_path
    gone.rename(tmp_path / "elsewhere")
    found = here.ok("ps", "--json").json
    assert found["loops"] == []
    assert [problem["project"] for problem in found["problems"]] == [str(here.root)]
    assert "corrupt" in found["problems"][0]["error"]
    assert f"! {here.root}" in here.ok("ps").out


def test_ps_believes_neither_a_swapped_journal_nor_a_broken_registration(here: Here) -> None:
    here.start("goal", "g")
    plant(here.root, chain([header(), start()]))
    journals = Path(os.environ["XDG_STATE_HOME"]) / "gsd-fsm/journals"
    for name, content in (
        ("a", b"\xff"),
        ("b", b"[]"),
        ("c", b'{"id":1}'),
        ("d", b"{}"),
        ("e", b"1"),
    ):
        journals.joinpath(name).write_bytes(content)
    journals.joinpath("f").mkdir()
    assert here.ok("ps", "--json").json["loops"] == []


def test_a_place_with_several_journals_is_listed_once(here: Here) -> None:
    here.start("goal", "g")
    for _ in range(2):
        here.journal.write_bytes(b"damaged\n")
        here.ok("fsck", "--repair", "--yes")
    here.journal.write_bytes(b"damaged\n")
    assert len(here.ok("ps", "--json").json["problems"]) == 1
    here.ok("fsck", "--repair", "--yes")
    here.start("goal", "g")
    assert len(here.ok("ps", "--json").json["loops"]) == 1


def test_a_newline_in_a_path_makes_no_line_of_its_own(here: Here, tmp_path: Path) -> None:
    odd = here.where = tmp_path / "odd\nlp-fake goal running"
    odd.mkdir()
    made = here.ok("start", "goal", "g").out
    assert made.count("\n") == 1
    assert here.ok("ps").out.count("\n") == 1
