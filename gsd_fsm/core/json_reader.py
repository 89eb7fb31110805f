"""Read JSON strictly, without the cost of importing `json`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def _refuse_constant(name: str) -> None:
    raise ValueError("%s is not JSON" % name)


class _Settings:
    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = staticmethod(_refuse_constant)


def _make_scanner() -> Any:
    try:
        from _json import make_scanner
    except ImportError:  # another Python: the public module does the same, more slowly
        from json.decoder import JSONDecoder

        decoder: Any = JSONDecoder(parse_constant=_refuse_constant)
        return decoder.scan_once
    settings: Any = _Settings()
    return make_scanner(settings)


_scan_once: Callable[[str, int], tuple[Any, int]] = _make_scanner()


def parse_json(text: str) -> Any:
    """Return the one JSON value that the text consists of; raise ValueError for anything else."""
    try:
        value, end = _scan_once(text, 0)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (StopIteration, SystemError):  # SystemError: its error class is in `json`
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError("bytes after the JSON value")
    return value
