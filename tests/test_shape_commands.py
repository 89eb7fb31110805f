"""Which words of a shape are commands: one that is guessed wrong proves nothing, or is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_fsm.core.errors import UsageError
from tests.test_shape_file import file, shape

__all__ = ["file"]


@pytest.mark.parametrize(
    ("item", "name", "command"),
    [
        ("`npm test`", "npm test", "npm test"),
        ("`our own thing`", "our own thing", "our own thing"),
        ("All tests pass: `npm test`", "All tests pass", "npm test"),
        ("**All tests** pass — `npm test`.", "All tests pass", "npm test"),
        ("All tests pass (`npm test`)", "All tests pass", "npm test"),
        ("All tests pass → `npm test`", "All tests pass", "npm test"),
        ("Types hold with `mypy`", "Types hold", "mypy"),
        ("Run `npm test` and see no failures", "npm test", "npm test"),
        ("`npm test` passes", "npm test", "npm test"),
        ("`pytest -q` (0 failures)", "pytest -q", "pytest -q"),
        ("Style: `$ npm run lint` and `npm run fmt`", "Style", "npm run lint && npm run fmt"),
        ("Tests: `npm test` or `yarn test`", "Tests", "npm test"),
        ("Odd: ``echo `date` | grep 2``", "Odd", "echo `date` | grep 2"),
        ("Custom: `ourtool check`", "Custom", "ourtool check"),
        ("tests: pytest -q", "tests", "pytest -q"),
        ("**tests:** pytest -q *.py *.pyi", "tests", "pytest -q *.py *.pyi"),
        ("FAST=1 make test", "FAST=1 make test", "FAST=1 make test"),
        ("Verify: grep 'a  b' src/auth.ts", "grep 'a  b' src/auth.ts", "grep 'a  b' src/auth.ts"),
        ("[Suite](docs/x.md): `./all.sh > log`", "Suite", "./all.sh > log"),
    ],
)
def test_a_verification_with_a_command_is_a_check(
    file: Path, item: str, name: str, command: str
) -> None:
    found = shape(file, f"## Verification\n- {item}\n")
    assert (found.checks, found.criteria, found.notes) == (((name, command),), (), ())


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("The page looks right", "The page looks right"),
        ("Manual: open the page and look at it", "Manual: open the page and look at it"),
        ("Look at `src/auth.ts`", "Look at src/auth.ts"),
        ("File exists: `src/auth.ts`", "File exists: src/auth.ts"),
        ("`POST /login` returns 401", "POST /login returns 401"),
        ("Endpoint: `GET /health`", "Endpoint: GET /health"),
        ("No `git push --force` was run", "No git push --force was run"),
        ("It works without `npm install`", "It works without npm install"),
        ("find duplicates quickly", "find duplicates quickly"),
        ("make sure", "make sure"),
        ("just works", "just works"),
        ("test login flow", "test login flow"),
        ("the `test` directory is empty", "the test directory is empty"),
        ("snake_case_name stays `so`", "snake_case_name stays so"),
    ],
)
def test_a_verification_in_words_is_a_criterion(file: Path, item: str, text: str) -> None:
    found = shape(file, f"## Verification\n- {item}\n")
    assert (found.criteria, found.checks, found.notes) == ((text,), (), ())


@pytest.mark.parametrize(
    "item",
    [
        "Speed: `curl -w x http://a` < 0.1s",
        "`git diff` is empty",
        "`curl -s localhost` → 201",
        "`grep -c TODO src` outputs 0",
        "Run `npm audit` and it lists nothing",
    ],
)
def test_a_command_whose_success_says_too_little_is_told_and_not_believed(
    file: Path, item: str
) -> None:
    found = shape(file, f"## Verification\n- {item}\n")
    assert (found.criteria, found.checks) == ((item.replace("`", ""),), ())
    assert "may succeed without" in found.notes[0]


def test_a_criterion_is_a_check_only_where_its_command_is_beyond_doubt(file: Path) -> None:
    text = """\
## Criteria
- All tests pass: `npm test`
- `ruff check` passes
- Nobody calls `git push`
- `Custom: thing`
- npm test
- Custom: `ourtool check`
"""
    found = shape(file, text)
    assert found.checks == (("All tests pass", "npm test"), ("ruff check", "ruff check"))
    assert found.criteria == (
        "Nobody calls git push",
        "Custom: thing",
        "npm test",
        "Custom: ourtool check",
    )


def test_each_command_of_a_shell_fence_is_a_check(file: Path) -> None:
    text = """\
## Verification
```bash
#!/bin/sh
# All tests pass
npm test \\
  -- --all

npm run lint   # Style
cd docs
export A='b c'
make html |
  tee log
```
"""
    assert shape(file, text).checks == (
        ("All tests pass", "npm test -- --all"),
        ("Style", "npm run lint"),
        (
            "cd docs && export A='b c' && make html | tee log",
            "cd docs && export A='b c' && make html | tee log",
        ),
    )


def test_the_output_in_a_session_is_no_command(file: Path) -> None:
    text = "## Verification\n```console\n$ make test\nrm: 3 passed\n# and\n$ make lint\nok\n```\n"
    assert shape(file, text).checks == (("make test", "make test"), ("and", "make lint"))


@pytest.mark.parametrize(
    "code", ["for f in *; do\n  test $f\ndone", "cat <<EOF\nx\nEOF", "echo 'a\nb'"]
)
def test_commands_over_several_lines_are_told_and_not_taken(file: Path, code: str) -> None:
    found = shape(file, f"# Criteria\n- a\n# Verification\n```sh\n{code}\n```\n")
    assert (found.criteria, found.checks) == (("a",), ())
    assert found.notes == ("line 5: a command over several lines is not taken",)


def test_a_fence_without_a_language_is_a_list_or_commands(file: Path) -> None:
    text = """\
## Verification
```
□ Data is empty → the page says so
☑ Tab through it
  → all is reachable
```
```
make test
go vet ./...
```
```
Source → Sink
```
## Must NOT
```
git push --force
```
"""
    found = shape(file, text)
    assert found.criteria == (
        "Data is empty → the page says so",
        "Tab through it → all is reachable",
    )
    assert found.checks == (("make test", "make test"), ("go vet ./...", "go vet ./..."))
    assert found.must_not == ("git push --force",)
    assert found.notes == ("line 12: a fence that is neither a list nor commands is not taken",)


def test_other_fences_and_open_ones_under_verification_are_told(file: Path) -> None:
    text = "# Checks\n```python\nassert 1\n```\n# Criteria\n- a\n```sh\nmake x\n```\n# Checks\n```sh\nmake y\n"
    found = shape(file, text)
    assert (found.criteria, found.checks) == (("a",), (("make y", "make y"),))
    assert found.notes == (
        "line 2: a fence of python is not taken",
        "line 7: a fence of sh is not taken",
        "line 11: this fence has no end",
    )


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("make a\u202eb", "characters that cannot be seen"),
        ("make \x1b[2K", "characters that cannot be seen"),
        ("make " + "a" * 8_000, "more than 8000 characters"),
    ],
)
def test_a_command_that_is_not_what_it_looks_like_is_refused(
    file: Path, command: str, what: str
) -> None:
    with pytest.raises(UsageError) as refused:
        shape(file, f"## Verification\n- `{command}`\n")
    assert f"{file}:2: a command " in refused.value.message
    assert what in refused.value.message


def test_a_tab_in_a_command_stays_what_it_is(file: Path) -> None:
    text = "## Verification\n```sh\n\tgrep -q 'a\tb' x\n```\n"
    assert shape(file, text).checks[0][1] == "grep -q 'a\tb' x"


def test_long_names_of_checks_are_cut_and_stay_different(file: Path) -> None:
    long = "é" * 300
    text = f"# Checks\n- {long} one: `make one`\n- {long} two: `make two`\n- `make {'x' * 300}`\n"
    found = shape(file, text)
    names = [name for name, _ in found.checks]
    assert len(set(names)) == 3
    assert all(len(ascii(name)) <= 200 for name in names)
    assert [note.partition(":")[0] for note in found.notes] == ["line 2", "line 3"]
