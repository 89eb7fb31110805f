"""Shell commands, split into the programs that they start, with their words, files and directory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.documents.shell import LONGEST
from gsd_fsm.protection.commands import Command, simple_commands

ROOT = "/project"


def shown(command: Command) -> str:
    """Return the words of a command, with "@DIR" if it does not run in the root."""
    place = "" if command.directory == "" else f" @{command.directory}"
    return " ".join((command.program, *command.arguments)) + place


def started(text: str, *parameters: str) -> list[str]:
    return [shown(it) for it in simple_commands(text, "", ROOT, parameters=parameters)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pytest -q", ["pytest -q"]),
        ("a; b && c || d | e\nf & g", ["a", "b", "c", "d", "e", "f", "g"]),
        ("MAKEFLAGS=-n CI=1 make test", ["make test"]),
        ("pytest 'tests/my test.py' \"a b\" c\\ d", ["pytest tests/my test.py a b c d"]),
        ("pytest 'it'\"'\"'s'", ["pytest it's"]),
        ("# only a comment\npytest # another", ["pytest"]),
        ("pytest \\\n  -q", ["pytest -q"]),
        ("cat <<EOF\nrm -rf $(x)\nEOF\nls", ["cat", "ls"]),
        ("{ a; b; }", ["a", "b"]),
        ("! a", ["a"]),
        ("if a; then b; elif c; then d; else e; fi; f", ["a", "b", "c", "d", "e", "f"]),
        ("while a; do b; done; until c; do d; done", ["a", "b", "c", "d"]),
        ("case $1 in a|b) x;; (c) y;; *) z; esac; w", ["x", "y", "z", "w"]),
        ("case x in\n  a)\n    b\n    ;;\nesac\nc", ["b", "c"]),
        ("for f in a b; do sh $f; done", ["sh a", "sh b"]),
        ("for ((i=0; i<3; i++)); do a $i; done; b", ["a $i", "b"]),
        ("check() { pytest; }; check", ["pytest"]),
        ("function check { pytest; }\ncheck", ["pytest"]),
        ("[[ -f a && -f b ]] && c", ["[[ -f a && -f b ]]", "c"]),
        ('test "$(pytest -q)" = ok', ["pytest -q", "test $() = ok"]),
        ("test `wc -l < a` -gt 3", ["wc -l", "test $() -gt 3"]),
        ("diff <(sort a) b", ["sort a", "diff $() b"]),
        ("echo $((1 + 2))", ["echo $()"]),
    ],
)  # fmt: skip
def test_command_is_split_into_simple_commands(text: str, expected: list[str]) -> None:
    assert started(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cd a && pytest", ["pytest @a"]),
        ("cd a; cd b; pytest; cd ..; ls", ["pytest @a/b", "ls @a"]),
        ("(cd a && pytest); ls", ["pytest @a", "ls"]),
        ("pushd a; ls; popd; pytest", ["ls @a", "pytest"]),
        ("env -C a pytest", ["env -C a", "pytest @a"]),
        ("env --chdir=a X=1 pytest", ["env --chdir=a X=1", "pytest @a"]),
        ("uv run --directory a pytest", ["uv run --directory a", "pytest @a"]),
        ("poetry -C a run pytest", ["poetry -C a run", "pytest @a"]),
        ("cd /project/a && pytest", ["pytest @a"]),
        ("cd / && pytest", ["pytest @None"]),
        ("cd .. && pytest", ["pytest @None"]),
        ("cd $X && pytest", ["pytest @None"]),
        ("cd && pytest", ["pytest @None"]),
        ("cd a && sh -c 'cd b; pytest' && ls", ["sh @a", "pytest @a/b", "ls @a"]),
        ('cd "$(git rev-parse --show-toplevel)/a"; b', ["git rev-parse --show-toplevel", "b @a"]),
    ],
)
def test_directory_follows_cd_and_options(text: str, expected: list[str]) -> None:
    assert started(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sh -c 'pytest; ls'", ["sh", "pytest", "ls"]),
        ("bash -euo pipefail -c 'pytest $1' x tests", ["bash", "pytest tests"]),
        ("eval 'pytest -q'", ["pytest -q"]),
        ("sh run.sh -c x", ["sh run.sh -c x"]),
        ("timeout -k 5 60 pytest", ["timeout -k 5 60", "pytest"]),
        ("nice -n 5 time -p nohup pytest", ["nice -n 5", "time -p", "nohup", "pytest"]),
        ("command pytest", ["command", "pytest"]),
        ("command -v pytest", ["command -v pytest"]),
        ("exec pytest", ["exec", "pytest"]),
        ("find . | xargs -n 1 sh a.sh", ["find .", "xargs -n 1", "sh a.sh"]),
        ("python -m pytest -q", ["python", "pytest -q"]),
        ("python3.12 -W error -Im pytest", ["python3.12", "pytest"]),
        ("python -m coverage run --branch -m pytest tests", ["python", "coverage run --branch", "pytest tests"]),
        ("coverage run check.py", ["coverage run", "python check.py"]),
        ("uv run -m pytest", ["uv run", "pytest"]),
        ("uv run --with x check.py", ["uv run --with x", "python check.py"]),
        ("python check.py -m x", ["python check.py -m x"]),
        ("npx --no-install jest@29 a", ["npx --no-install", "jest@29 a"]),
        ("npm exec -- jest", ["npm exec --", "jest"]),
        ("npx -c 'jest a'", ["npx", "sh", "jest a"]),
        ("pnpm exec vitest run", ["pnpm exec", "vitest run"]),
        ("poetry run pytest", ["poetry run", "pytest"]),
        ("bundle exec rspec", ["bundle exec", "rspec"]),
        ("cross-env CI=1 jest", ["cross-env CI=1", "jest"]),
    ],
)  # fmt: skip
def test_programs_that_start_others_are_followed_by_these(text: str, expected: list[str]) -> None:
    assert started(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("D=tests; pytest $D ${D}/a", ["pytest tests tests/a"]),
        ("A='-q tests'; pytest $A \"$A\"", ["pytest -q tests -q tests"]),
        ("export D=a; ls $D", ["ls a"]),
        ("ls ${D:-a/b}", ["ls a/b"]),
        ("ls $UNKNOWN '$D'", ["ls $UNKNOWN $D"]),
        ('pytest "$@"', ["pytest -q t"]),
        ("ls $1 $9", ["ls -q"]),
        ('cd "$(dirname "$0")/.."; ls', ["dirname /project/ci/run.sh", "ls"]),
        ('cd "${0%/*}"; ls', ["ls @ci"]),
        ('A="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"; sh $A/x',
         ["dirname /project/ci/run.sh", "pwd @ci", "sh /project/ci/x"]),
    ],
)  # fmt: skip
def test_known_variables_are_replaced(text: str, expected: list[str]) -> None:
    assert started(text, f"{ROOT}/ci/run.sh", "-q", "t") == expected


def test_redirections_are_separate_from_words() -> None:
    text = "a 2>&1 < in.txt > out.txt 2>>err.log b &> all <<< word >&-"
    (found,) = simple_commands(text)
    assert found.arguments == ("b",)
    assert found.inputs == ("in.txt",)
    assert found.outputs == ("out.txt", "err.log", "all")


@pytest.mark.parametrize(
    "text",
    [
        "pytest 'open",
        "$(",
        "",
        ";;",
        "case",
        "case x",
        "for",
        "for ((",
        ")",
        "fi done esac }",
        "x " * LONGEST,
        "$(" * 3000,
        "(" * 5000,
        "sh -c " * 2000,
        "eval " * 1000,
        ";".join(["A=$A$A$A"] * 900),
    ],
)
def test_unreadable_command_starts_nothing_or_what_is_readable(text: str) -> None:
    assert len(simple_commands(text)) <= LONGEST


@given(st.text("abc$(){}[]'\"\\`;|&<>\n =-./!#*" + "\0", max_size=60))
def test_any_text_is_split_without_an_error(text: str) -> None:
    simple_commands(text, "", ROOT)


@given(
    st.lists(
        st.sampled_from(
            [
                "if",
                "then",
                "else",
                "fi",
                "for",
                "in",
                "do",
                "done",
                "while",
                "case",
                "esac",
                "(",
                ")",
                "{",
                "}",
                ";",
                "&&",
                "|",
                "\n",
                "a",
                "b",
                "$(x)",
                "[[",
                "]]",
                ";;",
                "cd",
                "sh",
                "-c",
                "'x'",
                "function",
                "f()",
                "time",
                "!",
                "xargs",
                "env",
                "<a",
                ">b",
                "<<E",
                "E",
            ]
        ),
        max_size=25,
    )
)
def test_any_order_of_shell_words_is_split_without_an_error(words: list[str]) -> None:
    simple_commands(" ".join(words), "", ROOT)
