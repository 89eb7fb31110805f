"""Run everything that proves a loop: the checks of its criteria, and those of reported tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.loop.waves import reported_tasks
from gsd_fsm.engine.context import Context, Receipt
from gsd_fsm.engine.criteria import CheckRun, run_checks
from gsd_fsm.engine.planned.proof import Settled, settle
from gsd_fsm.evidence.interruption import Watch, in_silence


class Checked(NamedTuple):
    """The checks of criteria that were run, and what became of reported tasks; None for neither."""

    receipt: Receipt
    run: CheckRun | None
    settled: Settled | None

    @property
    def is_passed(self) -> bool:
        settled = self.settled is None or self.settled.is_passed
        return settled and (self.run is None or self.run.is_passed)


def check(
    context: Context,
    names: Sequence[str] = (),
    *,
    timeout: float | None = None,
    watch: Watch = in_silence,
) -> Checked:
    """Run the checks of these criteria, or all; without names, also settle the reported tasks.

    Raise UsageError if the loop has nothing that a command proves.
    """
    loop = context.working_loop()
    settled = None
    if not names and (reported_tasks(loop) or _has_only_tasks(loop)):
        settled = settle(context, loop, timeout=timeout, watch=watch)
        if not any(criterion.check for criterion in loop.criteria.values()):
            return Checked(settled.receipt, None, settled)
    run = run_checks(context, names, timeout=timeout, watch=watch)
    return Checked(run.receipt, run, settled)


def _has_only_tasks(loop: Loop) -> bool:
    """Return whether the loop has tasks with checks, and no criterion with one."""
    has_checks = any(criterion.check for criterion in loop.criteria.values())
    return not has_checks and loop.is_live and any(task.checks for task in loop.tasks.values())
