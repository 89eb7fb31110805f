from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.shape_file import HINT, read_shape
from gsd_fsm.shapes.document import Document
from gsd_fsm.shapes.entry import Unreadable
from tests.test_shape_file import file, shape

__all__ = ["file"]


def refusal(file: Path, content: bytes) -> str:
    file.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        read_shape(file)
    assert refused.value.hint == HINT
    return refused.value.message


def test_a_file_that_is_no_text_is_refused_with_its_line(file: Path) -> None:
    assert refusal(file, b"# Criteria\n- a\n- \xff\n") == f"{file}:3: not valid UTF-8"
    assert refusal(file, b"# Criteria\n- \0\n") == f"{file}:2: a NUL character: this is no text"
    assert refusal(file, b"") == f"{file} has neither criteria nor verification"
    assert refusal(file, b"-" * ((1 << 20) + 1)) == f"{file} is larger than 1 MiB"


def test_what_is_no_file_is_refused_at_once(file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_shape(file)
    with pytest.raises(UsageError, match="not a file"):
        read_shape(tmp_path)
    os.mkfifo(file)
    with pytest.raises(UsageError, match="not a file"):
        read_shape(file)
    with pytest.raises(UsageError, match="not a file"):
        read_shape(Path("/dev/zero"))


def test_a_link_to_a_file_is_followed_and_old_newlines_are_known(
    file: Path, tmp_path: Path
) -> None:
    file.symlink_to(tmp_path / "real.md")
    (tmp_path / "real.md").write_bytes(b"\xef\xbb\xbf# Criteria\r- a\r- b\r")
    assert read_shape(file).criteria == ("a", "b")


def test_too_long_and_too_many_entries_are_refused_with_their_line(file: Path) -> None:
    assert "2: a criterion is longer than 2000 bytes" in refusal(
        file, b"# Criteria\n- " + b"a " * 1_000
    )
    assert "2: an entry of more than 10000 characters" in refusal(
        file, b"# Criteria\n- " + b"a " * 9_000
    )
    assert "2: a must-not is longer than 2000 bytes" in refusal(
        file, b"# Must not\n- " + b"a " * 1_000
    )
    many = b"".join(b"- a%d\n" % n for n in range(1_001))
    assert ":1002: more than 1000 entries" in refusal(file, b"# Criteria\n" + many)


def test_what_cannot_be_seen_is_made_visible_in_names(file: Path) -> None:
    found = shape(file, "# Criteria\n- a\u202eb\x1b[31m\n# Must not\n- c\u200bd\n")
    assert found.criteria == ("a\\u{202e}b\\u{1b}[31m",)
    assert found.must_not == ("c\\u{200b}d",)


def test_notes_are_not_endless(file: Path) -> None:
    assert len(shape(file, "# Criteria\n- a\n" + "- [b]\n" * 900).notes) == 20


# Each makes some pattern look far ahead, or begin again at every place.
HOSTILE = (
    "`", "` ", "`` ", "[", "[a](", "*a ", "**", "_a ", "a: ", "| ", "|`", "\\|", "- ", "-", "> ", "#",
    '"', "'", "\t", " ", "$ ", "<!--", "é", "```\n", "- a\n", "a\n===\n", "criteria:\n", "**a**\n",
    "|a|\n|-|\n", "~~~sh\n", "    ", "`make x` and ", "{", "\n", "---\n", "Criteria\n---\n",
)  # fmt: skip


@pytest.mark.parametrize("start", ["# Verification\n- a: ", "# Criteria\n|a|b|\n|-|-|\n|", "---\n"])
def test_a_flood_of_any_mark_is_read_or_refused(file: Path, start: str) -> None:
    for part in HOSTILE:
        file.write_text(start + part * (60_000 // len(part)), "utf-8")
        with contextlib.suppress(UsageError):
            assert read_shape(file).digest


PARTS = st.sampled_from((
    "# Criteria", "## Must NOT", "### Verification", "criteria:", "**Verification**", "- ", "  - ", "1. ",
    "- [ ] ", "```", "```sh", "```json", "```yaml", "~~~", "|", "|-|-|", "| a | `b c` |", "---", "===", "<!--",
    "-->", "`", "`make x`", ": ", "a b", "[x]", "{", "}", '"criteria"', ",", "\\", "$ ", "<<", "> ", "\t", "\n", "\n",
    "\n\n", "\r", "&a", "*a", "\u2028", "\ufeff", "\ud7ff",
))  # fmt: skip


@given(st.lists(st.one_of(PARTS, st.text(max_size=5)), max_size=40).map("".join))
def test_any_text_is_read_or_refused_with_a_line_that_exists(text: str) -> None:
    last = text.count("\n") + 1
    try:
        lines = [entry.line for entry in Document(text).entries]
    except Unreadable as error:
        lines = [error.line]
    assert all(1 <= line <= last for line in lines)
