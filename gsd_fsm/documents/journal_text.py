"""Prepare free text for the journal: decode it, redact it, cut it to fit."""

from __future__ import annotations

import os
import sys

from gsd_fsm.core.codec import digest_of, quote
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.text.sanitize import clean

MAX_INPUT = 16 << 20
LONG = 6_000
GOAL = 24_000
WINDOW = 64_000
MARGIN = 8_000  # exceeds all secrets but key files, whose halves the patterns recognise


def read_text(given: str | None, file: str | None, what: str) -> str | None:
    """Return the text of an option, a file or stdin (`-`); None if none was given."""
    if file is None:
        return None if given is None else clean(given)
    if given is not None:
        raise UsageError(f"{what} is given twice: as text and as a file", "Omit one of them.")
    try:
        if file == "-":
            if sys.stdin is None:
                raise UsageError("standard input is closed", f"Give {what} as text or as a file.")
            raw = sys.stdin.buffer.read(MAX_INPUT + 1)
        else:
            if not os.path.isfile(file):
                raise UsageError(f"{file} is not a file", f"Name the file that contains {what}.")
            with open(file, "rb") as stream:
                raw = stream.read(MAX_INPUT + 1)
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}", f"Name the file that contains {what}."
        ) from error
    if len(raw) > MAX_INPUT:
        raise UsageError(f"{what} is larger than 16 MiB", "Give the relevant part.")
    return raw.decode("utf-8-sig", "replace").replace("\r\n", "\n").rstrip("\n")


def _redacted(text: str) -> str:
    """Return the text without secrets; of a huge text, only its beginning and its end."""
    from gsd_fsm.core.text.redact import redact

    if len(text) <= 4 * WINDOW:
        return redact(text)
    # No pattern recognises half a secret, so drop the characters beside each cut.
    head, tail = redact(text[:WINDOW])[:-MARGIN], redact(text[-WINDOW:])[MARGIN:]
    return f"{head}\n…[{len(text) - 2 * (WINDOW - MARGIN)} characters]…\n{tail}"


def keep(text: str, limit: int = LONG) -> str:
    """Return the text without secrets; shorten a long one to its beginning and its end."""
    text = _redacted(clean(text))
    size = len(quote(text))
    if size <= limit:
        return text
    # Escapes make a character up to twelve bytes: the share that fits is found from the real size.
    room = int((limit - 80) * len(text) / size) if size < 4 * len(text) else (limit - 80) // 12
    head, tail = text[: room // 4], text[len(text) - (room - room // 4) :]
    cut = len(text.encode("utf-8", "replace")) - len((head + tail).encode("utf-8", "replace"))
    return f"{head}\n…[+{cut} bytes, sha256 {digest_of(text)}]…\n{tail}"


def whole(text: str, what: str, limit: int = GOAL) -> str:
    """Return the text without secrets; raise UsageError if it is empty or too long."""
    from gsd_fsm.core.text.redact import redact

    if len(text) > 4 * limit:  # not worth the search for secrets
        raise UsageError(f"{what} is longer than {limit} bytes", "Keep details in a file it names.")
    text = redact(clean(text)).strip()
    if not text:
        raise UsageError(f"{what} is empty", "Write a few words.")
    if len(quote(text)) > limit:
        said = f"{what} is longer than {limit} bytes, as the journal writes it"
        raise UsageError(said, "Keep details in a file it names.")
    return text
