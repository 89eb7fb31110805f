"""Match paths of a project with the globs that users write."""

from __future__ import annotations

import re
from collections.abc import Callable

_PIECE = re.compile(r"\*\*/|\*\*|\*|\?|\[[^]/]+\]|.", re.DOTALL)
_MEANS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def matcher(glob: str) -> Callable[[str], object]:
    """Return a function that matches paths relative to the project with "/".

    `*` and `?` stop at a "/", `**` does not. A glob without a "/" matches names in every directory,
    and one that names a directory matches everything in it.
    """
    pattern = "".join(
        _regex(piece) for piece in _PIECE.findall(glob.removeprefix("./").rstrip("/"))
    )
    anywhere = "" if "/" in glob.rstrip("/") else "(?:.*/)?"
    return re.compile(f"{anywhere}{pattern}(?:/.*)?", re.DOTALL).fullmatch


def _regex(piece: str) -> str:
    if piece.startswith("[") and len(piece) > 2:
        return "[" + piece[1:-1].replace("\\", r"\\").replace("!", "^", piece[1] == "!") + "]"
    return _MEANS.get(piece) or re.escape(piece)
