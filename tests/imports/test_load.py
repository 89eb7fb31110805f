"""Any file is read as a loop or rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.loop.state import LIVE
from tests.support.foreign_files import (
    PHASE_STATE,
    RALPH,
    STATE,
    STATE_MD,
    TASK,
    WORKFLOW,
    loop_of,
    read,
    refused,
)
from tests.support.lines import json_values

GOOD = [json.dumps(STATE), json.dumps(WORKFLOW), STATE_MD, RALPH, PHASE_STATE, TASK]


@pytest.mark.parametrize(
    "content",
    ["", "\n\n", "# Notes\n", "{}", '{"status": "in_progress"}', '{"a": {"spec": 1, "criteria": 2}}',
     "---\ntitle: a\niteration: 1\n---\n", "loop:\n  active: true\n", "<?xml version='1.0'?>", "null",
     json.dumps([STATE]), '{"spec": 1, "criteria": 2, "stage": 3, "task": 4}', "-----\nloop: 1\n---\n"],
)  # fmt: skip
def test_unknown_format_is_rejected(content: str) -> None:
    assert refused(content) == "FILE: unknown loop format"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{\n\xff}", "FILE:2: not valid UTF-8"),
        (b'{"spec": "a",\n "criteria": }', "FILE:2:14: not valid JSON: "),
        (b'{"a": {"x\\n": 1, "x\\n": 2}}', "FILE:1: duplicate key: x\\u{a}"),
        (b"---\nloop: 1\n", "FILE:1: the front matter has no closing"),
        (b'---\n"loop:\n---\n', "FILE:"),
    ],
)
def test_damage_is_reported_with_its_place(content: bytes, message: str) -> None:
    assert refused(content).startswith(message)


def test_numbers_of_any_length_are_refused_and_odd_characters_replaced() -> None:
    for number in ("9" * 100_000, "1e999999", "-" + "9" * 30, "1" + "0" * 18):
        text = json.dumps(STATE).replace('"iteration": 2', f'"iteration": {number}')
        assert "iteration must be a whole number" in refused(text)
    odd = {"\ud800": 1, "\x1b[31m\n": 2, "\u202e" * 500: 3}
    note = read({**STATE, **odd}).notes[0]
    assert note.startswith("Not imported: \ufffd\ufffd\ufffd, \\u{1b}[31m\\u{a}, \\u{202e}")
    assert len(note) < 700
    assert read({**STATE, "spec": "a\ud800b"}).start["goal"] == "a\ufffd\ufffd\ufffdb"


@given(st.sampled_from(GOOD), st.data())
def test_damaged_file_is_read_or_rejected(good: str, data: st.DataObject) -> None:
    raw = bytearray(good.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw)))
        end = at + data.draw(st.integers(0, 8))
        raw[at:end] = data.draw(st.binary(max_size=4) | st.sampled_from([b"{", b"\n", b": "]))
    assert_read_or_rejected(bytes(raw))


@given(st.sampled_from([STATE, WORKFLOW, json.loads(PHASE_STATE), json.loads(TASK)]), st.data())
def test_member_with_any_value_is_read_or_rejected(good: dict[str, Any], data: Any) -> None:
    document = json.loads(json.dumps(good))
    inside = [document, *(item for item in document.values() if isinstance(item, dict))]
    place = data.draw(st.sampled_from(inside))
    name = data.draw(st.sampled_from(list(place)) | st.text(max_size=3))
    place[name] = data.draw(json_values)
    assert_read_or_rejected(json.dumps(document).encode())


def assert_read_or_rejected(content: bytes) -> None:
    try:
        found = loop_of(read(content)).status
    except UsageError as error:
        found = error.message
    assert found.startswith((*LIVE, "FILE"))
