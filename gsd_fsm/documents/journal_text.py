"""Prepare free text for the journal: decode it, redact secrets, truncate it."""

from __future__ import annotations

import sys

from gsd_fsm.core.codec import digest_of, quote
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.syscalls import explain
from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.documents.read import MAX_BYTES, read_bytes

LONG = 6_000
GOAL = 24_000
WINDOW = 64_000
MARGIN = 8_000  # exceeds all secrets but key files, whose halves the patterns recognise


def read_option(given: str | None, file: str | None, what: str) -> str | None:
    """Return the text of an option, a file or stdin (`-`); None if none was given."""
    if file is None:
        return None if given is None else clean(given)
    if given is not None:
        raise UsageError(f"{what} is given twice: as text and as a file", "Omit one of them.")
    if file != "-":
        from pathlib import Path

        raw = read_bytes(Path(file), MAX_BYTES, f"Name the file that contains {what}.")
    elif sys.stdin is None:
        raise UsageError("standard input is closed", f"Pass {what} as text or as a file.")
    else:
        try:
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        except OSError as error:
            raise UsageError(f"standard input cannot be read: {explain(error)}") from error
        if len(raw) > MAX_BYTES:
            raise UsageError(f"{what} is larger than {MAX_BYTES >> 20} MiB", "Shorten it.")
    return raw.decode("utf-8-sig", "replace").replace("\r\n", "\n").rstrip("\n")


def _redacted(text: str) -> str:
    """Return the text without secrets; of a huge text, only its beginning and its end."""
    from gsd_fsm.core.text.redact import redact

    if len(text) <= 4 * WINDOW:
        return redact(text)
    # No pattern recognises half a secret, so drop the characters beside each cut.
    head, tail = redact(text[:WINDOW])[:-MARGIN], redact(text[-WINDOW:])[MARGIN:]
    return f"{head}\n…[{len(text) - 2 * (WINDOW - MARGIN)} characters]…\n{tail}"


def redact_and_truncate(text: str, limit: int = LONG) -> str:
    """Return the text without secrets; keep only the beginning and the end of a long one."""
    text = _redacted(clean(text))
    size = len(quote(text))
    if size <= limit:
        return text
    # An escaped character takes up to twelve bytes, so compute the share that fits from the real size.
    room = int((limit - 80) * len(text) / size) if size < 4 * len(text) else (limit - 80) // 12
    head, tail = text[: room // 4], text[len(text) - (room - room // 4) :]
    cut = len(text.encode("utf-8", "replace")) - len((head + tail).encode("utf-8", "replace"))
    return f"{head}\n…[+{cut} bytes, sha256 {digest_of(text)}]…\n{tail}"


def redact_or_reject(text: str, what: str, limit: int = GOAL) -> str:
    """Return the text without secrets; raise UsageError if it is empty or too long."""
    from gsd_fsm.core.text.redact import redact

    if len(text) > 4 * limit:  # not worth the search for secrets
        raise UsageError(
            f"{what} is longer than {limit} bytes", "Move details to a file, and name that file."
        )
    text = redact(clean(text)).strip()
    if not text:
        raise UsageError(f"{what} is empty", "Write a few words.")
    if len(quote(text)) > limit:
        problem = f"{what} is longer than {limit} bytes in the journal"
        raise UsageError(problem, "Move details to a file, and name that file.")
    return text
