from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from gsd_fsm.core.errors import Refused
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.planned.tdd import TddState, begin_cycle, run_tests
from tests.support.check_commands import watching
from tests.support.command_line import Here
from tests.support.faults import in_child, outcome
from tests.support.plan_loops import loop_of, start_planned, task_text

TESTS = "<test_files><file>test_01.py</file></test_files>\n  <test_required>true</test_required>\n"
PLAN = "---\nphase: 1\ntitle: Tests first\n---\n" + task_text("01").replace(
    "  <action>", f"  {TESTS}  <action>"
)
SETTINGS = "ci_test = 'exit $(cat outcome)'\n"


@pytest.fixture
def cycle(here: Here) -> Context:
    """Return the context of a loop with one test-driven task, whose test is written."""
    context = start_planned(here, settings=SETTINGS, plan=PLAN)
    begin_cycle(context, "T01")
    (here.root / "test_01.py").write_text("test\n")
    return context


def run(
    context: Context, exit_code: int, meanwhile: Callable[[], object] = lambda: None
) -> TddState:
    """Run tests that exit with this code; do something before they begin."""
    (context.project / "outcome").write_text(str(exit_code))
    return run_tests(context, "T01", watch=watching(say=lambda _text: meanwhile()))


def test_run_tests_leaves_files_if_loop_is_paused_meanwhile(here: Here, cycle: Context) -> None:
    for code, text in ((1, "good\n"), (0, "refactored\n")):
        run(cycle, code)
        (here.root / "01.py").write_text(text)
    with pytest.raises(Refused, match="is paused"):
        run(cycle, 1, lambda: here.ok("pause"))
    assert (here.root / "01.py").read_text() == "refactored\n"


def test_run_tests_killed_meanwhile_keeps_phase_and_attempts(here: Here, cycle: Context) -> None:
    run(cycle, 1)
    run(cycle, 1)
    before = here.journal.read_bytes()
    killed = in_child(lambda: run(cycle, 0, lambda: os.kill(os.getpid(), signal.SIGKILL)))
    assert outcome(killed) == -signal.SIGKILL
    assert here.journal.read_bytes() == before
    running = here.ok("resume", "--json").json["running"]
    assert running == [{"task": "T01", "ref": None, "phase": "green"}]
    assert begin_cycle(cycle, "T01").task.attempts == 2
    run(cycle, 0)
    task = loop_of(cycle).tasks["T01"]
    assert (task.phase, task.attempts) == ("refactor", 2)
