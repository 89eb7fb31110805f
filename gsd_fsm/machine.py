"""The same table as a `transitions` machine: a second opinion on every step of the fold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transitions import EventData, Machine, MachineError

from gsd_fsm.core.fold import World
from gsd_fsm.core.loop import Loop
from gsd_fsm.core.rules import CHECKS, CONDITIONS, FACTS, arrive, illegal, trigger_of
from gsd_fsm.core.table import FINAL, STATUSES, flat_rows


class LoopModel:
    """One loop as the machine sees it; the machine gives it `state` and `trigger`."""

    state: str

    def __init__(self, loop: Loop) -> None:
        self.loop = loop


def _of(data: EventData) -> tuple[Loop, dict[str, Any]]:
    model: Any = data.model
    return model.loop, data.kwargs["event"]


def _check(data: EventData) -> None:
    loop, event = _of(data)
    check = CHECKS.get(trigger_of(event))
    if check is not None:
        check(loop, event)


def _condition(name: str) -> Callable[[EventData], bool]:
    return lambda data: CONDITIONS[name](*_of(data))


def _take_facts(data: EventData) -> None:
    loop, event = _of(data)
    FACTS[trigger_of(event)](loop, event)


def _arrive(data: EventData) -> None:
    loop, event = _of(data)
    arrow: Any = data.transition
    if arrow.source != arrow.dest:
        arrive(loop, event, arrow.source, arrow.dest)


def build_machine() -> Machine:
    """The table as a machine, without any way around it."""
    rows = [
        {
            "trigger": trigger,
            "source": source,
            "dest": dest,
            "conditions": [_condition(condition)] if condition else [],
        }
        for trigger, source, dest, condition in flat_rows()
    ]
    return Machine(
        model=None,
        states=list(STATUSES),
        transitions=rows,
        initial="idle",
        auto_transitions=False,
        send_event=True,
        prepare_event=[_check],
        before_state_change=[_take_facts],
        after_state_change=[_arrive],
    )


class MachineWorld(World):
    """A world whose every step is taken by `transitions.Machine`."""

    def __init__(self, keep: str | None = None) -> None:
        super().__init__(keep)
        self.machine = build_machine()
        self._models: dict[str, LoopModel] = {}

    def step(self, loop: Loop, event: dict[str, Any]) -> None:
        model = self._models.get(event["loop"])
        if model is None:
            model = self._models[event["loop"]] = LoopModel(loop)
            self.machine.add_model(model, initial=loop.status)
        trigger = trigger_of(event)
        moved = False
        try:
            moved = model.trigger(trigger, event=event)  # type: ignore[attr-defined] # by Machine
        except MachineError:
            pass
        finally:
            # A loop that has ended, or never began, takes no more steps.
            if loop.status in (*FINAL, "idle"):
                self.machine.remove_model(model)
                del self._models[event["loop"]]
        if not moved:
            raise illegal(loop, trigger)

    def possible(self, status: str) -> list[str]:
        """What may happen in this status, as the machine knows it."""
        return list(self.machine.get_triggers(status))
