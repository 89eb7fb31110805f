"""Find and finish the effects of a loop: what its events call for in git and in documents.

An effect follows the event that justifies it, can be repeated, and is found by a look at git and
at the files. The next command that appends finishes the effects that a killed one left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

from gsd_fsm.core.errors import GsdError, Refused
from gsd_fsm.core.journal.journal import Journal, Transaction
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.project import is_registered
from gsd_fsm.engine.context import Context, Effect, NotDue, Receipt, require_trust

Probe = Callable[[Context, Loop], Iterable[Effect]]


class Outcome:
    """The effects that were carried out, and those that failed, with the cause.

    `receipt` is of the last event that an effect appended.
    """

    def __init__(self) -> None:
        self.done: list[Effect] = []
        self.failed: list[tuple[Effect, GsdError]] = []
        self.receipt: Receipt | None = None

    @property
    def problem(self) -> str:
        return "; ".join(f"{effect.what}: {error.message}" for effect, error in self.failed)


def pending_effects(context: Context, loop: Loop) -> list[Effect]:
    """Return the effects of this loop that are not there yet; change nothing."""
    return [effect for probe in _probes(loop) for effect in probe(context, loop)]


def carry_out(context: Context, loop: Loop) -> Outcome:
    """Carry out the pending effects of this loop; the failure of one does not stop the others."""
    outcome = Outcome()
    for effect in pending_effects(context, loop):
        try:
            outcome.receipt = effect.carry_out() or outcome.receipt
        except NotDue:
            continue
        except GsdError as error:
            outcome.failed.append((effect, error))
        else:
            outcome.done.append(effect)
    return outcome


def due_effects(loops: Loops, *, superseded: bool = False) -> Iterator[Loop]:
    """Return the loops whose effects may be unfinished, from the state alone.

    A completed loop is one of them until the next loop begins, or, if `superseded`, until one ends.
    """
    last = loops.last_ended()
    if (
        last is not None
        and not superseded
        and any(loop.first_ts > last.last_event for loop in loops.live())
    ):
        last = None
    for loop in (*loops.live(), *([last] if last else ())):
        if any(_probes(loop)):
            yield loop


def finish_effects(context: Context, loops: Loops) -> None:
    """Carry out the pending effects of all loops here; note in `context` what was done or failed.

    Do nothing while another process is at work here: they may be its own.
    """
    with context.work.tried(context.gsd) as is_held:
        if is_held:
            for loop in due_effects(loops):
                finish_loop(context, loop)


def finish_loop(context: Context, loop: Loop) -> None:
    """Carry out the pending effects of this loop; note in `context` what was done or failed."""
    try:
        outcome = carry_out(context, loop)
    except GsdError:
        return  # what is pending cannot be found out; a command for this loop says why
    context.notices += [f"loop {loop.id}: finished {effect.what}" for effect in outcome.done]
    if outcome.failed:
        context.notices.append(f"loop {loop.id}: unfinished: {outcome.problem}")


def require_rolled_back(context: Context, loop: Loop) -> None:
    """Finish a recorded rollback; raise Refused if that fails: commits would be made on top of it."""
    if loop.rollback is None:
        return
    from gsd_fsm.engine.planned.rollback import rollback_effects

    for effect in rollback_effects(context, loop):
        try:
            effect.carry_out()
        except GsdError as error:
            raise Refused(f"unfinished {effect.what}: {error.message}", error.hint) from error
        context.notices.append(f"loop {loop.id}: finished {effect.what}")


def unfinished(context: Context, loops: Loops, *, superseded: bool = False) -> list[str]:
    """Return a line for each loop with pending effects; [] for a journal that is not trusted.

    `superseded`: also for a completed loop after which another one was started.
    """
    if not is_registered(loops.journal_id, context.gsd):
        return []
    lines = []
    for loop in due_effects(loops, superseded=superseded):
        try:
            pending = pending_effects(context, loop)
        except GsdError:
            continue
        if pending:
            command = "complete" if loop.status == "completed" else "resume"
            what = ", ".join(effect.what for effect in pending)
            lines.append(
                f"loop {loop.id}: unfinished: {what}. Run: gsd-fsm --loop {loop.id} {command}"
            )
    return lines


def _probes(loop: Loop) -> Iterator[Probe]:
    """Return the probes that the state of this loop calls for; each looks at git and files."""
    if loop.rollback is not None and loop.is_live:
        from gsd_fsm.engine.planned.rollback import rollback_effects

        yield rollback_effects
    if not loop.is_planned:
        return
    from gsd_fsm.engine.planned.checkpoints import checkpoint_effects, tasks_without_checkpoint
    from gsd_fsm.engine.planned.plan import is_new, lacks_tasks, plan_effects

    if lacks_tasks(loop):
        yield plan_effects
    if is_new(loop):
        from gsd_fsm.engine.planned.branches import start_effects

        yield start_effects
    if tasks_without_checkpoint(loop):
        yield checkpoint_effects
    if loop.status == "completed" and loop.kind == "execute":
        from gsd_fsm.engine.planned.phase_end import ending_effects

        yield ending_effects


class _EffectsDue(Exception):
    """Events of an earlier command call for effects that may be unfinished."""


class CommandContext(Context):
    """The context of one command.

    Before its first append it finishes the effects that a killed command left unfinished.
    """

    _has_looked = False
    _journal: Journal | None = None

    def journal(self) -> Journal:
        """Return the journal; later transactions fold only the events that are new by then."""
        if self._journal is None or self._journal.keep != self.loop_id:
            self._journal = super().journal()
        return self._journal

    def loop(self, loops: Loops) -> Loop:
        """Return the loop as `Context` does; finish effects first if there is none to append to."""
        if not self._has_looked and not loops.live():
            self._has_looked = True
            if is_registered(loops.journal_id, self.gsd):
                finish_effects(self, loops)
        return super().loop(loops)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        found = self.journal()

        def require(loops: Loops) -> None:
            require_trust(loops, found.path)
            if not self._has_looked:
                self._has_looked = True
                if any(due_effects(loops)):
                    raise _EffectsDue  # they append events themselves: release the lock first

        with ExitStack() as stack:
            try:
                tx = stack.enter_context(found.transaction(self.author, require))
            except _EffectsDue:
                finish_effects(self, found.read_cached())
                tx = stack.enter_context(found.transaction(self.author, require))
            yield tx
