r"""One event, one line: canonical ASCII JSON closed by a sum that chains it to the line before.

    {"v":1,"seq":7,"ts":…,"loop":…,"type":…,"by":…,"data":{…},"sum":"89abcdef01234567"}\n

`sum` is the first 16 hex digits of SHA-256 over the previous line's sum and the raw bytes of this
line before `,"sum"`. It is compared as bytes: hex read as a number would accept `A` for `a`.
"""

from __future__ import annotations

import sys

from gsd_fsm.core.json_reader import parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

    sha256: Callable[[bytes | memoryview], Any]
    quote: Callable[[str], str]
    make_encoder: Callable[..., Callable[[Any, int], tuple[str, ...]]]
else:
    try:
        from _json import encode_basestring_ascii as quote
        from _json import make_encoder
    except ImportError:  # another Python: the public module does the same, more slowly
        from json.encoder import JSONEncoder
        from json.encoder import encode_basestring_ascii as quote

        def make_encoder(_markers: Any, default: Any, *_settings: Any) -> Any:
            encoder = JSONEncoder(allow_nan=False, separators=(",", ":"), default=default)
            return lambda value, _level: encoder.iterencode(value)

    try:
        # Not by trial: looking for a missing module is expensive.
        if sys.version_info >= (3, 12):
            from _sha2 import sha256
        else:
            from _sha256 import sha256
    except ImportError:
        from hashlib import sha256

MAX_LINE = 65_536
MAX_DEPTH = 16
MAX_INT = 1 << 53
SUM_TAIL = 26  # ,"sum":"0123456789abcdef"}


def _refuse(value: Any) -> None:
    raise ValueError("not JSON: %s" % type(value).__name__)


_encode = make_encoder(None, _refuse, quote, None, ":", ",", False, False, False)


def dumps(value: Any) -> str:
    """Return compact ASCII JSON; raise ValueError for values that JSON cannot hold."""
    return "".join(_encode(value, 0))


def check_value(value: Any, depth: int = MAX_DEPTH) -> None:
    """Raise ValueError unless every reader understands the value alike and it is not too deep."""
    kind = type(value)
    if kind is str:
        if not value.isascii():
            value.encode("utf-8")  # UnicodeEncodeError, a ValueError, for lone surrogates
    elif kind is int:
        if not -MAX_INT <= value <= MAX_INT:
            raise ValueError("not a number within 2^53")
    elif kind is float:
        if not -MAX_INT <= value <= MAX_INT:  # also what a parser made of a longer integer
            raise ValueError("not a finite number within 2^53")
    elif kind is dict or kind is list:
        if depth <= 0:
            raise ValueError("nested deeper than %d" % MAX_DEPTH)
        for item in value.values() if kind is dict else value:
            check_value(item, depth - 1)
        if kind is dict:
            for key in value:
                if type(key) is not str:
                    raise ValueError("a key is not a string")
                check_value(key)


def decode_line(line: bytes) -> Any:
    """Return the JSON value of a line whose sum is right; raise ValueError if it is not valid."""
    value = parse_json(line.decode("ascii"))
    if line.count(b"{") + line.count(b"[") > MAX_DEPTH or b"\\u" in line:
        check_value(value)
    return value


def encode_event(event: Mapping[str, Any], previous: str) -> tuple[bytes, str]:
    """Return the line, with its newline, and its sum; raise ValueError if it is over the limits."""
    check_value(event["data"], MAX_DEPTH - 1)
    body = dumps(event)[:-1].encode("ascii")
    digest = sha256(previous.encode("ascii") + body).hexdigest()[:16]
    line = body + b',"sum":"' + digest.encode("ascii") + b'"}\n'
    if len(line) > MAX_LINE:
        raise ValueError("%d bytes, but a line may have at most %d" % (len(line), MAX_LINE))
    return line, digest


def digest_of(text: str) -> str:
    """Return 16 hex digits that identify a text."""
    return str(sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16])
