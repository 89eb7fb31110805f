from __future__ import annotations

import os
from pathlib import Path

import pytest

from gsd_fsm.install.checks import client as checks
from tests.support.client_settings import program
from tests.support.command_line import Here


@pytest.mark.parametrize(
    ("says", "state", "told"),
    [
        ("echo '2.1.325 (Claude Code)'", "ok", "version 2.1.325, "),
        ("echo 2.1.163", "ok", "version 2.1.163, "),
        ("echo 2.1.162", "note", "version 2.1.162 shows each refused stop as an error; 2.1.163"),
        ("echo hello", "note", "not a version"),
        ("echo no >&2; exit 3", "note", "exit code 3: no"),
        ("exec sleep 60", "note", "no answer in 0.2 seconds"),
    ],
)
def test_version_is_asked_of_the_client_on_the_path(
    here: Here, tmp_path: Path, says: str, state: str, told: str
) -> None:
    program(tmp_path / "bin" / "claude", f"#!/bin/sh\n{says}\n")
    here.patch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    if "sleep" in says:
        here.patch.setattr(checks, "_PATIENCE", 0.2)
    row = checks.check_version(str(here.root))
    assert (row.state, told in row.told) == (state, True), row


def test_version_is_not_asked_of_a_program_of_the_project(here: Here) -> None:
    mark = here.root / "mark"
    program(here.root / "bin" / "claude", f"#!/bin/sh\ntouch '{mark}'\n")
    here.patch.setenv("PATH", f"{here.root / 'bin'}:/usr/bin:/bin")
    assert checks.check_version(str(here.root)).told == "claude is not on the PATH"
    assert not mark.exists()


def test_path_fix_without_a_directory_of_the_user_installs_the_program(
    here: Here, tmp_path: Path
) -> None:
    here.patch.setenv("PATH", str(tmp_path))
    assert checks.path_fix(str(here.root)) == "pipx install gsd-fsm"
