"""Lines: what is written is read back, and all readers agree on everything, above all on refusals."""

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
    SAFE,
    VALUES,
    decoded,
    in_data,
    in_envelope,
    verdicts,
)
from tests.support.story import Story


@pytest.mark.parametrize("what", HARMLESS)
def test_all_readers_take_the_harmless_alike(what: str) -> None:
    line = in_data(HARMLESS[what])
    assert decoded(decode_line, line) == decoded(fast_loads, line) != "refused"
    assert len(set(verdicts(line).values())) == 1
    assert 0 not in verdicts(line).values()


@pytest.mark.parametrize("what", HARMLESS)
def test_all_readers_say_the_same_of_an_unknown_member_of_the_envelope(what: str) -> None:
    found = verdicts(in_envelope(HARMLESS[what]))
    assert len(set(found.values())) == 1, found


@pytest.mark.parametrize("what", HOSTILE)
def test_all_readers_refuse_the_hostile(what: str) -> None:
    for line in (in_data(HOSTILE[what]), in_envelope(HOSTILE[what])):
        assert verdicts(line) == dict.fromkeys(READERS, 0)


@pytest.mark.parametrize("what", HOSTILE)
def test_a_journal_with_a_hostile_line_is_corrupt_at_that_line(what: str) -> None:
    data = in_data(HOSTILE[what]) + b"\n"
    for reader in READERS.values():
        with pytest.raises(Corrupt) as damage:
            scan(lambda at, n: data[at : at + n], len(data), Cursor(), reader(Loops()))
        assert damage.value.line == 1


@pytest.mark.parametrize(
    "line",
    [
        b"\xef\xbb\xbf" + in_data(b"1"),
        in_data(b"1").decode().encode("utf-16"),
        in_data(b"1").decode().encode("utf-16-le"),
        b" " + in_data(b"1"),
        b"\t" + in_data(b"1"),
        in_data(b"1") + b"\0",
        in_data(b"1") + in_data(b"1"),
        b"[" + in_data(b"1") + b"]",
        b"",
        b"null",
        b"7",
        b'"x"',
        b"{}",
    ],
)
def test_all_readers_refuse_what_is_not_one_compact_object(line: bytes) -> None:
    assert verdicts(line) == dict.fromkeys(READERS, 0)


def test_ten_megabytes_are_no_line() -> None:
    data = in_data(b'"' + b"x" * 10_000_000 + b'"') + b"\n"
    with pytest.raises(Corrupt, match="longer than"):
        scan(lambda at, n: data[at : at + n], len(data), Cursor(), into_fold(Loops()))


@given(st.dictionaries(SAFE, VALUES, max_size=5))
def test_what_is_written_is_read_back_by_every_reader(data: dict[str, Any]) -> None:
    event = {**Story().event("note", text="t"), "data": {**data, "text": "t"}}
    event["data"].pop("kind", None)
    del event["sum"]
    line, digest = encode_event(event, "0" * 16)
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert digest.encode() == line[-19:-3]
    expected = dumps({**event, "sum": digest})
    assert decoded(decode_line, line[:-1]) == decoded(fast_loads, line[:-1]) == expected


@settings(max_examples=150)
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda t: t.encode("utf-8", "replace")))
def test_any_bytes_are_judged_alike(value: bytes) -> None:
    if b"\n" in value:
        return
    found = verdicts(in_data(value))
    assert len(set(found.values())) == 1, found
    if 0 not in found.values():
        assert decoded(decode_line, in_data(value)) == decoded(fast_loads, in_data(value))


TOKENS = st.sampled_from(
    [b"{", b"}", b"[", b"]", b",", b":", b'"a"', b'"\\u00e9"', b'"\\ud83d"', b"1", b"-", b"0", b".5",
     b"e9", b"E-3", b"e308", b"true", b"null", b"nul", b" ", b"18446744073709551616", b"NaN", b'"']
)  # fmt: skip


@settings(max_examples=250)
@given(st.lists(TOKENS, max_size=12).map(b"".join))
def test_any_row_of_tokens_is_judged_alike(value: bytes) -> None:
    found = verdicts(in_data(value))
    assert len(set(found.values())) == 1, found
    if 0 not in found.values():
        assert decoded(decode_line, in_data(value)) == decoded(fast_loads, in_data(value))


def test_a_line_holds_64_kib_and_not_one_byte_more() -> None:
    event = Story().event("note", text="")
    del event["sum"]
    room = MAX_LINE - len(encode_event(event, "")[0])
    fits, _ = encode_event({**event, "data": {"text": "x" * room}}, "")
    assert len(fits) == MAX_LINE
    assert decoded(decode_line, fits[:-1]) != "refused"
    with pytest.raises(ValueError, match="a line may have at most"):
        encode_event({**event, "data": {"text": "x" * (room + 1)}}, "")


def test_the_sum_chains_each_line_to_the_one_before() -> None:
    event = {**Story().event("note", text="t")}
    del event["sum"]
    line, digest = encode_event(event, "")
    assert digest == hashlib.sha256(line[:-27]).hexdigest()[:16]
    chained, other = encode_event(event, digest)
    assert other == hashlib.sha256(digest.encode() + line[:-27]).hexdigest()[:16]
    assert chained[:-27] == line[:-27]


@pytest.mark.parametrize("key", [1, None, True, 1.5, "\ud800"])
def test_a_key_that_is_no_text_is_not_written(key: Any) -> None:
    event = {**Story().event("note", text="t")}
    with pytest.raises(ValueError):
        encode_event({**event, "data": {"text": "t", "x": [{key: 1}]}}, "")


def test_values_nested_to_the_limit_pass_and_beyond_it_do_not() -> None:
    deep: Any = 1
    for _ in range(16):
        deep = [deep]
    check_value(deep)
    with pytest.raises(ValueError):
        check_value([deep])
