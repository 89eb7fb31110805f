"""What the client itself tells of a loop: money and tokens in its transcripts, tasks in its list."""

from __future__ import annotations

from gsd_fsm.core.loop.limits import has_budget
from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.core.loop.state import TASK_LIST, mirrored_list
from gsd_fsm.core.system import getenv
from gsd_fsm.core.usage.client_list import list_changes, list_of
from gsd_fsm.core.usage.task_list import list_directory
from gsd_fsm.core.usage.task_mirror import completed, created
from gsd_fsm.core.usage.transcript import is_resting, is_younger, read_spending, unpaid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from gsd_fsm.core.hook.signal import Signal
    from gsd_fsm.core.loop.state import Loop

    # the type of an event, and its data
    News = Iterator[tuple[str, dict[str, Any]]]


def client_news(loop: Loop, signal: Signal) -> News:
    """The events that bring the loop up to what the client has spent and what its list says."""
    if has_budget(loop) and not is_resting(loop):
        for source, path in _transcripts(loop, signal):
            yield from _spending(loop, signal.session, source, path)
    name = mirrored_list(loop, getenv(TASK_LIST))
    if name and signal.event != "SubagentStop":
        yield from _list_news(loop, signal, name)


def _transcripts(loop: Loop, signal: Signal) -> list[tuple[str, str]]:
    """What is to be read: whose it is, and where.

    A transcript lags behind: those of subagents that have stopped are looked at again.
    """
    if signal.event == "SubagentStop":
        return [(signal.agent, signal.agent_transcript)] if signal.agent else []
    place = signal.transcript[: -len(".jsonl")] + "/subagents/agent-%s.jsonl"
    agents = [name for name in loop.offsets if name != signal.session and is_id(name)]
    return [(signal.session, signal.transcript), *((name, place % name) for name in agents)]


def _spending(loop: Loop, session: str, source: str, path: str) -> News:
    """What a transcript adds: tokens of its own, and money of the session that it is part of."""
    counted, messages = loop.offsets.get(source, (0, []))
    found = read_spending(path, counted, messages, loop.owned_since)
    if found is None:
        if source not in loop.offsets and source != session:
            yield "spend", {"source": source, "counted": 0, "what": "transcript"}
        return
    data: dict[str, Any] = {"source": source, "counted": found.offset, "messages": found.messages}
    if found.tokens:
        data["tokens"] = found.tokens
    total = found.total_usd
    if total is None:
        if found.usd and session not in loop.meters:
            data["usd"] = found.usd
    elif total > loop.meters.get(session, -1):
        # The status line may have told more in the meantime.
        data.update({"meter": session, "total_usd": total})
        if session not in loop.meters and is_younger(path, loop.owned_since):
            data["usd"] = unpaid(loop, session, total)
    if data.keys() & {"tokens", "usd", "total_usd"}:
        yield "spend", {**data, "what": "transcript"}


def _list_news(loop: Loop, signal: Signal, name: str) -> News:
    directory = list_directory(name, signal.session, getenv)
    if signal.event in ("TaskCreated", "TaskCompleted"):
        # The client tells of its own list, which may be another.
        if directory and directory == list_directory("auto", signal.session, getenv):
            change = created if signal.event == "TaskCreated" else completed
            for data in change(loop, signal.task, signal.subject, list_of(loop, signal.session)):
                yield "task", data
        return
    for data in list_changes(loop, signal.session):
        yield "task", data
