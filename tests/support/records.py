"""State records for tests, built from the values that matter to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from gsd_fsm.core.loop.records import Record

R = TypeVar("R", bound="Record")


def build(record_type: type[R], /, **values: Any) -> R:
    """Return a record of this kind with these values, the others as in a new one."""
    record = record_type()
    for name, value in values.items():
        getattr(record, name)  # only attributes that exist
        setattr(record, name, value)
    return record
