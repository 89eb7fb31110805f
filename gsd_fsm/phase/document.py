"""A file of the project that is edited: read within bounds, changed only inside the project."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.core.errors import CannotWrite, UsageError
from gsd_fsm.core.syscalls import explain
from gsd_fsm.documents.files import Change, current_content, follow_link

MOST_BYTES = 4 << 20
_BOM = "\ufeff"


class Document(NamedTuple):
    """What a file holds; whatever is no UTF-8 in it keeps its bytes too."""

    path: Path
    content: bytes | None

    @property
    def text(self) -> str:
        return (self.content or b"").decode("utf-8", "surrogateescape").removeprefix(_BOM)

    def become(self, text: str) -> list[Change]:
        """The change to this text: none if the file says so already."""
        mark = _BOM if (self.content or b"").startswith(_BOM.encode()) else ""
        after = (mark + text).encode("utf-8", "surrogateescape")
        return [] if after == self.content else [Change(self.path, self.content, after)]


def read(project: Path, path: Path) -> Document:
    """The document at a path, without content if there is no file yet; links are followed.

    UsageError for what is no text, too large, or led out of the project by a link.
    """
    real = follow_link(path)
    if not real.is_relative_to(os.path.realpath(project)):
        raise UsageError(f"{path} leads out of the project, to {real}", "put a plain file there")
    try:
        size = real.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        size = 0
    except OSError as error:
        what = f"{path} cannot be read: {explain(error)}"
        raise CannotWrite(what, "give yourself the right to read it") from error
    if size > MOST_BYTES:
        raise UsageError(f"{path} is larger than {MOST_BYTES >> 20} MiB", "move it away")
    content = current_content(real)
    if content is not None and b"\0" in content:
        at = content.index(b"\0")
        raise UsageError(f"{path} is not a text: byte {at} is NUL", "save it as UTF-8")
    return Document(real, content)


def require_writable(path: Path) -> None:
    """CannotWrite for what could not be changed, told before anything is."""
    if path.exists() and not stat.S_IMODE(path.stat().st_mode) & 0o222:
        raise CannotWrite(f"{path} is read-only", f"chmod u+w {path}")
    above = next(folder for folder in path.parents if os.path.lexists(folder))
    if not above.is_dir():
        raise CannotWrite(f"{above} is not a directory", "move it away and look at it")
    if not os.access(above, os.W_OK | os.X_OK):
        raise CannotWrite(f"{above} cannot be written to", "give yourself the right to write there")
