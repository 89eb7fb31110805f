from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.plans.claim import has_machine_check, meant_files, read_claim
from tests.support.plan_texts import loaded, task

ONE = ("hooks/hooks.json",)
TWO = ("src/a.py", "src/b.py")
THERE = {"README.md"}


def meant(text: str, files: tuple[str, ...] = ONE, kind: str = "content") -> list[str]:
    return meant_files(kind, read_claim(kind, text, files), files, THERE.__contains__)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ('File contains "Stop" hook type', ("Stop",)),
        ("File contains “Stop” and `matcher`", ("Stop", "matcher")),
        ('File contains `"type": "command"` once', ('"type": "command"',)),
        ("File says 'hello  you' in the user's words", ("hello  you",)),
        ('The default is "" or "x"', ("x",)),
        ("Script reads loop state from STATE.md", ()),
        ('Two\nlines: "a\nb"', ("a\nb",)),
    ],
)
def test_claim_takes_quoted_texts_literally(text: str, quoted: tuple[str, ...]) -> None:
    assert read_claim("content", text, ONE).texts == quoted


@pytest.mark.parametrize(
    ("text", "files", "found"),
    [
        ('config.md contains "loop:"', (".gsd/config.md", "b.md"), [".gsd/config.md"]),
        ('It contains "x" (see src/b.py).', TWO, ["src/b.py"]),
        ('README.md contains "x"', TWO, ["README.md"]),
        ('File contains "README.md"', ONE, ["hooks/hooks.json"]),
        ('Runs on Node.js with "fs"', ONE, ["hooks/hooks.json"]),
        ('Nowhere.md contains "x"', ONE, ["Nowhere.md"]),
        ('The file nowhere.md contains "x"', ONE, ["nowhere.md"]),
        ('"x" stands in nowhere.md', ONE, ["nowhere.md"]),
        ('Makefile has "test:"', ("lib/Makefile", "lib/x.py"), ["lib/Makefile"]),
        ('Commands run with "x"', ("bin/run", "bin/other"), ["bin/run", "bin/other"]),
        ('Both contain "x"', TWO, list(TWO)),
        ('../../etc/passwd contains "root"', ONE, ["../../etc/passwd"]),
        ('/etc/passwd contains "root"', ONE, ["/etc/passwd"]),
        ('It serves /api/users as "json"', ONE, ["hooks/hooks.json"]),
        ('./src/a.py contains "x"', TWO, ["src/a.py"]),
    ],
)
def test_claim_means_the_named_file_or_the_files_of_the_task(
    text: str, files: tuple[str, ...], found: list[str]
) -> None:
    assert meant(text, files) == found


def test_claim_accepts_quoted_file_names() -> None:
    for text, named, quoted in (
        ('`a.py` contains "loop:"', ["src/a.py"], ("loop:",)),
        ('The file "src/b.py" has `x`', ["src/b.py"], ("x",)),
        ('"loop:" is in `b.py`', ["src/b.py"], ("loop:",)),
        ('It names "a.py" and "b.py"', list(TWO), ("a.py", "b.py")),
        ('It names "a.py"', list(TWO), ("a.py",)),
    ):
        assert (meant(text, TWO), read_claim("content", text, TWO).texts) == (named, quoted)


DENIED = [
    'File does not contain "TODO"', 'File doesn\'t contain "TODO"', 'No longer uses "eval"',
    'The module must not import "os"', 'Contains no "TODO"', "hooks.json does not exist",
    "hooks.json doesn't exist", "hooks.json no longer exists", "hooks.json was removed",
    "hooks.json has been deleted",
]  # fmt: skip
ASSERTED = [
    'Contains "a", but does not contain "b"', 'Contains "does not contain"',
    'Is not empty and contains "x"', "hooks.json exists",
]  # fmt: skip


@pytest.mark.parametrize("text", [*DENIED, *ASSERTED])
def test_claim_with_denial_wants_text_or_file_absent(text: str) -> None:
    kind = "file" if "hooks.json" in text else "content"
    assert read_claim(kind, text, ONE).denied is (text in DENIED)
    assert meant(text, ONE, kind) == ["hooks/hooks.json"]


def test_file_claim_may_name_its_file_anywhere() -> None:
    for text, found in {
        "src/new.py exists": ["src/new.py"],
        '"src/new.py" exists': ["src/new.py"],
        "The entry point is src/main": ["src/main"],
        "It is there": list(TWO),
    }.items():
        assert meant(text, TWO, "file") == found


@pytest.mark.parametrize(
    ("check", "file", "proves"),
    [
        ('<check type="file">a.py exists</check>', "<file>a.py</file>", True),
        ('<check type="content">It says "x"</check>', "<file>a.py</file>", True),
        ('<check type="content">It says "x"</check>', "", False),
        ('<check type="command">true</check>', "", True),
        ("<check>true</check>", "<file>a.py</file>", False),
        ('<check type="test">All tests pass</check>', "", False),
        *(("<check>Look</check>", f'<file action="{action}">a.py</file>', True)
          for action in ("create", "modify", "delete")),
    ],
)  # fmt: skip
def test_task_has_machine_check_if_a_check_or_file_action_can_prove_it(
    tmp_path: Path, check: str, file: str, proves: bool
) -> None:
    text = task("01").replace('<check type="file">01.py exists</check>', check)
    text = text.replace('<file action="create">01.py</file>', file)
    (found,) = loaded(tmp_path, text).tasks
    assert has_machine_check(found) is proves


@given(st.sampled_from(("file", "content")), st.text(), st.lists(st.text(max_size=8), max_size=3))
def test_claim_of_any_text_can_be_read(kind: str, text: str, files: list[str]) -> None:
    claim = read_claim(kind, text, tuple(files))
    assert "" not in claim.texts + claim.words
    found = meant_files(kind, claim, tuple(files), lambda _path: False)
    assert set(found) <= {*files, *claim.words}
    if kind == "content":
        assert all(quote in text.replace("\0", " ") for quote in claim.texts)
