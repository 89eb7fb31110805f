"""Step `transitions.Machine` beside the fold, and compare every status change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from transitions import EventData, Machine, MachineError

from gsd_fsm.core.errors import GsdError, Refused
from gsd_fsm.core.loop.fold import TRIGGERS, Loops, NotPossible, steps_of, trigger_of
from gsd_fsm.core.loop.state import FINAL, STATUSES, Loop

if TYPE_CHECKING:
    from gsd_fsm.core.loop.payloads import Event
    from gsd_fsm.core.loop.schema import When


class LoopModel:
    """The model of one loop; the machine adds `state` and `trigger` to it."""

    state: str

    def __init__(self, loop: Loop) -> None:
        self.loop = loop


def _condition(when: When) -> Callable[[EventData], bool]:
    def holds(data: EventData) -> bool:
        model: Any = data.model
        return when(model.loop, data.kwargs["event"])

    return holds


def build_machine() -> Machine:
    """Return a machine with exactly the transitions of the table."""
    rows = [
        {
            "trigger": trigger,
            "source": source,
            "dest": dest,
            "conditions": [_condition(when)] if when else [],
        }
        for trigger in TRIGGERS
        for source in STATUSES
        for when, _, dest in steps_of(trigger, source)
    ]
    return Machine(
        model=None,
        states=list(STATUSES),
        transitions=rows,
        initial="idle",
        auto_transitions=False,
        send_event=True,
    )


class MachineLoops(Loops):
    """Loops whose every step the machine takes too; a disagreement raises.

    The machine steps before the fold changes the loop, so that both start from the same state.
    """

    def __init__(self, keep: str | None = None, machine: Machine | None = None) -> None:
        super().__init__(keep)
        self.machine = build_machine() if machine is None else machine
        self._models: dict[str, LoopModel] = {}

    def _step(self, loop: Loop, event: Event[Any]) -> None:
        source = loop.status
        theirs = self._machine_step(loop, event)
        try:
            super()._step(loop, event)
        except Refused as refusal:
            if theirs is not None and isinstance(refusal, NotPossible):
                raise _disagreement(event, "refuses it", theirs) from None
            if loop.id in self._models:
                self._models[loop.id].state = source  # only the fold checks ids
            raise
        if loop.status != theirs:
            raise _disagreement(event, loop.status, theirs or "refuses it")

    def _machine_step(self, loop: Loop, event: Event[Any]) -> str | None:
        """Return the status that the machine goes to, None if it refuses the event."""
        model = self._models.get(loop.id)
        if model is None:
            model = self._models[loop.id] = LoopModel(loop)
            self.machine.add_model(model, initial=loop.status)
        try:
            moved = model.trigger(trigger_of(event), event=event)  # type: ignore[attr-defined] # by Machine
        except MachineError:
            moved = False
        state = model.state
        # A loop that ended or never started takes no more steps.
        if state in (*FINAL, "idle"):
            self.machine.remove_model(model)
            del self._models[loop.id]
        return state if moved else None


def _disagreement(event: Event[Any], ours: str, theirs: str) -> GsdError:
    return GsdError(
        f"event {event['seq']}: the fold says {ours}, the machine {theirs}",
        "This is a bug in gsd-fsm. Report it with the journal.",
    )
