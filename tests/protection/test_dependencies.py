"""What the command of a check depends on: protected files, and watched ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsd_fsm.protection.dependencies import dependencies
from gsd_fsm.protection.files import ProjectFiles, walked_names
from tests.support.projects import Tree, protected, watched

# files that a command names

NAMED = dict.fromkeys(
    ("run.sh", "check.py", "ci/check.sh", "ci/lib.sh", "data.json", "README.md", "a.sql", "prog.c",
     "node_modules/.bin/jest", ".venv/bin/check", "expected.txt", "actual.txt", "build/ci.sh"),
    "#!/bin/sh\n",
)  # fmt: skip


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("sh run.sh", "run.sh"),
        ("./run.sh", "run.sh"),
        ("bash -eu ./run.sh README", "run.sh"),
        (". ci/lib.sh", "ci/lib.sh"),
        ("source ci/lib.sh", "ci/lib.sh"),
        ("python check.py", "check.py"),
        ("python -m check", "check.py"),
        ("python3 -W error check.py data.json", "check.py data.json"),
        ("uv run check.py", "check.py"),
        ("coverage run check.py", "check.py"),
        ("cd ci && ./check.sh", "ci/check.sh"),
        ("(cd ci; sh check.sh)", "ci/check.sh"),
        ("sh -c './run.sh && python check.py'", "check.py run.sh"),
        ("for f in ci/check.sh ci/lib.sh; do sh $f; done", "ci/check.sh ci/lib.sh"),
        ('test "$(sh run.sh)" = ok', "run.sh"),
        ("timeout 60 xargs ./run.sh", "run.sh"),
        ("mytool --data=data.json a.sql", "a.sql data.json"),
        ("mytool --config data.json", "data.json"),
        ("psql < a.sql", "a.sql"),
        ("go run check.py", "check.py"),
        ("perl check.py", "check.py"),
        ("node --check check.py", ""),
        ("bash -n run.sh", ""),
        ("awk -f a.sql README.md", "a.sql"),
        ("diff expected.txt actual.txt", "actual.txt expected.txt"),
        ("./run.sh > actual.txt && diff expected.txt actual.txt", "expected.txt run.sh"),
        ("mytool -o actual.txt; cmp expected.txt actual.txt", "expected.txt"),
        ("./run.sh | tee actual.txt; diff expected.txt actual.txt", "expected.txt run.sh"),
        ("node_modules/.bin/jest", ""),
        (".venv/bin/check", ""),
        ("build/ci.sh", ""),
        ("../run.sh", ""),
        ("/usr/bin/true", ""),
        ("cat /dev/null ~/x https://example.org/run.sh .git/config .gsd/journal.jsonl", ""),
        ("mytool $X/run.sh 'r*.sh'", ""),
        ("./ci", ""),
    ],
)
def test_files_that_are_executed_or_read_are_protected(
    tree: Tree, command: str, expected: str
) -> None:
    assert protected(command, tree(NAMED)) == expected.split()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("test -e done", "done"),
        ("[ -s out/a.txt ] && [ ! -f b ]", "b out/a.txt"),
        ("[[ -f a && -f README.md ]]", "README.md a"),
        ("test $X = ok -a 3 -gt 2", ""),
        ("./later.sh", "later.sh"),
        ("sh later", "later"),
        ("grep -q x OUT.md", "OUT.md"),
        ("grep -rq 'x.y' README.md ci", "README.md"),
        ("grep -q -e fixed README.md", "README.md"),
        ("! grep -q x < README.md", "README.md"),
        ("jq -e .a data.json", "data.json"),
        ("wc -l README.md | sort", "README.md"),
        ("gcc -Wall -o prog prog.c && ./prog", "prog.c"),
        ("python -m py_compile check.py", "check.py"),
        ("python -c 'import sys' README.md", "README.md"),
        ("perl -ne 'exit 1 if /x/' README.md", "README.md"),
        ("babel a.sql -o out.js && cat out.js", "a.sql"),
        ("test -d node_modules/x && . .venv/bin/activate", ""),
        ("shellcheck run.sh", ".shellcheckrc run.sh"),
        ("git diff --exit-code -- README.md", "README.md"),
        ("pip install -r data.json", "data.json"),
        ("diff new.txt other.txt", "new.txt other.txt"),
        ("mytool later.json now --fast 3.5", "later.json"),
        ("echo done > later.txt; cat later.txt", ""),
        ("mkdir -p out/new; touch out/new/x.txt; rm -f gone.txt", ""),
        ("cat 'x*.md' $A.md --option", ""),
        ("mytool https://example.org/a.html", ""),
    ],
)
def test_missing_files_and_subjects_are_watched(tree: Tree, command: str, expected: str) -> None:
    files = tree(NAMED)
    assert watched(command, files) == expected.split()
    assert protected(command, files) == []


def test_compiled_program_is_watched(tree: Tree) -> None:
    files = tree({"Makefile": "all:\n\ttrue\n", "tool": ""})
    (files.root / "tool").write_bytes(b"\x7fELF\x02")
    assert protected("make && ./tool", files) == ["Makefile"]
    assert "tool" in watched("make && ./tool", files)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cd a && timeout 9 python -m pytest -q | tee log", "timeout python tee"),
        ("test -e done; [ -f x ]", ""),
        ("./check.sh; sh run.sh", "./check.sh sh"),
        ("npm test && npm run lint", "npm"),
        ("uv run pytest", "uv pytest"),
    ],
)
def test_programs_are_those_that_the_command_itself_starts(
    tree: Tree, command: str, expected: str
) -> None:
    files = tree({"check.sh": "other", "run.sh": "other"})
    assert dependencies(command, "", files).programs == expected.split()


def test_names_are_not_asked_for_without_a_runner(tree: Tree) -> None:
    def names() -> Iterator[str]:
        raise AssertionError
        yield

    files = ProjectFiles(tree(NAMED).root, names())
    assert protected("sh run.sh && test -e done", files) == ["run.sh"]


def test_relative_root_is_not_mistaken_for_the_directory_of_a_command(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree({"run.sh": "", "a/run.sh": ""}).root)
    assert protected("cd a && ./run.sh", ProjectFiles(Path(), [])) == ["a/run.sh"]


def test_link_that_leads_out_of_the_project_is_not_protected(tree: Tree, tmp_path: Path) -> None:
    files = tree({"project/a": "", "run.sh": ""})
    inner = ProjectFiles(files.root / "project", ["a"])
    (inner.root / "out.sh").symlink_to(tmp_path / "run.sh")
    (inner.root / "in.sh").symlink_to("a")
    assert protected("sh out.sh; sh in.sh", inner) == ["in.sh"]


# any command, any project

WORDS = [
    "pytest",
    "npm",
    "test",
    "make",
    "-C",
    "run",
    "sh",
    "run.sh",
    "./run.sh",
    "python",
    "-m",
    "-c",
    "check.py",
    "cd",
    "a",
    "..",
    "&&",
    ";",
    "|",
    "(",
    ")",
    "$(x)",
    "'a",
    "b'",
    ">",
    "<",
    "tests/test_a.py",
    "a/package.json",
    "--config=x",
    "-f",
    "Makefile",
    "just",
    "tox",
    "nox",
    "cargo",
    "go",
    "./...",
    "/dev/null",
    "~",
    "*",
    "$X",
    "diff",
    "grep",
    "-q",
    "-e",
    "x",
    "[",
    "]",
    "[[",
    "]]",
    "if",
    "then",
    "fi",
    "for",
    "in",
    "do",
    "done",
    "{",
    "}",
    "eval",
    "hatch",
    "lint:all",
    "{x}:y",
    "pdm",
    "unittest",
    "a.b",
]
CONTENTS = {
    "Makefile": ["test: x\n\t$(A) y\n", "include a\nA=$(A)\n", "all:\n\tpytest\n", "%:\n\t$*\n"],
    "package.json": ['{"scripts": {"test": "npm test"}}', "[]", '{"scripts": 1, "workspaces": 2}', "{"],
    "a/package.json": ['{"name": 1, "scripts": {"test": 3}}'],
    "pyproject.toml": ["[tool.pytest]\n", "tool = 1\n", "[tool]\npytest = 1\nhatch = 2\ntox = []\n", "["],
    "tox.ini": ["[testenv]\ncommands = {[testenv]commands}\n", "x\n[pytest\n", "[pytest]\ntestpaths = ..\n"],
    "tox.toml": ["env = 1\n", "[env.a]\ncommands = [[1], {a = 1}]\n"],
    "justfile": ["test a=b: c\n  {{x}}\nc:\n  just test\n", "x := (\n"],
    "noxfile.py": ["def t(s): s.run(1, 'pytest')\n", "("],
    "run.sh": ["#!/bin/sh\n./run.sh\n", "'", "#!/usr/bin/python\n"],
    "tests/test_a.py": [""],
    "conftest.py": ["\0"],
}  # fmt: skip


@settings(deadline=None)
@given(
    st.one_of(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), st.text(max_size=40)),
    st.fixed_dictionaries(
        {}, optional={name: st.sampled_from(it) for name, it in CONTENTS.items()}
    ),
    st.sampled_from(["", "a", "a/b", "..", "/", "missing"]),
)
def test_any_command_in_any_project_has_dependencies(
    command: str, content: dict[str, str], directory: str
) -> None:
    with TemporaryDirectory() as folder:
        for name, text in content.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        files = ProjectFiles(Path(folder), walked_names(Path(folder)))
        found = dependencies(command, directory, files)
        assert all(files.is_file(it.path) for it in found.protected)
        assert found == dependencies(command, directory, files)
