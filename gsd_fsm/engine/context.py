"""Find the project, the journal and the loop that a use case is about."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from gsd_fsm.config.caller import caller
from gsd_fsm.core.errors import CannotWrite, GsdError, NotFound, Refused, UsageError
from gsd_fsm.core.journal.journal import Author, Journal, Transaction
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.project import find_gsd, is_registered, new_gsd
from gsd_fsm.engine.work_lock import WorkLock

if TYPE_CHECKING:
    from pathlib import Path

    from gsd_fsm.git.repo import Repository

P = ParamSpec("P")
R = TypeVar("R")
ID_RULE = "An id has 1 to 64 letters, digits, dots, dashes or underscores."


class Receipt(NamedTuple):
    """Proof of an append: the loop and the head of the journal as they are on disk."""

    loop: Loop
    seq: int
    head: str


class NotDue(Exception):
    """An effect turned out not to be called for, because of what others before it did."""


class Effect(NamedTuple):
    """Something that an event calls for in git or in files, and that is not there yet."""

    what: str
    carry_out: Callable[[], Receipt | None]  # returns a receipt if it appended an event
    files: tuple[str, ...] = ()


class Context:
    """One call: who makes it, from which directory, and for which loop, if one was named."""

    def __init__(
        self,
        directory: str | os.PathLike[str] = ".",
        loop_id: str | None = None,
        author: Author | None = None,
    ) -> None:
        if loop_id is not None and not is_id(loop_id):
            raise UsageError(f"not a loop id: {loop_id}", "Run: gsd-fsm ps")
        self.directory = _existing(directory)
        self.loop_id = loop_id
        self.author = caller() if author is None else author
        # What happened besides the result of the call; the command line prints it.
        self.notices: list[str] = []
        # Shared by the copies that `for_loop` makes.
        self.work = WorkLock()
        self._gsd = ""
        self._repository: Repository | None = None

    def for_loop(self, loop: Loop) -> Context:
        """Return the same context for this loop, whichever loops are started meanwhile."""
        from copy import copy

        context = copy(self)
        context.loop_id = loop.id
        return context

    @property
    def gsd(self) -> str:
        """Return the `.gsd` directory of the project; raise NotFound if there is none."""
        self._gsd = self._gsd or find_gsd(self.directory)
        return self._gsd

    @property
    def gsd_or_new(self) -> str:
        """Return the `.gsd` directory of the project, or the path that `start` will create it at."""
        try:
            return self.gsd
        except NotFound:
            return new_gsd(self.directory)

    @property
    def project(self) -> Path:
        from pathlib import Path

        return Path(self.gsd).parent

    def journal(self) -> Journal:
        return Journal(self.gsd, keep=self.loop_id)

    def settings(self) -> dict[str, Any]:
        """Return the settings in force here; only for a journal that is trusted."""
        from pathlib import Path

        from gsd_fsm.config import settings

        return {name: found.value for name, found in settings.load(Path(self.gsd)).items()}

    def repository(self) -> Repository | None:
        """Return the git repository of the project, None without one; raise Refused if git fails."""
        if self._repository is None:
            from gsd_fsm.git.repo import Repository

            self._repository = Repository.around(self.project)
        return self._repository

    def repository_or_none(self) -> Repository | None:
        """Return the git repository of the project; None if there is none or git refuses it."""
        try:
            return self.repository()
        except GsdError:
            return None

    # reading

    def read(self) -> tuple[Journal, Loops]:
        """Return journal and state; the whole journal is read if an old loop is named."""
        journal = self.journal()
        loops = journal.read_cached()
        if self.loop_id and loops.has_dropped(self.loop_id):
            loops = journal.read()
        return journal, loops

    def read_trusted(self) -> tuple[Journal, Loops]:
        """Return journal and state; raise CannotWrite if the journal is not trusted."""
        journal, loops = self.read()
        require_trust(loops, journal.path)
        return journal, loops

    def loop(self, loops: Loops) -> Loop:
        """Return the named loop, else the caller's, else the only live one."""
        found = self._named(loops) or self._live(loops)
        if found is None:
            last = loops.last_ended()
            ended = f"; the last one, {last.id}, is {last.status}" if last else ""
            raise NotFound(f"there is no live loop{ended}", "Run: gsd-fsm start --help")
        return found

    def loop_or_last(self, loops: Loops) -> Loop:
        """Return the loop as `loop` does, or else the one that ended last."""
        found = self._named(loops) or self._live(loops) or loops.last_ended()
        if found is None:
            raise NotFound("there is no loop yet", "Run: gsd-fsm start --help")
        return found

    def _named(self, loops: Loops) -> Loop | None:
        if self.loop_id is None:
            return None
        found = loops.by_id.get(self.loop_id)
        if found is None and loops.has_dropped(self.loop_id):
            raise Refused(f"loop {self.loop_id} has ended", "Run: gsd-fsm start --help")
        if found is None:
            known = ", ".join(loop.id for loop in loops.by_id.values()) or "none"
            raise NotFound(f"no such loop: {self.loop_id}", f"Loops here: {known}")
        return found

    def _live(self, loops: Loops) -> Loop | None:
        live = loops.live()
        session = self.author.session
        own = [loop for loop in live if session and loop.owner == session]
        if own:
            return own[0]
        if len(live) > 1:
            names = ", ".join(f"{loop.id} ({loop.kind}, {loop.status})" for loop in live)
            raise UsageError(f"several live loops: {names}", "Name one: gsd-fsm --loop ID …")
        return live[0] if live else None

    # writing

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Return a transaction on a journal that this user created or trusted."""
        journal = self.journal()
        return journal.transaction(self.author, lambda loops: require_trust(loops, journal.path))

    def append(self, kind: str, data: Mapping[str, object]) -> Receipt:
        """Append one event to the selected loop."""
        with self.transaction() as tx:
            loop = self.loop(tx.loops)
            tx.append(loop, kind, data)
        return receipt(tx, loop)

    @contextmanager
    def dry_run(self) -> Iterator[Transaction]:
        """Begin a transaction that refuses what a real one would, and writes nothing."""
        journal = self.journal()
        with journal.dry_run(self.author) as tx:
            require_trust(tx.loops, journal.path)
            yield tx


def head_of(journal: Journal) -> str:
    """Return `seq:sum` of the last event that was read."""
    return f"{journal.loops.seq}:{journal.at.sum}"


def one_at_a_time(
    use_case: Callable[Concatenate[Context, P], R],
) -> Callable[Concatenate[Context, P], R]:
    """Make a use case wait while another process carries out effects in the same project."""

    @wraps(use_case)
    def wait_and_run(context: Context, /, *arguments: P.args, **options: P.kwargs) -> R:
        try:
            gsd = context.gsd
        except NotFound:
            return use_case(context, *arguments, **options)  # nobody can be at work here
        with context.work.held(gsd):
            return use_case(context, *arguments, **options)

    return wait_and_run


def receipt(tx: Transaction, loop: Loop) -> Receipt:
    """Return the receipt for what `tx` appended; call it after the transaction."""
    return Receipt(loop, tx.seq, tx.head)


def require_trust(loops: Loops, gsd: str) -> None:
    """Raise CannotWrite for a journal that this user neither created nor trusted."""
    if not loops.seq:
        raise NotFound("the journal is empty", "Run: gsd-fsm start --help")
    if not is_registered(loops.journal_id, gsd):
        raise CannotWrite(
            "this journal is not trusted: it was not started by you at this place",
            "Look at it: gsd-fsm replay. Then accept it: gsd-fsm trust",
        )


def require_id(name: str, what: str) -> None:
    """Raise UsageError if this cannot be the id of a task or gap."""
    if not is_id(name):
        raise UsageError(f"not a {what} id: {name!r}", ID_RULE)


def _existing(directory: str | os.PathLike[str]) -> str:
    try:
        found = os.path.abspath(directory)
    except OSError as error:
        raise NotFound("the current directory no longer exists", "Change directory.") from error
    if not os.path.isdir(found):
        raise NotFound(f"not a directory: {found}", "Check --project.")
    return found
