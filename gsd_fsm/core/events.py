"""The closed set of events and what each may carry."""

from __future__ import annotations

from gsd_fsm.core.clock import to_ms
from gsd_fsm.core.codec import MAX_INT, check_value, decode_line
from gsd_fsm.core.errors import Newer

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


def _is_object(value: Any) -> bool:
    if type(value) is not dict:
        return False
    check_value(value)
    return True


def _fits(value: Any, fields: dict[str, Any], required: tuple[str, ...]) -> bool:
    if type(value) is not dict or not all(name in value for name in required):
        return False
    check_value(value)
    return all(_obeys(fields[name], item) for name, item in value.items() if name in fields)


def _obeys(rule: Any, value: Any) -> bool:
    return type(value) is rule if rule.__class__ is type else bool(rule(value))


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
_CRITERION = {"name": str, "check": str}
_TASK = {
    "id": is_id, "title": str, "wave": _is_count, "depends": _is_ids, "step": bool,
    "tests": bool,
}  # fmt: skip
_EVIDENCE = {
    "command": str, "exit_code": _is_count, "tail": str, "digest": str,
    "likeness": str, "tree": lambda value: value is None or type(value) is str,
    "seconds": _is_amount, "timed_out": bool,
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
    return lambda value: type(value) is str and value in words


# type -> (required, every known field and its rule)
PAYLOADS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "journal": (("id",), {"id": is_id, "incompat": _is_texts, "compat": _is_texts}),
    "repair": (("bytes",), {"bytes": _is_count, "aside": str, "what": str}),
    "start": (("kind", "mode", "limits"), {
        "kind": _one_of(*KINDS), "mode": _one_of(*MODES), "limits": _is_limits, "goal": str,
        "phase": lambda value: type(value) is str or _is_count(value), "plan": _is_object, "criteria": _is_criteria, "tasks": _is_tasks,
        "must_not": _is_texts, "auto_loop": bool, "review": bool,
    }),
    "iteration": ((), {
        "activity": bool, "delivered": _is_counts, "reason": str, "code": str,
    }),
    "failure": (("error", "class"), {
        "task": is_id, "error": str, "class": _one_of(*CLASSES), "analysis": str,
        "fix": str, "signature": str,
    }),
    "task": (("task", "status"), {
        "task": is_id, "status": _one_of(*TASK_STATUSES), "title": str, "wave": _is_count,
        "depends": _is_ids, "commit": str, "ref": str, "phase": _one_of(*TDD_PHASES),
        "question": str,
    }),
    "gap": (("action", "gap"), {
        "action": _one_of("found", "closed", "reopened"), "gap": is_id, "kind": is_id,
        "file": str, "description": str, "evidence": str,
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
    "plan": ((), {"digest": str, "file": str, "changed": bool}),
    "mode": (("mode",), {"mode": _one_of(*MODES)}),
    "spend": ((), {"usd": _is_amount, "tokens": _is_count, "what": str}),
    "note": (("text",), {"text": str, "kind": _one_of("steer", "recall")}),
    "issue": (("text",), {"text": str, "severity": str, "task": is_id}),
    "wait": (("for",), {
        "for": _one_of("human", "throttled"), "question": str, "until": _is_time,
        "reason": str,
    }),
    "answer": (("text",), {"text": str}),
    "pause": (("code",), {"code": _one_of(*PAUSE_CODES), "reason": str}),
    "resume": ((), {"add": _is_limits, "reason": str}),
    "cancel": ((), {"reason": str}),
    "complete": ((), {
        "tree": lambda value: value is None or type(value) is str, "summary": str,
    }),
    "stop": (("code",), {"code": str, "reason": str}),
    "session": (("action",), {
        "action": _one_of("bind", "release", "start", "prompt", "compact", "end"),
        "source": str, "reason": str,
    }),
    "checkpoint": (("name",), {"name": str, "commit": str, "task": is_id}),
}  # fmt: skip

MEMBERS = frozenset(
    ("v", "seq", "ts", "loop", "type", "by", "session", "client", "optional", "data", "sum")
)
# These stand outside every loop.
OF_THE_JOURNAL = ("journal", "repair")

_SECONDS = frozenset("%02d." % n for n in range(60))
_MILLIS = frozenset("%03dZ" % n for n in range(1000))
_known_by = frozenset(BY)
_minute = [""]


def check_time(ts: Any) -> None:
    """ValueError unless this is a time as the journal writes it."""
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
        version, seq, loop, kind = event["v"], event["seq"], event["loop"], event["type"]
        by, data = event["by"], event["data"]
        check_time(event["ts"])
    except KeyError as missing:
        raise ValueError("no member %s" % missing) from None
    if version != VERSION or type(version) is not int:
        raise Newer("an event has version %.20r" % (version,))
    if type(seq) is not int:
        raise ValueError("seq is not a number")
    if type(by) is not str or by not in _known_by:
        raise ValueError("by is none of %s" % ", ".join(BY))
    if type(data) is not dict:
        raise ValueError("data is not an object")
    payload = PAYLOADS.get(kind) if type(kind) is str else None
    if payload is None:
        if event.get("optional") is True:
            check_value(event)
            return
        raise ValueError("unknown event type %.40r" % (kind,))
    if not is_id(loop) and (loop is not None or kind not in OF_THE_JOURNAL):
        raise ValueError("loop is not an id")
    if len(event) > 7:
        _check_members(event)
    required, fields = payload
    for name in required:
        if name not in data:
            raise ValueError("%s without %s" % (kind, name))
    for name, value in data.items():
        rule = fields.get(name)
        if rule.__class__ is type:
            if type(value) is not rule:
                raise ValueError("%s.%s is not acceptable" % (kind, name))
        elif rule is None:
            check_value(value)
        elif not rule(value):
            raise ValueError("%s.%s is not acceptable" % (kind, name))


def _check_members(event: dict[str, Any]) -> None:
    unknown = [name for name in event if name not in MEMBERS]
    if unknown:
        raise ValueError("unknown member %.40r" % unknown[0])
    if not (is_session(event.get("session", "-")) and is_session(event.get("client", "-"))):
        raise ValueError("session or client is not a name")
    if type(event.get("optional", False)) is not bool:
        raise ValueError("optional is not a flag")


def is_session(text: Any) -> bool:
    """Whether this can be a session's or client's name: short printable ASCII without blanks."""
    return (
        type(text) is str
        and 0 < len(text) <= 200
        and text.isascii()
        and text.isprintable()
        and " " not in text
    )


def load_event(line: bytes) -> Any:
    """The event of a line whose sum is right; ValueError if it is not acceptable."""
    event = decode_line(line)
    check_event(event)
    return event
