"""Settings from three sources: the defaults, the user's file, the project's file; later wins."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FILE_NAME = "config.toml"
MAX_FILE_BYTES = 64 * 1024
# Far beyond any sensible limit, yet safe as a timeout in seconds and exact in everybody's JSON.
LARGEST = 1_000_000_000


class Rule(NamedTuple):
    """What a value must be: in words for people, and as a test that never raises."""

    words: str
    accepts: Callable[[Any], bool]


class Key(NamedTuple):
    """One setting that exists; a default of None means that absence has its own meaning."""

    name: str
    default: bool | int | float | str | None
    description: str
    rule: Rule


class Setting(NamedTuple):
    """A value in force, and where it comes from: "default" or the path of a file."""

    name: str
    value: bool | int | float | str | None
    source: str


def _number(words: str, least: int, *types: type) -> Rule:
    # By type(), because True is an instance of int; and NaN is not between any two numbers.
    return Rule(
        f"{words} from {least} to {LARGEST}",
        lambda value: type(value) in types and least <= value <= LARGEST,
    )


_COUNT = _number("a whole number", 0, int)
_POSITIVE = _number("a whole number", 1, int)
_AMOUNT = _number("a number", 0, int, float)
_SWITCH = Rule("true or false", lambda value: type(value) is bool)
_MODE = Rule('"interactive" or "yolo"', lambda value: value in ("interactive", "yolo"))

# The single truth: validation, the `config` command and the documentation all read this table.
KEYS: tuple[Key, ...] = (
    Key("mode", "interactive", "Whether a loop asks first (interactive) or not (yolo).", _MODE),
    Key("execute_max_retries", 3, "Retries of one failed task before the loop pauses.", _COUNT),
    Key("verify_max_iterations", 20, "Rounds of a verify loop; 0 means unlimited.", _COUNT),
    Key("tdd_max_attempts", 5, "Attempts to make the tests of one task pass.", _POSITIVE),
    Key("auto_loop", True, "Whether the agent is kept going until its loop ends.", _SWITCH),
    Key(
        "max_iterations",
        None,
        "Iterations; absent means 20 (execute loop: max(20, 3 × tasks)); 0 means unlimited.",
        _COUNT,
    ),
    Key("stuck_limit", 5, "Iterations without progress before a pause; 0 means off.", _COUNT),
    Key("idle_limit", 3, "Blocks in a row without activity before a pause; 0 means off.", _COUNT),
    Key("budget_usd", None, "US dollars a loop may spend; absent means no limit.", _AMOUNT),
    Key("max_minutes", None, "Active minutes a loop may take; absent means no limit.", _AMOUNT),
    Key("check_timeout_seconds", 600, "Seconds that one check may run.", _POSITIVE),
)
_KEY_NAMED = {key.name: key for key in KEYS}
_EXAMPLE = "a setting looks like this: execute_max_retries = 3"

# Whatever can hide a newline, bracket or quote. An unclosed string is one too: it keeps the
# scan linear, and the statement that holds it is refused by the parser anyway.
_LEXEME = r"""
    \"{3} (?: \\. | [^\\] )*? (?: \"{3,5} | \Z )
  | '{3} .*? (?: '{3,5} | \Z )
  | \" (?: \\[^\n] | [^\"\\\n] )* \"?
  | ' [^'\n]* '?
  | \# [^\n]*
  | [\[\]{}\n]
"""


def user_file() -> Path:
    """Return where the user's own settings are, whether or not that file exists."""
    import platformdirs

    return Path(platformdirs.user_config_dir("gsd-fsm", appauthor=False)) / FILE_NAME


def load(project_dir: Path | None, *, trusted: bool = True) -> dict[str, Setting]:
    """Return every setting in the order of KEYS, or raise UsageError naming file and line.

    The file of a project that is not trusted is not even looked at.
    """
    settings = {key.name: Setting(key.name, key.default, "default") for key in KEYS}
    files = [user_file()]
    if trusted and project_dir is not None:
        files.append(project_dir / FILE_NAME)
    for path in files:
        content = _read(path)
        if content is not None:
            settings.update(_parse(path, content))
    return settings


def _read(path: Path) -> bytes | None:
    """Return the file's bytes, None if there is no file; never wait for a pipe or a device."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{path}: not a regular file", "settings are read from files only")
        with open(path, "rb", opener=_open_at_once) as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        # A link that leads nowhere was meant to set something: limits must not vanish silently.
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not path.is_symlink():
            return None
        what = f"{path}: cannot be read: {error.strerror}"
        raise UsageError(what, "repair or remove it") from error
    if len(content) > MAX_FILE_BYTES:
        raise UsageError(f"{path}: larger than 64 KiB", "settings are a few short lines")
    return content


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _parse(path: Path, content: bytes) -> dict[str, Setting]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    found: dict[str, Setting] = {}
    try:
        # Settings are flat, so a statement is a document of its own: that is how its line is known.
        for line, statement in _statements(_decode(path, content)):
            for name, value in tomllib.loads(statement).items():
                is_table = isinstance(value, dict) or statement.lstrip().startswith("[")
                _validate(f"{path}:{line}", name, value, is_table, name in found)
                found[name] = Setting(name, value, str(path))
    except tomllib.TOMLDecodeError as error:
        what, row = str(error).split(" (at ")[0], re.search(r"\(at line (\d+)", str(error))
        line += int(row[1]) - 1 if row else 0
        raise UsageError(f"{path}:{line}: not valid TOML: {what}", _EXAMPLE) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}:{line}: too many digits or brackets", _EXAMPLE) from error
    return found


def _decode(path: Path, content: bytes) -> str:
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: not valid UTF-8", "save the file as UTF-8") from error


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield every top-level statement of a TOML text, and the line it begins on."""
    start, line, depth = 0, 1, 0
    for lexeme in re.finditer(_LEXEME, text, re.DOTALL | re.VERBOSE):
        depth += (lexeme[0] in ("[", "{")) - (lexeme[0] in ("]", "}"))
        if lexeme[0] == "\n" and depth == 0:
            yield line, text[start : lexeme.end()]
            line += text.count("\n", start, lexeme.end())
            start = lexeme.end()
    yield line, text[start:]


def _validate(where: str, name: str, value: object, is_table: bool, is_repeated: bool) -> None:
    key = _KEY_NAMED.get(name)
    if key is not None and not is_repeated and key.rule.accepts(value):
        return
    import difflib
    import json

    if key is None and is_table:
        raise UsageError(f"{where}: unknown table {name[:80]!r}", "settings stand in no table")
    if key is None:
        near = difflib.get_close_matches(name[:80].lower(), _KEY_NAMED, 1)
        what = f"unknown key {name[:80]!r}" + (f" (did you mean {near[0]!r}?)" if near else "")
        raise UsageError(f"{where}: {what}", "known keys: " + ", ".join(_KEY_NAMED))
    if is_repeated:
        raise UsageError(f"{where}: duplicate key {name!r}", "keep only one of them")
    shown = json.dumps(value, default=str)[:80]
    raise UsageError(f"{where}: {name} must be {key.rule.words}, not {shown}", key.description)
