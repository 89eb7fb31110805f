"""Transcripts: money and tokens of each reply count once, in however many parts they are read."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gsd_fsm.core.codec import check_value
from gsd_fsm.core.usage import transcript as module
from gsd_fsm.core.usage.transcript import Spending, await_reply, read_spending

SINCE = "2026-11-15T23:00:00.000Z"
BEFORE = "2026-11-15T22:59:59.999Z"
LATER = "2026-11-15T23:05:23.697Z"
EACH = 1233  # tokens of a reply


def usage(into: Any = 1200, out: Any = 33, written: Any = 0, read: Any = 0) -> dict[str, Any]:
    cache = {"cache_read_input_tokens": read, "cache_creation_input_tokens": written}
    return {"input_tokens": into, "output_tokens": out, **cache, "cache_creation": {"x": 7}}


def reply(name: Any, used: Any = None, at: Any = LATER, **row: Any) -> dict[str, Any]:
    """Return one content block of a reply, as the client writes it."""
    content = [{"type": "text", "text": 'it says "usage" and "cost-state"'}]
    message = {"id": name, "content": content, "usage": usage() if used is None else used}
    return {"isSidechain": False, "type": "assistant", "timestamp": at, "message": message, **row}


def cost(total: Any) -> dict[str, Any]:
    return {"type": "cost-state", "sessionId": "s-1", "totalCostUSD": total, "modelUsage": {}}


def line(row: Any) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"


USER = line({"type": "user", "message": {"content": 'my "usage"'}, "result": {"usage": usage()}})


class Transcript:
    """A file that grows, and a reader that continues where it stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.write_bytes(b"")
        self.offset, self.messages = 0, list[str]()
        self.tokens, self.usd, self.total = 0, 0.0, None

    def write(self, *rows: Any) -> None:
        with self.path.open("ab") as file:
            for row in rows:
                file.write(row if isinstance(row, bytes) else line(row))

    def read(self) -> Spending | None:
        found = read_spending(str(self.path), self.offset, self.messages, SINCE, {})
        if found is not None:
            self.offset, self.messages = found.offset, found.messages
            self.tokens += found.tokens
            self.usd = round(self.usd + found.usd, 6)
            self.total = self.total if found.total_usd is None else found.total_usd
        return found


@pytest.fixture
def transcript(tmp_path: Path) -> Transcript:
    return Transcript(tmp_path / "s-1.jsonl")


def test_all_four_kinds_of_tokens_count(transcript: Transcript) -> None:
    transcript.write(USER, reply("msg_1", usage(1200, 33, written=400, read=7000)))
    transcript.read()
    assert (transcript.tokens, transcript.usd, transcript.total) == (8633, 0, None)
    assert (transcript.messages, transcript.offset) == (["msg_1"], transcript.path.stat().st_size)
    assert transcript.read() is None


def test_rows_of_one_reply_count_once_in_any_order(transcript: Transcript) -> None:
    transcript.write(*[reply("msg_1", costUSD=0.5) for _ in range(4)], reply("msg_2", costUSD=0.25))
    transcript.write(reply("msg_1", isSidechain=True))
    transcript.read()
    assert (transcript.tokens, transcript.usd) == (2 * EACH, 0.75)
    transcript.write(reply("msg_2", costUSD=0.25), USER, reply("msg_1", costUSD=0.5))
    assert transcript.read() is None
    names = [f"msg_{n}" for n in range(3, 43)]
    transcript.write(*map(reply, names), *map(reply, reversed(names)))
    transcript.read()
    assert (transcript.tokens, transcript.messages) == (42 * EACH, names[15::-1])


def test_replies_before_the_loop_do_not_count(transcript: Transcript) -> None:
    transcript.write(reply("msg_1", at=BEFORE, costUSD=9))
    assert transcript.read() is None
    transcript.write(reply("msg_2", at=SINCE), reply("msg_3", at=LATER), reply("msg_4", at=None))
    assert transcript.read()
    assert (transcript.tokens, transcript.usd) == (3 * EACH, 0)


def test_last_total_of_the_session_counts(transcript: Transcript) -> None:
    invalid = [cost("3"), cost(-1), {"type": "cost-state"}]
    transcript.write(cost(1.25), reply("msg_1"), cost(2.5), *invalid)
    transcript.read()
    assert transcript.total == 2.5
    transcript.write(cost(0))
    transcript.read()
    assert (transcript.total, transcript.tokens) == (0, EACH)


def test_invalid_token_counts_and_prices_are_ignored(transcript: Transcript) -> None:
    counts = (-1, 1.5, True, "7", None, [], {}, 10**9 + 1, 10**40)
    for number, value in enumerate(counts, 1):
        transcript.write(reply(f"msg_{number}", usage(value, 3, value, 4)))
        transcript.read()
        assert transcript.tokens == 7 * number, value
    for price in ("-0.01", "1e999", "-1e999", '"1"', "true", "[1]", "1e10", "null"):
        for row in (reply(price, usage(1, 0), costUSD="PRICE"), cost("PRICE")):
            transcript.write(line(row).replace(b'"PRICE"', price.encode()))
        transcript.read()
        assert (transcript.usd, transcript.total) == (0, None), price
    assert transcript.tokens == 7 * len(counts) + 8


DAMAGED = (
    b'{"usage"', b'"usage"', b"\x00\xff\xfe" * 9 + b'"usage"',
    b'{"type":"assistant","message":{"id":"msg_9","usage":{"input_tokens":NaN}}}',
    b'{"usage":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"usage":' + b"9" * 5_000 + b"}",
    b"\r\n\r\n",
    *(line(row)[:-1] for row in (
        {"type": "assistant", "message": ["usage"], "usage": 1},
        {"type": "assistant", "message": {"id": "msg_9", "usage": [1]}},
        {"type": ["assistant"], "message": {"id": "msg_9", "usage": usage()}},
        reply(7), reply(""), reply("msg_9", text="x" * (1 << 20)),
    )),
)  # fmt: skip


def test_only_damaged_rows_are_ignored(transcript: Transcript) -> None:
    for number, damaged in enumerate(DAMAGED, 1):
        transcript.write(reply(f"msg_a{number}"), damaged + b"\n")
        transcript.write(line(reply(f"msg_b{number}"))[:-1] + b"\r\n")
        transcript.read()
        assert transcript.tokens == 2 * number * EACH, damaged[:99]


def test_any_id_of_a_reply_can_be_journalled(transcript: Transcript) -> None:
    names = ["\ud800", "a b", "x" * 9_000, "ü", "\x1b[31m"]
    transcript.write(*map(reply, names), *map(reply, names))
    transcript.read()
    assert transcript.tokens == 5 * EACH
    check_value(transcript.messages)
    assert len(json.dumps(transcript.messages)) < 300


def test_replaced_transcript_is_read_from_its_start(transcript: Transcript) -> None:
    transcript.write(*map(reply, ("msg_1", "msg_2", "msg_3")))
    transcript.read()
    transcript.path.write_bytes(line(reply("msg_4")))
    transcript.read()
    assert transcript.tokens == 4 * EACH
    assert transcript.offset == transcript.path.stat().st_size
    assert read_spending(str(transcript.path), -5, [], "", {}) is not None


def test_huge_new_part_is_read_only_at_its_end(
    transcript: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = len(line(reply("msg_0")))
    monkeypatch.setattr(module, "_MOST_READ", 3 * row + 5)
    transcript.write(*(reply(f"msg_{n}") for n in range(9)))
    transcript.read()
    assert transcript.messages == ["msg_6", "msg_7", "msg_8"]
    transcript.write(b"x" * 9 * row)
    assert transcript.read() is None


def test_rows_longer_than_a_part_are_left_out(
    transcript: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PART", 2 * len(line(reply("msg_0"))))
    for number in range(5):
        transcript.write(reply(f"msg_{number}"), b"x" * 5_000 + b'"usage"\n', reply(f"a{number}"))
    transcript.read()
    assert (transcript.tokens, transcript.messages[-1]) == (10 * EACH, "a4")


def test_reply_that_is_being_written_is_awaited_even_if_its_text_is_known(
    transcript: Transcript,
) -> None:
    said = {"id": "msg_1", "content": [{"type": "text", "text": "I stop. "}], "usage": usage()}
    transcript.write({**reply("msg_1"), "message": said})
    late = threading.Timer(
        0.05, transcript.write, [{**reply("msg_2"), "message": {**said, "id": "msg_2"}}]
    )
    late.start()
    await_reply(str(transcript.path), "I stop.", ["msg_1"])
    transcript.read()
    late.join()
    assert transcript.messages == ["msg_1", "msg_2"]
    await_reply(str(transcript.path), "I stop.", [])
    await_reply(str(transcript.path), "", [])
    await_reply("/dev/null", "never said", [])


def test_irregular_transcript_is_not_read(tmp_path: Path, transcript: Transcript) -> None:
    transcript.write(reply("msg_1"))
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(transcript.path)
    for path in (tmp_path, pipe, link, tmp_path / "missing", "/dev/zero", "", "a\0b", "x" * 9_000):
        assert read_spending(str(path), 0, [], "", {}) is None


rows = st.one_of(
    st.builds(
        reply, st.integers(0, 12).map("msg_{}".format), st.just(usage()),
        st.sampled_from([BEFORE, LATER, LATER]),
        costUSD=st.one_of(st.none(), st.integers(0, 500).map(lambda n: n / 1000)),
    ),
    st.builds(cost, st.integers(0, 900)),
    st.just({"type": "user", "message": {"content": "ö"}}),
    st.sampled_from(DAMAGED[:4]).map(lambda raw: raw + b"\n"),
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(rows, max_size=30), st.lists(st.integers(0, 20_000), max_size=12))
def test_sums_do_not_depend_on_the_parts_in_which_it_is_read(
    tmp_path: Path, written: list[Any], cuts: list[int]
) -> None:
    content = b"".join(row if isinstance(row, bytes) else line(row) for row in written)
    whole, parted = Transcript(tmp_path / "whole"), Transcript(tmp_path / "parted")
    whole.write(content)
    whole.read()
    ends = sorted(min(cut, len(content)) for cut in cuts)
    for start, end in zip([0, *ends], [*ends, len(content)], strict=True):
        parted.write(content[start:end])
        parted.read()
    assert (parted.tokens, parted.usd, parted.total) == (whole.tokens, whole.usd, whole.total)
    first: dict[str, Any] = {}
    for row in written:
        if isinstance(row, dict) and row["type"] == "assistant" and row["timestamp"] == LATER:
            first.setdefault(row["message"]["id"], row)
    assert whole.tokens == EACH * len(first)
    assert whole.usd == round(sum(row["costUSD"] or 0 for row in first.values()), 6)
