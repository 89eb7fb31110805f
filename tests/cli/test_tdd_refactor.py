"""The last phase of `tdd`: a refactoring that breaks the tests is undone to where they last passed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.test_planned import done
from tests.cli.test_tdd import fails, passes, state, tests_first
from tests.support.command_line import Here

__all__ = ["tests_first"]


def to_refactor(here: Here) -> None:
    """Come to the last phase, with an implementation that passes."""
    here.ok("tdd", "T01")
    (here.root / "test_a.py").write_text("test\n")
    passes(here, 1)
    (here.root / "a.py").write_bytes(b"a\r\n\x00\xff")
    (here.root / "a.py").chmod(0o755)
    (here.root / "b.py").write_text("b\n")
    passes(here, 0)


def kept() -> Path:
    """Where the way back is kept."""
    return Path(os.environ["XDG_STATE_HOME"]) / "gsd-fsm" / "tdd"


def test_a_failed_refactoring_is_undone_and_the_task_is_complete(tests_first: Here) -> None:
    here = tests_first
    to_refactor(here)
    (here.root / "a.py").unlink()
    (here.root / "b.py").write_text("worse\n")
    (here.root / "sub").mkdir()
    (here.root / "sub" / "c.py").write_text("new\n")
    passes(here, 4)
    assert (here.root / "a.py").read_bytes() == b"a\r\n\x00\xff"
    assert (here.root / "a.py").stat().st_mode & 0o777 == 0o755
    assert (here.root / "b.py").read_text() == "b\n"
    assert not (here.root / "sub" / "c.py").exists()
    refactor, complete = (event["data"] for event in here.lines()[-2:])
    assert (refactor["phase"], refactor["exit_code"], refactor["undone"]) == ("refactor", 4, True)
    assert complete["status"] == "complete"
    assert "was undone (a.py, b.py, sub/c.py)" in complete["summary"]
    assert state(here)["status"] == "complete"


def test_a_refactoring_is_undone_to_where_the_tests_last_passed(tests_first: Here) -> None:
    here = tests_first
    to_refactor(here)
    (here.root / "b.py").write_text("better\n")
    passes(here, 0)
    (here.root / "b.py").write_text("worse\n")
    passes(here, 1)
    assert (here.root / "b.py").read_text() == "better\n"


def test_what_was_kept_for_the_way_back_is_gone_in_the_end(tests_first: Here) -> None:
    to_refactor(tests_first)
    assert [path.stat().st_mode & 0o777 for path in kept().iterdir()] == [0o600]
    passes(tests_first, 0)
    done(tests_first, "T01")
    assert not kept().exists()


@pytest.mark.parametrize("damage", [b"", b"{", None])
def test_without_a_way_back_a_broken_refactoring_completes_nothing(
    tests_first: Here, damage: bytes | None
) -> None:
    to_refactor(tests_first)
    (copies,) = kept().iterdir()
    copies.unlink() if damage is None else copies.write_bytes(damage)
    told = fails(tests_first, 1)
    assert (told["phase"], told["exit_code"]) == ("refactor", 1)
    assert state(tests_first)["status"] == "running"
    assert (tests_first.root / "b.py").read_text() == "b\n"
