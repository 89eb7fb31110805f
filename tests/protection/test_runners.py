"""Known runners: which configuration is protected, and which tests are watched."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_fsm.protection.dependencies import dependencies
from tests.support.projects import Tree, protected, shown, watched

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


def test_module_that_could_take_the_place_of_pytest_is_watched(tree: Tree) -> None:
    files = tree(SRC_LAYOUT)
    assert {"pytest.py", "pytest/__main__.py"} <= {*watched("python -m pytest", files)}
    assert "pytest.py" not in watched("pytest", files)


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


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest -c ci/pyproject.toml", "ci/pyproject.toml tool/pytest"),
        (
            "pytest --cov --cov-config=ci/pyproject.toml",
            "ci/pyproject.toml tool/coverage tool/pytest",
        ),
        ("ruff check --config ci/pyproject.toml", "ci/pyproject.toml tool/ruff"),
        ("cargo test --manifest-path ci/Cargo.toml", "ci/Cargo.toml lib/test"),
    ],
)
def test_option_that_names_a_shared_file_protects_the_parts_of_the_runner(
    tree: Tree, command: str, expected: str
) -> None:
    text = "[tool]\npytest = {}\nruff = {}\ncoverage = {}\n[project]\nname = 'x'\n"
    cargo = "[lib]\ntest = false\n[dependencies]\n"
    files = tree({"ci/pyproject.toml": text, "ci/Cargo.toml": cargo})
    assert protected(command, files) == [expected]


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
