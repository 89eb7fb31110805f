"""What an installation changed: kept in the user's data directory, so that it can be undone."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import platformdirs

from gsd_fsm.core.codec import digest_of
from gsd_fsm.documents.files import Change, current_content, write_change


class Record(NamedTuple):
    """One settings file of ours: what it was before, and what it was when we had written it."""

    settings: Path
    original: bytes | None
    written: str
    made_directory: bool
    cap: str | None
    python: str
    version: str

    def describes(self, content: bytes | None) -> bool:
        """Whether the file is still byte for byte what we wrote."""
        return content is not None and fingerprint(content) == self.written


def fingerprint(content: bytes) -> str:
    return sha256(content).hexdigest()


def data_directory() -> Path:
    return Path(platformdirs.user_data_dir("gsd-fsm", appauthor=False)).absolute()


def recall(settings: Path) -> Record | None:
    """What is known of this file; a record that cannot be read is none."""
    return _read(_file_of(settings))


def all_records() -> list[Record]:
    found = [_read(path) for path in sorted((data_directory() / "installed").glob("*.json"))]
    return [record for record in found if record is not None]


def remember(record: Record) -> None:
    facts = record._asdict()
    facts["settings"] = str(record.settings)
    if record.original is not None:
        facts["original"] = base64.b64encode(record.original).decode("ascii")
    path = _file_of(record.settings)
    write_change(
        Change(path, current_content(path), json.dumps(facts).encode("ascii"), private=True)
    )


def forget(settings: Path) -> None:
    _file_of(settings).unlink(missing_ok=True)


def _file_of(settings: Path) -> Path:
    return data_directory() / "installed" / f"{digest_of(str(settings))}.json"


def _read(path: Path) -> Record | None:
    content = current_content(path)
    try:
        facts = json.loads(content or b"")
        facts["settings"] = Path(facts["settings"])
        if facts["original"] is not None:
            facts["original"] = base64.b64decode(facts["original"], validate=True)
        return Record(**facts)
    except (ValueError, TypeError, KeyError):
        return None
