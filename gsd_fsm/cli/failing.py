"""A failure as the journal keeps it: redacted, classified, and comparable with the one before."""

from __future__ import annotations

from typing import Any

from gsd_fsm.texts import keep


def failure_data(
    task_id: str | None,
    error: str,
    error_class: str | None,
    analysis: str | None,
    fix: str | None,
    *,
    alike: str | None = None,
) -> dict[str, Any]:
    """The data of a failure event; two failures are the same error if `alike`, or else the error, is."""
    from gsd_fsm.classify import classify
    from gsd_fsm.likeness import likeness

    data: dict[str, Any] = {} if task_id is None else {"task": task_id}
    data["error"] = keep(error)
    data["class"] = error_class or classify(data["error"])
    data["signature"] = likeness(data["error"] if alike is None else keep(alike))
    for name, text in (("analysis", analysis), ("fix", fix)):
        if text:
            data[name] = keep(text, 3_000)
    return data
