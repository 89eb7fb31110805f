"""Check the prefixes of a journal: a crash while a transaction ends may keep any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gsd_fsm.core.journal.journal import Author, Journal

if TYPE_CHECKING:
    from pathlib import Path


def require_legal_prefixes(gsd: Path, data: bytes, step: int = 1) -> None:
    """Read every `step`th prefix of these lines in the new directory `gsd`, and append to it."""
    gsd.mkdir(mode=0o700, parents=True)
    lines = data.splitlines(keepends=True)
    for count in {*range(1, len(lines) + 1, step), len(lines)}:
        (gsd / "journal.jsonl").write_bytes(b"".join(lines[:count]))
        journal = Journal(str(gsd))
        assert journal.read().seq == count
        with journal.transaction(Author("human")) as tx:
            for loop in tx.loops.live():
                tx.append(loop, "note", {"text": "continued"})
        journal.close()
