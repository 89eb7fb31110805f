"""Test runners, linters and type checkers: their programs, configuration and test files, as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from typing import NamedTuple

from gsd_fsm.protection.commands import Command
from gsd_fsm.protection.programs.prefixes import PYTHON

_MOST_STARS = 4  # more make a search slow


class Configuration(NamedTuple):
    """A configuration file, and the parts of it that matter to the runner; () for all of it."""

    name: str  # with "*": each file of that form that exists
    parts: tuple[str, ...] = ()


class Patterns:
    """The forms of test files: of their name or, with "/", of the end of their path."""

    def __init__(self, forms: Iterable[str]) -> None:
        self.forms = [form for form in forms if form.count("*") <= _MOST_STARS]

    @cached_property
    def endings(self) -> tuple[str, ...]:
        return tuple({f".{form.rpartition('.')[2]}" if "." in form else "" for form in self.forms})

    @cached_property
    def _names(self) -> re.Pattern[str]:
        return _regex(form for form in self.forms if "/" not in form)

    @cached_property
    def _has_path(self) -> Callable[[str], object] | None:
        paths = [f"(?:.*/)?{_escaped(form)}" for form in self.forms if "/" in form]
        return re.compile("|".join(paths)).fullmatch if paths else None

    def select(self, paths: Iterable[str]) -> list[str]:
        """Return those of the paths that have one of these forms."""
        endings, has_name, has_path = self.endings, self._names.fullmatch, self._has_path
        return [
            path
            for path in paths
            if path.endswith(endings)
            and (has_name(path, path.rfind("/") + 1) or (has_path and has_path(path)))
        ]


def _regex(forms: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_escaped, forms)) or r"(?!)")


def _escaped(form: str) -> str:
    return re.escape(form).replace(r"\*", ".*").replace(r"\?", ".")


class Runner(NamedTuple):
    """A program that reads a configuration, and runs tests or examines files."""

    name: str
    programs: tuple[str, ...]  # a program, or a program and its first word
    configuration: tuple[Configuration, ...] = ()
    tests: tuple[str, ...] = ()
    values: str = ""  # options whose value is neither a test nor a configuration
    files: str = ""  # options whose value is a configuration file, or a directory that holds one
    has_tasks: bool = False  # whether its words name tasks or filters, never files
    is_script: bool = False  # whether its first word is a script of the project


def _whole(*names: str) -> tuple[Configuration, ...]:
    return tuple(map(Configuration, names))


def _named(stem: str, endings: str) -> tuple[Configuration, ...]:
    return _whole(*(f"{stem}.{ending}" for ending in endings.split()))


def _part(name: str, *parts: str) -> tuple[Configuration, ...]:
    return (Configuration(name, parts),)


def _of_script(*stems: str) -> tuple[str, ...]:
    """Return the forms of test files in JavaScript and TypeScript."""
    endings = ["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"]
    return tuple(f"{stem}.{ending}" for stem in stems for ending in endings)


_JS, _JS_JSON = "js mjs cjs ts mts cts", "js mjs cjs ts mts cts json"
_RC = "js cjs mjs json jsonc yml yaml"
_SCRIPT_TESTS = _of_script("*.test", "*.spec", "__tests__/*", "__mocks__/*")
_SNAPSHOTS = ("*.snap",)
_PYTEST_VALUES = (
    "-k -m -n -p -o -W -r --tb --maxfail --cov --cov-report --cov-fail-under --cov-context --durations "
    "--durations-min --junitxml --junit-xml --junit-prefix --ignore --ignore-glob --deselect --basetemp "
    "--log-file --log-level --log-cli-level --timeout --dist --numprocesses --override-ini --import-mode "
    "--html --report-log --randomly-seed --reruns --reruns-delay --color --capture --verbosity --pdbcls "
    "--pythonwarnings --benchmark-json --splits --group --seed --maxprocesses --tx"
)

RUNNERS = (
    Runner(
        "pytest",
        ("pytest", "py.test", "hatch test"),
        (
            *_whole("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
            *_part("pyproject.toml", "tool/pytest"),
            *_part("tox.ini", "pytest"),
            *_part("setup.cfg", "tool:pytest"),
        ),
        ("test_*.py", "*_test.py"),
        values=_PYTEST_VALUES,
        files="-c --config-file --rootdir --confcutdir --cov-config",
    ),
    Runner(
        "coverage",
        ("coverage",),
        (
            *_whole(".coveragerc"),
            *_part("pyproject.toml", "tool/coverage"),
            *_part("setup.cfg", "coverage:run", "coverage:report"),
            *_part("tox.ini", "coverage:run", "coverage:report"),
        ),
        values="--source --include --omit --data-file --fail-under --context --concurrency -d -o -m",
        files="--rcfile",
    ),
    Runner("unittest", ("unittest", "stestr"), tests=("test*.py",), values="-p -k --pattern"),
    Runner(
        "django",
        ("python manage.py", "manage.py"),
        tests=("test*.py",),
        values="-k --tag -v",
        is_script=True,
    ),
    Runner(
        "tox",
        ("tox",),
        (
            *_whole("tox.ini", "tox.toml"),
            *_part("setup.cfg", "tox:tox"),
            *_part("pyproject.toml", "tool/tox"),
        ),
        values="-e -f -m -x --workdir --skip-env --result-json",
        files="-c --conf",
        has_tasks=True,
    ),
    Runner(
        "nox",
        ("nox",),
        _whole("noxfile.py"),
        values="-s -e -k -t -p",
        files="-f --noxfile",
        has_tasks=True,
    ),
    Runner(
        "jest",
        ("jest",),
        (*_named("jest.config", _JS_JSON), *_part("package.json", "jest")),
        _SCRIPT_TESTS + _SNAPSHOTS,
        values="-t --testNamePattern --maxWorkers -w --reporters --outputFile --coverageDirectory --env "
        "--selectProjects --shard --testTimeout --logHeapUsage --coverageReporters",
        files="-c --config --rootDir --setupFilesAfterEnv --globalSetup",
    ),
    Runner(
        "react-scripts",
        ("react-scripts test", "craco test"),
        (*_part("package.json", "jest"), *_named("craco.config", _JS)),
        _SCRIPT_TESTS + _SNAPSHOTS,
    ),
    Runner(
        "vitest",
        ("vitest",),
        (
            *_named("vitest.config", _JS),
            *_named("vitest.workspace", "js ts json"),
            *_named("vite.config", _JS),
        ),
        _SCRIPT_TESTS + _SNAPSHOTS,
        values="-t --testNamePattern --reporter --outputFile --environment --pool --project --shard",
        files="-c --config -r --root --dir --workspace",
    ),
    Runner(
        "mocha",
        ("mocha", "nyc mocha", "c8 mocha", "_mocha"),
        (*_named(".mocharc", _RC), *_part("package.json", "mocha")),
        (*_of_script("*.test", "*.spec", "test/*", "tests/*"),),
        values="-g --grep -t --timeout -R --reporter --ui -u --extension",
        files="--config --package -r --require --opts",
    ),
    Runner(
        "ava",
        ("ava",),
        (*_named("ava.config", "js cjs mjs"), *_part("package.json", "ava")),
        (*_of_script("*.test", "test", "test-*", "test/*", "tests/*", "__tests__/*"), *_SNAPSHOTS),
        values="-m --match -c --concurrency -T --timeout",
        files="--config",
    ),
    Runner(
        "node",
        ("node --test",),
        tests=_of_script("*.test", "*-test", "*_test", "test-*", "test", "test/*"),
        values="--test-name-pattern --test-reporter --test-concurrency --test-reporter-destination",
        files="-r --require --import --loader",
    ),
    Runner(
        "playwright",
        ("playwright test",),
        _named("playwright.config", _JS),
        _of_script("*.test", "*.spec"),
        values="-g --grep --project --reporter -j --workers --retries --timeout --shard",
        files="-c --config",
    ),
    Runner(
        "cypress",
        ("cypress run",),
        (*_named("cypress.config", "js ts mjs cjs"), *_whole("cypress.json")),
        _of_script("*.cy", "cypress/*"),
        values="-s --spec -b --browser -e --env -r --reporter",
        files="-C --config-file -P --project",
    ),
    Runner(
        "karma",
        ("karma start", "karma"),
        _named("karma.conf", "js cjs ts"),
        _of_script("*.spec", "*.test"),
    ),
    Runner(
        "go",
        ("go test", "gotestsum", "ginkgo"),
        tests=("*_test.go", "testdata/*"),
        values="-run -bench",
    ),
    Runner(
        "cargo",
        ("cargo test", "cargo nextest", "cargo t", "cargo llvm-cov", "cargo tarpaulin"),
        (
            *_part(
                "Cargo.toml", "lib/test", "lib/harness", "lib/doctest", "package/autotests", "test"
            ),
            *_whole(".cargo/config.toml", ".config/nextest.toml"),
        ),
        ("tests/*.rs",),
        values="--test -p --package --features -j --jobs --target --profile --bin --example",
        files="--manifest-path --config",
        has_tasks=True,
    ),
    Runner(
        "rspec", ("rspec",), _whole(".rspec"), ("*_spec.rb", "*_helper.rb"), values="-e -t -f -o"
    ),
    Runner(
        "rake",
        ("rake",),
        _whole("Rakefile", "rakefile", "Rakefile.rb"),
        ("*_spec.rb", "*_test.rb", "test_*.rb", "*_helper.rb"),
        files="-f --rakefile",
        has_tasks=True,
    ),
    Runner("rails", ("rails test",), tests=("*_test.rb", "test_helper.rb")),
    Runner(
        "phpunit",
        ("phpunit", "pest"),
        _whole("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"),
        ("*Test.php",),
        values="--filter --testsuite --group",
        files="-c --configuration --bootstrap",
    ),
    Runner(
        "gradle", ("gradle", "gradlew"), tests=("src/test/*",), values="--tests -p", has_tasks=True
    ),
    Runner(
        "maven",
        ("mvn", "mvnw"),
        tests=("src/test/*",),
        values="-pl -Dtest",
        files="-f --file",
        has_tasks=True,
    ),
    Runner(
        "dotnet",
        ("dotnet test",),
        tests=("*Test.cs", "*Tests.cs"),
        values="--filter --logger",
        has_tasks=True,
    ),
    Runner("swift", ("swift test",), tests=("Tests/*.swift",), values="--filter", has_tasks=True),
    Runner("dart", ("dart test", "flutter test"), tests=("*_test.dart",), values="-n --name"),
    Runner("mix", ("mix test",), tests=("*_test.exs", "test_helper.exs"), values="--only --seed"),
    Runner("prove", ("prove",), _whole(".proverc"), ("t/*.t",), values="-j -I"),
    Runner("bats", ("bats",), tests=("*.bats", "*.bash"), values="-f --filter -j --jobs"),
    Runner("ctest", ("ctest",), values="-R -E -L -j -C", files="--test-dir", has_tasks=True),
    Runner("just", ("just",), has_tasks=True),
    Runner("make", ("make", "gmake"), has_tasks=True),
    Runner(
        "deno",
        ("deno test", "deno task"),
        (Configuration("deno.json", ("test", "tasks")), *_whole("deno.jsonc")),
        _of_script("*.test", "*_test", "test"),
        values="--filter",
        files="-c --config --import-map",
    ),
    Runner(
        "bun",
        ("bun test",),
        _part("bunfig.toml", "test"),
        (*_of_script("*.test", "*_test", "*.spec", "*_spec"), *_SNAPSHOTS),
        values="-t --test-name-pattern --timeout",
        files="--preload -c --config",
    ),
    # linters, formatters and type checkers
    Runner(
        "eslint",
        ("eslint",),
        (
            *_named("eslint.config", _JS),
            *_whole(".eslintrc", ".eslintignore"),
            *_named(".eslintrc", "js cjs json yml yaml"),
            *_part("package.json", "eslintConfig"),
        ),
        values="--ext -f --format -o --output-file --rule --max-warnings --cache-location",
        files="-c --config --ignore-path",
    ),
    Runner(
        "tsc",
        ("tsc", "vue-tsc"),
        _whole("tsconfig.json", "tsconfig*.json"),
        values="--outDir --target -t --module -m",
        files="-p --project -b --build",
    ),
    Runner("biome", ("biome",), _whole("biome.json", "biome.jsonc"), files="--config-path"),
    Runner(
        "prettier",
        ("prettier",),
        (
            *_whole(".prettierrc", ".prettierignore"),
            *_named(".prettierrc", "json json5 yml yaml toml js cjs mjs ts"),
            *_named("prettier.config", "js cjs mjs ts"),
            *_part("package.json", "prettier"),
        ),
        files="--config --ignore-path",
    ),
    Runner(
        "stylelint",
        ("stylelint",),
        (*_whole(".stylelintrc", ".stylelintrc.json"), *_named("stylelint.config", "js cjs mjs")),
        files="--config",
    ),
    Runner(
        "ruff",
        ("ruff",),
        (*_whole("ruff.toml", ".ruff.toml"), *_part("pyproject.toml", "tool/ruff")),
        values="--select --ignore --output-format --target-version --line-length",
        files="--config",
    ),
    Runner(
        "flake8",
        ("flake8",),
        (*_whole(".flake8"), *_part("setup.cfg", "flake8"), *_part("tox.ini", "flake8")),
        values="--select --ignore --max-line-length --exclude",
        files="--config --append-config",
    ),
    Runner(
        "pylint",
        ("pylint",),
        (
            *_whole("pylintrc", ".pylintrc", "pylintrc.toml", ".pylintrc.toml"),
            *_part("pyproject.toml", "tool/pylint"),
        ),
        values="--disable --enable -d -e --fail-under -j",
        files="--rcfile",
    ),
    Runner(
        "mypy",
        ("mypy", "dmypy run"),
        (
            *_whole("mypy.ini", ".mypy.ini"),
            *_part("pyproject.toml", "tool/mypy"),
            *_part("setup.cfg", "mypy"),
        ),
        values="-p -m --package --module --python-version --exclude",
        files="--config-file",
    ),
    Runner(
        "pyright",
        ("pyright", "basedpyright"),
        (
            *_whole("pyrightconfig.json"),
            *_part("pyproject.toml", "tool/pyright", "tool/basedpyright"),
        ),
        files="-p --project",
    ),
    Runner(
        "black", ("black",), _part("pyproject.toml", "tool/black"), values="-l -t", files="--config"
    ),
    Runner(
        "isort",
        ("isort",),
        (
            *_whole(".isort.cfg"),
            *_part("pyproject.toml", "tool/isort"),
            *_part("setup.cfg", "isort"),
        ),
        files="--settings-path --sp --settings",
    ),
    Runner(
        "golangci-lint",
        ("golangci-lint",),
        _named(".golangci", "yml yaml toml json"),
        files="-c --config",
    ),
    Runner("clippy", ("cargo clippy",), _whole("clippy.toml", ".clippy.toml")),
    Runner("rustfmt", ("cargo fmt", "rustfmt"), _whole("rustfmt.toml", ".rustfmt.toml")),
    Runner("rubocop", ("rubocop",), _whole(".rubocop.yml"), files="-c --config"),
    Runner("phpstan", ("phpstan",), _whole("phpstan.neon", "phpstan.neon.dist"), files="-c"),
    Runner("shellcheck", ("shellcheck",), _whole(".shellcheckrc"), files="--rcfile"),
    Runner(
        "yamllint",
        ("yamllint",),
        _whole(".yamllint", ".yamllint.yml", ".yamllint.yaml"),
        files="-c",
    ),
    Runner(
        "pre-commit",
        ("pre-commit", "prek"),
        _whole(".pre-commit-config.yaml"),
        files="-c --config",
        has_tasks=True,
    ),
    Runner("turbo", ("turbo",), _whole("turbo.json", "turbo.jsonc"), has_tasks=True),
    Runner("nx", ("nx",), _whole("nx.json"), has_tasks=True),
    Runner("lerna", ("lerna",), _whole("lerna.json"), has_tasks=True),
)
COVERAGE = next(runner for runner in RUNNERS if runner.name == "coverage")


@cache
def _by_program() -> dict[str, Runner]:
    return {program: runner for runner in RUNNERS for program in runner.programs}


def runner_of(command: Command) -> Runner | None:
    """Return the runner that a command starts, None if it starts no known one."""
    known, name = _by_program(), command.name
    name = "python" if PYTHON.fullmatch(name) else name
    if name == "node" and "--test" in command.arguments:
        return known["node --test"]
    words = (word for word in command.arguments if not word.startswith(("-", "+")))
    first = next(words, "")
    return known.get(f"{name} {first}") or known.get(name)


@cache
def patterns_of(forms: tuple[str, ...]) -> Patterns:
    """Return the compiled forms of test files."""
    return Patterns(forms)
