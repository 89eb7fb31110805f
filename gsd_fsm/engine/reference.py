"""Derive reference material from the event declarations: JSON Schema, Markdown, payload types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gsd_fsm.core.loop.events.gaps import GAP_TABLE
from gsd_fsm.core.loop.events.goals import STAGE_TABLE
from gsd_fsm.core.loop.events.tasks import TASK_TABLE
from gsd_fsm.core.loop.records import Limits
from gsd_fsm.core.loop.schema import EventType, Field
from gsd_fsm.core.loop.state import ACTIVE, LIVE
from gsd_fsm.core.loop.table import EVENTS, OF_THE_JOURNAL, TRIGGERS

if TYPE_CHECKING:
    from gsd_fsm.core.loop.schema import Kind, Rule


_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"
_ID = {
    "type": "string",
    "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
    "not": {"pattern": r"\.\."},
}
_SESSION = {"type": "string", "pattern": "^[!-~]{1,200}$"}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 2**53}
# kind of a field -> its Python type and its JSON Schema
_TYPES: dict[str, tuple[str, dict[str, Any]]] = {
    "str": ("str", {"type": "string"}),
    "bool": ("bool", {"type": "boolean"}),
    "id": ("str", _ID),
    "count": ("int", _COUNT),
    "amount": ("float", {"type": "number", "minimum": 0, "maximum": 2**53}),
    "time": ("str", {"type": "string", "pattern": _TIME}),
    "texts": ("list[str]", {"type": "array", "items": {"type": "string"}}),
    "ids": ("list[str]", {"type": "array", "items": _ID}),
    "counts": ("list[int]", {"type": "array", "items": _COUNT}),
    "digests": (
        "dict[str, str | None]",
        {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
    ),
    "object": ("dict[str, Any]", {"type": "object"}),
    "phase": ("str | int", {"anyOf": [{"type": "string"}, _COUNT]}),
    "text or null": ("str | None", {"type": ["string", "null"]}),
}
# kind of a structured field -> the name of its payload type, and whether it is a list of them
_RECORDS = {
    "limits": ("LimitsData", False),
    "evidence": ("EvidenceData", False),
    "imported": ("ImportedData", False),
    "criteria": ("CriterionSpec", True),
    "tasks": ("TaskSpec", True),
}


# the same kind -> the name of the object in docs/journal.md
_OBJECTS = {"limits": "limits", "criteria": "criterion", "tasks": "task", "evidence": "evidence"}
# kinds whose name in the documentation is another
_KINDS = {
    "texts": "list of texts",
    "ids": "list of ids",
    "counts": "list of counts",
    "digests": "object of texts or null",
    "criteria": "list of criteria, see below",
    "tasks": "list of tasks, see below",
    "imported": "object",
    "phase": "text or count",
}


def event_schema() -> dict[str, Any]:
    """Return the JSON Schema of a journal line."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gsd-fsm journal line",
        "type": "object",
        "required": ["v", "seq", "ts", "loop", "type", "by", "data", "sum"],
        "properties": {
            "v": {"type": "integer"},
            "seq": {"type": "integer", "minimum": 1},
            "ts": {"type": "string", "pattern": _TIME},
            "loop": {"anyOf": [_ID, {"type": "null"}]},
            "type": _ID,
            "by": {"enum": ["agent", "human", "hook", "cli"]},
            "session": _SESSION,
            "client": _SESSION,
            "optional": {"type": "boolean"},
            "data": {"type": "object"},
            "sum": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
        },
        "additionalProperties": False,
        "allOf": [_unknown_type_schema(), *map(_type_schema, EVENTS.values())],
    }


def _unknown_type_schema() -> dict[str, Any]:
    """Return the schema by which only optional events may have a type of a later version."""
    return {
        "if": {"properties": {"type": {"enum": list(EVENTS)}}},
        "else": {"required": ["optional"], "properties": {"optional": {"const": True}}},
    }


def _type_schema(declared: EventType) -> dict[str, Any]:
    members = {"data": _object_schema(declared.fields, declared.required)}
    if declared.name not in OF_THE_JOURNAL:
        members["loop"] = {"type": "string"}
    return {
        "if": {"properties": {"type": {"const": declared.name}}},
        "then": {"properties": members},
    }


def _object_schema(fields: Any, required: tuple[str, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": {name: _schema_of(field) for name, field in fields.items()},
    }


def _schema_of(field: Kind) -> dict[str, Any]:
    if not isinstance(field, Field):
        return _TYPES[field.__name__][1]
    if field.words:
        return {"enum": list(field.words)}
    if field.members is not None:
        one = _object_schema(field.members, field.required)
        return {"type": "array", "items": one} if _RECORDS[field.kind][1] else one
    return _TYPES[field.kind][1]


def payload_types() -> str:
    """Return the source of core/loop/payloads.pyi."""
    parts = [_STUB_HEADER]
    named = {field.kind: field for field in _structured()}
    for kind, (name, _) in _RECORDS.items():
        parts.append(_typed_dict(name, named[kind].members or {}, named[kind].required))
    parts += [
        _typed_dict(_payload_name(declared), declared.fields, declared.required)
        for declared in EVENTS.values()
    ]
    return "".join(parts)


def _structured() -> list[Field]:
    return [
        field
        for declared in EVENTS.values()
        for field in declared.fields.values()
        if isinstance(field, Field) and field.members is not None
    ]


def _payload_name(declared: EventType) -> str:
    return f"{declared.name.capitalize()}Data"


def _typed_dict(name: str, fields: Any, required: tuple[str, ...]) -> str:
    lines = [f'{name} = TypedDict(\n    "{name}",\n    {{\n']
    for member, field in fields.items():
        wrapper = "Required" if member in required else "NotRequired"
        lines.append(f'        "{member}": {wrapper}[{_type_of(field)}],\n')
    return "".join([*lines, "    },\n)\n"])


def _type_of(field: Kind) -> str:
    if not isinstance(field, Field):
        return _TYPES[field.__name__][0]
    if field.words:
        words = ", ".join(f'"{word}"' for word in field.words)
        return f"Literal[{words}]"
    if field.members is not None:
        name, many = _RECORDS[field.kind]
        return f"list[{name}]" if many else name
    return _TYPES[field.kind][0]


def reference_tables() -> dict[str, str]:
    """Return the generated tables of docs/journal.md by name."""
    return {
        "payloads": _payload_table(),
        "objects": _object_table(),
        "transitions": _transition_table(),
        "parts": _part_table(),
        "rules": _rule_table(),
    }


def _payload_table() -> str:
    rows = ["| type | field | required | value |", "|---|---|---|---|"]
    for declared in EVENTS.values():
        notes = MEMBER_NOTES.get(declared.name, {})
        rows += _member_rows(f"`{declared.name}`", declared.fields, declared.required, notes)
    return "\n".join(rows)


def _object_table() -> str:
    rows = ["| object | field | required | value |", "|---|---|---|---|"]
    named = {field.kind: field for field in _structured()}
    for kind, name in _OBJECTS.items():
        members = named[kind].members or {}
        notes = OBJECT_NOTES.get(name, {})
        if name == "limits":
            notes = {limit: _limit_note(limit, notes.get(limit, "")) for limit in members}
        rows += _member_rows(name, members, named[kind].required, notes)
    return "\n".join(rows)


def _limit_note(limit: str, note: str) -> str:
    default = getattr(Limits(), limit)
    return note if default is None else f"default {default}; {note}".rstrip("; ")


def _member_rows(
    owner: str, fields: Any, required: tuple[str, ...], notes: dict[str, str]
) -> list[str]:
    return [
        f"| {owner} | `{name}` | {'yes' if name in required else 'no'} "
        f"| {_kind_of(field)}{'; ' + notes[name] if notes.get(name) else ''} |"
        for name, field in fields.items()
    ]


def _kind_of(field: Kind) -> str:
    if not isinstance(field, Field):
        return {"str": "text", "bool": "flag"}[field.__name__]
    return " / ".join(f"`{word}`" for word in field.words) or _KINDS.get(field.kind, field.kind)


def _transition_table() -> str:
    rows = ["| trigger | from | to | condition | command | rules |", "|---|---|---|---|---|---|"]
    for declared in EVENTS.values():
        for trigger in declared.triggers:
            rules = ", ".join(f"`{rule.__name__}`" for rule in trigger.rules)
            rows += [
                f"| `{declared.trigger_name(trigger)}` | {_sources(arrow.sources)} | {arrow.dest} "
                f"| {f'`{arrow.when.__name__}`' if arrow.when else ''} | {trigger.verb} | {rules} |"
                for arrow in trigger.arrows
            ]
    return "\n".join(rows)


def _part_table() -> str:
    rows = ["| part | trigger | from | to |", "|---|---|---|---|"]
    tables = {"task": TASK_TABLE, "gap": GAP_TABLE, "stage": STAGE_TABLE}
    rows += [
        f"| {part} | `{trigger}` | {', '.join(sources)} | {dest} |"
        for part, table in tables.items()
        for trigger, sources, dest in table.rows
    ]
    return "\n".join(rows)


def _rule_table() -> str:
    triggers: dict[Rule, list[str]] = {}
    for name, trigger in TRIGGERS.items():
        for rule in trigger.rules:
            triggers.setdefault(rule, []).append(f"`{name}`")
    rows = ["| rule | events | what it does |", "|---|---|---|"]
    rows += [
        f"| `{rule.__name__}` | {', '.join(names)} | {rule.__doc__} |"
        for rule, names in triggers.items()
    ]
    return "\n".join(rows)


def _sources(sources: tuple[str, ...]) -> str:
    """Return the statuses, with the name of a set for its members."""
    text = ", ".join(sources)
    for name, members in (("live", LIVE), ("active", ACTIVE)):
        text = text.replace(", ".join(members), name)
    return text


_STUB_HEADER = """\
# Generated by scripts/generate.py from the event declarations. Do not edit.
# A stub without a module: types for mypy that cost nothing at run time.
from typing import Any, Generic, Literal, TypedDict, TypeVar

from typing_extensions import NotRequired, Required

D = TypeVar("D")

class Event(TypedDict, Generic[D]):
    v: int
    seq: int
    ts: str
    loop: str | None
    type: str
    by: str
    session: NotRequired[str]
    client: NotRequired[str]
    optional: NotRequired[bool]
    data: D
    sum: NotRequired[str]

"""


# event type -> member -> note
MEMBER_NOTES: dict[str, dict[str, str]] = {
    "journal": {
        "id": "of the journal",
        "incompat": "not empty: section 12",
        "compat": "a reader ignores it",
    },
    "repair": {
        "bytes": "bytes that were cut",
        "aside": "name of the file in `.gsd` that keeps them",
        "what": "why",
    },
    "start": {
        "branch": "the git branch that is checked out after this event",
        "auto_loop": "default true: false makes every failure and gap pause",
        "review": "default false: the thorough review is needed",
        "carried": "how a loop of another format stood when it was taken over: `from`, `file`, `iteration`, `round`, `stuck`, `last_unmet`, `started`, `updated`, `last_iteration`, `last_error`, `spent_usd`, `exit_signal`, `history`",
        "counsel": "what is asked for after a failed verification",
        "views": "what shows the loop",
        "task_list": "the client's task list that is mirrored, `auto` for the session's own, `none` for none; absent, a goal mirrors the one that `CLAUDE_CODE_TASK_LIST_ID` names to the hook",
        "session_only": "default false: the end of its session cancels it",
    },
    "iteration": {
        "activity": "the hook saw activity since the last block",
        "delivered": "`seq` of the notes that were delivered",
        "reason": "that was given to the agent",
        "transcript": "bytes of the transcript that were looked at",
        "commit": "the commit that was checked out",
        "signal": "digest of the signal that this event decides",
        "copy": "name of the copy of the hook that decided",
        "active": "the client said that it was going on after a block already",
    },
    "failure": {
        "error": "redacted",
        "task": "absent: the loop itself failed",
        "signature": "equal for errors that are alike; default: the error text",
    },
    "task": {
        "ref": "the client's id of the background task",
        "phase": "only with `running`",
        "fixes": "what was mended on the way",
        "locked": "the digest of each locked file, null for one that is not there",
        "exit_code": "of the test command",
        "undone": "a failed refactoring was undone",
        "mirrored": "it is a task of the client's own list",
        "list": "which list: the session whose own one it is, or its name",
        "named": "that list has a name",
        "condition": "the condition of the gate that it stands for (`criterion:NAME`, `exit`, `review`), or `blocker`; once that holds, the task is complete",
    },
    "gap": {
        "kind": "default `other`",
        "check": "key of the check of the plan that decides it",
    },
    "criterion": {
        "criterion": "its name",
        "stale": "it became unmet because the content changed",
    },
    "plan": {
        "changed": "the file is no longer what was frozen",
        "tasks": "more of them, or new words for pending ones",
        "count": "tasks of the plan",
        "sequential": "waves whose tasks run one at a time",
        "criteria": "added to those of the loop",
        "joins": "a check among them is added to a criterion of that name that has none, which is then not met",
        "must_not": "added to those of the loop",
    },
    "spend": {
        "meter": "whose cumulative figure `total_usd` is",
        "total_usd": "only what it grew by is spent; the first one adds nothing, a smaller one counts from zero",
        "source": "the session or subagent whose transcript was read",
        "counted": "bytes of it that were read",
        "messages": "the last replies that were counted",
    },
    "note": {
        "dismissed": "what was recalled does not apply",
        "source": "the loop that it was learnt in",
    },
    "wait": {
        "about": "key of the question, so that it is asked once",
        "signal": "digest of the signal that this event decides",
        "copy": "name of the copy of the hook that decided",
        "active": "the client said that it was going on after a block already",
        "said": "that was shown to the user",
    },
    "pause": {
        "code": "a pause code, section 5",
        "declined": "it is what came of a no; that answer is not told again",
        "signal": "digest of the signal that this event decides",
        "copy": "name of the copy of the hook that decided",
        "active": "the client said that it was going on after a block already",
        "said": "that was shown to the user",
    },
    "resume": {
        "add": "what is added to each",
        "retry": "failed tasks without a retry left, to each of which this grants one, counted at once",
        "views": "what shows the loop from now on",
        "anew": "what the session did until now is not the loop's",
    },
    "complete": {
        "tree": "digest of the content of the work tree",
        "signal": "digest of the signal that this event decides",
        "copy": "name of the copy of the hook that decided",
        "active": "the client said that it was going on after a block already",
        "said": "that was shown to the user",
    },
    "stop": {
        "code": "why a stop of the agent was allowed",
        "background": "ids of background work that lets the agent rest this once",
        "signal": "digest of the signal that this event decides",
        "copy": "name of the copy of the hook that decided",
        "active": "the client said that it was going on after a block already",
        "said": "that was shown to the user",
    },
    "session": {
        "pid": "process id of the client",
        "transcript": "length of the transcript then",
        "signal": "digest of the signal that told of it",
        "copy": "name of the copy of the hook that was called",
    },
    "checkpoint": {
        "left": "the tag of what a rollback left",
        "reset": "tasks that are pending again",
    },
}
# object in a payload -> member -> note; the generator adds the default of a limit
OBJECT_NOTES: dict[str, dict[str, str]] = {
    "limits": {
        "max_iterations": "0: unlimited",
        "max_retries": "0: none",
        "max_rounds": "0: unlimited",
        "tdd_max_attempts": "for readers; the fold does not use it",
        "stuck_limit": "0: off",
        "idle_limit": "0: off",
        "budget_usd": "absent or 0: unlimited",
        "max_minutes": "absent or 0: unlimited",
        "max_tokens": "absent or 0: unlimited",
    },
    "criterion": {
        "name": "once in a loop",
        "check": "the command that proves it",
        "met": "a loop that was taken over had met it; never with a check",
    },
    "task": {
        "id": "once in a loop",
        "step": "a step of the work",
        "status": "of a loop that was taken over",
        "retries": "likewise",
    },
    "evidence": {
        "tail": "the end of the output, redacted",
        "digest": "digest of the whole output",
        "likeness": "digest of the output without times and addresses",
        "tree": "digest of the content it was taken from",
    },
}
