"""Append what the client reports about a loop: spending in its transcripts, tasks of its list."""

from __future__ import annotations

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.core.hook.hook_log import log_failure
from gsd_fsm.core.loop.limits import has_budget
from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.core.loop.spending import MOST_SOURCES
from gsd_fsm.core.loop.state import TASK_LIST, mirrored_list
from gsd_fsm.core.system import getenv, join, system
from gsd_fsm.core.usage.task_list import (
    completed_task,
    created_task,
    list_changes,
    list_directory,
    list_of,
)
from gsd_fsm.core.usage.transcript import await_reply, is_resting, read_spending, total_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from gsd_fsm.core.hook.clients import Signal
    from gsd_fsm.core.journal.journal import Transaction
    from gsd_fsm.core.loop.state import Loop

# The name of a subagent's transcript.
_AGENT, _ROWS = "agent-", ".jsonl"
# Replies of a subagent that are remembered: one may be split over two reads.
# File systems keep times less exactly than rows; a row has a time of its own.
_COARSE_MS = 2_000
_LAST_OF_SUBAGENT = 2


def append_usage(tx: Transaction, loop: Loop, signal: Signal) -> None:
    """Append what the client has spent, and the changes of its task list.

    An event that is refused ends the report, not the loop: it is logged.
    """
    try:
        if has_budget(loop) and not is_resting(loop):
            for source, path in _transcripts(loop, signal):
                data = _spending(loop, signal.session, source, path)
                if data:
                    tx.append(loop, "spend", {**data, "what": "transcript"})
        name = mirrored_list(loop, getenv(TASK_LIST))
        if name and signal.event != "SubagentStop":
            for data in _list_events(loop, signal, name):
                tx.append(loop, "task", data)
    except (Refused, UsageError) as error:
        log_failure(error, [tx.path], "ignoring the rest of the client's report")


def await_usage(loop: Loop, signal: Signal) -> None:
    """Wait a moment for what the client has not written to its transcript yet."""
    if signal.client not in ("", "claude") or is_resting(loop):
        return
    source, path = signal.session, signal.transcript
    if signal.event == "SubagentStop":
        source, path = signal.agent, signal.agent_transcript
    if path:
        await_reply(path, signal.message, loop.usage.offsets.get(source, (0, []))[1])


def _transcripts(loop: Loop, signal: Signal) -> Iterator[tuple[str, str]]:
    """Yield the session or agent and the path of each transcript to read.

    All are read at every stop of the agent or of a subagent: they run on and are written late.
    """
    if signal.event == "SubagentStop" and signal.agent:
        yield signal.agent, signal.agent_transcript
    yield signal.session, signal.transcript
    yield from _of_subagents(loop, signal.transcript)


def _of_subagents(loop: Loop, transcript: str) -> Iterator[tuple[str, str]]:
    """Yield the transcripts of the session's subagents that have grown since they were read."""
    if not transcript.endswith(_ROWS):
        return
    place = join(transcript[: -len(_ROWS)], "subagents")
    offsets = loop.usage.offsets
    try:
        names = system.listdir(place)
    except (OSError, ValueError):
        return  # there are none
    for name in sorted(names):
        agent = name[len(_AGENT) : -len(_ROWS)]
        if not (name.startswith(_AGENT) and name.endswith(_ROWS) and is_id(agent)):
            continue
        path = join(place, name)
        counted = offsets[agent][0] if agent in offsets else 0
        if agent not in offsets and len(offsets) >= MOST_SOURCES:
            continue  # it would be counted again and again
        try:
            info = system.stat(path)
        except OSError:
            continue
        if info.st_size != counted and info.st_mtime * 1000 >= ms_of(loop.owned_since) - _COARSE_MS:
            yield agent, path


def _spending(loop: Loop, session: str, source: str, path: str) -> dict[str, Any] | None:
    """Return the data of the `spend` event for the new part of a transcript, None for no event."""
    usage = loop.usage
    counted, messages = usage.offsets.get(source, (0, []))
    found = read_spending(path, counted, messages, loop.owned_since, usage.prices)
    if found is None:
        return None
    kept = found.messages if source == session else found.messages[-_LAST_OF_SUBAGENT:]
    data: dict[str, Any] = {"source": source, "counted": found.offset, "messages": kept}
    if found.tokens:
        data["tokens"] = found.tokens
    if found.usd or found.is_estimate:
        data["replies_usd"] = found.usd
    if found.is_estimate:
        data["estimated"] = True
    total = found.total_usd
    # The status line may have reported more.
    if total is not None and total > usage.totals.get(session, -1):
        data.update(total_of(loop, session, total, path))
    return data if data.keys() & {"tokens", "replies_usd", "total_usd"} else None


def _list_events(loop: Loop, signal: Signal, name: str) -> Iterator[dict[str, Any]]:
    if signal.event not in ("TaskCreated", "TaskCompleted"):
        yield from list_changes(loop, signal.session) if loop.is_active else ()
        return
    directory = list_directory(name, signal.session, getenv)
    # The client reports changes of its own list, which may be another one.
    if directory and directory == list_directory("auto", signal.session, getenv):
        change = created_task if signal.event == "TaskCreated" else completed_task
        yield from change(loop, signal.task, signal.subject, list_of(loop, signal.session))
