"""Lines: every reader reads back a written line, and all readers agree on any other bytes."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsd_fsm.core.codec import MAX_LINE, check_value, decode_line, dumps, encode_event
from gsd_fsm.core.errors import Corrupt
from gsd_fsm.core.journal.scan import Cursor, into_fold, scan
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.history.replay import fast_loads
from tests.support.lines import (
    HARMLESS,
    HOSTILE,
    READERS,
    VALUES,
    agreed,
    decoded,
    in_data,
    in_envelope,
)
from tests.support.story import Story

ONE = in_data(b"1")


def agreed_in_data(value: bytes) -> Any:
    """Require the same verdict on this value in `data`, and the same value if it is accepted."""
    line = in_data(value)
    verdict = agreed(line)
    if verdict != 0:
        assert decoded(decode_line, line) == decoded(fast_loads, line) != "refused"
    return verdict


def note(**data: Any) -> dict[str, Any]:
    event = {**Story().event("note"), "data": {"text": "t", **data}}
    del event["sum"]
    return event


@pytest.mark.parametrize("value", HARMLESS.values(), ids=[*HARMLESS])
def test_readers_accept_valid_data_and_agree_on_the_envelope(value: bytes) -> None:
    assert agreed_in_data(value) != 0
    agreed(in_envelope(value))


@pytest.mark.parametrize("value", HOSTILE.values(), ids=[*HOSTILE])
def test_readers_refuse_a_hostile_value_and_call_its_line_corrupt(value: bytes) -> None:
    assert agreed(in_data(value)) == agreed(in_envelope(value)) == 0
    data = in_data(value) + b"\n"
    for reader in READERS.values():
        with pytest.raises(Corrupt) as damage:
            scan(lambda at, n: data[at : at + n], len(data), Cursor(), reader(Loops()))
        assert damage.value.line == 1


@pytest.mark.parametrize(
    "line",
    [
        b"\xef\xbb\xbf" + ONE, ONE.decode().encode("utf-16"), ONE.decode().encode("utf-16-le"),
        b" " + ONE, b"\t" + ONE, ONE + b"\0", ONE + ONE, b"[" + ONE + b"]",
        b"", b"null", b"7", b'"x"', b"{}",
    ],
)  # fmt: skip
def test_readers_refuse_a_line_that_is_not_one_compact_object(line: bytes) -> None:
    assert agreed(line) == 0


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_written_event_is_read_back_by_every_reader(data: dict[str, Any]) -> None:
    event = note(**{**data, "text": "t"})
    event["data"].pop("kind", None)
    line, digest = encode_event(event, "0" * 16)
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert digest.encode() == line[-19:-3]
    expected = dumps({**event, "sum": digest})
    assert decoded(decode_line, line[:-1]) == decoded(fast_loads, line[:-1]) == expected


@settings(max_examples=150)
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda t: t.encode("utf-8", "replace")))
def test_readers_agree_on_any_bytes(value: bytes) -> None:
    agreed_in_data(value.replace(b"\n", b""))


TOKENS = st.sampled_from(
    [b"{", b"}", b"[", b"]", b",", b":", b'"a"', b'"\\u00e9"', b'"\\ud83d"', b"1", b"-", b"0", b".5",
     b"e9", b"E-3", b"e308", b"true", b"null", b"nul", b" ", b"18446744073709551616", b"NaN", b'"']
)  # fmt: skip


@settings(max_examples=250)
@given(st.lists(TOKENS, max_size=12).map(b"".join))
def test_readers_agree_on_any_sequence_of_tokens(value: bytes) -> None:
    agreed_in_data(value)


def test_line_may_have_64_kib_and_not_one_byte_more() -> None:
    room = MAX_LINE - len(encode_event(note(text=""), "")[0])
    fits, _ = encode_event(note(text="x" * room), "")
    assert len(fits) == MAX_LINE
    assert decoded(decode_line, fits[:-1]) != "refused"
    with pytest.raises(ValueError, match="a line may have at most"):
        encode_event(note(text="x" * (room + 1)), "")
    data = in_data(b'"' + b"x" * 10_000_000 + b'"') + b"\n"
    with pytest.raises(Corrupt, match="longer than"):
        scan(lambda at, n: data[at : at + n], len(data), Cursor(), into_fold(Loops()))


def test_sum_chains_each_line_to_the_one_before() -> None:
    line, digest = encode_event(note(), "")
    assert digest == hashlib.sha256(line[:-27]).hexdigest()[:16]
    chained, other = encode_event(note(), digest)
    assert other == hashlib.sha256(digest.encode() + line[:-27]).hexdigest()[:16]
    assert chained[:-27] == line[:-27]


@pytest.mark.parametrize("key", [1, None, True, 1.5, "\ud800"])
def test_encode_event_refuses_a_key_that_is_not_text(key: Any) -> None:
    with pytest.raises(ValueError):
        encode_event(note(x=[{key: 1}]), "")


def test_check_value_refuses_values_nested_deeper_than_16() -> None:
    deep: Any = 1
    for _ in range(16):
        deep = [deep]
    check_value(deep)
    with pytest.raises(ValueError):
        check_value([deep])
