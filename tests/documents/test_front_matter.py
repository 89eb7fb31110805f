from __future__ import annotations

import re

import pytest

from gsd_fsm.documents.front_matter import block_lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nkey:\n  b: 2\n\n# c\n}\nd: 3", range(1, 6)),
        ("key: 1", range(1)),
        ("  key:\nkeys:", None),
    ],
)
def test_block_lines_cover_a_key_and_its_block(text: str, expected: range | None) -> None:
    assert block_lines(text.split("\n"), re.compile("key:")) == expected


def test_block_lines_end_at_other_characters_than_those_given() -> None:
    assert block_lines(["key:", "  a", "# b"], re.compile("key:"), " ") == range(2)
