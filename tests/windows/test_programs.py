"""A clone must not bring the programs that look at it: none of them is run, and none is chosen."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gsd_fsm.core.errors import UsageError
from gsd_fsm.install.interpreter import choose
from tests.support.command_line import Here
from tests.support.programs import SUFFIX, make_program, on_path

LEAVES_A_MARK = "import pathlib, sys; pathlib.Path(sys.argv[0]).parent.joinpath('ran').touch()\n"
NAMES = ("git", "python3", "python", "gsd-fsm")


@pytest.fixture
def clone(here: Here) -> Here:
    """Return a project with programs of its own, which its PATH names in every way."""
    folder = here.root / "tools"
    for name in NAMES:
        make_program(here.root / name, LEAVES_A_MARK)
        make_program(folder / name, LEAVES_A_MARK)
    here.patch.setenv("PATH", on_path(".", "", here.root, folder, os.environ["PATH"]))
    here.patch.setattr(sys, "_base_executable", str(here.root / "gone"), raising=False)
    here.patch.chdir(here.root)
    return here


def test_programs_of_the_project_leave_a_mark_when_they_are_run(clone: Here) -> None:
    from subprocess import run

    assert run([str(clone.root / f"git{SUFFIX}")], check=False).returncode == 0
    assert (clone.root / "ran").exists()


def test_init_runs_no_program_of_the_project(clone: Here) -> None:
    answer = clone.ok("init", "--yes", "--json").json
    assert not Path(answer["python"]).is_relative_to(clone.root)
    clone.run("doctor")
    clone.ok("start", "goal", "g", "--check", "t=echo done")
    clone.ok("check", "--complete")
    assert not list(clone.root.rglob("ran"))


def test_python_is_looked_for_on_the_path_outside_of_the_project(
    clone: Here, tmp_path: Path
) -> None:
    beside = make_program(tmp_path / "beside" / "python3", LEAVES_A_MARK)
    clone.patch.setattr(sys, "executable", str(clone.root / "gone"))
    clone.patch.setenv("PATH", on_path(".", clone.root, beside.parent))
    with pytest.raises(UsageError, match="is not a Python interpreter"):
        choose(None, clone.root)
    assert [path.parent for path in tmp_path.rglob("ran")] == [beside.parent]
    for name in ("python3", "python"):
        (beside.parent / f"{name}{SUFFIX}").unlink(missing_ok=True)
        with pytest.raises(UsageError, match=f"{name} is not a program"):
            choose(name, clone.root)
