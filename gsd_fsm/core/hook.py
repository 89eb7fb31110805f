"""What the hook makes of a signal: decide, append, and only then answer."""

from __future__ import annotations

from gsd_fsm.core.announce import elsewhere, stranger_notice
from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.codec import digest_of
from gsd_fsm.core.decide import (
    Seen,
    Verdict,
    answered_before,
    decide_stop,
    hook_event,
    own_or_first,
)
from gsd_fsm.core.dialect import block_answer, context_answer, notice_answer
from gsd_fsm.core.disk import getenv, join, system
from gsd_fsm.core.errors import CannotWrite, NotFound, Refused, UsageError
from gsd_fsm.core.guards import has_budget
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.log import complain
from gsd_fsm.core.loop import TASK_LIST, mirrored_list
from gsd_fsm.core.places import exists, is_known_place, is_registered
from gsd_fsm.core.repeats import may_repeat
from gsd_fsm.core.sessions import Talk, concerned, decide_session, visited
from gsd_fsm.core.signal import TELLS_OF_THE_CLIENT
from gsd_fsm.core.watch import head_commit, transcript_size, used_a_tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator

    from gsd_fsm.core.fold import World
    from gsd_fsm.core.loop import Loop
    from gsd_fsm.core.signal import Signal

    Event = dict[str, Any]

_LOCK_SECONDS = 2.0
# An agent waits for every answer: the snapshot helps from here on.
_SMALL = 1 << 14
_NEWSWORTHY = TELLS_OF_THE_CLIENT | {"SessionStart", "SessionEnd"}


def respond(signal: Signal, projects: list[str]) -> dict[str, Any]:
    """The answer to this signal, {} for none. Everything it rests on is acknowledged."""
    disabled = "GSD_FSM_DISABLE" if getenv("GSD_FSM_DISABLE") == "1" else ""
    told: list[str] = []
    notices: list[str] = []
    for gsd in projects:
        if not is_known_place(gsd):
            continue  # nothing of a foreign journal is even read
        off = disabled or (".gsd/STOP" if exists(join(gsd, "STOP")) else "")
        if off and signal.event != "Stop":
            continue
        journal = Journal(gsd, _LOCK_SECONDS, small=_SMALL)
        try:
            world = journal.glance()
            if not is_registered(world.journal, gsd):
                continue
            if signal.event == "Stop":
                answer = _stop(journal, world, signal, off)
            else:
                answer = _session(journal, world, signal)
        except NotFound:
            continue
        except Exception as error:  # noqa: BLE001 - what cannot be decided is allowed
            complain(error, [gsd])
            continue
        if answer is not None:
            return answer
        if signal.event == "SessionStart":
            told += [elsewhere(loop, signal.source) for loop in world.live()[:3]]
            notices += [stranger_notice(loop) for loop in world.live()[:3]]
    if not told:
        return {}
    answer = context_answer(signal.client, signal.event, "\n".join(told))
    answer.update(notice_answer(signal.client, "\n".join(notices)))
    return answer


def _append(
    journal: Journal, trusted: str, decide: Callable[[World, int, bool], Iterable[Event]]
) -> None:
    """Append what `decide` makes of the world, with the client's news unless these are refused."""

    def allow(world: World) -> None:
        if world.journal != trusted:
            raise CannotWrite("the journal was replaced")

    try:
        journal.transact(lambda world, now: decide(world, now, True), allow)
    except (Refused, UsageError) as error:
        # What the client tells must not be the way out of a loop.
        complain(error, [journal.path], "what the client tells is passed over")
        journal.transact(lambda world, now: decide(world, now, False), allow)


def _stop(journal: Journal, world: World, signal: Signal, disabled: str) -> dict[str, Any] | None:
    if own_or_first(world, signal) is None and answered_before(world, signal, now_ms()) is None:
        return None
    trusted = world.journal
    verdict = Verdict()

    def decide(world: World, now: int, listens: bool) -> Iterable[Event]:
        verdict.blocks, verdict.text = False, ""
        before = answered_before(world, signal, now)
        place = "%s-%s" % (world.journal, digest_of(journal.path))
        if before is not None and may_repeat(place, before["seq"], signal.copy):
            verdict.blocks, verdict.text = before["blocks"], before["text"]
            return ()
        loop = own_or_first(world, signal)
        if loop is None:
            return ()
        seen = _look(journal.path, loop, signal)
        seen.disabled = disabled
        seen.news = _news(loop, signal) if listens else ()
        return decide_stop(loop, signal, seen, now, verdict)

    _append(journal, trusted, decide)
    if not verdict.text:
        return {}
    if verdict.blocks:
        return block_answer(signal.client, signal.quiet, verdict.text)
    return notice_answer(signal.client, verdict.text)


def _look(gsd: str, loop: Loop, signal: Signal) -> Seen:
    seen = Seen(system.urandom(8).hex())
    seen.transcript = transcript_size(signal.transcript) if signal.transcript else None
    if seen.transcript is not None:
        seen.tool = _used_a_tool(loop, signal, seen.transcript)
    seen.commit = head_commit(gsd)
    return seen


def _used_a_tool(loop: Loop, signal: Signal, size: int) -> bool:
    """Whether the part of the transcript that is new has a tool call."""
    session, known = loop.transcript or (None, None)
    return used_a_tool(signal.transcript, known if session == signal.session else None, size)


def _listens(loop: Loop) -> bool:
    return has_budget(loop) or bool(mirrored_list(loop, getenv(TASK_LIST)))


def _news(loop: Loop, signal: Signal) -> Iterable[tuple[str, dict[str, Any]]]:
    """What the client itself tells of this loop, where the loop wants to know it."""
    if not _listens(loop):
        return ()
    from gsd_fsm.core.client import client_news

    return client_news(loop, signal)


def _visits(world: World, signal: Signal) -> list[Event]:
    heard = {"action": "prompt"}
    return [hook_event("session", loop, signal, heard) for loop in visited(world, signal)]


def _session(journal: Journal, world: World, signal: Signal) -> dict[str, Any] | None:
    about = concerned(world, signal)
    if about is None:
        if visited(world, signal):
            _append(journal, world.journal, lambda world, _now, _listens: _visits(world, signal))
        return None
    if signal.event in TELLS_OF_THE_CLIENT and not _listens(about):
        return {}
    trusted = world.journal
    talk = Talk()
    seen = Seen(system.urandom(8).hex())
    seen.transcript = transcript_size(signal.transcript) if signal.transcript else None

    def decide(world: World, now: int, listens: bool) -> Iterator[Event]:
        talk.context = talk.notice = ""
        loop = concerned(world, signal)
        if loop is None:
            return
        tells = signal.event in _NEWSWORTHY or loop.status == "paused"
        seen.news = _news(loop, signal) if listens and tells else ()
        if loop.unconfirmed and seen.transcript is not None:
            seen.tool = _used_a_tool(loop, signal, seen.transcript)
        yield from decide_session(loop, signal, seen, now, talk)
        yield from _visits(world, signal)

    _append(journal, trusted, decide)
    answer = context_answer(signal.client, signal.event, talk.context) if talk.context else {}
    if talk.notice:
        answer.update(notice_answer(signal.client, talk.notice))
    return answer
