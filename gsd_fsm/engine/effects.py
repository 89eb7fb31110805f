"""Find and finish the effects of a loop: what its events call for in git and in documents.

An effect follows the event that justifies it, can be repeated, and is found by a look at git and
at the files. The next command that appends finishes the effects that a killed one left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import GsdError, Refused
from gsd_fsm.core.journal.journal import Transaction
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.project import is_registered
from gsd_fsm.engine.context import Context, Effect, require_trust
from gsd_fsm.engine.planned.state_file import show_loops

Probe = Callable[[Context, Loop], Iterable[Effect]]


class Outcome(NamedTuple):
    """The effects that were carried out, and those that failed, with the cause."""

    done: list[Effect]
    failed: list[tuple[Effect, GsdError]]

    @property
    def problem(self) -> str:
        return "; ".join(f"{effect.what}: {error.message}" for effect, error in self.failed)


def pending_effects(context: Context, loop: Loop) -> list[Effect]:
    """Return the effects of this loop that are not there yet; change nothing."""
    return [effect for probe in _probes(loop) for effect in probe(context, loop)]


def carry_out(context: Context, loop: Loop) -> Outcome:
    """Carry out the pending effects of this loop; the failure of one does not stop the others."""
    outcome = Outcome([], [])
    for effect in pending_effects(context, loop):
        try:
            if effect.carry_out() is not False:
                outcome.done.append(effect)
        except GsdError as error:
            outcome.failed.append((effect, error))
    return outcome


def due_effects(loops: Loops, *, superseded: bool = False) -> list[Loop]:
    """Return the loops whose effects may be unfinished, from the state alone.

    A completed loop is one of them until the next loop begins, or, if `superseded`, until one ends.
    """
    live, last = loops.live(), loops.last_ended()
    if last and (superseded or not any(loop.first_ts > last.last_event for loop in live)):
        live.append(last)
    return [loop for loop in live if any(_probes(loop))]


def finish_effects(context: Context, loops: Loops) -> None:
    """Carry out the pending effects of all loops here; note in `context` what was done or failed.

    Do nothing while another process is at work here: they may be its own.
    """
    with context.at_work() as is_held:
        for loop in due_effects(loops) if is_held else ():
            try:
                outcome = carry_out(context, loop)
            except GsdError:
                continue  # what is pending cannot be found out; a command for this loop says why
            context.notices += [f"loop {loop.id}: finished {it.what}" for it in outcome.done]
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


def note_unfinished(context: Context, loops: Loops, *, superseded: bool = False) -> None:
    """Note in `context` which loops have pending effects, unless the journal is not trusted.

    `superseded`: also a completed loop after which another one was started.
    """
    trusted = is_registered(loops.journal_id, context.gsd)
    for loop in due_effects(loops, superseded=superseded) if trusted else ():
        try:
            pending = ", ".join(effect.what for effect in pending_effects(context, loop))
        except GsdError:
            continue
        if pending:
            verb = "complete" if loop.status == "completed" else "resume"
            run = f"Run: {command_line(verb, loop.id)}"
            context.notices.append(f"loop {loop.id}: unfinished: {pending}. {run}")


def _probes(loop: Loop) -> Iterator[Probe]:
    """Yield the probes that the state of this loop calls for; each looks at git and files."""
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

    Before its first append it finishes the effects that a killed command left unfinished. After
    each append it updates the state file of another tool whose plan a loop follows.
    """

    _has_looked = False
    _settings: dict[str, Any] | None = None

    def settings(self, *, trusted: bool = True) -> dict[str, Any]:
        if self._settings is None:
            self._settings = super().settings(trusted=trusted)
        return self._settings

    def loop(self, loops: Loops) -> Loop:
        """Return the loop as `Context` does; finish effects first if there is none to append to."""
        if not self._has_looked and not loops.live():
            self._has_looked = True
            if is_registered(loops.journal_id, self.gsd):
                finish_effects(self, loops)
        return super().loop(loops)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        journal = self.journal

        def require(loops: Loops) -> None:
            require_trust(loops, journal.path)
            if not self._has_looked:
                self._has_looked = True
                if due_effects(loops):
                    raise _EffectsDue  # they append events themselves: release the lock first

        with ExitStack() as stack:
            try:
                tx = stack.enter_context(journal.transaction(self.author, require))
            except _EffectsDue:
                finish_effects(self, journal.read_cached())
                tx = stack.enter_context(journal.transaction(self.author, require))
            yield tx
        show_loops(self)
