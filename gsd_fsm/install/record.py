"""Remember about each settings file what `uninstall` needs and cannot find in the file itself."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.core.codec import digest_of
from gsd_fsm.documents.files import Change, current_content, write_change
from gsd_fsm.install.hook_entries import Before, before_us
from gsd_fsm.install.hook_file import data_directory


class Record(NamedTuple):
    """An installation in one settings file."""

    settings: Path
    python: str
    created: bool  # whether `init` created the file
    made_directory: bool  # whether `init` created its directory
    cap: str | None  # the client's cap, if `init` set it
    before: Before
    allowed: tuple[str, ...] = ()  # the permission rules that `init` added
    excluded: tuple[tuple[str, str], ...] = ()  # files with patterns of git, and the text added


def recall(settings: Path) -> Record | None:
    """Return the record of this file; None if there is none that can be read."""
    return _read(_file_of(settings))


def all_records() -> list[Record]:
    found = [_read(path) for path in sorted((data_directory() / "installed").glob("*.json"))]
    return [record for record in found if record is not None]


def remember(record: Record) -> None:
    facts = {
        **record._asdict(),
        "settings": str(record.settings),
        "before": record.before._asdict(),
    }
    path = _file_of(record.settings)
    content = json.dumps(facts).encode("ascii")
    write_change(Change(path, current_content(path), content, private=True))


def forget(settings: Path) -> None:
    _file_of(settings).unlink(missing_ok=True)


def _file_of(settings: Path) -> Path:
    return data_directory() / "installed" / f"{digest_of(str(settings))}.json"


def _read(path: Path) -> Record | None:
    try:
        facts = json.loads(current_content(path) or b"")
        settings = Path(facts.pop("settings"))
        if "original" in facts:
            facts = _from_original(**facts)
        facts["allowed"] = tuple(facts.get("allowed", ()))
        facts["excluded"] = tuple((file, line) for file, line in facts.get("excluded", ()))
        return Record(settings, before=Before(**facts.pop("before")), **facts)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _from_original(
    *, original: str | None, written: str, version: str, **facts: Any
) -> dict[str, Any]:
    """Return the facts of a record that holds the whole file, as earlier versions wrote them."""
    text = (
        "{}" if original is None else base64.b64decode(original, validate=True).decode("utf-8-sig")
    )
    return {**facts, "created": original is None, "before": before_us(text)._asdict()}
