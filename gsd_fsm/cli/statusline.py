"""gsd-fsm statusline: show a loop in one line below the prompt, and record the session's cost."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, cast

import click

from gsd_fsm.cli.help.options import help_option, json_option, loop_option
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import CannotWrite, GsdError
from gsd_fsm.core.journal.journal import Author, Journal
from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.schema import session_name
from gsd_fsm.core.loop.spending import money, spent
from gsd_fsm.core.loop.state import ACTIVE, LIVE, Loop, open_gaps, open_tasks, unmet
from gsd_fsm.core.loop.waves import current_wave
from gsd_fsm.core.project import find_gsd, is_registered
from gsd_fsm.core.text.questions import plural
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.core.usage.transcript import is_resting, total_of
from gsd_fsm.engine.context import LoopTransaction
from gsd_fsm.engine.tasks import append_spending
from gsd_fsm.install.presence import missing_hook, relies_on_settings

_MAX_INPUT = 1 << 20
_CHUNK = 1 << 16
_MOST_USD = 1_000_000_000
# An active agent may hold the lock; the next call records the cost.
_LOCK_SECONDS = 0.3
# Use the snapshot for journals of this size on: this runs several times a second.
_SMALL = 1 << 14
_CENT = 0.01 - 1e-9
_TENTH = 0.1 - 1e-9
_LONGEST_WORDS = 80


@click.command()
@click.option("--color", is_flag=True, help="Colour the status.")
@loop_option
@json_option
@help_option
@click.pass_context
def statusline(context: click.Context, *, color: bool, loop_id: str | None, as_json: bool) -> None:
    """Show the loop of a session in Claude Code's status line.

    Reads the client's data from stdin and records the session's cost in the loop. On any error it
    prints nothing and exits with 0. To install it, run: gsd-fsm init --status-line
    """
    facts: dict[str, Any] = {}
    with contextlib.suppress(Exception):  # nobody reads errors here, and the client must not fail
        outer = context.find_root().params
        wanted = loop_id or outer["loop_id"]
        signal = _client_data()
        loop, session, gsd = _loop_of(signal, outer["project"], wanted)
        if loop is not None:
            line = summary(loop, session, color=color)
            if relies_on_settings(loop):
                project = os.path.dirname(gsd)
                problem, command = missing_hook(project, _place_of(signal) or project)
                line += f" · {problem}: {command_line(command)}" if problem else ""
            facts = {"loop": loop.id, "status": loop.status, "line": line}
    if facts or as_json:
        with contextlib.suppress(OSError):
            click.echo(dumps(facts) if as_json else facts["line"], color=color)


def _client_data() -> dict[str, Any]:
    """Return the client's data about its session; the client may keep the pipe open."""
    if sys.stdin is None or sys.stdin.isatty():
        return {}
    data, stdin = b"", cast("io.BufferedReader", sys.stdin.buffer)
    while len(data) <= _MAX_INPUT:
        chunk = stdin.read1(_CHUNK)
        data += chunk
        if not chunk or data.rstrip().endswith(b"}"):
            with contextlib.suppress(ValueError):
                signal = parse_json(data.decode("utf-8-sig").strip())
                return signal if isinstance(signal, dict) else {}
        if not chunk:
            break
    return {}


def _place_of(signal: dict[str, Any]) -> str:
    """Return the directory where the client was started, "" if it does not say."""
    workspace = signal.get("workspace")
    place = workspace.get("project_dir") if isinstance(workspace, dict) else None
    return place if isinstance(place, str) else ""


def _loop_of(
    signal: dict[str, Any], project: str | None, wanted: str | None
) -> tuple[Loop | None, str, str]:
    """Return the session's loop after recording its cost, or the only live loop; session and `.gsd`."""
    session = session_name(str(signal.get("session_id") or ""))
    journals = list(_journals(signal, project))
    for journal in journals:
        for loop in journal.loops.by_id.values() if wanted else journal.loops.live():
            own = bool(session) and loop.owner == session
            if loop.id == wanted if wanted else own:
                return _recorded(journal, loop, signal) if own else loop, session, journal.path
    alone = [] if wanted else [it for it in journals if len(it.loops.live()) == 1]
    return (alone[0].loops.live()[0], session, alone[0].path) if alone else (None, session, "")


def _journals(signal: dict[str, Any], project: str | None) -> Iterator[Journal]:
    """Yield the trusted journals that may belong to the session, the most likely first."""
    workspace = signal.get("workspace")
    folders = workspace if isinstance(workspace, dict) else {}
    starts = [folders.get("project_dir"), folders.get("current_dir"), signal.get("cwd")]
    seen = set()
    for start in [project] if project else [*starts, os.curdir]:
        with contextlib.suppress(GsdError, OSError, ValueError):
            gsd = find_gsd(os.path.abspath(start)) if isinstance(start, str) and start else ""
            if gsd and gsd not in seen:
                seen.add(gsd)
                journal = Journal(gsd, _LOCK_SECONDS, small=_SMALL)
                if is_registered(journal.read_cached().journal_id, gsd):
                    yield journal


def _cost(signal: dict[str, Any]) -> float | None:
    cost = signal.get("cost")
    total = cost.get("total_cost_usd") if isinstance(cost, dict) else None
    if isinstance(total, bool) or not isinstance(total, int | float):
        return None
    return round(total, 6) if 0 <= total <= _MOST_USD else None


def _recorded(journal: Journal, loop: Loop, signal: dict[str, Any]) -> Loop:
    """Return the loop, after recording the session's cost if it changed enough."""
    trusted, meter = journal.loops.journal_id, str(loop.owner)
    total, transcript = _cost(signal), str(signal.get("transcript_path"))
    if total is None or not _is_news(loop, meter, total):
        return loop

    def require(loops: Loops) -> None:
        if loops.journal_id != trusted:
            raise CannotWrite("the journal was replaced")

    with contextlib.suppress(GsdError):  # usually the lock; the next call records it
        with journal.transaction(Author("cli", meter, "claude"), require) as tx:
            current = tx.loops.by_id.get(loop.id)
            if current is None or current.owner != meter or not _is_news(current, meter, total):
                return loop
            data = {**total_of(current, meter, total, transcript), "what": "status line"}
            append_spending(LoopTransaction(tx, current), data)
        return current
    return loop


def _is_news(loop: Loop, meter: str, total: float) -> bool:
    if loop.status not in LIVE or is_resting(loop):
        return False
    known = loop.usage.totals.get(meter)
    # Calls may arrive out of order. Without prices, a total that fell by half was reset.
    least = _CENT if loop.limits.budget_usd else _TENTH
    begins_anew = known is not None and 0 < total < known / 2 and not loop.usage.prices
    return known is None or total - known >= least or begins_anew


def summary(loop: Loop, session: str, *, color: bool) -> str:
    """Return a loop in one line: progress, cost, status and owner."""
    most = loop.limits.max_iterations
    parts = [f"gsd-fsm {loop.kind} ▸ {loop.iteration}{f'/{most}' if most else ''}"]
    if loop.criteria:
        met = len(loop.criteria) - len(unmet(loop))
        parts.append(f"{met}/{len(loop.criteria)} criteria")
    if loop.tasks:
        done = len(loop.tasks) - len(open_tasks(loop))
        parts.append(f"{done}/{len(loop.tasks)} tasks")
        wave = current_wave(loop)
        parts += [f"wave {wave}"] if wave else []
    gaps = len(open_gaps(loop))
    parts += [f"{plural(gaps, 'gap')} open"] if gaps else []
    parts += _spent(loop)
    word = _coloured(loop.status) if color else loop.status
    why = _short(loop.pause_reason if loop.status == "paused" else loop.question)
    parts.append(f"{word}: {why}" if why and loop.status not in ACTIVE else word)
    if session and loop.owner != session:
        parts.append("owned by another session" if loop.owner else "no owner yet")
    return " · ".join(parts)


def _coloured(status: str) -> str:
    from gsd_fsm.cli.display.page import COLOURS, STATUS_STYLES

    return click.style(status, fg=COLOURS.get(STATUS_STYLES[status]))


def _spent(loop: Loop) -> list[str]:
    budget, tokens = loop.limits.budget_usd, loop.limits.max_tokens
    found = []
    if budget or loop.spent_usd:
        found.append(spent(loop) + (f"/{money(budget).removesuffix('.00')}" if budget else ""))
    if tokens:
        found.append(f"{loop.spent_tokens}/{tokens} tokens")
    return found


def _short(text: str | None) -> str:
    flat = display(" ".join((text or "").split()))
    return flat if len(flat) <= _LONGEST_WORDS else flat[: _LONGEST_WORDS - 1] + "…"
