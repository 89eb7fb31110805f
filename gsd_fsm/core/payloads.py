"""What each type of event may carry."""

from __future__ import annotations

from gsd_fsm.core.clock import to_ms
from gsd_fsm.core.codec import MAX_INT, check_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KINDS = ("execute", "verify", "goal")
MODES = ("interactive", "yolo")
CLASSES = ("transient", "logic", "blocking", "unknown")
TASK_STATUSES = ("pending", "running", "complete", "checkpoint", "skipped")
TDD_PHASES = ("red", "green", "refactor")
STAGES = ("intent", "shape", "decompose", "executing", "review", "complete")
SHAPES = ("tool", "tool-review", "colleague", "blocked")
PAUSE_CODES = (
    "iterations", "rounds", "stuck", "idle", "repeated", "budget", "minutes", "retries",
    "blocking", "unknown", "client", "manual", "oscillation", "plan",
)  # fmt: skip

_ID_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_ID_REST = _ID_FIRST | frozenset("._-")


_known_ids: dict[str, None] = {}


def is_id(text: Any) -> bool:
    """Whether this may name something: 1 to 64 of A-Z a-z 0-9 . _ -, never path-like."""
    if type(text) is not str:
        return False
    if text in _known_ids:
        return True
    if not (
        0 < len(text) <= 64
        and text[0] in _ID_FIRST
        and _ID_REST.issuperset(text)
        and ".." not in text
    ):
        return False
    if len(_known_ids) > 4096:
        _known_ids.clear()
    _known_ids[text] = None
    return True


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_INT


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MAX_INT


def _is_time(value: Any) -> bool:
    try:
        return type(value) is str and to_ms(value) >= 0
    except (ValueError, IndexError):
        return False


def _is_texts(value: Any) -> bool:
    return type(value) is list and all(type(item) is str for item in value)


def _is_ids(value: Any) -> bool:
    return type(value) is list and all(is_id(item) for item in value)


def _is_counts(value: Any) -> bool:
    return type(value) is list and all(_is_count(item) for item in value)


def _is_locks(value: Any) -> bool:
    """Files and their digests; None for one that is not there."""
    return type(value) is dict and all(type(d) is str or d is None for d in value.values())


def _is_object(value: Any) -> bool:
    if type(value) is not dict:
        return False
    check_value(value)
    return True


def _fits(value: Any, fields: dict[str, Any], required: tuple[str, ...]) -> bool:
    if type(value) is not dict or not all(name in value for name in required):
        return False
    for name, item in value.items():
        rule = fields.get(name)
        if rule is None:
            check_value(item)
        elif not (type(item) is rule if rule.__class__ is type else rule(item)):
            return False
    return True


_LIMITS = {
    "max_iterations": _is_count,
    "max_retries": _is_count,
    "max_rounds": _is_count,
    "tdd_max_attempts": _is_count,
    "stuck_limit": _is_count,
    "idle_limit": _is_count,
    "budget_usd": _is_amount,
    "max_minutes": _is_amount,
    "max_tokens": _is_count,
}
LIMITS = frozenset(_LIMITS)
_CRITERION = {"name": str, "check": str, "met": bool}
_TASK = {
    "id": is_id, "title": str, "wave": _is_count, "depends": _is_ids, "step": bool,
    "tests": bool, "retries": _is_count,
    "status": lambda value: value in ("pending", "running", "complete", "skipped", "failed"),
}  # fmt: skip
# How a loop of another format stood when it was taken over.
_CARRIED = {
    "from": str, "file": str, "iteration": _is_count, "round": _is_count, "stuck": _is_count,
    "last_unmet": str, "started": _is_time, "updated": _is_time, "last_iteration": _is_time,
    "last_error": str, "spent_usd": _is_amount, "exit_signal": bool, "history": _is_texts,
}  # fmt: skip
_EVIDENCE = {
    "command": str, "exit_code": _is_count, "tail": str, "digest": str,
    "likeness": str, "tree": lambda value: value is None or type(value) is str,
    "seconds": _is_amount, "timed_out": bool,
}  # fmt: skip


def _is_carried(value: Any) -> bool:
    return _fits(value, _CARRIED, ())


def _is_limits(value: Any) -> bool:
    return _fits(value, _LIMITS, ())


def _is_criteria(value: Any) -> bool:
    return type(value) is list and all(_fits(item, _CRITERION, ("name",)) for item in value)


def _is_tasks(value: Any) -> bool:
    return type(value) is list and all(_fits(item, _TASK, ("id",)) for item in value)


def _is_evidence(value: Any) -> bool:
    return _fits(value, _EVIDENCE, ("command", "exit_code"))


def _one_of(*words: str) -> Any:
    return lambda value: type(value) is str and value in words


# What the hook adds to the event in which it decides a stop: which call it was, which of its copies
# was called, and whether the client says that it is going on already.
_STOP: dict[str, Any] = {"signal": str, "copy": str, "active": bool}
# An allow may be told to the user; the text of a block is its `reason`.
_ALLOW: dict[str, Any] = {**_STOP, "said": str}

# type -> (required, every known field and its rule)
PAYLOADS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "journal": (("id",), {"id": is_id, "incompat": _is_texts, "compat": _is_texts}),
    "repair": (("bytes",), {"bytes": _is_count, "aside": str, "what": str}),
    "start": (("kind", "mode", "limits"), {
        "kind": _one_of(*KINDS), "mode": _one_of(*MODES), "limits": _is_limits, "goal": str,
        "phase": lambda value: type(value) is str or _is_count(value), "plan": _is_object, "criteria": _is_criteria, "tasks": _is_tasks,
        "must_not": _is_texts, "auto_loop": bool, "review": bool, "carried": _is_carried,
        "counsel": str, "views": _is_texts, "task_list": str, "session_only": bool,
    }),
    "iteration": ((), {
        "activity": bool, "delivered": _is_counts, "reason": str, "code": str,
        "transcript": _is_count, "commit": str, **_STOP,
    }),
    "failure": (("error", "class"), {
        "task": is_id, "error": str, "class": _one_of(*CLASSES), "analysis": str,
        "fix": str, "signature": str,
    }),
    "task": (("task", "status"), {
        "task": is_id, "status": _one_of(*TASK_STATUSES), "title": str, "wave": _is_count,
        "depends": _is_ids, "commit": str, "ref": str, "phase": _one_of(*TDD_PHASES),
        "question": str, "summary": str, "fixes": _is_texts, "locked": _is_locks,
        "exit_code": _is_count, "undone": bool, "mirrored": bool, "list": str, "named": bool,
        "condition": str,
    }),
    "gap": (("action", "gap"), {
        "action": _one_of("found", "closed", "reopened"), "gap": is_id, "kind": is_id,
        "file": str, "description": str, "evidence": str, "check": str,
    }),
    "criterion": (("criterion", "met"), {
        "criterion": str, "met": bool, "stale": bool, "evidence": _is_evidence,
    }),
    "verified": (("passed",), {"passed": bool, "report": str}),
    "exit": ((), {"reason": str}),
    "review": (("action",), {
        "action": _one_of("begun", "passed", "failed", "light"), "wave": _is_count,
        "score": _is_amount, "issues": _is_count, "blockers": _is_count, "report": str,
    }),
    "stage": (("stage",), {"stage": _one_of(*STAGES)}),
    "score": ((), {
        "spec": _is_object, "spec_score": _is_count, "fit_score": _is_count,
        "shape": _one_of(*SHAPES),
    }),
    "plan": ((), {
        "digest": str, "file": str, "changed": bool, "tasks": _is_tasks, "count": _is_count,
        "title": str, "waves": _is_count, "sequential": _is_counts, "criteria": _is_criteria,
        "must_not": _is_texts, "joins": bool,
    }),
    "mode": (("mode",), {"mode": _one_of(*MODES)}),
    "spend": ((), {
        "usd": _is_amount, "tokens": _is_count, "what": str, "meter": str,
        "total_usd": _is_amount, "source": str, "counted": _is_count, "messages": _is_texts,
    }),
    "note": (("text",), {
        "text": str, "kind": _one_of("steer", "recall"), "dismissed": bool, "source": str,
    }),
    "issue": (("text",), {"text": str, "severity": str, "task": is_id}),
    "wait": (("for",), {
        "for": _one_of("human", "throttled"), "question": str, "until": _is_time,
        "reason": str, "about": str, **_ALLOW,
    }),
    "answer": (("text",), {"text": str}),
    "pause": (("code",), {
        "code": _one_of(*PAUSE_CODES), "reason": str, "declined": bool, **_ALLOW,
    }),
    "resume": ((), {"add": _is_limits, "reason": str, "views": _is_texts, "anew": bool}),
    "cancel": ((), {"reason": str}),
    "complete": ((), {
        "tree": lambda value: value is None or type(value) is str, "summary": str, **_ALLOW,
    }),
    "stop": (("code",), {"code": str, "reason": str, "background": _is_texts, **_ALLOW}),
    "session": (("action",), {
        "action": _one_of("bind", "release", "start", "prompt", "compact", "end"),
        "source": str, "reason": str, "pid": _is_count, "transcript": _is_count,
        "signal": str, "copy": str,
    }),
    "checkpoint": (("name",), {
        "name": str, "commit": str, "task": is_id, "left": str, "reset": _is_ids,
    }),
}  # fmt: skip

# These stand outside every loop.
OF_THE_JOURNAL = ("journal", "repair")
