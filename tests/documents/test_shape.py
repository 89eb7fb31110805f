from __future__ import annotations

import contextlib
import hashlib
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.shape import EXAMPLE, Shape, read_shape


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "SHAPE.md"


def shape(file: Path, text: str) -> Shape:
    file.write_text(text, "utf-8")
    return read_shape(file)


def refused(file: Path, content: bytes | str) -> UsageError:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UsageError) as error:
        read_shape(file)
    assert error.value.hint
    return error.value


FULL = """\
---
title: Login
---
# Shape: Add email verification
Verification is part of the login.
## Relevant aspects
- Data: stored for ever
| a | table |
## Criteria
Each of them:

- [ ] Users can log in
- [x] Wrong passwords are
  refused, see `auth.py`
* **Tokens expire**: `make tokens`
<!-- - not
- read -->

### On phones
1. Pages load <!-- also old ones -->
## MUST-NOT:
  1. Store plain passwords: `in any file`
  2) Log tokens
# Verification ##
+ users can log in.: `npm test -- login`.
+ `npm run lint`
+ **Types hold:** ``echo `date` | grep 2``

```bash
# Comments are ignored
$ make docs

for f in *; do test -s $f; done
grep -q x <<< "$A"
```
# Expert decisions
- Use immutable events
```json
{"ignored": true}
```
"""


def test_sections_give_criteria_checks_and_must_nots(file: Path) -> None:
    named = [("Users can log in", "npm test -- login"), ("Tokens expire", "make tokens"),
             ("npm run lint", "npm run lint"), ("Types hold", "echo `date` | grep 2")]  # fmt: skip
    plain = ("make docs", "for f in *; do test -s $f; done", 'grep -q x <<< "$A"')
    assert shape(file, FULL) == Shape(
        criteria=("Wrong passwords are refused, see auth.py", "Pages load"),
        checks=(*named, *((command, command) for command in plain)),
        must_not=("Store plain passwords: in any file", "Log tokens"),
        digest=hashlib.sha256(FULL.encode()).hexdigest()[:16],
    )
    windows = shape(file, "\ufeff" + FULL.replace("\n", "\r\n"))
    assert windows[:3] == shape(file, FULL)[:3]
    nested = "# Criteria\n- a\n## mustNot\n- b\n### why\n- c\n## Fast\n- d\n# End\n- e\n"
    found = shape(file, nested)
    assert (found.criteria, found.must_not) == (("a", "d"), ("b", "c"))


@pytest.mark.parametrize(
    "item",
    ["npm test", "All tests pass (`npm test`)", "All tests pass with `npm test`",
     "Run `npm test` and see nothing", "Style: `npm run lint` and `npm run fmt`",
     "Speed: `curl -w x http://a` < 0.1s", "Odd: `a `b`", "Odd `a: `b`", "Odd: ```a```",
     "Odd: ``a`"],
)  # fmt: skip
def test_code_that_does_not_end_an_item_after_a_colon_is_never_a_command(file, item) -> None:
    found = shape(file, f"## Criteria\n- {item}\n")
    assert (found.criteria, found.checks) == ((item.replace("`", ""),), ())
    error = refused(file, f"## Verification\n- `make`\n- {item}\n")
    assert error.message == f"{file}:3: a verification must end with a command"
    assert "move the item to '## Criteria'" in error.hint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((text, " has no criteria") for text in ("", "# Must not\n- a\n", "Criteria\n====\n- a\n")),
        (b"# Criteria\n- a\n- \xff\n", ":3: not valid UTF-8"),
        (b"-" * ((1 << 20) + 1), ": larger than 1 MiB"),
        ("# Criteria\n```sh\n- a\n", ":2: unclosed code fence"),
        ("# Criteria\n- a\n<!-- b\n", ":3: unclosed comment"),
        *((f"# Criteria\n- a: ``\n# Must not\n- {text}\n", ":4: empty item or placeholder")
          for text in ("", "[ ]", "``  ``", "TBD", "[Criterion 1]")),
        ("# Criteria\n- a\n  - b\n", ":3: nested item"),
        ("# Criteria\n| a |\n", ":2: not a list item"),
        ("# Criteria\n- a\n**Must not:**\n- b\n", ":3: not a heading: **Must not:**"),
        ("---\ncriteria:\n- a\n---\n", ":2: not a heading: criteria:"),
        ("# T\n# Success Criteria\n\n- a\n", ":2: unknown section: Success Criteria"),
        ("# Criteria\n## Must-not rules\n- a\n", ":2: unknown section: Must-not rules"),
        ("# Verify\n```sh\nmake\n```\n", ":1: unknown section: Verify"),
        ("# Verification\n```\nmake\n```\n", ":2: code fence is not marked as shell commands"),
        ("# Criteria\n- a: `x`\n- A: `y`\n", ":3: a second command for 'A'"),
        ("# Criteria\n- " + "a " * 1_001, ":2: item longer than 2000 bytes"),
        ("# Criteria\n- " + "a " * 101 + ": `x`", ":2: item longer than 200 bytes"),
        ("# Criteria\n" + "- a\n" * 1_001, ":1002: more than 1000 items"),
    ],
)  # fmt: skip
def test_mistake_is_refused_with_path_and_line(file: Path, content: bytes | str, message) -> None:
    assert refused(file, content).message == f"{file}{message}"


def test_command_that_is_incomplete_invisible_or_too_long_is_refused(file: Path) -> None:
    for line in (
        *("make |", "cat <<EOF", "for f in *; do", "if true; then", "f() {", "echo 'a", "cd a"),
        "a \\",
    ):
        error = refused(file, f"# Verification\n\n```sh\n{line}\n\n```\n")
        assert error.message == f"{file}:4: incomplete command: each line runs on its own"
    for command in ("make a\u202eb", "make \x1b[2K", "make " + "a" * 8_000):
        for text in (f"# Criteria\n- a: `{command}`", f"# Verification\n```sh\n{command}\n```"):
            assert "the command is not plain text" in refused(file, text).message
    found = shape(file, "# Criteria\n- a\u202eb\x1b[31m\n# Must not\n- c\u200bd\n")
    assert (found.criteria, found.must_not) == (("a\\u{202e}b\\u{1b}[31m",), ("c\\u{200b}d",))


def test_missing_file_is_refused_with_an_example(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="missing") as error:
        read_shape(tmp_path / "missing")
    assert error.value.hint == EXAMPLE


PARTS = st.sampled_from((
    "# Criteria\n", "## Must NOT\n", "### Verification\n", "criteria:", "- ", "\n- ", "  - ", "1. ", "```\n", "```sh\n",
    "|", "---\n", "<!--", "-->", "`", "``", "`make x`", "\n- a: `make x`\n", ": ", "a b", "[x]", "\\", "$ ", "\t", "\n",
    "\n\n", "\r", "*", "**", ".", "\u2028", "\ufeff",
))  # fmt: skip
# Independent of the parser: a command is a whole line of a file, or a code span that ends an item.
SPAN = re.compile(r"(?:^|[-:*.)\]\s])\s*(?:``((?:(?!``).)+)``|`([^`]+)`)\.?\s*(?:<!--.*)?$")


@given(st.lists(st.one_of(PARTS, st.text(max_size=5)), max_size=40).map("".join), st.integers(1, 9))
def test_any_text_is_refused_or_gives_only_commands_of_the_grammar(text: str, times: int) -> None:
    text *= times
    with TemporaryDirectory() as directory, contextlib.suppress(UsageError):
        found = shape(Path(directory) / "SHAPE.md", text)
        assert found.criteria or found.checks
        lines = re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))
        spans = [span[1] or span[2] for line in lines if (span := SPAN.search(line))]
        allowed = {code.strip().removeprefix("$ ") for code in [*lines, *spans]}
        assert {command for _, command in found.checks} <= allowed


# Each makes a pattern look far ahead, or start again at every position.
FLOODS = ("`", "` ", "`` ", "[", "*a ", "**", "a: ", "| ", "- ", "> ", "#", "# a\n", '"', "$ ", "<!--", "<!--a-->",
          "```\n", "- a\n", "\n- a", "  - a\n", "criteria:\n", "~~~sh\n", " ", "a |\n", "a\n", "\n", "\n# criteri")  # fmt: skip


@pytest.mark.parametrize("start", ["Verification\n- a: ", "Criteria x\n", "Verification\n```sh\n"])
def test_flood_of_any_mark_is_read_or_refused_in_time(file: Path, start: str) -> None:
    for part in FLOODS:
        for end in ("", "`", "\n```\n"):
            file.write_text(f"# {start}" + part * (60_000 // len(part)) + end, "utf-8")
            with contextlib.suppress(UsageError):
                assert read_shape(file).digest
