"""Remember the ids of loops that have ended and are no longer held."""

from __future__ import annotations


class EndedIds:
    """Ids in the order in which the loops ended.

    Those of a snapshot stay one text until somebody asks: there may be thousands, and a stop needs
    none of them.
    """

    __slots__ = ("_names", "_text")

    def __init__(self, text: bytes = b"") -> None:
        self._text = text
        self._names: dict[str, None] = {}

    def __contains__(self, name: object) -> bool:
        if self._text:
            self._names = {**dict.fromkeys(self._text.decode("ascii").split()), **self._names}
            self._text = b""
        return name in self._names

    def __bytes__(self) -> bytes:
        new = " ".join(self._names).encode("ascii")
        return b" ".join(filter(None, (self._text, new)))

    def add(self, name: str) -> None:
        self._names[name] = None
