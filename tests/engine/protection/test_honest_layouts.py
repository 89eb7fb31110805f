"""Honest work in projects of many kinds never alters a check, and one dishonest change always does."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.command_line import Here
from tests.support.events import write
from tests.support.repositories import git

Files = Mapping[str, str | None]
PYTHON = Path(sys.executable).parent  # pytest and ruff are installed there
TEST = "def test_add():\n    assert 1 + 1 == 2\n"
MORE = f"{TEST}\n\ndef test_more(number):\n    assert number\n"
FIXTURE = "import pytest\n\n\n@pytest.fixture\ndef number():\n    return 1\n"
HOOK = f"{FIXTURE}\n\ndef pytest_collection_modifyitems(items):\n    del items[1:]\n"
LINK = "link to "  # begins the content of a symbolic link


class Layout(NamedTuple):
    """A project, honest work in it, and one change that makes its check worth less.

    `programs` are stand-ins for runners that are not installed or take seconds: shell scripts.
    """

    name: str
    check: str
    files: Files
    honest: Files
    protected: str
    watched: Mapping[str, list[str]]
    dishonest: Files
    altered: str
    programs: Mapping[str, str] = {}
    directory: str = ""
    has_git: bool = True


LAYOUTS = (
    Layout(
        "src layout",
        "pytest -q",
        {
            ".gitignore": "__pycache__/\n.pytest_cache/\n",
            "pyproject.toml": '[project]\nname = "calc"\nversion = "1.0"\n\n'
            '[tool.pytest.ini_options]\npythonpath = ["src"]\ntestpaths = ["tests"]\n',
            "src/calc/__init__.py": "def add(a, b): return a + b\n",
            "tests/test_add.py": TEST,
        },
        {
            "pyproject.toml": '[project]\nname = "calc"\nversion = "1.1"\ndependencies = ["attrs"]\n'
            "[tool.ruff]\nline-length = 99\n"
            '[tool.pytest.ini_options]\ntestpaths=["tests"]  # here\npythonpath = ["src"]\n',
            "src/calc/__init__.py": "def add(a: int, b: int) -> int:\n    return a + b\n",
            "src/calc/more.py": "ONE = 1\n",
            "tests/conftest.py": FIXTURE,
            "tests/test_add.py": MORE,
            "tests/test_more.py": "from calc.more import ONE\n\n\ndef test_one():\n    assert ONE\n",
            "tests/data/expected.json": "{}\n",
            "uv.lock": "version = 1\n",
            ".coverage": "SQLite",
        },
        "pyproject.toml",
        {"changed": ["tests/test_add.py"], "new": ["tests/conftest.py"]},
        {
            "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n'
            'testpaths = ["tests"]\naddopts = "--collect-only"\n'
        },
        "pyproject.toml",
    ),
    Layout(
        "flat layout",
        "python -m pytest -q tests",
        {
            "pytest.ini": "[pytest]\nmarkers =\n    slow: takes long\n",
            "calc.py": "ONE = 1\n",
            "tests/conftest.py": FIXTURE,
            "tests/test_add.py": MORE,
        },
        {
            "calc.py": "ONE = 1\nTWO = 2\n",
            "tests/conftest.py": FIXTURE + "\n\n@pytest.fixture\ndef two():\n    return 2\n",
            "tests/test_add.py": MORE.replace("assert number", "assert number == 1"),
            "tests/__init__.py": "",
            "tests/__pycache__/test_add.cpython-311.pyc": "cache",
            "pytest.ini": "[pytest]\n# marks\nmarkers=\n  slow: takes long\n",
        },
        "pytest.ini tests/conftest.py",
        {"changed": ["tests/conftest.py", "tests/test_add.py"]},
        {"tests/conftest.py": HOOK},
        "tests/conftest.py",
    ),
    Layout(
        "configuration of the runner in a file of its own",
        "pytest -q",
        {
            "pytest.ini": "[pytest]\naddopts = --strict-markers\n",
            "setup.cfg": "[metadata]\nname = calc\n",
            "test_add.py": TEST,
        },
        {
            "setup.cfg": "[metadata]\nname = calc\nversion = 2\n",
            "test_new.py": TEST,
            "docs/index.md": "# Calc\n",
        },
        "pytest.ini",
        {},
        {"pytest.ini": None},
        "pytest.ini",
    ),
    Layout(
        "formatter on save",
        "python scripts/check.py",
        {
            "scripts/check.py": "# all tests\nimport sys\nassert 'a' in {'a':1}\nprint('ok',\n 1)\n",
            "calc.py": "x = {'a':1}\n",
        },
        {
            "scripts/check.py": "# All tests.\nimport sys\n\nassert 'a' in {'a': 1}\nprint(\"ok\", 1)\n",
            "calc.py": 'x = {"a": 1}\n',
        },
        "scripts/check.py",
        {},
        {"scripts/check.py": "print('ok', 1)\n"},
        "scripts/check.py",
    ),
    Layout(
        "tox",
        "tox -q",
        {
            ".gitignore": ".tox/\n",
            "tox.ini": "[tox]\nenv_list = py\n\n[testenv]\ndeps = pytest\ncommands = pytest {posargs}\n",
            "tests/test_add.py": TEST,
        },
        {
            "tests/test_add.py": MORE,
            "tests/test_new.py": TEST,
            "tests/conftest.py": FIXTURE,
            "tox.ini": "[tox]\nenv_list=py\n# tests\n[testenv]\ndeps=pytest\ncommands=pytest {posargs}\n",
        },
        "tox.ini",
        {"changed": ["tests/test_add.py"], "new": ["tests/conftest.py"]},
        {"tox.ini": "[tox]\nenv_list = py\n\n[testenv]\ndeps = pytest\ncommands = true\n"},
        "tox.ini",
        {"tox": "mkdir -p .tox/py/log && date > .tox/py/log/1.log && echo '2 passed in 0.1s'"},
    ),
    Layout(
        "nox",
        "nox -s tests",
        {
            ".gitignore": ".nox/\n",
            "noxfile.py": "import nox\n@nox.session\ndef tests(s):\n    s.install('.')\n    s.run('pytest', '-q')\n",
            "tests/test_add.py": TEST,
        },
        {
            "tests/test_add.py": MORE,
            "tests/conftest.py": FIXTURE,
            "noxfile.py": 'import nox\n\n\n@nox.session\ndef tests(s):\n    s.install(".")\n    s.run("pytest", "-q")\n',
        },
        "noxfile.py",
        {"changed": ["tests/test_add.py"], "new": ["tests/conftest.py"]},
        {"noxfile.py": "import nox\n@nox.session\ndef tests(s):\n    s.run('true')\n"},
        "noxfile.py",
        {"nox": "mkdir -p .nox/tests && date > .nox/tests/log && echo '2 passed in 0.1s'"},
    ),
    Layout(
        "make",
        "make -s test",
        {
            ".gitignore": "build/\n",
            "Makefile": "test: build/calc\n\tsh scripts/test.sh\n\nbuild/calc: calc.c\n\tmkdir -p build && cp calc.c build/calc\n",
            "scripts/test.sh": "grep -q main build/calc\n",
            "calc.c": "int main() {}\n",
        },
        {
            "calc.c": "int main() { return 0; }\n",
            "calc.h": "\n",
            "tests/data.txt": "1\n",
            "compile_commands.json": "[]\n",
        },
        "Makefile scripts/test.sh",
        {"changed": ["calc.c"]},
        {"Makefile": "test:\n\ttrue\n"},
        "Makefile",
    ),
    Layout(
        "just",
        "just test",
        {
            "justfile": "test: lint\n    ./scripts/test.sh\n\nlint:\n    true\n",
            "scripts/test.sh": "#!/bin/sh\ntest -e src/main.txt\n",
            "src/main.txt": "1\n",
        },
        {"src/main.txt": "2\n", "src/more.txt": "3\n", "README.md": "# New\n"},
        "justfile scripts/test.sh",
        {},
        {"justfile": "test:\n    true\n"},
        "justfile",
        {"just": "sh scripts/test.sh"},
    ),
    Layout(
        "npm workspaces",
        "npm test --workspaces",
        {
            ".gitignore": "node_modules/\ncoverage/\n",
            "package.json": '{"private": true, "workspaces": ["packages/*"]}\n',
            "packages/app/package.json": '{"name": "app", "version": "1.0.0",\n'
            ' "scripts": {"test": "jest", "build": "tsc"}, "jest": {"verbose": true}}\n',
            "packages/lib/package.json": '{"name": "lib", "scripts": {"test": "jest"}}\n',
            "packages/app/src/app.test.js": "test('a', () => {})\n",
        },
        {
            "package.json": '{"private": true, "workspaces": ["packages/*"],\n'
            ' "devDependencies": {"jest": "^29.0.0"}}\n',
            "package-lock.json": '{"lockfileVersion": 3}\n',
            "packages/app/package.json": '{"name": "app", "version": "1.1.0", "dependencies": {"lib": "*"},\n'
            ' "scripts": {"build": "tsc -b", "dev": "vite", "test": "jest"},\n'
            ' "jest": {"verbose": true}}\n',
            "packages/app/src/app.js": "export const a = 1\n",
            "packages/app/src/app.test.js": "test('a', () => {})\ntest('b', () => {})\n",
            "packages/app/src/__snapshots__/app.test.js.snap": "exports[`a`] = `1`;\n",
            "packages/app/coverage/lcov.info": "TN:\n",
            "packages/app/node_modules/jest/index.js": "//\n",
        },
        "packages/app/package.json packages/lib/package.json",
        {"changed": ["packages/app/src/app.test.js"]},
        {"packages/app/package.json": '{"name": "app", "scripts": {"test": "exit 0"}}\n'},
        "packages/app/package.json",
        {"npm": "echo 'Tests:       2 passed, 2 total'"},
    ),
    Layout(
        "jest",
        "npm test",
        {
            ".gitignore": "node_modules/\n",
            "package.json": '{"name": "app", "scripts": {"test": "jest --ci"}}\n',
            "jest.config.js": "module.exports = { testEnvironment: 'node' }\n",
            "src/a.test.ts": "test('a', () => {})\n",
        },
        {
            "package.json": '{\n  "name": "app",\n  "version": "2.0.0",\n  "scripts": {"test": "jest --ci"},\n'
            '  "dependencies": {"left-pad": "1.0.0"}\n}\n',
            "src/a.ts": "export const a = 1\n",
            "src/a.test.ts": "test('a', () => { expect(1).toBe(1) })\n",
            "src/__snapshots__/a.test.ts.snap": "exports[`a`] = `1`;\n",
            "tsconfig.json": "{}\n",
        },
        "jest.config.js package.json",
        {"changed": ["src/a.test.ts"]},
        {"jest.config.js": "module.exports = { testPathIgnorePatterns: ['src'] }\n"},
        "jest.config.js",
        {"jest": "echo 'Tests:       2 passed, 2 total'"},
    ),
    Layout(
        "cargo",
        "cargo test --workspace",
        {
            ".gitignore": "target/\n",
            "Cargo.toml": '[package]\nname = "calc"\nversion = "0.1.0"\n',
            ".cargo/config.toml": '[build]\nrustflags = ["-D", "warnings"]\n',
            "src/lib.rs": "pub fn add() {}\n",
            "tests/add.rs": "#[test]\nfn adds() {}\n",
        },
        {
            "Cargo.toml": '[package]\nname = "calc"\nversion = "0.2.0"\n\n[dependencies]\nserde = "1"\n',
            "src/lib.rs": "pub fn add() {}\n\n#[cfg(test)]\nmod tests {}\n",
            "src/main.rs": "fn main() {}\n",
            "tests/add.rs": "#[test]\nfn adds() {}\n#[test]\nfn more() {}\n",
            "tests/new.rs": "#[test]\nfn new() {}\n",
        },
        ".cargo/config.toml",
        {"changed": ["tests/add.rs"]},
        {".cargo/config.toml": "[target.'cfg(unix)']\nrunner = \"true\"\n"},
        ".cargo/config.toml",
        {
            "cargo": "mkdir -p target/debug && date > target/debug/calc; echo 'version = 4' > Cargo.lock\n"
            "echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'"
        },
    ),
    Layout(
        "go",
        "go vet ./... && go test ./... && golangci-lint run",
        {
            "go.mod": "module example.org/calc\n\ngo 1.22\n",
            ".golangci.yml": "linters:\n  enable: [errcheck]\n",
            "calc.go": "package calc\n",
            "calc_test.go": "package calc\n",
            "testdata/in.golden": "1\n",
        },
        {
            "go.mod": "module example.org/calc\n\ngo 1.23\n\nrequire golang.org/x/text v0.3.0\n",
            "go.sum": "golang.org/x/text v0.3.0 h1:abc=\n",
            "calc.go": "package calc\n\nfunc Add() {}\n",
            "calc_test.go": "package calc\n\nfunc TestAdd(t *testing.T) {}\n",
            "sub/sub_test.go": "package sub\n",
            "testdata/in.golden": "2\n",
            "coverage.out": "mode: set\n",
        },
        ".golangci.yml",
        {"changed": ["calc_test.go", "testdata/in.golden"]},
        {".golangci.yml": None},
        ".golangci.yml",
        {"go": "echo 'ok  example.org/calc 0.01s'", "golangci-lint": "true"},
    ),
    Layout(
        "monorepo",
        "pytest -q",
        {
            ".gitignore": "__pycache__/\n.pytest_cache/\n",
            "services/api/pytest.ini": "[pytest]\naddopts = -p no:randomly\n",
            "services/api/tests/test_add.py": TEST,
            "services/web/jest.config.js": "module.exports = {}\n",
            "services/web/tests/test_web.py": TEST,
            "Makefile": "test:\n\ttrue\n",
        },
        {
            "services/api/tests/test_add.py": TEST + "\n\ndef test_two():\n    pass\n",
            "services/api/app.py": "ONE = 1\n",
            "services/web/jest.config.js": "module.exports = { verbose: true }\n",
            "services/web/tests/test_web.py": "\n",
            "services/web/conftest.py": HOOK,
            "Makefile": "test:\n\tmake -C services/api\n",
        },
        "services/api/pytest.ini",
        {"changed": ["services/api/tests/test_add.py"]},
        {"conftest.py": HOOK},
        "conftest.py",
        directory="services/api",
    ),
    Layout(
        "no git",
        "./run_tests.sh",
        {
            "run_tests.sh": "#!/bin/sh\nset -e\npython -m compileall -q app.py\ntest -e app.py\n",
            "app.py": "ONE = 1\n",
        },
        {"app.py": "ONE = 1\nTWO = 2\n", "lib/util.py": "THREE = 3\n", "tests/test_new.py": TEST},
        "run_tests.sh",
        {"changed": ["app.py"]},
        {"run_tests.sh": "#!/bin/sh\nexit 0\n"},
        "run_tests.sh",
        has_git=False,
    ),
    Layout(
        "moved script",
        "sh ci/check.sh",
        {"ci/check.sh": "test -e app.py\n", "app.py": "1\n"},
        {"app.py": "2\n", "ci/README.md": "How to check.\n"},
        "ci/check.sh",
        {"changed": ["app.py"]},
        {"ci/check.sh": None, "scripts/check.sh": "test -e app.py\n"},
        "ci/check.sh",
    ),
    Layout(
        "linked script",
        "sh check.sh",
        {"check.sh": f"{LINK}tools/all.sh", "tools/all.sh": "test -e app.py\n", "app.py": "1\n"},
        {"app.py": "2\n", "tools/other.sh": "true\n"},
        "check.sh",
        {"changed": ["app.py"]},
        {"check.sh": f"{LINK}tools/other.sh", "tools/other.sh": "true\n"},
        "check.sh",
    ),
    Layout(
        "linked script with another target",
        "sh check.sh",
        {"check.sh": f"{LINK}tools/all.sh", "tools/all.sh": "test -e app.py\n", "app.py": "1\n"},
        {"app.py": "2\n"},
        "check.sh",
        {"changed": ["app.py"]},
        {"tools/all.sh": "true\n"},
        "check.sh",
    ),
)


def lay_out(root: Path, files: Files) -> None:
    """Write these files; None removes one."""
    for name, text in files.items():
        path = root / name
        if text is None or path.is_symlink() or text.startswith(LINK):
            path.unlink(missing_ok=True)
        if text is not None and text.startswith(LINK):
            path.symlink_to(text.removeprefix(LINK))
        elif text is not None:
            write(path, text)
            if text.startswith("#!"):
                path.chmod(0o755)


def start(here: Here, layout: Layout) -> str:
    """Lay out the project, start its loop, and return its id."""
    places = [str(here.root.parent / "bin"), str(PYTHON), os.environ["PATH"]]
    here.patch.setenv("PATH", os.pathsep.join(places))
    lay_out(
        here.root.parent / "bin", {n: f"#!/bin/sh\n{it}\n" for n, it in layout.programs.items()}
    )
    lay_out(here.root, layout.files)
    if layout.has_git:
        git(here.root, "init", "-q", "--template=")
        git(here.root, "add", "-A")
        git(here.root, "commit", "-qm", "all")
    here.where = here.root / layout.directory
    started = here.ok("start", "goal", "g", "--check", f"t={layout.check}", "--json").json
    assert sorted(started["protected"]) == layout.protected.split()
    return str(started["loop"])


def content(path: Path) -> str | None:
    """Return the content of a file as `lay_out` takes it."""
    if path.is_symlink():
        return f"{LINK}{path.readlink()}"
    return path.read_text() if path.exists() else None


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda it: it.name.replace(" ", "-"))
def test_honest_work_alters_nothing_and_a_dishonest_change_is_named_until_restored(
    here: Here, layout: Layout
) -> None:
    start(here, layout)
    lay_out(here.root, layout.honest)
    checked = here.ok("check", "--json").json
    assert (checked["altered"], checked["watched"]) == ([], layout.watched)
    lay_out(here.root, layout.dishonest)
    refused = here.run("check")
    assert refused.code == 7, refused
    assert f"protected file {layout.altered} " in refused.out + refused.err
    assert here.run("complete").code == 4
    here.ok("restore", "t")
    changed = layout.dishonest.keys() & {layout.altered, *layout.files}
    assert {name: content(here.root / name) for name in changed} == {
        name: layout.files.get(name) for name in changed
    }
    assert here.ok("check", "--json").json["altered"] == []
    assert here.ok("complete", "--json").json["status"] == "completed"
