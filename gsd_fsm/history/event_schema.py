"""Derive the JSON Schema of a journal line from the event declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gsd_fsm.core.loop.fold import EVENTS
from gsd_fsm.core.loop.schema import OF_THE_JOURNAL, VERSIONS, EventType, Field

if TYPE_CHECKING:
    from gsd_fsm.core.loop.schema import Kind

_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"
_ID = {
    "type": "string",
    "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
    "not": {"pattern": r"\.\."},
}
_SESSION = {"type": "string", "pattern": "^[!-~]{1,200}$"}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 2**53}
# kind of a field -> its JSON Schema
_SCHEMAS: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "id": _ID,
    "count": _COUNT,
    "amount": {"type": "number", "minimum": 0, "maximum": 2**53},
    "time": {"type": "string", "pattern": _TIME},
    "texts": {"type": "array", "items": {"type": "string"}},
    "ids": {"type": "array", "items": _ID},
    "counts": {"type": "array", "items": _COUNT},
    "digests": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
    "object": {"type": "object"},
    "phase": {"anyOf": [{"type": "string"}, _COUNT]},
    "text or null": {"type": ["string", "null"]},
}
# kinds of structured fields that are lists
_LISTS = (
    "criteria", "tasks", "verdicts", "questions", "results", "prices", "protected", "altered",
    "accepted", "programs", "outside", "checks",
)  # fmt: skip


def event_schema() -> dict[str, Any]:
    """Return the JSON Schema of a journal line."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gsd-fsm journal line",
        "type": "object",
        "required": ["v", "seq", "ts", "loop", "type", "by", "data", "sum"],
        "properties": {
            "v": {"enum": list(VERSIONS)},
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
        return _SCHEMAS[field.__name__]
    if field.words:
        return {"enum": list(field.words)}
    if field.members is not None:
        one = _object_schema(field.members, field.required)
        return {"type": "array", "items": one} if field.kind in _LISTS else one
    return _SCHEMAS[field.kind]
