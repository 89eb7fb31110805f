"""Free text for the journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents import journal_text
from gsd_fsm.documents.journal_text import read_option, redact_and_truncate, redact_or_reject

WINDOW = journal_text.WINDOW
BLOB = "sk-" + "ant-" + "a" * (WINDOW - 60)  # redacted to a few characters
FILLER = "nothing to see\n" * 20_000
TOKEN = "gh" + "p_" + "1a2b3c4d" * 5


@pytest.mark.parametrize("shift", range(0, 50, 3))
def test_truncated_text_has_no_half_of_a_secret_at_the_cut(shift: int) -> None:
    secrets = ("password: 'swordfish' ", f"{TOKEN} ", "pwd='a swordfish' ")
    after = [f"{FILLER}{secret}{' ' * shift}{BLOB}" for secret in secrets]
    for text in (f'{BLOB},{"." * shift}"{TOKEN}",{FILLER}', *after):
        kept = redact_and_truncate(text)
        assert "swordfish" not in kept
        assert TOKEN[4:12] not in kept


def test_truncated_text_has_both_ends() -> None:
    kept = redact_and_truncate("first word " + "a1 " * WINDOW * 2 + "last word")
    assert kept.startswith("first word")
    assert kept.endswith("last word")
    assert "bytes, sha256 " in kept
    assert len(kept.encode()) < 6_100


def test_redact_or_reject_removes_secrets_and_refuses_empty_and_long_text() -> None:
    assert TOKEN not in redact_or_reject(f"use {TOKEN} here", "the goal")
    for text, problem in (
        (" \n", "the goal is empty"),
        ("x" * 101, "longer than 100 bytes"),
        ("é" * 40, "100 bytes in the journal"),
    ):
        with pytest.raises(UsageError, match=problem):
            redact_or_reject(text, "the goal", 100)


def test_read_option_reads_text_or_file_but_not_both(tmp_path: Path) -> None:
    file = tmp_path / "goal.txt"
    file.write_bytes(b"\xef\xbb\xbfa\r\nb\xff\n\n")
    assert read_option(None, None, "the goal") is None
    assert read_option("a", None, "the goal") == "a"
    assert read_option(None, str(file), "the goal") == "a\nb\N{REPLACEMENT CHARACTER}"
    with pytest.raises(UsageError, match="given twice"):
        read_option("a", str(file), "the goal")
    with pytest.raises(UsageError, match="not a regular file"):
        read_option(None, str(tmp_path), "the goal")
