"""Whatever stands where a loop is looked for: a clear answer, at once, and nothing written."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.loop.state import LIVE
from gsd_fsm.imports.load import MOST_BYTES, read_loop
from tests.support.foreign_files import RALPH, STATE, STATE_MD, WORKFLOW, loop_of, read, refused

if TYPE_CHECKING:
    from tests.support.command_line import Here

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
GOOD = [json.dumps(STATE), json.dumps(WORKFLOW), STATE_MD, RALPH]


@pytest.mark.parametrize(
    "content",
    ["", "\n\n", "# Notes\n", "{}", '{"status": "in_progress"}', '{"a": {"spec": 1, "criteria": 2}}',
     "---\ntitle: a\niteration: 1\n---\n", "loop:\n  active: true\n", "<?xml version='1.0'?>", "null",
     json.dumps([STATE]), '{"spec": 1, "criteria": 2, "stage": 3, "task": 4}', "-----\nloop: 1\n---\n"],
)  # fmt: skip
def test_what_is_no_loop_is_told_so_with_the_known_formats(content: str) -> None:
    assert refused(content) == "FILE is no loop of a known format"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{\n\xff}", "FILE:2: not valid UTF-8"),
        (b"---\nloop:\0\n---\n", "FILE:2: a NUL character: this is no text"),
        (b'{"spec": "a",\n "criteria": }', "FILE:2:14: not valid JSON: "),
        (b'{"spec": "a"} {"spec": "b"}', "FILE:1:15: not valid JSON: "),
        (b'{"spec": "a", "spec": "b"}', "FILE: spec: it is named twice"),
        (b'{"a": {"x\\n": 1, "x\\n": 2}}', "FILE: x\\u{a}: it is named twice"),
        (b'{"iteration": NaN}', "FILE: not valid JSON: NaN is no number"),
        (b'{"iteration": -Infinity}', "FILE: not valid JSON: -Infinity is no number"),
        (b'{"a": ' + b"[" * 200_000, "FILE: not valid JSON: nested too deeply"),
        (b'{"a": ' + b'{"a":' * 100_000, "FILE: not valid JSON: nested too deeply"),
        (b"{" + b'"a": 1, ' * 1_000, "FILE:1:8002: not valid JSON: "),
    ],
)
def test_damage_is_told_with_its_place(content: bytes, told: str) -> None:
    assert refused(content).startswith(told)


@pytest.mark.parametrize("line", ['"loop:', 'loop: "\\UFFFFFFFF"', 'loop: "\\U00110000"'])
def test_front_matter_that_only_looks_like_a_loop_is_refused(line: str) -> None:
    with pytest.raises(UsageError):
        read_loop(f"---\n{line}\n---\n".encode(), "STATE.md")


def test_numbers_of_any_length_are_only_wrong() -> None:
    for number in ("9" * 100_000, "1e999999", "-" + "9" * 30, "1" + "0" * 18):
        text = json.dumps(STATE).replace('"iteration": 2', f'"iteration": {number}')
        assert "iteration: it must be a whole number" in refused(text)


def test_strange_letters_do_no_harm() -> None:
    odd = {"\ud800": 1, "\x1b[31m\n": 2, "\u202e" * 500: 3}
    note = read({**STATE, **odd}).notes[0]
    assert note.startswith("Not carried: \ufffd\ufffd\ufffd, \\u{1b}[31m\\u{a}, \\u{202e}")
    assert len(note) < 700
    assert read({**STATE, "spec": "a\ud800b"}).start["goal"] == "a\ufffd\ufffd\ufffdb"


@given(st.sampled_from(GOOD), st.data())
def test_a_damaged_file_is_read_or_refused_in_words(good: str, data: st.DataObject) -> None:
    raw = bytearray(good.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw)))
        cut = data.draw(st.integers(0, 8))
        raw[at : at + cut] = data.draw(
            st.binary(max_size=4) | st.sampled_from([b"{", b"\n", b": "])
        )
    assert_read_or_refused(bytes(raw))


@given(st.sampled_from([STATE, WORKFLOW]), st.data())
def test_a_member_of_any_value_is_carried_or_refused(good: dict[str, Any], data: Any) -> None:
    document = json.loads(json.dumps(good))
    inside = [document, *(item for item in document.values() if isinstance(item, dict))]
    place = data.draw(st.sampled_from(inside))
    name = data.draw(st.sampled_from(list(place)) | st.text(max_size=3))
    place[name] = data.draw(anything)
    assert_read_or_refused(json.dumps(document).encode())


def assert_read_or_refused(content: bytes) -> None:
    """What is read becomes a live loop; what is not is told in words."""
    try:
        told = loop_of(read(content)).status
    except UsageError as error:
        told = error.message
    assert told.startswith((*LIVE, "FILE"))


def test_what_is_no_plain_file_is_refused_at_once(here: Here) -> None:
    os.mkfifo(here.root / "pipe")
    (here.root / "directory").mkdir()
    (here.root / "big").write_bytes(b" " * (MOST_BYTES + 1))
    (here.root / "loop").symlink_to("loop")
    (here.root / "device").symlink_to("/dev/zero")
    assert "not a regular file" in here.refused(2, "import", "pipe").err
    assert "not a regular file" in here.refused(2, "import", "directory").err
    assert "not a regular file" in here.refused(2, "import", "device").err
    assert "larger than 1 MiB" in here.refused(2, "import", "big").err
    here.refused(3, "import", "loop")
    here.refused(3, "import", "nowhere/state.json")
    here.refused(3, "import", "big/state.json")
    here.refused(2, "import")
    assert not here.gsd.exists()


def test_a_loop_that_no_line_can_hold_is_refused_before_a_journal_is_made(here: Here) -> None:
    steps = [f"{number:04} {'x' * 400}" for number in range(300)]
    much = {**STATE, "steps": steps, "completedSteps": [], "remainingSteps": steps}
    (here.root / "state.json").write_text(json.dumps(much))
    assert "more than a line may have" in here.refused(2, "import", "state.json").err
    assert not here.gsd.exists()


def test_a_name_that_looks_like_an_answer_is_shown_on_one_line(here: Here) -> None:
    (here.root / "a\nb.json").write_text(json.dumps(STATE))
    assert "Imported a\\u{a}b.json as goal loop" in here.ok("import", "a\nb.json").out


def test_a_link_to_a_good_file_is_followed(here: Here) -> None:
    (here.root / "there.json").write_text(json.dumps(STATE))
    (here.root / "here.json").symlink_to("there.json")
    here.ok("import", "here.json")
    assert here.last()["data"]["carried"]["file"] == "there.json"
