"""Whatever a SHAPE.md holds, it is read, or refused with its line and an example."""

from __future__ import annotations

import contextlib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.shape_file import read_shape
from tests.documents.test_shape_file import file, refusal, shape

__all__ = ["file"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", " has neither criteria nor verification"),
        (b"# Must not\n- a\n", " has neither criteria nor verification"),
        (b"-" * ((1 << 20) + 1), ": larger than 1 MiB"),
        (b"# Criteria\n- a\n- \xff\n", ":3: not valid UTF-8"),
        (b"# Criteria\n- \0\n", ":2: a NUL character: this is no text"),
        (b"# Criteria\n```sh\n- a\n", ":2: what begins here has no end: ```"),
        (b"# Criteria\n- a\n<!-- b\n", ":3: what begins here has no end: -->"),
        (b"# Criteria\n- " + b"a " * 1_000, ":2: a criterion is longer than 2000 bytes"),
        (b"# Criteria\n- " + b"a " * 9_000, ":2: an entry of more than 10000 characters"),
        (b"# Criteria\n" + b"- a\n" * 1_001, ":1002: more than 1000 entries"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(
    file: Path, content: bytes, what: str
) -> None:
    assert refusal(file, content) == f"{file}{what}"


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing", Path("/dev/zero")):
        with pytest.raises(UsageError, match=r"not a regular file|missing file"):
            read_shape(path)


def test_what_cannot_be_seen_is_made_visible_in_names(file: Path) -> None:
    found = shape(file, "# Criteria\n- a\u202eb\x1b[31m\n# Must not\n- c\u200bd\n")
    assert (found.criteria, found.must_not) == (("a\\u{202e}b\\u{1b}[31m",), ("c\\u{200b}d",))


WORDS = st.lists(
    st.sampled_from(("alpha", "beta", "gamma", "delta", "zeta")), min_size=2, max_size=5
)
TEXTS = st.lists(WORDS.map(" ".join), min_size=1, max_size=6, unique=True)
BULLETS = st.sampled_from(("- ", "* ", "+ ", "1. ", "7) ", "- [ ] ", "- [x] ", "  - "))


@given(TEXTS, TEXTS, st.integers(0, 6), BULLETS)
def test_whatever_is_listed_is_read_back(
    wanted: list[str], forbidden: list[str], proved: int, bullet: str
) -> None:
    checks = [(name, f"make step{n}") for n, name in enumerate(wanted[:proved])]
    lines = [
        "# Criteria", *(bullet + text for text in wanted),
        "## Must NOT", *(bullet + text for text in forbidden),
        "## Checks", *(f"{bullet}{name}: `{command}`" for name, command in checks),
    ]  # fmt: skip
    with TemporaryDirectory() as directory:
        file = Path(directory) / "SHAPE.md"
        file.write_bytes(("\ufeff" + "\r\n".join(lines)).encode())
        found = read_shape(file)
    assert found[:3] == (tuple(wanted[proved:]), tuple(checks), tuple(forbidden))


PARTS = st.sampled_from((
    "# Criteria\n", "## Must NOT\n", "### Verification\n", "criteria:", "**Verification**", "- ", "  - ", "1. ",
    "```", "```sh\n", "```yaml\n", "|", "|-|-|", "| a | `b c` |\n", "---\n", "<!--", "-->", "`", "`make x`", ": ",
    "a b", "[x]", "{", '"', "\\", "$ ", "<<", "> ", "\t", "\n", "\n\n", "\r", "*", "with ", "\u2028", "\ufeff",
))  # fmt: skip


@given(st.lists(st.one_of(PARTS, st.text(max_size=5)), max_size=40).map("".join), st.integers(1, 9))
def test_any_text_is_a_shape_or_refused(text: str, times: int) -> None:
    with TemporaryDirectory() as directory:
        file = Path(directory) / "SHAPE.md"
        file.write_text(text * times, "utf-8", newline="")
        with contextlib.suppress(UsageError):
            found = read_shape(file)
            assert found.criteria or found.checks
            assert len(found.notes) <= 20


# Each makes some pattern look far ahead, or begin again at every place.
FLOODS = ("`", "` ", "`` ", "[", "*a ", "**", "a: ", "| ", "|1", "|`", "\\|", "- ", "> ", "#", "# a\n", '"', "$ ",
          "<!--", "<!--a-->", "```\n", "- a\n", "  - a\n", "criteria:\n", "|a|\n|-|\n", "~~~sh\n", " ", "with ",
          "`make x` and ", "a |\n", "a\\\n", "must not ", "\n")  # fmt: skip


@pytest.mark.parametrize(
    "start", ["# Verification\n- a: ", "# Criteria\n|a|\n|-|\n|", "---\n", "# Checks\n```sh\n"]
)
def test_a_flood_of_any_mark_is_read_or_refused(file: Path, start: str) -> None:
    for part in FLOODS:
        for end in ("", "`", "\n```\n"):
            file.write_text(start + part * (60_000 // len(part)) + end, "utf-8")
            with contextlib.suppress(UsageError):
                assert read_shape(file).digest
