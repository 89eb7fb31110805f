"""Know the variables and programs that can change the result of a check."""

from __future__ import annotations

import os
import re
import time
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from gsd_fsm.config.search_path import existing_program
from gsd_fsm.core.codec import digest_of
from gsd_fsm.core.errors import GsdError
from gsd_fsm.documents.read import open_to_read

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import IO

WHOLE_BYTES, END_BYTES = 8 << 20, 1 << 20
_STABLE_SECONDS = 10.0
# Digests of files that have not changed for so long, by identity, size and times.
_digests: dict[tuple[int, ...], str] = {}
_MOST_NAMED = 100
_NAMED = re.compile(
    r"""(?:\$[({]?|\b(?:environ(?:\.get)?|getenv|process\.env)[.(\["']{1,3})([A-Za-z_]\w{0,99})"""
)

# `*` matches any ending.
RELEVANT = {
    "programs and libraries": "PATH PATHEXT COMSPEC LD_* DYLD_* GCONV_PATH",
    "shells": "BASH_ENV BASH_FUNC_* ENV SHELLOPTS BASHOPTS CDPATH IFS ZDOTDIR",
    "configuration of the user": "HOME XDG_CONFIG_HOME USERPROFILE APPDATA",
    "language and time": "LANG LC_ALL TZ",
    "make": "MAKEFLAGS MFLAGS MAKEFILES GNUMAKEFLAGS",
    "git": "GIT_*",
    "Python": "PYTHON* VIRTUAL_ENV CONDA_PREFIX PIP_* UV_* MYPYPATH DJANGO_SETTINGS_MODULE",
    "Python tests": "PYTEST_* TOX* NOX* COVERAGE*",
    "JavaScript": "NODE_OPTIONS NODE_PATH NODE_ENV NODE_TEST_CONTEXT npm_config_* NPM_CONFIG_*",
    "JavaScript tests": "JEST_* VITEST* MOCHA_* TS_NODE_* BABEL_ENV PLAYWRIGHT_*",
    "Go": "GOFLAGS GOTOOLCHAIN GOROOT GOPATH GOENV GOWORK GOOS GOARCH GODEBUG GO111MODULE CGO_*",
    "Rust": "RUSTFLAGS RUSTDOCFLAGS RUSTC RUSTC_* RUSTDOC RUSTUP_* RUST_TEST_* CARGO* NEXTEST*",
    "C": "CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CPATH LIBRARY_PATH",
    "Java": (
        "JAVA_HOME JAVA_OPTS JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH"
        " MAVEN_OPTS MAVEN_ARGS GRADLE_OPTS"
    ),
    "other languages": (
        "PERL5LIB PERL5OPT PERL5DB RUBYOPT RUBYLIB GEM_HOME GEM_PATH BUNDLE_* PHPRC"
        " PHP_INI_SCAN_DIR DOTNET_STARTUP_HOOKS"
    ),
    "continuous integration": "CI",
}
IRRELEVANT = {
    "set by every process anew": (
        "PYTEST_CURRENT_TEST PYTEST_XDIST_* PYTEST_VERSION CARGO_MAKEFLAGS VITEST_POOL_ID"
        " VITEST_WORKER_ID JEST_WORKER_ID"
    ),
    "of the author": "GIT_AUTHOR_* GIT_COMMITTER_*",
    "questions, editors and messages": (
        "GIT_ASKPASS GIT_TERMINAL_PROMPT GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_PAGER_IN_USE"
        " GIT_TRACE* GIT_ADVICE GIT_MERGE_AUTOEDIT GIT_OPTIONAL_LOCKS GIT_REFLOG_ACTION"
    ),
    "caches and output": (
        "PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED PYTHONFAULTHANDLER PYTHON_COLORS PYTHON_HISTORY"
        " PYTEST_THEME* CARGO_TERM_* PIP_DISABLE_PIP_VERSION_CHECK PIP_CACHE_DIR UV_CACHE_DIR"
    ),
    "random order that a check must accept": "PYTHONHASHSEED",
    "of the shell and its terminal": (
        "PWD OLDPWD SHLVL _ RANDOM SECONDS LINENO PPID OPTARG OPTIND REPLY TERM COLUMNS LINES TMPDIR"
    ),
    "set by npm for its children": (
        "npm_config_user_agent npm_config_cache npm_config_node_gyp npm_config_local_prefix"
        " npm_config_global_prefix npm_config_init_module npm_config_noproxy npm_config_npm_version"
        " npm_config_loglevel npm_config_color npm_config_progress npm_config_update_notifier"
    ),
}


class _Names:
    """The names of a table; a regular expression of them would take milliseconds to compile."""

    def __init__(self, table: Mapping[str, str]) -> None:
        names = [name for row in table.values() for name in row.split()]
        self._whole = frozenset(names)
        self._begins = tuple(name[:-1] for name in names if name.endswith("*"))

    def __contains__(self, name: str) -> bool:
        return name in self._whole or name.startswith(self._begins)


_RELEVANT, _IRRELEVANT = _Names(RELEVANT), _Names(IRRELEVANT)


class Program(NamedTuple):
    """A program that a check runs; `digest` is "" if its file cannot be read."""

    name: str
    path: str
    digest: str


def is_relevant(name: str) -> bool:
    """Return whether a variable can change the result of a check."""
    return name in _RELEVANT and name not in _IRRELEVANT


def relevant(environment: Mapping[str, str], named: Collection[str] = ()) -> dict[str, str]:
    """Return the variables that can change the result of a check, and those that it names."""
    return {name: it for name, it in environment.items() if name in named or is_relevant(name)}


def named_in(texts: Iterable[str]) -> list[str]:
    """Return the variables that commands and scripts name: `$NAME`, `getenv("NAME")` and others."""
    found = {name: None for text in texts for name in _NAMED.findall(text)}
    return [name for name in found if name not in _IRRELEVANT][:_MOST_NAMED]


def digests(environment: Mapping[str, str], named: Collection[str] = ()) -> dict[str, str | None]:
    """Return a digest of each relevant variable, and of each named one, None if it is not set.

    Values may be secret and are never stored.
    """
    known = relevant(environment, named)
    return {**dict.fromkeys(named), **{name: digest_of(it) for name, it in known.items()}}


def differing(frozen: Mapping[str, str | None], environment: Mapping[str, str]) -> list[str]:
    """Return the names that were added, changed or removed since these digests, sorted."""
    now = digests(environment, frozen)
    return sorted(name for name in {*frozen, *now} if frozen.get(name) != now.get(name))


def as_frozen(
    environment: Mapping[str, str], values: Mapping[str, str], named: Collection[str] = ()
) -> dict[str, str]:
    """Return the environment with the relevant and named variables of `values` instead of its own."""
    replaced = relevant(environment, named)
    others = {name: value for name, value in environment.items() if name not in replaced}
    return others | relevant(values, named)


def resolve(names: Iterable[str], directory: Path, environment: Mapping[str, str]) -> list[Program]:
    """Return the programs that a shell in the directory would find; omit those not found."""
    found = ((name, _find(name, directory, environment)) for name in dict.fromkeys(names))
    return [Program(name, path, _digest(path)) for name, path in found if path]


def _find(name: str, directory: Path, environment: Mapping[str, str]) -> str | None:
    return next(filter(None, map(_program, _candidates(name, directory, environment))), None)


def _candidates(name: str, directory: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    if "/" in name or os.sep in name:
        yield directory / name
    elif name:
        # An empty entry is the current directory.
        for entry in environment.get("PATH", os.defpath).split(os.pathsep):
            yield directory / entry / name


def _program(path: Path) -> str | None:
    try:
        return existing_program(path)
    except (OSError, ValueError):
        return None


def _digest(path: str) -> str:
    """Digest a file, or the size and both ends of a large one; return "" if it cannot be read."""
    from pathlib import Path

    try:
        with open_to_read(Path(path)) as file:
            now = os.fstat(file.fileno())
            facts = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
            if facts in _digests:
                return _digests[facts]
            found = _digest_content(file, now.st_size)
            # The times of a file that is being changed may stay as they are for a moment, and on
            # Windows a program can set all of them.
            if os.name != "nt" and now.st_ctime < time.time() - _STABLE_SECONDS:
                _digests[facts] = found
            return found
    except (OSError, GsdError):
        return ""


def _digest_content(file: IO[bytes], size: int) -> str:
    if size <= WHOLE_BYTES:
        return sha256(file.read(WHOLE_BYTES)).hexdigest()[:16]
    ends = sha256(b"%d " % size + file.read(END_BYTES))
    file.seek(-END_BYTES, os.SEEK_END)
    ends.update(file.read(END_BYTES))
    return ends.hexdigest()[:16]
