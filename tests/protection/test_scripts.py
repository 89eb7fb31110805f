"""What a script, makefile, package or task starts: one level below the command of a check."""

from __future__ import annotations

from itertools import zip_longest

import pytest

from gsd_fsm.protection.commands import simple_commands
from gsd_fsm.protection.files import ProjectFiles
from gsd_fsm.protection.programs.followed import TASK_RUNNERS
from gsd_fsm.protection.programs.tasks import _TASKS
from gsd_fsm.protection.scripts import follow
from tests.support.projects import Tree


def followed(text: str, files: ProjectFiles) -> tuple[list[str], list[str]]:
    """Return the commands that a command starts indirectly, and the files that hold them."""
    commands = simple_commands(text, "", str(files.root))
    found = [
        follow(command, files, following)
        for command, following in zip_longest(commands, commands[1:])
    ]
    lines = []
    for command in (command for it in found for command in it.commands):
        place = f" @{command.directory}" if command.directory else ""
        lines.append(" ".join((command.program, *command.arguments)) + place)
    sources = [source for it in found for source in it.sources]
    return lines, [" ".join((source.path, *source.parts)) for source in sources]


def commands_of(text: str, files: ProjectFiles) -> list[str]:
    return followed(text, files)[0]


# scripts


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("sh ci/run.sh tests", ["pytest -q tests @sub"]),
        ("./ci/run.sh", ["pytest -q @sub"]),
        ("bash -eu ci/run.sh a b", ["pytest -q a b @sub"]),
        (". ci/run.sh", ["pytest -q @sub"]),
        ("python ci/run.sh", []),
        ("./ci/check.py", []),
        ("sh missing.sh", []),
        ("cd ci && ./run.sh", ["pytest -q @ci/sub"]),
    ],
)
def test_script_of_a_shell_starts_its_commands(
    tree: Tree, command: str, expected: list[str]
) -> None:
    files = tree(
        {
            "ci/run.sh": '#!/bin/sh\nset -e\ncd sub\nexport A=1\npytest -q "$@"\n',
            "ci/check.py": "#!/usr/bin/env python3\npytest()\n",
        }
    )
    assert [it for it in commands_of(command, files) if not it.startswith("set")] == expected


def test_script_that_goes_to_its_own_directory_runs_there(tree: Tree) -> None:
    text = '#!/usr/bin/env bash\ncd "$(dirname "${BASH_SOURCE[0]}")/.."\nmake -C lib test\n'
    files = tree({"app/ci/run.sh": text})
    assert commands_of("app/ci/run.sh", files)[-1] == "make -C lib test @app"


# make

MAKEFILE = """\
PY = python3
ARGS ?= -q
PYTEST := $(PY) -m pytest $(ARGS)
include mk/*.mk
-include local.mk

.PHONY: all test lint
all: test

test: build lint  ## Run the tests
\t@$(PYTEST) tests
\tcd sub && \\
\t  ./run.sh $$HOME

lint: ; ruff check .

build/%.o: %.c
\tcc -o $@ $<

check-%:
\tsh checks/$*.sh

nested:
\t$(MAKE) lint
\t$(MAKE) -C sub test
"""
MAKE_TREE = {"Makefile": MAKEFILE, "mk/build.mk": "build: build/a.o\n\ttouch build/done\n"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("make lint", ["ruff check ."]),
        (
            "make test",
            ["python3", "pytest -q tests", "./run.sh $HOME @sub", "touch build/done", "ruff check .",
             "cc -o build/a.o a.c"],
        ),
        ("make", ["touch build/done", "cc -o build/a.o a.c"]),
        ("make -j 4 lint PY=python3", ["ruff check ."]),
        ("MAKEFLAGS=-n make -s lint", ["ruff check ."]),
        ("make test PY=pypy 'ARGS=-x -v'", ["pypy", "pytest -x -v tests"]),
        ("make check-all", ["sh checks/all.sh"]),
        ("make nested", ["make lint", "make -C sub test", "ruff check ."]),
        ("make unknown", []),
    ],
)  # fmt: skip
def test_make_starts_the_recipes_of_its_targets_and_of_what_they_need(
    tree: Tree, command: str, expected: list[str]
) -> None:
    found = commands_of(command, tree(MAKE_TREE))
    assert found[: len(expected)] == expected or command == "make"
    assert {*expected} <= {*found}


def test_make_reads_its_includes_and_the_names_that_come_first(tree: Tree) -> None:
    _, sources = followed("make lint", tree(MAKE_TREE))
    assert sources == ["GNUmakefile", "makefile", "Makefile", "mk/build.mk", "local.mk"]


@pytest.mark.parametrize("command", ["make -C sub t", "make --directory=sub t", "cd sub && make t"])
def test_make_runs_in_the_directory_that_is_named(tree: Tree, command: str) -> None:
    files = tree({"sub/GNUmakefile": "t:\n\tpytest\n"})
    assert followed(command, files) == (["pytest @sub"], ["sub/GNUmakefile"])


@pytest.mark.parametrize("option", ["-f ci.mk", "--file=ci.mk", "-fci.mk", "--makefile ci.mk"])
def test_make_reads_the_makefile_that_is_named(tree: Tree, option: str) -> None:
    files = tree({"ci.mk": "t:\n\tpytest\n", "Makefile": "t:\n\ttrue\n"})
    assert followed(f"make {option} t", files) == (["pytest"], ["ci.mk"])


@pytest.mark.parametrize(
    "text",
    [
        "A = $(A)\nall:\n\t$(A) x\n",
        "".join(f"V{n} = {f'$(V{n + 1})' * 9}\n" for n in range(20)) + "all:\n\t$(V0)\n",
        "A := x\n" + "A := $(A)$(A)\n" * 60 + "all:\n\t$(A)\n",
        "all: all b\nb: all\n\t$(MAKE) all\n",
        "include Makefile\nall:\n\ttrue\n",
        "all:\n\t$(" + "(" * 5000,
        "a " * 30_000,
        " " * 100_000 + ":",
        "define X\nall:\n",
        "a" * 50_000 + "=" + "\\\n" * 9,
    ],
)
def test_strange_makefile_is_read_in_bounded_time(tree: Tree, text: str) -> None:
    assert len(commands_of("make", tree({"Makefile": text}))) <= 1000


# package.json

PACKAGE = """{"scripts": {
  "test": "jest --ci", "pretest": "npm run lint", "lint": "eslint .",
  "all": "run-p lint test:*", "test:unit": "vitest run", "test:e2e": "cd e2e && playwright test",
  "both": "concurrently 'npm:lint' \\"npm run test:unit\\""
}}"""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("npm test", ["npm run lint", "eslint .", "jest --ci"]),
        ("npm t -- -t 'a b'", ["npm run lint", "eslint .", "jest --ci -t a b"]),
        ("npm run test:unit", ["vitest run"]),
        ("npm run -s lint", ["eslint ."]),
        ("yarn lint --fix", ["eslint . --fix"]),
        ("yarn run lint", ["eslint ."]),
        ("yarn jest a", ["jest a"]),
        ("pnpm test:unit", ["vitest run"]),
        ("pnpm run lint", ["eslint ."]),
        ("bun run lint", ["eslint ."]),
        ("npm run all", ["run-p lint test:*", "eslint .", "vitest run", "playwright test @e2e"]),
        ("npm run both", ["concurrently npm:lint npm run test:unit", "eslint .", "vitest run"]),
        ("npm ci", []),
        ("npm run", []),
        ("npm run missing", []),
        ("yarn install", []),
        ("bun test", []),
    ],
)
def test_package_manager_starts_a_script_and_those_of_the_package_that_it_runs(
    tree: Tree, command: str, expected: list[str]
) -> None:
    assert commands_of(command, tree({"package.json": PACKAGE})) == expected


def test_package_manager_names_the_scripts_before_and_after(tree: Tree) -> None:
    _, sources = followed("npm run lint", tree({"package.json": PACKAGE}))
    parts = "scripts/lint scripts/prelint scripts/postlint"
    assert sources == [f"package.json {parts}", ".npmrc"]


def test_script_with_a_slash_in_its_name_has_no_part_of_its_own(tree: Tree) -> None:
    files = tree({"package.json": '{"scripts": {"test/unit": "jest"}}'})
    assert followed("npm run test/unit", files) == (["jest"], ["package.json scripts", ".npmrc"])


WORKSPACES = {
    "package.json": '{"workspaces": ["packages/*", "apps/web"], "scripts": {"test": "npm test -ws"}}',
    "pnpm-workspace.yaml": "packages:\n  - 'packages/*'  # all\n  - apps/web\n",
    "packages/a/package.json": '{"name": "@org/a", "scripts": {"test": "jest a"}}',
    "packages/b/package.json": '{"name": "b", "scripts": {"test": "vitest"}}',
    "packages/b/c/package.json": '{"name": "c", "scripts": {"test": "no"}}',
    "apps/web/package.json": '{"name": "web", "scripts": {"test": "mocha"}}',
}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("npm test -w @org/a", ["jest a @packages/a"]),
        ("npm test --workspace=packages/b", ["vitest @packages/b"]),
        ("npm test -ws", ["jest a @packages/a", "vitest @packages/b", "mocha @apps/web"]),
        ("npm test --workspaces --if-present", ["jest a @packages/a", "vitest @packages/b", "mocha @apps/web"]),
        ("npm --prefix packages/a test", ["jest a @packages/a"]),
        ("cd packages/a && npm test", ["jest a @packages/a"]),
        ("yarn workspace b test", ["vitest @packages/b"]),
        ("yarn workspaces foreach -A run test", ["jest a @packages/a", "vitest @packages/b", "mocha @apps/web"]),
        ("pnpm -r test", ["jest a @packages/a", "vitest @packages/b", "mocha @apps/web"]),
        ("pnpm --filter web test", ["mocha @apps/web"]),
        ("pnpm -C apps/web test", ["mocha @apps/web"]),
        ("npx turbo run test", ["npm test -ws", "jest a @packages/a", "vitest @packages/b", "mocha @apps/web"]),
    ],
)  # fmt: skip
def test_package_manager_runs_a_script_in_workspaces(
    tree: Tree, command: str, expected: list[str]
) -> None:
    assert commands_of(command, tree(WORKSPACES)) == expected


# other programs that run tasks

JUSTFILE = """\
py := "python3"

default: test

# Run the tests
@test *args="-q": lint
    {{py}} -m pytest {{args}}

lint:
    ruff check {{justfile_directory()}}/src

script:
    #!/usr/bin/env bash
    cd sub
    pytest
"""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("just lint", ["ruff check ROOT/src"]),
        ("just test", ["python3", "pytest -q", "ruff check ROOT/src"]),
        ("just", ["python3", "pytest -q", "ruff check ROOT/src"]),
        ("just script", ["pytest @sub"]),
        ("cd sub && just lint", ["ruff check ROOT/src"]),
    ],
)
def test_just_starts_its_recipes(tree: Tree, command: str, expected: list[str]) -> None:
    files = tree({"justfile": JUSTFILE, "sub/a": ""})
    found, sources = followed(command, files)
    assert [it.replace(str(files.root), "ROOT") for it in found] == expected
    assert sources == ["justfile"]


TOX = """\
[tox]
envlist = py311, lint

[testenv]
deps = pytest
commands =
    pytest {posargs:tests} \\
        -q
    {[base]extra}

[testenv:lint]
changedir = src
commands = py311: - ruff check .

[base]
extra = python -m mypy {toxinidir}/src
"""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("tox", ["pytest tests -q", "python", "mypy ROOT/src", "ruff check . @src"]),
        ("tox -e lint", ["pytest tests -q", "python", "mypy ROOT/src", "ruff check . @src"]),
        ("tox -e py311 -- tests/a", ["pytest tests/a -q", "python", "mypy ROOT/src"]),
    ],
)
def test_tox_starts_the_commands_of_its_environments(
    tree: Tree, command: str, expected: list[str]
) -> None:
    files = tree({"tox.ini": TOX})
    found = [it.replace(str(files.root), "ROOT") for it in commands_of(command, files)]
    assert found == expected


def test_tox_reads_toml(tree: Tree) -> None:
    text = """[env_run_base]\ncommands = [["pytest", {replace = "posargs", default = ["tests"]}]]"""
    assert commands_of("tox", tree({"tox.toml": text})) == ["pytest tests"]
    text = f"[tool.tox]\n{text.replace('[env', '[tool.tox.env')}"
    assert commands_of("tox", tree({"tox.toml": "", "pyproject.toml": text})) == ["pytest tests"]


def test_nox_starts_the_commands_of_its_sessions(tree: Tree) -> None:
    text = 'def tests(session):\n    session.install("x")\n    session.run("pytest", "-q", *session.posargs)\n'
    assert commands_of("nox -s tests", tree({"noxfile.py": text})) == ["pytest -q"]


PYPROJECT = """
[tool.hatch.envs.default.scripts]
test = "pytest {args:tests}"
[tool.hatch.envs.lint.scripts]
all = ["style", "mypy src"]
style = "ruff check ."
[tool.pdm.scripts]
test = "pytest a"
all = {composite = ["test", "ruff check"]}
[tool.poe.tasks]
test.shell = "pytest b; ls"
[tool.rye.scripts]
test = {cmd = ["pytest", "c d"]}
"""


@pytest.mark.parametrize(
    ("command", "expected", "part"),
    [
        ("hatch run test", ["pytest tests"], "tool/hatch/envs/default/scripts/test"),
        ("hatch run lint:all", ["style", "ruff check .", "mypy src"], "tool/hatch/envs/lint/scripts/all"),
        ("pdm run test", ["pytest a"], "tool/pdm/scripts/test"),
        ("pdm run all", ["test", "pytest a", "ruff check"], "tool/pdm/scripts/all"),
        ("poe test", ["pytest b", "ls"], "tool/poe/tasks/test"),
        ("rye run test", ["pytest c d"], "tool/rye/scripts/test"),
    ],
)  # fmt: skip
def test_tasks_of_pyproject_are_read(
    tree: Tree, command: str, expected: list[str], part: str
) -> None:
    found = followed(command, tree({"pyproject.toml": PYPROJECT}))
    assert found == (expected, [f"pyproject.toml {part}"])


def test_every_task_runner_is_known() -> None:
    assert {*TASK_RUNNERS} == {*_TASKS}
