"""The closed set of events and what each may carry."""

from __future__ import annotations

from gsd_fsm.core.clock import to_ms
from gsd_fsm.core.codec import MAX_INT, check_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1
BY = ("agent", "human", "hook", "cli")
KINDS = ("execute", "verify", "goal")
MODES = ("interactive", "yolo")
CLASSES = ("transient", "logic", "blocking", "unknown")
TASK_STATUSES = ("pending", "running", "complete", "checkpoint", "skipped")
TDD_PHASES = ("red", "green", "refactor")
STAGES = ("intent", "shape", "decompose", "executing", "review", "complete")
SHAPES = ("tool", "tool-review", "colleague", "blocked")
SEVERITIES = ("BLOCKER", "WARNING", "SUGGESTION")
PAUSE_CODES = (
    "iterations", "rounds", "stuck", "idle", "repeated", "budget", "minutes", "retries",
    "blocking", "unknown", "client", "manual", "oscillation", "plan",
)  # fmt: skip

_ID_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_ID_REST = _ID_FIRST | frozenset("._-")


def is_id(text: Any) -> bool:
    """Whether this may name something: 1 to 64 of A-Z a-z 0-9 . _ -, never path-like."""
    return (
        type(text) is str
        and 0 < len(text) <= 64
        and text[0] in _ID_FIRST
        and _ID_REST.issuperset(text)
        and ".." not in text
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_INT


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MAX_INT


def _is_time(value: Any) -> bool:
    try:
        return type(value) is str and to_ms(value) >= 0
    except (ValueError, IndexError):
        return False


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _is_texts(value: Any) -> bool:
    return type(value) is list and all(type(item) is str for item in value)


def _is_ids(value: Any) -> bool:
    return type(value) is list and all(is_id(item) for item in value)


def _is_counts(value: Any) -> bool:
    return type(value) is list and all(_is_count(item) for item in value)


def _is_object(value: Any) -> bool:
    if type(value) is not dict:
        return False
    check_value(value)
    return True


def _fits(value: Any, fields: dict[str, Any], required: tuple[str, ...]) -> bool:
    if type(value) is not dict or not all(name in value for name in required):
        return False
    check_value(value)
    return all(fields[name](item) for name, item in value.items() if name in fields)


_LIMITS = {
    "max_iterations": _is_count,
    "max_retries": _is_count,
    "max_rounds": _is_count,
    "tdd_max_attempts": _is_count,
    "stuck_limit": _is_count,
    "idle_limit": _is_count,
    "budget_usd": _is_amount,
    "max_minutes": _is_amount,
}
_CRITERION = {"name": _is_text, "check": _is_text}
_TASK = {
    "id": is_id, "title": _is_text, "wave": _is_count, "depends": _is_ids, "step": _is_flag,
    "tests": _is_flag,
}  # fmt: skip
_EVIDENCE = {
    "command": _is_text, "exit_code": _is_count, "tail": _is_text, "digest": _is_text,
    "likeness": _is_text, "tree": lambda value: value is None or type(value) is str,
    "seconds": _is_amount, "timed_out": _is_flag,
}  # fmt: skip


def _is_limits(value: Any) -> bool:
    return _fits(value, _LIMITS, ())


def _is_criteria(value: Any) -> bool:
    return type(value) is list and all(_fits(item, _CRITERION, ("name",)) for item in value)


def _is_tasks(value: Any) -> bool:
    return type(value) is list and all(_fits(item, _TASK, ("id",)) for item in value)


def _is_evidence(value: Any) -> bool:
    return _fits(value, _EVIDENCE, ("command", "exit_code"))


def _one_of(*words: str) -> Any:
    return frozenset(words).__contains__


# type -> (required, every known field and its rule)
PAYLOADS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "journal": (("id",), {"id": is_id, "incompat": _is_texts, "compat": _is_texts}),
    "repair": (("bytes",), {"bytes": _is_count, "aside": _is_text, "what": _is_text}),
    "start": (("kind", "mode", "limits"), {
        "kind": _one_of(*KINDS), "mode": _one_of(*MODES), "limits": _is_limits, "goal": _is_text,
        "phase": lambda value: _is_text(value) or _is_count(value), "plan": _is_object, "criteria": _is_criteria, "tasks": _is_tasks,
        "must_not": _is_texts, "auto_loop": _is_flag, "review": _is_flag,
    }),
    "iteration": ((), {
        "activity": _is_flag, "delivered": _is_counts, "reason": _is_text, "code": _is_text,
    }),
    "failure": (("error", "class"), {
        "task": is_id, "error": _is_text, "class": _one_of(*CLASSES), "analysis": _is_text,
        "fix": _is_text, "signature": _is_text,
    }),
    "task": (("task", "status"), {
        "task": is_id, "status": _one_of(*TASK_STATUSES), "title": _is_text, "wave": _is_count,
        "depends": _is_ids, "commit": _is_text, "ref": _is_text, "phase": _one_of(*TDD_PHASES),
        "question": _is_text,
    }),
    "gap": (("action", "gap"), {
        "action": _one_of("found", "closed", "reopened"), "gap": is_id, "kind": is_id,
        "file": _is_text, "description": _is_text, "evidence": _is_text,
    }),
    "criterion": (("criterion", "met"), {
        "criterion": _is_text, "met": _is_flag, "stale": _is_flag, "evidence": _is_evidence,
    }),
    "verified": (("passed",), {"passed": _is_flag, "report": _is_text}),
    "exit": ((), {"reason": _is_text}),
    "review": (("action",), {
        "action": _one_of("begun", "passed", "failed", "light"), "wave": _is_count,
        "score": _is_amount, "issues": _is_count, "blockers": _is_count, "report": _is_text,
    }),
    "stage": (("stage",), {"stage": _one_of(*STAGES)}),
    "score": ((), {
        "spec": _is_object, "spec_score": _is_count, "fit_score": _is_count,
        "shape": _one_of(*SHAPES),
    }),
    "plan": ((), {"digest": _is_text, "file": _is_text, "changed": _is_flag}),
    "mode": (("mode",), {"mode": _one_of(*MODES)}),
    "spend": ((), {"usd": _is_amount, "tokens": _is_count, "what": _is_text}),
    "note": (("text",), {"text": _is_text, "kind": _one_of("steer", "recall")}),
    "issue": (("text",), {"text": _is_text, "severity": _is_text, "task": is_id}),
    "wait": (("for",), {
        "for": _one_of("human", "throttled"), "question": _is_text, "until": _is_time,
        "reason": _is_text,
    }),
    "answer": (("text",), {"text": _is_text}),
    "pause": (("code",), {"code": _one_of(*PAUSE_CODES), "reason": _is_text}),
    "resume": ((), {"add": _is_limits, "reason": _is_text}),
    "cancel": ((), {"reason": _is_text}),
    "complete": ((), {
        "tree": lambda value: value is None or type(value) is str, "summary": _is_text,
    }),
    "stop": (("code",), {"code": _is_text, "reason": _is_text}),
    "session": (("action",), {
        "action": _one_of("bind", "release", "start", "prompt", "compact", "end"),
        "source": _is_text, "reason": _is_text,
    }),
    "checkpoint": (("name",), {"name": _is_text, "commit": _is_text, "task": is_id}),
}  # fmt: skip

# These stand outside every loop.
OF_THE_JOURNAL = ("journal", "repair")

_SECONDS = frozenset("%02d." % n for n in range(60))
_MILLIS = frozenset("%03dZ" % n for n in range(1000))
_minute = [""]


def _check_time(ts: Any) -> None:
    # Most lines share their minute with the line before: only a new one is parsed.
    if type(ts) is str and ts[17:20] in _SECONDS and ts[20:] in _MILLIS:
        if ts[:17] == _minute[0]:
            return
        try:
            to_ms(ts)
        except ValueError:
            raise ValueError("ts is not a time") from None
        _minute[0] = ts[:17]
        return
    raise ValueError("ts is not a time")


def check_event(event: Any) -> None:
    """ValueError, saying what is wrong, unless this is an event the fold may see."""
    if type(event) is not dict:
        raise ValueError("not a JSON object")
    try:
        ts, loop, kind = event["ts"], event["loop"], event["type"]
        by, data = event["by"], event["data"]
    except KeyError as missing:
        raise ValueError("no member %s" % missing) from None
    _check_time(ts)
    if by not in BY:
        raise ValueError("by is none of %s" % ", ".join(BY))
    if type(data) is not dict:
        raise ValueError("data is not an object")
    payload = PAYLOADS.get(kind) if type(kind) is str else None
    if payload is None:
        if event.get("optional") is True:
            return
        raise ValueError("unknown event type %.40r" % (kind,))
    if not is_id(loop) and (loop is not None or kind not in OF_THE_JOURNAL):
        raise ValueError("loop is not an id")
    if len(event) > 8 and not (
        is_session(event.get("session", "-")) and is_session(event.get("client", "-"))
    ):
        raise ValueError("session or client is not a name")
    required, fields = payload
    for name in required:
        if name not in data:
            raise ValueError("%s without %s" % (kind, name))
    for name, value in data.items():
        rule = fields.get(name)
        if rule is None:
            check_value(value)
        elif not rule(value):
            raise ValueError("%s.%s is not acceptable" % (kind, name))


def is_session(text: Any) -> bool:
    """Whether this can be a session's or client's name: short printable ASCII without blanks."""
    return type(text) is str and 0 < len(text) <= 200 and text.isprintable() and " " not in text
