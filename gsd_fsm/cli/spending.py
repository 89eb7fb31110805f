"""Money that was spent: recorded and, once a budget is used up, the end of the work for now."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gsd_fsm.cli.call import Event
from gsd_fsm.core.guards import BUDGET, Spent, spent_limit
from gsd_fsm.core.loop import Loop
from gsd_fsm.core.proof import latest_tree, missing
from gsd_fsm.core.table import ACTIVE


def spends(
    loop: Loop, now: int, spend: Event, pause: Callable[[Loop, Spent], Event]
) -> Iterator[Event]:
    """The event and, if it uses up a budget of a loop that is not done, the pause that it ends in.

    It must be drawn from while the loop is as each event leaves it.
    """
    yield spend
    spent = spent_limit(loop, loop.limits, now, BUDGET)
    if spent and loop.status in ACTIVE and missing(loop, latest_tree(loop)):
        yield pause(loop, spent)
