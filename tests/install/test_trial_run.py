from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gsd_fsm.install.hook_entries import CODE
from gsd_fsm.install.interpreter import SWITCHES
from gsd_fsm.install.trial_run import Ran, Trial, run, trial

BLOCK = '{"decision": "block", "reason": "always"}'


@pytest.fixture
def project() -> Iterator[Trial]:
    with trial() as project:
        yield project


def python(code: str) -> list[str]:
    return [sys.executable, *SWITCHES, "-c", code]


def test_trial_accepts_a_hook_that_blocks_once(project: Trial, compiled: Path) -> None:
    ran = project.block([*python(CODE), str(compiled.parent), "settings-local"], 10)
    assert ran.problem == ""
    assert ran.ms > 0


def test_trial_reports_a_hook_that_misbehaves(project: Trial) -> None:
    for code, problem in (
        ("import sys; sys.exit(2)", "exit code 2"),
        ("raise KeyError(7)", "exit code 1: KeyError: 7"),
        ("import sys; sys.stdin.read()", "it did not block the stop of a live loop"),
        ("print('[]')", "it did not block the stop of a live loop"),
        (f"print({BLOCK!r})", "it journalled 0 iterations instead of 1"),
        ("import time; time.sleep(60)", "no answer in 0.5 seconds"),
    ):
        assert project.block(python(code), 0.5 if "sleep" in code else 10).problem == problem


def test_run_reports_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    missing = run([str(tmp_path / "missing")], b"", tmp_path, os.environ, 5)
    assert missing == Ran(b"", 0, "it cannot be started: No such file or directory")
