"""Find the project, the journal and the loop that a use case is about; append to that loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, wraps
from itertools import islice
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from gsd_fsm.config.caller import above, caller, caller_by_variables
from gsd_fsm.core.codec import digest_of
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import CannotWrite, GsdError, NotFound, Refused, UsageError
from gsd_fsm.core.hook.memory import append_failures
from gsd_fsm.core.journal.journal import Author, Journal, Transaction
from gsd_fsm.core.loop.events.sessions import (
    ASK_USER,
    CLIENT_WORKS,
    decision_in,
    may_decide,
    prompts_for,
)
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.project import (
    find_gsd,
    is_registered,
    make_directories,
    new_gsd,
    real_path,
    state_directory,
)
from gsd_fsm.core.syscalls import try_lock, unlock

if TYPE_CHECKING:
    from pathlib import Path

    from gsd_fsm.core.loop.limits import LimitReached
    from gsd_fsm.git.repo import Repository

P = ParamSpec("P")
R = TypeVar("R")
ID_RULE = "An id has 1 to 64 letters, digits, dots, dashes or underscores."
# Long enough for the git hooks of a commit.
_PATIENCE = 60.0
_USE_TERMINAL = "Ask the user to run this in a terminal."
# Why the messages that an agent's client got do not count, by their source.
_NOBODY_TYPED = {
    "headless": "messages to a headless client do not count",
    "nested": "messages to a client that runs below another client do not count",
}


class SeveralLive(UsageError):
    """Several loops are live, and none of them is selected."""

    def __init__(self, loops: list[Loop]) -> None:
        names = ", ".join(f"{loop.id} ({loop.kind}, {loop.status})" for loop in loops)
        super().__init__(
            f"several live loops: {names}", f"Name one: {command_line('COMMAND', 'ID')}"
        )
        self.loops = loops


class Receipt(NamedTuple):
    """Proof of an append: the loop and the head of the journal as they are on disk."""

    loop: Loop
    seq: int
    head: str


class Effect(NamedTuple):
    """Something that an event calls for in git or in files, and that is not there yet.

    `carry_out` returns False if others before it made it needless.
    """

    what: str
    carry_out: Callable[[], object]
    files: tuple[str, ...] = ()


class LoopTransaction:
    """A transaction on one loop. Its events are durable when the block ends."""

    def __init__(self, tx: Transaction, loop: Loop, context: Context | None = None) -> None:
        self._tx = tx
        self._context = context
        self.loop = loop
        self.now = tx.now

    def append(self, kind: str, data: Mapping[str, object], by: str = "") -> None:
        """Append an event, as `Transaction.append` does.

        An event that decides for the user says whose message an agent relies on.
        """
        if self._context is not None and not by:
            what = decision_in(self.loop, kind, data, self._context.session)
            if what:
                self._context.require_human(self.loop, what)
            data = {**data, **self._context.relayed}
        self._tx.append(self.loop, kind, data, by)

    def pause(self, code: str, reason: str) -> None:
        """Pause the loop on the engine's own account."""
        self.append("pause", {"code": code, "reason": reason}, by="cli")

    def pause_at(self, limit: LimitReached | None) -> None:
        """Pause an active loop that has reached this limit."""
        if limit is not None and self.loop.is_active:
            self.pause(limit.code, limit.reason)

    @property
    def receipt(self) -> Receipt:
        """Return the receipt for the appended events; ask for it after the block."""
        return Receipt(self.loop, self._tx.seq, self._tx.head)


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
        self._author = author
        # What happened besides the result of the call; the command line prints it.
        self.notices: list[str] = []
        # What the events of this call say about a message of the user that they rely on.
        self.relayed: dict[str, bool] = {}
        self._is_at_work = False

    @cached_property
    def author(self) -> Author:
        """Return who makes this call; finding out takes time, so ask only if it matters."""
        return caller() if self._author is None else self._author

    @cached_property
    def session(self) -> str | None:
        """Return the session that this call comes from."""
        return (self._author or caller_by_variables()).session

    @cached_property
    def gsd(self) -> str:
        """Return the `.gsd` directory of the project; raise NotFound if there is none."""
        return find_gsd(self.directory)

    @cached_property
    def gsd_or_new(self) -> str:
        """Return the `.gsd` directory of the project, or the path that `start` will create it at."""
        try:
            return self.gsd
        except NotFound:
            return new_gsd(self.directory)

    @cached_property
    def project(self) -> Path:
        from pathlib import Path

        return Path(self.gsd_or_new).parent

    def settings(self, *, trusted: bool = True) -> dict[str, Any]:
        """Return the settings in force here, without those of a project that is not trusted."""
        from pathlib import Path

        from gsd_fsm.config import settings

        found = settings.load(Path(self.gsd_or_new), trusted=trusted)
        return {name: setting.value for name, setting in found.items()}

    def check_shell(self) -> str:
        """Return the shell that runs checks; raise UsageError if there is none."""
        from gsd_fsm.evidence.shell import find_shell

        return find_shell(self.project)

    @cached_property
    def repository(self) -> Repository | None:
        """Return the git repository of the project, None without one; raise Refused if git fails."""
        from gsd_fsm.git.repo import Repository

        return Repository.around(self.project)

    def repository_or_none(self) -> Repository | None:
        """Return the git repository of the project; None if there is none or git refuses it."""
        try:
            return self.repository
        except GsdError:
            return None

    # reading

    @cached_property
    def journal(self) -> Journal:
        """Return the journal; later reads fold only the events that are new by then."""
        return Journal(self.gsd, keep=self.loop_id)

    def read(self, *, trusted: bool = True) -> Loops:
        """Return the state; raise CannotWrite unless the journal is trusted or need not be."""
        journal = self.journal
        loops = journal.read_cached()
        if self.loop_id and loops.has_dropped(self.loop_id):
            loops = journal.read()
        if trusted:
            require_trust(loops, journal.path)
        return loops

    def receipt(self, loop: Loop) -> Receipt:
        """Return this loop and the head of the journal after the last reading or append."""
        journal = self.journal
        loops = journal.loops if loop.id in journal.loops.by_id else journal.read_cached()
        return Receipt(loops.by_id[loop.id], loops.seq, f"{loops.seq}:{journal.at.sum}")

    def loop(self, loops: Loops) -> Loop:
        """Return the named loop, else the caller's, else the only live one."""
        found = self._selected(loops)
        if found is None:
            last = loops.last_ended()
            ended = f"; the last one, {last.id}, is {last.status}" if last else ""
            raise NotFound(f"there is no live loop{ended}", "Run: gsd-fsm start --help")
        return found

    def working_loop(self) -> Loop:
        """Return the selected loop for a command that works on it: see `writing`."""
        return self.unthrottled(self.loop(self.read()))

    def unthrottled(self, loop: Loop) -> Loop:
        """Return this loop after the end of a wait for the client's limit, as `writing` ends it."""
        if self._shows_end_of_throttling(loop):
            with self.writing(loop):
                pass
            return self.receipt(loop).loop
        return loop

    def _shows_end_of_throttling(self, loop: Loop) -> bool:
        """Return whether this command shows that the client's limit is over: its owner runs it."""
        is_own = self.session is not None and loop.owner == self.session
        return is_own and loop.status == "waiting" and loop.wait_for == "throttled"

    def loop_or_last(self, loops: Loops) -> Loop:
        """Return the loop as `loop` does, or else the one that ended last."""
        found = self._selected(loops) or loops.last_ended()
        if found is None:
            raise NotFound("there is no loop yet", "Run: gsd-fsm start --help")
        return found

    def _selected(self, loops: Loops) -> Loop | None:
        if self.loop_id is not None:
            return _named(loops, self.loop_id)
        return self.only_one(loops.live())

    def only_one(self, live: list[Loop]) -> Loop | None:
        """Return the caller's loop among these, else the only one, None if there is none."""
        session = self.session
        own = [loop for loop in live if session is not None and loop.owner == session]
        if len(live) > 1 and not own:
            raise SeveralLive(live)
        return next(iter(own + live), None)

    # writing

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Return a transaction on a journal that this user created or trusted."""
        return self.journal.transaction(self.author, lambda it: require_trust(it, self.gsd))

    @contextmanager
    def writing(
        self, loop: Loop | None = None, *, ends_throttling: bool = True
    ) -> Iterator[LoopTransaction]:
        """Begin a transaction on this loop, by default on the selected one.

        A command of its owner ends a wait for the client's limit, unless `ends_throttling` is False.
        """
        with self.transaction() as tx:
            found = self.loop(tx.loops) if loop is None else _named(tx.loops, loop.id)
            append_failures(tx, found, "cli")
            if ends_throttling and self._shows_end_of_throttling(found):
                tx.append(found, "resume", {"reason": CLIENT_WORKS}, by="cli")
            try:
                yield LoopTransaction(tx, found, self)
            finally:
                self.relayed = {}

    @contextmanager
    def dry_run(self, loop: Loop) -> Iterator[LoopTransaction]:
        """Begin a transaction on a loop that `read` found; it refuses what `writing` would."""
        with self.journal.dry_run(self.author) as tx:
            yield LoopTransaction(tx, _named(tx.loops, loop.id))

    def append(self, kind: str, data: Mapping[str, object]) -> Receipt:
        """Append one event to the selected loop."""
        with self.writing() as tx:
            tx.append(kind, data)
        return tx.receipt

    @contextmanager
    def at_work(self, seconds: float = 0.0) -> Iterator[bool]:
        """Let one process at a time append events and carry out what they call for.

        Yield False if another process is at work for so many seconds. Without the lock, a command
        could take the effects of another that is still at work for those of one that was killed,
        and carry them out a second time. It is in the user's state directory.
        """
        lock = None if self._is_at_work else self._lock("lock")
        if lock is None:
            yield True
            return
        try:
            self._is_at_work = _wait(lock, seconds)
            yield self._is_at_work
        finally:
            self._is_at_work = False
            unlock(lock)
            os.close(lock)

    @contextmanager
    def proving(self) -> Iterator[None]:
        """Let one process at a time run the checks of tasks; raise CannotWrite if another does."""
        lock = self._lock("proof")
        if lock is None:
            yield
            return
        try:
            if not _wait(lock, _PATIENCE):
                raise CannotWrite(
                    "another gsd-fsm command is running the checks of this project's tasks",
                    "Wait for it, then run: gsd-fsm check",
                )
            yield
        finally:
            unlock(lock)
            os.close(lock)

    @contextmanager
    def showing(self) -> Iterator[bool]:
        """Let one process at a time write what it reads from the journal to a file that shows it.

        Then the last one to write has read the last event. Yield False if another takes too long.
        """
        lock = self._lock("view")
        try:
            yield lock is None or _wait(lock, 1.0)
        finally:
            if lock is not None:
                unlock(lock)
                os.close(lock)

    def _lock(self, suffix: str) -> int | None:
        """Return a descriptor of a lock file of this project; None if there can be none."""
        try:
            name = f"{digest_of(real_path(self.gsd))}.{suffix}"
            directory = os.path.join(state_directory(), "work")
            make_directories(directory)
            return os.open(os.path.join(directory, name), os.O_RDWR | os.O_CREAT, 0o600)
        except (NotFound, OSError):
            return None

    def may_decide(self, loop: Loop) -> bool:
        """Return whether the caller can decide for the user, as an agent can after a message."""
        try:
            self.require_human(loop, "decide about")
        except Refused:
            return False
        return True

    def require_human(self, loop: Loop, what: str) -> None:
        """Raise Refused if an agent does `what` to this loop without a message of the user.

        The agent's events of this call then say that they rely on the message.
        """
        author = self.author
        if author.by != "agent":
            return
        refusal = f"agents cannot {what} loop {loop.id}"
        if not may_decide(loop, author.by, author.session):
            from gsd_fsm.core.hook.prompt_source import prompt_source

            source = prompt_source(author.client) if loop.rules is not None else ""
            if source:
                raise Refused(f"{refusal}: {_NOBODY_TYPED[source]}", _USE_TERMINAL)
            raise Refused(f"{refusal} until the user sends a message", ASK_USER)
        if loop.rules is not None:
            self.relayed = self._relay(loop, refusal)

    def _relay(self, loop: Loop, refusal: str) -> dict[str, bool]:
        """Return what to record of the message that the agent relies on; raise Refused if it is forged."""
        from gsd_fsm.evidence.prompts import weigh

        prompts = prompts_for(loop, self.author.session)
        over = above()
        client = over.client or self.author.client
        found = weigh(prompts, loop.transcripts, client, over.pids if over.client else ())
        if found.problem:
            raise Refused(f"{refusal}: {found.problem}", ASK_USER)
        return {"relayed": True} if found.verified else {"relayed": True, "unverified": True}


def _named(loops: Loops, loop_id: str) -> Loop:
    found = loops.by_id.get(loop_id)
    if found is None and loops.has_dropped(loop_id):
        raise Refused(f"loop {loop_id} has ended", "Run: gsd-fsm start --help")
    if found is None:
        raise NotFound(f"no such loop: {loop_id}", one_of(loops.by_id))
    return found


def require_trust(loops: Loops, gsd: str) -> None:
    """Raise CannotWrite for a journal that this user neither created nor trusted."""
    if not loops.seq:
        raise NotFound("the journal is empty", "Run: gsd-fsm start --help")
    if not is_registered(loops.journal_id, gsd):
        raise CannotWrite(
            "this journal is not trusted: you did not start it here",
            "Run: gsd-fsm replay, and if you trust it: gsd-fsm trust",
        )


def one_of(names: Iterable[str]) -> str:
    """Return the hint that lists these names; if there are none, one that shows the loop."""
    listed = ", ".join(islice(names, 20))
    return f"Use one of: {listed}" if listed else "Run: gsd-fsm status"


def require_id(name: str, what: str) -> None:
    """Raise UsageError if this cannot be the id of a task or gap."""
    if not is_id(name):
        raise UsageError(f"not a {what} id: {name!r}", ID_RULE)


def _existing(directory: str | os.PathLike[str]) -> str:
    try:
        found = os.path.abspath(directory)
    except OSError as error:
        raise NotFound(
            "the current directory no longer exists", "Change to an existing directory."
        ) from error
    if not os.path.isdir(found):
        raise NotFound(f"not a directory: {found}", "Pass an existing directory to --project.")
    return found


# one process at a time


def _wait(descriptor: int, seconds: float) -> bool:
    deadline = monotonic() + seconds
    try:
        while not try_lock(descriptor):
            if monotonic() >= deadline:
                return False
            sleep(0.02)
    except OSError:
        pass  # a file system without locks
    return True


def one_at_a_time(
    use_case: Callable[Concatenate[Context, P], R],
) -> Callable[Concatenate[Context, P], R]:
    """Make a use case wait while another process carries out effects in the same project."""

    @wraps(use_case)
    def wait_and_run(context: Context, /, *arguments: P.args, **options: P.kwargs) -> R:
        with alone(context):
            return use_case(context, *arguments, **options)

    return wait_and_run


@contextmanager
def alone(context: Context) -> Iterator[None]:
    """Wait while another process carries out effects; raise CannotWrite if that takes too long."""
    with context.at_work(_PATIENCE) as is_alone:
        if not is_alone:
            raise CannotWrite(
                "another gsd-fsm command is running in this project",
                "Wait for it or end it, then retry.",
            )
        yield
