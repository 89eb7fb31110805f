"""Which words of a shape are commands: one that is guessed wrong proves nothing, or is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents.test_shape_file import file, refusal, shape

__all__ = ["file"]


@pytest.mark.parametrize("section", ["Criteria", "Verification"])
@pytest.mark.parametrize(
    ("item", "name", "command"),
    [
        ("`npm test`", "npm test", "npm test"),
        ("`$ our own thing`.", "our own thing", "our own thing"),
        ("All tests pass: `npm test`", "All tests pass", "npm test"),
        ("**All tests** pass — `npm test`.", "All tests pass", "npm test"),
        ("**All tests pass**: `npm test` passes", "All tests pass", "npm test"),
        ("All tests pass (`npm test`)", "All tests pass", "npm test"),
        ("All tests (run `npm test`) pass", "All tests", "npm test"),
        ("All tests pass → `npm test`", "All tests pass", "npm test"),
        ("No lint errors: `npm run lint`", "No lint errors", "npm run lint"),
        ("Types hold => `make`", "Types hold", "make"),
        ("Types hold with `mypy .`", "Types hold", "mypy ."),
        ("Verify by running `make`", "make", "make"),
        ("Check: `./all`", "./all", "./all"),
        ("`ci.sh` is green.", "ci.sh", "ci.sh"),
        ("`make a` passes with no errors", "make a", "make a"),
        ("`FAST=1 make test` exits with code 0", "FAST=1 make test", "FAST=1 make test"),
        ("Odd: ``echo `date` | grep 2``", "Odd", "echo `date` | grep 2"),
        ("`src/a.ts` is typed: `tsc -p 'a\tb'`", "src/a.ts is typed", "tsc -p 'a\tb'"),
    ],
)
def test_an_item_that_leads_to_a_command_is_a_check(
    file: Path, section: str, item: str, name: str, command: str
) -> None:
    found = shape(file, f"## {section}\n- {item}\n")
    assert (found.checks, found.criteria, found.notes) == (((name, command),), (), ())


@pytest.mark.parametrize(
    "item",
    [
        "npm test",
        "tests: pytest -q",
        "Look at `src/auth.ts`",
        "File exists: `src/auth.ts`",
        "Endpoint: `GET /health`",
        "`POST /login` returns 401",
        "Button: `Save changes`",
        "Status: `401 unauthorized`",
        "State: `data=[]`",
        "Coverage: `lines > 80`",
        "Strict: `true`",
        "Answer (`{ok}`)",
        "Passwords are hashed with `bcrypt`",
        "The `test` directory is empty",
        "`validate` returns false",
    ],
)
def test_an_item_without_a_command_is_a_criterion_in_words(file: Path, item: str) -> None:
    found = shape(file, f"## Verification\n- {item}\n")
    assert (found.criteria, found.checks, found.notes) == ((item.replace("`", ""),), (), ())


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ("Speed: `curl -w x http://a` < 0.1s", "it may succeed without '< 0.1s'"),
        ("`git diff` is empty", "it may succeed without 'is empty'"),
        ("Run `npm audit` and see nothing", "it may succeed without 'and see nothing'"),
        ("Style: `npm run lint` and `npm run fmt`", "it may succeed without 'and npm run fmt'"),
        ("Unit (`make a`), e2e (`make b`)", "it may succeed without ', e2e (make b'"),
        ("Never run `rm -rf /`", "the words before it forbid it"),
        ("The old one must not exist: `test -e old.py`", "the words before it forbid it"),
        ("Users should never have to type: `rm -rf x`", "the words before it forbid it"),
        ("Default theme: `dark-mode`", "there is no such program here"),
        ("Do not use: `rm -rf /`", "the words before it forbid it"),
        ("It works without running `npm install`", "the words before it forbid it"),
        ("One doesn't need to run `npm install`", "the words before it forbid it"),
    ],
)
def test_a_command_whose_success_says_too_little_is_told_and_not_believed(
    file: Path, item: str, why: str
) -> None:
    found = shape(file, f"## Verification\n- {item}\n")
    assert (found.criteria, found.checks) == ((item.replace("`", ""),), ())
    assert found.notes == (f"line 2: {item.split('`')[1]!r} is not run: {why}",)


def test_each_command_of_a_shell_fence_is_a_check(file: Path) -> None:
    text = """\
## Verification
```bash
# All tests pass
npm test \\
  -- --all

make html |
  tee log
for f in *; do test -s $f; done
grep -q x <<< "$A"
```
```console
$ make docs
docs are made
# Style
$ (cd docs && make lint)
```
"""
    assert shape(file, text).checks == (
        ("All tests pass", "npm test -- --all"),
        ("make html | tee log", "make html | tee log"),
        ("for f in *; do test -s $f; done", "for f in *; do test -s $f; done"),
        ('grep -q x <<< "$A"', 'grep -q x <<< "$A"'),
        ("make docs", "make docs"),
        ("Style", "(cd docs && make lint)"),
    )


def test_a_command_that_needs_the_lines_below_it_is_refused(file: Path) -> None:
    for code in (
        "make |",
        "cat <<EOF",
        "for f in *; do",
        "if true; then",
        "f() {",
        "echo 'a",
        "cd a",
    ):
        what = refusal(file, f"# Checks\n\n```sh\n{code}\n\n```\n".encode())
        assert what.startswith(f"{file}:4: a command over several lines"), code


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("make a\u202eb", "with characters that cannot be seen"),
        ("make \x1b[2K", "with characters that cannot be seen"),
        ("make " + "a" * 8_000, "of more than 8000 characters"),
    ],
)
def test_a_command_that_is_not_what_it_looks_like_is_refused(
    file: Path, command: str, what: str
) -> None:
    for text in (f"# Checks\n- a: `{command}`", f"# Checks\n```sh\n{command}\n```"):
        assert f"a command {what}" in refusal(file, text.encode())


def test_commands_of_one_criterion_are_joined_and_each_must_succeed(file: Path) -> None:
    text = "# Checks\n- a: `make a`\n- A.: `make a`\n- *a*: `test -s x || make x`\n- a: `make b`\n"
    assert shape(file, text).checks == (("a", "make a && (test -s x || make x) && make b"),)


def test_long_names_of_checks_are_cut_and_stay_different(file: Path) -> None:
    long = "é" * 300
    text = f"# Checks\n- {long} one: `make one`\n- {long} two: `make two`\n- `make {'x' * 300}`\n"
    names = [name for name, _ in shape(file, text).checks]
    assert len(set(names)) == 3
    assert all("…" in name and len(ascii(name)) <= 200 for name in names)
