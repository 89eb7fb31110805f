"""Keep what protected files contained, in the user's state directory."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from gsd_fsm.core.codec import digest_of
from gsd_fsm.core.errors import NotFound
from gsd_fsm.core.project import make_directories, real_path, state_directory
from gsd_fsm.documents.read import Unreadable, read_bytes

LARGEST = 4 << 20  # bytes of one content that is kept
LARGEST_READ = 32 << 20  # and of one that is only compared
LARGEST_IN_ALL = 16 << 20
LINK = b"link "


def digest(content: bytes) -> str:
    """Return the digest by which the journal knows a content."""
    return hashlib.sha256(content).hexdigest()[:16]


def content_at(path: Path) -> bytes | None:
    """Return what a check sees at a path: the content, below the target if it is a link.

    Return None if there is no regular file, or if it is too large or cannot be read.
    """
    try:
        content = read_bytes(path, LARGEST_READ)
        return (
            b"%b%b\n%b" % (LINK, os.fsencode(path.readlink()), content)
            if path.is_symlink()
            else content
        )
    except (Unreadable, OSError):
        return None


class Originals:
    """What the protected files of one loop contained, by digest.

    A cache: what is missing or damaged in it cannot be restored, and is compared by its digest.
    """

    def __init__(self, gsd: str, loop_id: str) -> None:
        self.directory = _directory(gsd) / loop_id

    def save(self, contents: Iterable[bytes]) -> None:
        """Keep these contents, as far as there is room."""
        room = LARGEST_IN_ALL
        with suppress(OSError, NotFound):
            make_directories(os.fspath(self.directory))
            for content in contents:
                room -= len(content)
                path = self.directory / digest(content)
                fits = room >= 0 and len(content) <= LARGEST
                if fits and not path.exists():
                    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                    with os.fdopen(descriptor, "wb") as file:
                        file.write(content)

    def read(self, name: str | None) -> bytes | None:
        """Return the content with this digest; None if it was not kept, or was changed since."""
        if name is None:
            return None
        try:
            content = read_bytes(self.directory / name, LARGEST_IN_ALL, follow=False)
        except Unreadable:
            return None
        return content if digest(content) == name else None


def drop_except(gsd: str, kept: Collection[str]) -> None:
    """Drop the originals of all other loops of this project."""
    with suppress(OSError):
        for path in _directory(gsd).iterdir():
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)


def _directory(gsd: str) -> Path:
    return Path(state_directory()) / "originals" / digest_of(real_path(gsd))
