"""What the command of a check depends on: protected files, and watched ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsd_fsm.protection.dependencies import Dependency, dependencies
from gsd_fsm.protection.files import ProjectFiles, walked_names

Tree = Callable[[Mapping[str, str]], ProjectFiles]


def shown(found: list[Dependency]) -> list[str]:
    """Return each dependency as its path and its parts."""
    return [" ".join((it.path, *it.parts)) for it in found]


def protected(command: str, files: ProjectFiles, directory: str = "") -> list[str]:
    return shown(dependencies(command, directory, files).protected)


def watched(command: str, files: ProjectFiles, directory: str = "") -> list[str]:
    return shown(dependencies(command, directory, files).watched)


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


def test_link_that_leads_out_of_the_project_is_not_protected(tree: Tree, tmp_path: Path) -> None:
    files = tree({"project/a": "", "run.sh": ""})
    inner = ProjectFiles(files.root / "project", ["a"])
    (inner.root / "out.sh").symlink_to(tmp_path / "run.sh")
    (inner.root / "in.sh").symlink_to("a")
    assert protected("sh out.sh; sh in.sh", inner) == ["in.sh"]


# runners

PYTEST_FILES = [".pytest.ini", ".pytest.toml", "pytest.ini", "pytest.toml"]


def without_configuration(found: list[str]) -> list[str]:
    """Return the paths of tests and named files: no part, and no missing configuration of pytest."""
    return [it for it in found if " " not in it and Path(it).name not in PYTEST_FILES]


SRC_LAYOUT = {
    "pyproject.toml": '[project]\nname = "x"\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n',
    "src/pkg/__init__.py": "",
    "src/pkg/test_helper.py": "",
    "tests/conftest.py": "",
    "tests/test_a.py": "",
    "tests/unit/b_test.py": "",
    "tests/data.json": "",
}


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q",
        "python -m pytest",
        "uv run pytest -x",
        "poetry run pytest",
        "coverage run -m pytest",
        ".venv/bin/pytest",
        "pytest -k 'a and b' -m slow --cov src --junitxml out.xml",
        "hatch test",
        "env CI=1 timeout 60 py.test",
    ],
)
def test_pytest_protects_configuration_and_hooks_and_watches_tests(
    tree: Tree, command: str
) -> None:
    found = dependencies(command, "", tree(SRC_LAYOUT))
    assert shown(found.protected) == ["pyproject.toml tool/pytest", "tests/conftest.py hooks"]
    tests = ["tests/conftest.py", "tests/test_a.py", "tests/unit/b_test.py"]
    assert [it for it in shown(found.watched) if it.startswith(("src/", "tests/"))] == tests
    parts = {(it.path, part) for it in found.watched for part in it.parts}
    assert {("setup.cfg", "tool:pytest"), ("tox.ini", "pytest")} <= parts
    assert {*PYTEST_FILES} <= {*shown(found.watched)}
    assert found.hook_directories == ["tests"]


@pytest.mark.parametrize(
    ("command", "tests", "hooks"),
    [
        ("pytest tests/unit", "tests/conftest.py tests/unit/b_test.py", "tests/unit"),
        ("pytest tests/test_a.py::test_x", "tests/conftest.py tests/test_a.py", "tests"),
        ("pytest tests/unit/test_*.py", "tests/conftest.py tests/unit/b_test.py", "tests/unit"),
        ("pytest tests/test_new.py", "tests/conftest.py tests/test_new.py", "tests"),
        ("cd tests && pytest", "tests/conftest.py tests/test_a.py tests/unit/b_test.py", "tests"),
        ("pytest src", "src/pkg/test_helper.py", "src"),
    ],
)
def test_pytest_watches_the_tests_that_are_named(
    tree: Tree, command: str, tests: str, hooks: str
) -> None:
    found = dependencies(command, "", tree(SRC_LAYOUT))
    assert without_configuration(shown(found.watched)) == sorted(tests.split())
    assert found.hook_directories == hooks.split()


def test_pytest_without_settings_watches_all_tests_of_its_directory(tree: Tree) -> None:
    found = dependencies(
        "pytest", "", tree({"test_a.py": "", "b/test_b.py": "", "conftest.py": ""})
    )
    assert shown(found.protected) == ["conftest.py hooks"]
    assert without_configuration(shown(found.watched)) == [
        "b/test_b.py",
        "conftest.py",
        "test_a.py",
    ]
    assert found.hook_directories == [""]


def test_pytest_finds_tests_of_the_form_that_is_set(tree: Tree) -> None:
    files = tree(
        {
            "pytest.ini": "[pytest]\npython_files =\n    check_*.py\n",
            "check_a.py": "",
            "test_b.py": "",
        }
    )
    assert without_configuration(watched("pytest", files)) == ["check_a.py"]
    assert protected("pytest", files) == ["pytest.ini"]


def test_configuration_without_its_part_is_watched(tree: Tree) -> None:
    files = tree(
        {"pyproject.toml": "[project]\n", "setup.cfg": "[tool:pytest]\n", "tox.ini": "[tox]\n"}
    )
    assert protected("pytest", files) == ["setup.cfg tool:pytest"]
    assert {"pyproject.toml tool/pytest", "tox.ini pytest"} <= {*watched("pytest", files)}


def test_configuration_above_and_between_is_found(tree: Tree) -> None:
    files = tree(
        {"a/pytest.ini": "", "a/b/test_x.py": "", "conftest.py": "", "a/b/conftest.py": ""}
    )
    hooks = ["a/b/conftest.py hooks", "a/pytest.ini", "conftest.py hooks"]
    assert protected("pytest a/b/test_x.py", files) == hooks
    assert protected("cd a/b && pytest", files) == hooks
    assert protected("pytest", files, "a/b") == hooks


def test_configuration_that_an_option_names_is_protected(tree: Tree) -> None:
    names = (
        "ci/pytest.ini",
        "ci/jest.js",
        "ci/.coveragerc",
        "ci/ruff.toml",
        "pkg/tsconfig.json",
        "ci/tox.ini",
    )
    files = tree(dict.fromkeys(names, ""))
    for command, expected in {
        "pytest -c ci/pytest.ini": ["ci/pytest.ini"],
        "jest --config=ci/jest.js": ["ci/jest.js"],
        "pytest --cov --cov-config ci/.coveragerc": ["ci/.coveragerc"],
        "coverage run --rcfile=ci/.coveragerc -m unittest": ["ci/.coveragerc"],
        "ruff check --config ci/ruff.toml .": ["ci/ruff.toml"],
        "tsc -p pkg": ["pkg/tsconfig.json"],
        "tsc -p pkg/tsconfig.json --noEmit": ["pkg/tsconfig.json"],
        "tox -c ci/tox.ini": ["ci/tox.ini"],
    }.items():
        assert protected(command, files) == expected, command
    assert "ci/new.ini" in watched("pytest -c ci/new.ini", files)


def test_coverage_reads_its_configuration_if_it_is_used(tree: Tree) -> None:
    files = tree({".coveragerc": "", "test_a.py": ""})
    assert protected("pytest", files) == []
    assert protected("pytest --cov=x", files) == [".coveragerc"]
    assert protected("coverage run -m pytest", files) == [".coveragerc"]


LAYOUTS = {
    "unittest": (
        "python -m unittest discover -s tests",
        {"tests/test_a.py": "", "src/test_b.py": "", "run.py": ""},
        "",
        "tests/test_a.py",
    ),
    "unittest of a module": (
        "python -m unittest tests.test_a.TestA.test_b",
        {"tests/test_a.py": "", "tests/test_b.py": ""},
        "",
        "tests/test_a.py",
    ),
    "django": (
        "python manage.py test",
        {"manage.py": "", "shop/tests.py": "", "shop/models.py": ""},
        "manage.py",
        "shop/tests.py",
    ),
    "tox": (
        "tox",
        {"tox.ini": "[testenv]\ncommands = pytest tests\n", "tests/test_a.py": ""},
        "tox.ini",
        "tests/test_a.py",
    ),
    "nox": (
        "nox",
        {"noxfile.py": 'def t(s):\n    s.run("pytest", "tests")\n', "tests/test_a.py": ""},
        "noxfile.py",
        "tests/test_a.py",
    ),
    "make": (
        "MAKEFLAGS=-s make test",
        {
            "Makefile": "PY = python3\ninclude ci/common.mk\ntest: lint\n\t$(PY) -m pytest -q\n",
            "ci/common.mk": "lint:\n\tsh ci/lint.sh\n",
            "ci/lint.sh": "ruff check\n",
            "pytest.ini": "",
            "test_a.py": "",
            "src/a.py": "",
        },
        "Makefile,ci/common.mk,ci/lint.sh,pytest.ini",
        "GNUmakefile,makefile,test_a.py",
    ),
    "a script that calls pytest": (
        "sh ci/test.sh",
        {
            "ci/test.sh": 'set -e\ncd "$(dirname "$0")/.."\npytest -q tests\n',
            "tests/test_a.py": "",
            "src/a.py": "",
        },
        "ci/test.sh",
        "tests/test_a.py",
    ),
    "a script that calls another": (
        "./test.sh",
        {"test.sh": "./other.sh\n", "other.sh": "./third.sh\n", "third.sh": ""},
        "other.sh,test.sh",
        "",
    ),
    "npm with jest": (
        "npm test",
        {
            "package.json": '{"scripts": {"test": "jest"}, "jest": {"verbose": true}, "dependencies": {}}',
            "src/a.js": "",
            "src/a.test.js": "",
            "src/__tests__/b.tsx": "",
            "node_modules/x/a.test.js": "",
        },
        "package.json jest scripts/test",
        "src/__tests__/b.tsx,src/a.test.js",
    ),
    "npm with vitest": (
        "npm run test:unit -- --run",
        {
            "package.json": '{"scripts": {"test:unit": "vitest"}}',
            "vite.config.ts": "",
            "vitest.config.ts": "",
            "src/a.spec.ts": "",
            "src/a.ts": "",
        },
        "package.json scripts/test:unit,vite.config.ts,vitest.config.ts",
        "src/a.spec.ts",
    ),
    "npm workspaces": (
        "npm test --workspaces",
        {
            "package.json": '{"workspaces": ["packages/*"]}',
            "packages/a/package.json": '{"scripts": {"test": "jest"}}',
            "packages/a/jest.config.js": "",
            "packages/a/a.test.js": "",
            "packages/b/package.json": '{"scripts": {"test": "node --test"}}',
            "packages/b/test/b.js": "",
        },
        "packages/a/jest.config.js,packages/a/package.json scripts/test,packages/b/package.json scripts/test",
        "packages/a/a.test.js,packages/b/test/b.js",
    ),
    "cargo": (
        "cargo test --workspace",
        {
            "Cargo.toml": "[package]\nname = 'x'\n[lib]\ndoctest = false\n",
            ".cargo/config.toml": "",
            "src/lib.rs": "",
            "tests/it.rs": "",
            "crates/a/tests/deep/b.rs": "",
        },
        ".cargo/config.toml,Cargo.toml lib/doctest",
        ".config/nextest.toml,crates/a/tests/deep/b.rs,tests/it.rs",
    ),
    "go": (
        "go test ./...",
        {"go.mod": "", "a.go": "", "a_test.go": "", "pkg/b_test.go": ""},
        "",
        "a_test.go,pkg/b_test.go",
    ),
    "go, one package": (
        "go vet ./... && go test ./pkg/... -run TestX",
        {"a_test.go": "", "pkg/b_test.go": ""},
        "",
        "pkg/b_test.go",
    ),
    "monorepo": (
        "cd packages/a && pytest",
        {
            "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-q'\n",
            "packages/a/pyproject.toml": "[project]\n",
            "packages/a/tests/test_a.py": "",
            "packages/b/tests/test_b.py": "",
        },
        "pyproject.toml tool/pytest",
        "packages/a/tests/test_a.py",
    ),
    "linter": (
        "ruff check . && mypy && eslint src/a.js",
        {
            "ruff.toml": "",
            "setup.cfg": "[mypy]\nstrict = true\n",
            ".eslintrc.json": "",
            "src/a.js": "",
            "a.py": "",
        },
        ".eslintrc.json,ruff.toml,setup.cfg mypy",
        "src/a.js",
    ),
    "typescript": (
        "npx tsc --noEmit",
        {"tsconfig.json": "", "tsconfig.base.json": "", "src/a.ts": ""},
        "tsconfig.base.json,tsconfig.json",
        "",
    ),
    "just": (
        "just test",
        {"justfile": "test:\n    pytest tests\n", "tests/test_a.py": ""},
        "justfile",
        "tests/test_a.py",
    ),
    "gradle": (
        "./gradlew test",
        {"gradlew": "#!/bin/sh\n", "build.gradle": "", "app/src/test/java/ATest.java": ""},
        "gradlew",
        "app/src/test/java/ATest.java",
    ),
    "rspec": (
        "bundle exec rspec",
        {".rspec": "", "spec/a_spec.rb": "", "spec/spec_helper.rb": ""},
        ".rspec",
        "spec/a_spec.rb,spec/spec_helper.rb",
    ),
    "a test that is executed": (
        "python tests/test_calc.py && sh tests/run.sh && pytest tests/test_a.py",
        {"tests/test_calc.py": "", "tests/run.sh": "", "tests/test_a.py": ""},
        "tests/run.sh,tests/test_calc.py",
        "tests/test_a.py",
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_honest_layout_has_the_dependencies_that_its_check_needs(tree: Tree, layout: str) -> None:
    command, content, expected, tests = LAYOUTS[layout]
    files = tree(content)
    found = dependencies(command, "", files)
    assert shown(found.protected) == [it for it in expected.split(",") if it]
    existing = [it for it in without_configuration(shown(found.watched)) if files.is_file(it)]
    assert existing == [it for it in tests.split(",") if it and files.is_file(it)]
    missing = {it for it in tests.split(",") if it and not files.is_file(it)}
    assert missing <= {*shown(found.watched)}


def test_script_of_a_package_that_could_be_added_is_watched(tree: Tree) -> None:
    files = tree({"package.json": '{"scripts": {"test": "jest"}}'})
    assert "package.json jest scripts/posttest scripts/pretest" in watched("npm test", files)


def test_lists_are_sorted_and_without_duplicates(tree: Tree) -> None:
    files = tree(SRC_LAYOUT)
    found = dependencies("pytest; pytest tests; sh b.sh; cat b.sh pyproject.toml", "", files)
    assert found == dependencies(
        "pytest; pytest tests; sh b.sh; cat b.sh pyproject.toml", "", files
    )
    for them in (found.protected, found.watched):
        assert them == sorted(set(them))
    assert not {*found.protected} & {*found.watched}


def test_file_that_is_protected_as_a_whole_has_no_parts(tree: Tree) -> None:
    files = tree({**SRC_LAYOUT, "tox.ini": "[pytest]\n"})
    assert "tox.ini" in protected("tox; pytest; mytool pyproject.toml", files)
    assert "pyproject.toml" in protected("pytest; mytool pyproject.toml", files)
    assert "tox.ini pytest" not in watched("tox; pytest", files)


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
