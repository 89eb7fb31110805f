"""Settings and where each comes from: the defaults, the user's file, the files of the project."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.config.keys import KEY_NAMED, KEYS
from gsd_fsm.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE_NAME = "config.toml"
MAX_KIB = 64
# Files of another tool hold more than settings of ours.
MAX_FOREIGN_KIB = 256
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


class Setting(NamedTuple):
    """A value that the rule of its key accepts, and its source: "default" or a file's path."""

    name: str
    value: Any
    source: str


def user_file() -> Path:
    """Return where the user's own settings are, whether or not that file exists."""
    import platformdirs

    return Path(platformdirs.user_config_dir("gsd-fsm", appauthor=False)) / FILE_NAME


def project_files(project_dir: Path) -> tuple[Path, ...]:
    """Return where the settings of a project may be, whether or not these files exist.

    The first that gives a setting decides about it; all come before the user's file.
    """
    foreign = project_dir.parent / ".opti-gsd" / "config.json"
    return project_dir / FILE_NAME, foreign, project_dir / "config.md"


def load(project_dir: Path | None, *, trusted: bool = True) -> dict[str, Setting]:
    """Return every setting in the order of KEYS, or raise UsageError naming file and line.

    The files of a project that is not trusted are not even looked at.
    """
    settings = {key.name: Setting(key.name, key.default, "default") for key in KEYS}
    files = [user_file()]
    if trusted and project_dir is not None:
        files += reversed(project_files(project_dir))
    for path in files:
        for name, value in _values(path).items():
            frozen = tuple(value) if isinstance(value, list) else value
            settings[name] = Setting(name, frozen, str(path))
    return settings


def _values(path: Path) -> dict[str, Any]:
    if path.name == FILE_NAME:
        content = _read(path, MAX_KIB)
        return {} if content is None else _parse(path, content)
    content = _read(path, MAX_FOREIGN_KIB)
    if content is None:
        return {}
    from gsd_fsm.config.opti_gsd import from_json, from_markdown

    parse = from_json if path.suffix == ".json" else from_markdown
    return parse(path, _decode(path, content))


def _read(path: Path, most_kib: int) -> bytes | None:
    """Return the file's bytes, None if there is no file; never wait for a pipe or a device."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{path}: not a regular file", "settings are read from files only")
        with open(path, "rb", opener=_open_at_once) as file:
            content = file.read(most_kib * 1024 + 1)
    except OSError as error:
        # A link that leads nowhere was meant to set something: limits must not vanish silently.
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not path.is_symlink():
            return None
        what = f"{path}: cannot be read: {error.strerror}"
        raise UsageError(what, "repair or remove it") from error
    if len(content) > most_kib * 1024:
        raise UsageError(f"{path}: larger than {most_kib} KiB", "settings are a few short lines")
    return content


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _parse(path: Path, content: bytes) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    found: dict[str, Any] = {}
    try:
        # Settings are flat, so a statement is a document of its own: that is how its line is known.
        for line, statement in _statements(_decode(path, content)):
            for name, value in tomllib.loads(statement).items():
                is_table = isinstance(value, dict) or statement.lstrip().startswith("[")
                _validate(f"{path}:{line}", name, value, is_table, name in found)
                found[name] = value
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
    key = KEY_NAMED.get(name)
    if key is not None and not is_repeated and key.rule.accepts(value):
        return
    import difflib

    if key is None and is_table:
        raise UsageError(f"{where}: unknown table {name[:80]!r}", "settings stand in no table")
    if key is None:
        near = difflib.get_close_matches(name[:80].lower(), KEY_NAMED, 1)
        what = f"unknown key {name[:80]!r}" + (f" (did you mean {near[0]!r}?)" if near else "")
        raise UsageError(f"{where}: {what}", "known keys: " + ", ".join(KEY_NAMED))
    if is_repeated:
        raise UsageError(f"{where}: duplicate key {name!r}", "keep only one of them")
    raise key.refusal(where, name, value)
