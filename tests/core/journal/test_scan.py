"""The caching reader gives the same result as the readers without a cache."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsd_fsm.core.journal import scan as reader_module
from tests.support.chaos import run_random_story
from tests.support.golden import write_lines
from tests.support.lines import HARMLESS, HOSTILE, agreed, closed, verdict
from tests.support.story import Story, frozen

NOTE = b'{"v":1,"seq":%d,"ts":"2026-11-15T23:00:0%d.000Z","loop":"lp-1","type":"note","by":"human",'
TEXT = b'"data":{"text":"t"}'


def after_a_note(*bodies: bytes) -> list[bytes]:
    """Return a goal loop with a note, so that notes are cached, and these notes after it."""
    lines = write_lines(Story("goal").events).splitlines()
    for seq, body in enumerate((TEXT, *bodies), 3):
        lines.append(closed(NOTE % (seq, seq) + body, lines[-1][-18:-2].decode()))
    return lines


def with_member(value: bytes) -> bytes:
    return b'"data":{"text":"t","x":' + value + b"}"


@pytest.mark.parametrize("part", range(6))
def test_readers_with_full_or_small_cache_agree_on_random_journals(
    part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(part * 5, part * 5 + 5):
        loops, events = run_random_story(Random(seed), 200)
        assert agreed(*write_lines(events).splitlines()) == frozen(loops)
    monkeypatch.setattr(reader_module, "_REMEMBERED", 2)
    assert verdict(reader_module.into_fold, *write_lines(events).splitlines()) == frozen(loops)


@pytest.mark.parametrize("member", [b'"seq":3', b'"ts":"2026-11-15T23:00:03.000Z"', b'"by":"cli"'])
@pytest.mark.parametrize("place", ["middle", "end"])
def test_caching_reader_agrees_on_duplicate_members(member: bytes, place: str) -> None:
    lines = write_lines(Story("goal").events).splitlines()
    for seq in (3, 4, 5):
        line = b'{"v":1,"seq":%d,"ts":"2026-11-15T23:00:0%d.000Z","loop":"lp-1",' % (seq, seq)
        line += member + b"," if place == "middle" else b""
        line += b'"type":"iteration","by":"hook","data":{}'
        line += b"," + member if place == "end" else b""
        lines.append(closed(line, lines[-1][-18:-2].decode()))
    agreed(*lines)


@pytest.mark.parametrize("name", [*HARMLESS, *HOSTILE])
def test_caching_reader_accepts_valid_data_repeatedly_and_refuses_other(name: str) -> None:
    member = with_member({**HARMLESS, **HOSTILE}[name])
    verdict = agreed(*after_a_note(member, member))
    assert verdict == 3 if name in HOSTILE else type(verdict) is str


@pytest.mark.parametrize(
    "body",
    [
        b'"data":[]', b'"data":null', b'"data":{"text":1}', b'"data":{}', b'"data": {"text":"t"}',
        *(TEXT + b"," + more for more in (b'"by":"hook"', b'"seq":9', b'"x":1', b'"data":{"text":1}')),
        TEXT + b"}", TEXT + b" ",
        *(more + TEXT for more in (b'"client":"c",', b'"optional":1,', b'"loop":"lp-2",')),
    ],
)  # fmt: skip
def test_caching_reader_agrees_on_any_data(body: bytes) -> None:
    agreed(*after_a_note(body, body, TEXT))


@pytest.mark.parametrize(("depth", "accepted"), [(14, True), (15, False), (16, False)])
def test_caching_reader_accepts_lines_up_to_maximum_depth(depth: int, accepted: bool) -> None:
    deep = with_member(b"[" * depth + b"]" * depth)
    assert (agreed(*after_a_note(deep)) != 3) is accepted


PARTS = st.sampled_from(
    [b'"data":', b'{"text":"t"}', b'{"text":1}', b'{"text":"t","x":', b"}", b",", b'"by":"hook"',
     b'"seq":5', b'"ts":"2026-11-15T23:00:05.000Z"', b'"session":"s"', b'"x"', b"[1]", b" "]
)  # fmt: skip
BODIES = st.lists(PARTS, min_size=1, max_size=7).map(b"".join)


@settings(max_examples=250)
@given(st.lists(BODIES | st.just(with_member(b"[1]")), min_size=1, max_size=3))
def test_caching_reader_agrees_on_any_line(bodies: list[bytes]) -> None:
    agreed(*after_a_note(*bodies))
