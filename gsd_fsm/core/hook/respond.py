"""Respond to a signal: append what it brings along, decide, and only then answer."""

from __future__ import annotations

from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.command_line import PROGRAM, program
from gsd_fsm.core.errors import CannotWrite, NotFound
from gsd_fsm.core.hook.activity import head_commit, transcript_size, used_a_tool
from gsd_fsm.core.hook.clients import (
    CLIENT_REPORTS,
    block_answer,
    claims_completion,
    context_answer,
    notice_answer,
)
from gsd_fsm.core.hook.decide import (
    Observed,
    answered_before,
    background_work,
    budget_pause,
    by_another_copy,
    decide_stop,
)
from gsd_fsm.core.hook.hook_log import failure_answer, log_failure, remember_stop
from gsd_fsm.core.hook.memory import append_failures, first_time, is_failed
from gsd_fsm.core.hook.owners import (
    binds_at_stop,
    ended_loop,
    loop_for_signal,
    loop_for_stop,
    loops_of_others,
    own_loop,
    unowned_loop,
)
from gsd_fsm.core.hook.sessions import (
    append_prompts,
    append_signal,
    meter_anew,
)
from gsd_fsm.core.journal.journal import Author, Journal
from gsd_fsm.core.loop.events.sessions import CLIENT_WORKS, HOOK_VERSION
from gsd_fsm.core.loop.limits import has_budget
from gsd_fsm.core.loop.state import TASK_LIST, mirrored_list, unmet
from gsd_fsm.core.program import missing_program, name_program
from gsd_fsm.core.project import is_known_place, is_moved, is_registered
from gsd_fsm.core.system import exists, getenv, join, system
from gsd_fsm.core.text.notices import (
    disabled_notice,
    end_notice,
    missing_notice,
    moved_notice,
    other_loop,
    other_loop_notice,
    program_notice,
    replaced_notice,
    unknown_loop_notice,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.hook.clients import Signal
    from gsd_fsm.core.hook.decide import Decision
    from gsd_fsm.core.journal.journal import Transaction
    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.state import Loop

# Most of the time of the watchdog, because a stop without the lock is allowed.
_LOCK_SECONDS = 4.0
# An agent waits for every answer: use the snapshot from this size on.
_SMALL = 1 << 14
_WITH_USAGE = CLIENT_REPORTS | {"SessionStart", "SessionEnd"}
# The repeated answers that are remembered.
_REPEATS = 16
# The signals at which the user is notified of a disabled hook or an untrusted journal, and the loops named.
_NOTIFIED_AT = frozenset(("SessionStart", "Stop"))
_MOST_LOOPS = 3


def respond(signal: Signal, projects: list[str]) -> dict[str, Any]:
    """Return the answer to this signal, {} for none; every event it relies on is durable."""
    disabled = "GSD_FSM_DISABLE" if getenv("GSD_FSM_DISABLE") == "1" else ""
    others: list[Loop] = []
    known: set[str] = set()
    # Notices beside the answer: results of ended loops, and problems of the hook.
    notices: list[str] = []
    for gsd in projects:
        signal.place = gsd
        if not is_known_place(gsd):
            notices += _moved_notices(gsd, signal) if not disabled else []
            continue
        off = disabled or (".gsd/STOP" if exists(join(gsd, "STOP")) else "")
        if off and signal.event != "Stop" and (disabled or signal.event != "SessionStart"):
            known.add(signal.loop)  # it may be one of these
            continue
        journal = Journal(gsd, _LOCK_SECONDS, small=_SMALL)
        try:
            loops = journal.read_cached()
            if not is_registered(loops.journal_id, gsd):
                notices += _replaced_notices(signal, loops) if not disabled else []
                continue
            if signal.event == "Stop":
                ended = _unreported_end(loops, signal) if not off else None
                answer = _respond_to_stop(journal, loops, signal, off)
                free = unowned_loop(loops, signal.session) if off and not disabled else None
                if free is not None and not answer and free.status != "paused":
                    notices.append(disabled_notice([free]))
                if ended is not None and first_time("results", loops, gsd, ended.id, 1):
                    name_program()
                    notices.append(end_notice(ended, now_ms()))
            elif off:
                known.add(signal.loop)
                notices += [disabled_notice(loops.live())] if loops.live() else []
                continue
            else:
                answer = _respond_to_other(journal, loops, signal)
        except NotFound:
            notices += _missing_notices(signal) if not disabled else []
            continue
        except Exception as error:  # noqa: BLE001 - a stop that cannot be decided is allowed
            log_failure(error, [gsd])
            remember_stop(error, signal)
            notices += failure_answer(error, signal).values() if not disabled else []
            continue
        if answer is not None:
            return _with_notices(signal, answer, notices)
        if signal.event == "SessionStart":
            others += loops.live()[:_MOST_LOOPS]
            known.update([loop.id for loop in loops.live()])
    is_unknown = signal.event == "SessionStart" and signal.loop and signal.loop not in known
    if not others and not is_unknown:
        return _with_notices(signal, {}, notices)
    answer = _about_others(signal, others, signal.loop if is_unknown else "")
    return _with_notices(signal, answer, notices)


def _unreported_end(loops: Loops, signal: Signal) -> Loop | None:
    """Return the loop of this session that ended last, unless a hook that ended it has said so."""
    loop = ended_loop(loops, signal.session)
    answer = loop.last_answer if loop is not None else None
    if loop is None or answer is None or answer.seq < loop.last_seq:
        return loop
    return loop if is_failed(signal.place, answer.signal) else None


def _moved_notices(gsd: str, signal: Signal) -> list[str]:
    """Return the notice that a live loop of this user was moved to a place where it is not trusted.

    Of any other journal, only the id is read.
    """
    if signal.event not in _NOTIFIED_AT or not is_moved(gsd):
        return []
    try:
        is_live = bool(Journal(gsd, _LOCK_SECONDS, small=_SMALL).read_cached().live())
    except Exception:  # noqa: BLE001 - it could not be trusted either; a command says why
        return []
    name_program()
    return [moved_notice()] if is_live else []


def _replaced_notices(signal: Signal, loops: Loops) -> list[str]:
    """Return the notice that another journal is at a place that the user trusted."""
    if not loops.journal_id:
        return _missing_notices(signal)
    if signal.event not in _NOTIFIED_AT:
        return []
    name_program()
    return [replaced_notice()]


def _missing_notices(signal: Signal) -> list[str]:
    """Return the notice that a journal was removed or emptied; a stop may belong to no loop."""
    if signal.event != "SessionStart":
        return []
    name_program()
    return [missing_notice()]


def _program_notice(signal: Signal) -> str:
    """Return the notice for a new session whose client does not find gsd-fsm on its PATH, else ""."""
    is_new = signal.event == "SessionStart" and signal.source not in ("clear", "compact")
    return program_notice(missing_program()) if is_new and program() != PROGRAM else ""


def _about_others(signal: Signal, others: list[Loop], unknown: str) -> dict[str, Any]:
    """Return the texts about loops of others for a new session; `unknown`: the loop that it was started for."""
    name_program()
    may_bind = any(not loop.owner for loop in others) and not _prompt_source(signal)
    binds = {loop.id: may_bind and signal.session not in loop.released for loop in others}
    context = "\n".join([other_loop(loop, signal.source, binds[loop.id]) for loop in others])
    notices = [other_loop_notice(loop, binds[loop.id]) for loop in others]
    notices += [unknown_loop_notice(unknown)] if unknown else []
    notices += filter(None, [_program_notice(signal)])
    return _texts_answer(signal, context, "\n".join(notices))


def _texts_answer(signal: Signal, context: str, notice: str) -> dict[str, Any]:
    """Return the answer with a text for the model and one for the user; either may be empty."""
    answer = context_answer(signal.client, signal.event, context) if context else {}
    if notice:
        answer.update(notice_answer(signal.client, notice))
    return answer


def _with_notices(signal: Signal, answer: dict[str, Any], notices: list[str]) -> dict[str, Any]:
    """Return the answer with these notices before its own."""
    if notices:
        shown = [*notices, answer["systemMessage"]] if "systemMessage" in answer else notices
        return {**answer, **notice_answer(signal.client, "\n".join(shown))}
    return answer


def _transaction(journal: Journal, signal: Signal) -> Transaction:
    """Return a transaction on the journal that was just read; it refuses any other."""
    trusted = journal.loops.journal_id

    def require(loops: Loops) -> None:
        if loops.journal_id != trusted:
            raise CannotWrite("the journal was replaced")

    return journal.transaction(Author("hook", signal.session, signal.client), require)


# stops


def _respond_to_stop(
    journal: Journal, loops: Loops, signal: Signal, disabled_by: str
) -> dict[str, Any] | None:
    source = ""
    if binds_at_stop(signal) and unowned_loop(loops, signal.session) is not None:
        source = _prompt_source(signal)
    if (
        loop_for_stop(loops, signal, source) is None
        and answered_before(loops, signal, now_ms()) is None
    ):
        return None
    _await_usage(loops, signal)
    with _transaction(journal, signal) as tx:
        before = answered_before(tx.loops, signal, tx.now)
        # Two calls of the same copy look alike, but the second is a new stop.
        if before is not None and first_time(
            "repeats", tx.loops, tx.path, "%d %s" % (before.seq, signal.copy), _REPEATS
        ):
            return _answer(signal, before.text, before.blocks)
        loop = loop_for_stop(tx.loops, signal, source)
        if loop is None or (disabled_by and loop.owner != signal.session):
            return {}
        seen = _observe(journal.path, loop, signal)
        seen.disabled_by = disabled_by
        append_failures(tx, loop)
        if not disabled_by:
            _append_facts(tx, loop, signal)
        tx.loops.settle(loop.id)
        name_program()
        seen.missing_program = missing_program()
        decision = decide_stop(loop, signal, seen, tx.now)
        tx.append(loop, decision.event, {**decision.data, **_about(signal, decision)})
    return _answer(signal, decision.message, decision.blocks)


def _observe(gsd: str, loop: Loop, signal: Signal) -> Observed:
    seen = Observed(system.urandom(8).hex())
    seen.transcript = transcript_size(signal.transcript) if signal.transcript else None
    seen.tool_used = _used_a_tool(loop, signal, seen.transcript)
    seen.commit = head_commit(gsd)
    return seen


def _used_a_tool(loop: Loop, signal: Signal, size: int | None) -> bool:
    """Return whether the new part of the transcript has a tool call."""
    if size is None:
        return False
    session, known = loop.transcript or (None, None)
    return used_a_tool(signal.transcript, known if session == signal.session else None, size)


def _append_facts(tx: Transaction, loop: Loop, signal: Signal) -> None:
    """Append the facts that a stop carries: a new owner, the end of throttling, usage, the exit signal."""
    if loop.owner != signal.session:
        tx.append(loop, "session", {"action": "bind", **meter_anew(loop, signal)})
    if loop.status == "waiting" and loop.wait_for == "throttled":
        tx.append(loop, "resume", {"reason": CLIENT_WORKS})
    if _needs_usage(loop) and (loop.is_active or loop.status == "paused"):
        _append_usage(tx, loop, signal)
    if not loop.is_active:
        return
    if background_work(loop, signal) is not None:
        return
    if loop.silent_stops:
        from gsd_fsm.core.hook.subagents import append_silent_failures

        append_silent_failures(tx, loop)
    claims = loop.kind == "goal" and not loop.exit_signal and claims_completion(signal.message)
    if claims and not unmet(loop):
        tx.append(loop, "exit", {"reason": "the completion mark"})


def _needs_usage(loop: Loop) -> bool:
    return has_budget(loop) or bool(mirrored_list(loop, getenv(TASK_LIST)))


def _is_concerned(loop: Loop, signal: Signal) -> bool:
    from gsd_fsm.core.hook.subagents import concerns_subagent

    return signal.event == "SubagentStop" and concerns_subagent(loop, signal)


def _await_usage(loops: Loops, signal: Signal) -> None:
    loop = own_loop(loops, signal.session)
    if loop is not None and has_budget(loop):
        from gsd_fsm.core.hook.client_usage import await_usage

        await_usage(loop, signal)


def _append_usage(tx: Transaction, loop: Loop, signal: Signal) -> None:
    from gsd_fsm.core.hook.client_usage import append_usage

    append_usage(tx, loop, signal)


def _about(signal: Signal, decision: Decision) -> dict[str, Any]:
    """Return what identifies this stop, and the notice that the user reads."""
    about: dict[str, Any] = {"signal": signal.digest, "active": signal.active}
    about["hook"] = HOOK_VERSION
    if signal.copy:
        about["copy"] = signal.copy
    if decision.message and not decision.blocks:
        about["said"] = decision.message
    return about


def _answer(signal: Signal, text: str, blocks: bool) -> dict[str, Any]:
    if not text:
        return {}
    if blocks:
        return block_answer(signal.client, signal.quiet, text)
    return notice_answer(signal.client, text)


# other signals


def _respond_to_other(journal: Journal, loops: Loops, signal: Signal) -> dict[str, Any] | None:
    if signal.pid and signal.event not in CLIENT_REPORTS and loops.live():
        from gsd_fsm.core.ancestors import start_time

        signal.began = start_time(signal.pid)
    source = _prompt_source(signal) if _asks_who_prompts(loops, signal) else ""
    own = loop_for_signal(loops, signal, source)
    if own is None and not loops_of_others(loops, signal):
        return None
    is_concerned = own is not None and (_needs_usage(own) or _is_concerned(own, signal))
    if own is not None and signal.event in CLIENT_REPORTS and not is_concerned:
        return {}
    if signal.event == "SubagentStop":
        _await_usage(loops, signal)
    nonce = system.urandom(8).hex()
    size = transcript_size(signal.transcript) if signal.transcript else None
    if own is None:
        with _transaction(journal, signal) as tx:
            append_prompts(tx, signal, source, size)
        return None
    with _transaction(journal, signal) as tx:
        loop = loop_for_signal(tx.loops, signal, source)
        if loop is None:
            return {}
        if loop.owner == signal.session:
            append_failures(tx, loop)
        tool_used = bool(loop.unconfirmed) and _used_a_tool(loop, signal, size)
        has_usage = signal.event in _WITH_USAGE or loop.status == "paused"
        if (
            has_usage
            and loop.owner == signal.session
            and _needs_usage(loop)
            and not by_another_copy(loop.last_signal, signal, tx.now)
        ):
            _append_usage(tx, loop, signal)
        if signal.event == "SubagentStop" and _is_concerned(loop, signal):
            from gsd_fsm.core.hook.subagents import append_subagent_end

            append_subagent_end(tx, loop, signal)
        tx.loops.settle(loop.id)
        name_program()
        context, notice = append_signal(tx, loop, signal, nonce, size, tool_used, source)
        ended = signal.event == "SubagentStop"
        pause = budget_pause(loop, tx.now, is_stop=False) if ended else None
        if pause is not None:
            tx.append(loop, pause.event, pause.data)
            notice = pause.message
        append_prompts(tx, signal, source, size)
    notice = "\n".join(filter(None, [notice, _program_notice(signal)]))
    return _texts_answer(signal, context, notice)


def _asks_who_prompts(loops: Loops, signal: Signal) -> bool:
    """Return whether it matters for a loop if a user can have typed a prompt in this session."""
    if signal.event == "SessionStart":
        return bool(signal.loop)
    return signal.event == "UserPromptSubmit" and any(
        loop.rules is not None or not loop.owner for loop in loops.live()
    )


def _prompt_source(signal: Signal) -> str:
    """Return why no user can have typed a prompt in this session, "" if one can."""
    from gsd_fsm.core.hook.prompt_source import prompt_source

    return prompt_source(signal.client)
