"""JSON of other tools: one object, in which nothing is said twice."""

from __future__ import annotations

from typing import Any

from gsd_fsm.core.errors import UsageError
from gsd_fsm.imports.findings import named

HINT = "mend the file, or let the tool that wrote it write it again"


def object_in(file: str, text: str) -> dict[str, Any]:
    """The object; UsageError, with its place, for what is no JSON or ambiguous."""
    import json

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise UsageError(f"{file}: {named(twice)}: it is named twice", HINT)
        return found

    def refuse(constant: str) -> None:
        raise UsageError(f"{file}: not valid JSON: {constant} is no number", HINT)

    try:
        found = json.loads(text, object_pairs_hook=members, parse_int=_whole, parse_constant=refuse)
    except json.JSONDecodeError as error:
        what = f"{file}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}"
        raise UsageError(what, HINT) from error
    except RecursionError as error:
        raise UsageError(f"{file}: not valid JSON: nested too deeply", HINT) from error
    if not isinstance(found, dict):
        raise UsageError(f"{file}: not a JSON object", HINT)
    return found


def _whole(digits: str) -> float:
    # A number this long counts nothing, and Python refuses to make the longest of them.
    return int(digits) if len(digits) < 20 else float(digits)
