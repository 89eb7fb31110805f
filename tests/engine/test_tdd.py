from __future__ import annotations

from contextlib import nullcontext

import pytest

from gsd_fsm.core.errors import CheckFailed, Refused
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.planned.tdd import TddState, begin_cycle, run_tests
from gsd_fsm.evidence.interruption import Output
from gsd_fsm.plans.tdd_files import tasks_with_copies
from tests.support.command_line import Here, here
from tests.support.plan_loops import loop_of, start_planned, task_text

__all__ = ["here"]

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


def run(context: Context, exit_code: int, output: Output | None = None) -> TddState:
    """Run tests that exit with this code."""
    (context.project / "outcome").write_text(str(exit_code))
    return run_tests(context, "T01", watch=lambda: nullcontext(output or Output()))


def refactoring(context: Context) -> None:
    """Bring the task to the refactor phase and change its file."""
    run(context, 1)
    (context.project / "01.py").write_text("good\n")
    run(context, 0)
    (context.project / "01.py").write_text("refactored\n")


def test_run_tests_leads_from_red_to_green_to_refactor(cycle: Context) -> None:
    assert [run(cycle, code).rules.phase for code in (1, 0, 0)] == ["green", "refactor", "refactor"]


def test_run_tests_that_pass_in_red_do_not_end_the_phase(cycle: Context) -> None:
    state = run(cycle, 0)

    assert (state.passed, state.rules.phase) == (False, "red")
    assert state.message == "The tests already pass. Write one that fails first."


def test_run_tests_with_a_changed_locked_file_fails_the_task(cycle: Context) -> None:
    run(cycle, 1)
    (cycle.project / "test_01.py").write_text("weaker\n")

    with pytest.raises(CheckFailed, match=r"locked files were changed in GREEN: test_01\.py"):
        run(cycle, 0)

    assert loop_of(cycle).tasks["T01"].status == "failed"


def test_run_tests_undoes_a_broken_refactoring_and_completes_the_task(cycle: Context) -> None:
    refactoring(cycle)

    state = run(cycle, 1)

    assert (state.passed, state.task.status) == (True, "complete")
    assert (cycle.project / "01.py").read_text() == "good\n"
    assert tasks_with_copies(cycle.gsd, state.receipt.loop.id) == []


def test_run_tests_leaves_the_files_if_the_loop_was_paused_meanwhile(
    here: Here, cycle: Context
) -> None:
    refactoring(cycle)

    with pytest.raises(Refused, match="is paused"):
        run(cycle, 1, PausingMeanwhile(here))

    assert (cycle.project / "01.py").read_text() == "refactored\n"


class PausingMeanwhile(Output):
    """Pauses the loop when the command is shown."""

    def __init__(self, here: Here) -> None:
        self.here = here

    def say(self, text: str) -> None:
        self.here.ok("pause")
