"""Describe a failure as the journal records it: redacted, classified, and comparable."""

from __future__ import annotations

from typing import Any

from gsd_fsm.documents.journal_text import redact_and_truncate
from gsd_fsm.evidence.classify import classify
from gsd_fsm.evidence.fingerprint import likeness


def failure_data(
    task_id: str | None,
    error: str,
    error_class: str | None = None,
    analysis: str | None = None,
    fix: str | None = None,
    *,
    alike: str | None = None,
) -> dict[str, Any]:
    """Return the data of a `failure` event, redacted and classified.

    Two failures count as the same error if `alike`, else `error`, is the same but for details that
    change by themselves.
    """
    data: dict[str, Any] = {} if task_id is None else {"task": task_id}
    data["error"] = redact_and_truncate(error)
    data["class"] = error_class or classify(data["error"])
    data["signature"] = likeness(data["error"] if alike is None else redact_and_truncate(alike))
    for name, text in (("analysis", analysis), ("fix", fix)):
        if text:
            data[name] = redact_and_truncate(text, 3_000)
    return data
