"""Append what the client reports about a loop: spending in its transcripts, tasks of its list."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.core.hook.hook_log import log_failure
from gsd_fsm.core.loop.limits import has_budget
from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.core.loop.state import TASK_LIST, mirrored_list
from gsd_fsm.core.system import getenv
from gsd_fsm.core.usage.task_list import (
    completed_task,
    created_task,
    list_changes,
    list_directory,
    list_of,
)
from gsd_fsm.core.usage.transcript import is_resting, is_younger, read_spending, unpaid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from gsd_fsm.core.hook.clients import Signal
    from gsd_fsm.core.journal.journal import Transaction
    from gsd_fsm.core.loop.state import Loop


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


def _transcripts(loop: Loop, signal: Signal) -> list[tuple[str, str]]:
    """Return the session or agent and the path of each transcript to read.

    Transcripts of stopped subagents are read again, because they are written late.
    """
    if signal.event == "SubagentStop":
        return [(signal.agent, signal.agent_transcript)] if signal.agent else []
    place = signal.transcript[: -len(".jsonl")] + "/subagents/agent-%s.jsonl"
    agents = [name for name in loop.offsets if name != signal.session and is_id(name)]
    return [(signal.session, signal.transcript), *((name, place % name) for name in agents)]


def _spending(loop: Loop, session: str, source: str, path: str) -> dict[str, Any] | None:
    """Return the data of the `spend` event for the new part of a transcript, None for no event."""
    counted, messages = loop.offsets.get(source, (0, []))
    found = read_spending(path, counted, messages, loop.owned_since)
    if found is None:
        is_new = source not in loop.offsets and source != session
        return {"source": source, "counted": 0} if is_new else None
    data: dict[str, Any] = {"source": source, "counted": found.offset, "messages": found.messages}
    if found.tokens:
        data["tokens"] = found.tokens
    total = found.total_usd
    if total is None:
        if found.usd and session not in loop.meters:
            data["usd"] = found.usd
    elif total > loop.meters.get(session, -1):  # the status line may have reported more
        data.update({"meter": session, "total_usd": total})
        if session not in loop.meters and is_younger(path, loop.owned_since):
            data["usd"] = unpaid(loop, session, total)
    return data if data.keys() & {"tokens", "usd", "total_usd"} else None


def _list_events(loop: Loop, signal: Signal, name: str) -> Iterator[dict[str, Any]]:
    if signal.event not in ("TaskCreated", "TaskCompleted"):
        yield from list_changes(loop, signal.session) if loop.is_active else ()
        return
    directory = list_directory(name, signal.session, getenv)
    # The client reports changes of its own list, which may be another one.
    if directory and directory == list_directory("auto", signal.session, getenv):
        change = created_task if signal.event == "TaskCreated" else completed_task
        yield from change(loop, signal.task, signal.subject, list_of(loop, signal.session))
