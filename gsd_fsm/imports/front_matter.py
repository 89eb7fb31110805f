"""The front matter of a Markdown file: what stands between its first two fences."""

from __future__ import annotations

import re
from typing import NamedTuple

from gsd_fsm.core.errors import UsageError
from gsd_fsm.imports.plain_json import HINT

MOST = 64 * 1024
_FENCE = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_NAME = re.compile(r"^[\"']?([A-Za-z_][\w-]*)[\"']?[ \t]*:(?=[ \t\n]|\Z)", re.MULTILINE | re.ASCII)


class FrontMatter(NamedTuple):
    """Its text begins in the second line of the file."""

    text: str
    body: str

    def names(self) -> list[str]:
        """The keys that begin a line, in their order."""
        return _NAME.findall(self.text)


def split(file: str, text: str) -> FrontMatter | None:
    """The two parts of a file; None if it has no front matter, UsageError if that has no end."""
    begin = _FENCE.match(text)
    if begin is None or not text.startswith("---"):
        return None
    end = _FENCE.search(text, begin.end())
    if end is None:
        raise UsageError(f"{file}: the front matter does not end", HINT)
    front = text[begin.end() : end.start()]
    if len(front) > MOST:
        raise UsageError(f"{file}: the front matter is larger than {MOST >> 10} KiB", HINT)
    return FrontMatter(front, text[end.end() :])
