"""Load the settings and where each comes from: defaults, the user's file, the project's files."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.config.keys import KEY_NAMED, KEYS
from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.read import Malformed, decode, read_if_exists

FILE_NAME = "config.toml"
MAX_BYTES = 64 << 10
MAX_FOREIGN_BYTES = 256 << 10  # files of another tool contain more than our settings
_HINT = "Fix or remove the file, then run: gsd-fsm config"
_EXAMPLE = "Write settings like this: execute_max_retries = 3"


class Setting(NamedTuple):
    """A valid value, and its source: "default" or the path of a file."""

    name: str
    value: Any
    source: str


def user_file() -> Path:
    """Return the path of the user's settings, whether or not the file exists."""
    import platformdirs

    return Path(platformdirs.user_config_dir("gsd-fsm", appauthor=False)) / FILE_NAME


def project_files(project_dir: Path) -> tuple[Path, ...]:
    """Return the paths of the project's settings, in order of precedence, existing or not."""
    foreign = project_dir.parent / ".opti-gsd" / "config.json"
    return project_dir / FILE_NAME, foreign, project_dir / "config.md"


def load(project_dir: Path | None, *, trusted: bool = True) -> dict[str, Setting]:
    """Return every setting in the order of KEYS; raise UsageError naming the file.

    Do not even open the files of a project that is not trusted.
    """
    settings = {key.name: Setting(key.name, key.default, "default") for key in KEYS}
    files = [user_file()]
    if trusted and project_dir is not None:
        files += reversed(project_files(project_dir))
    for path in files:
        limit = MAX_BYTES if path.name == FILE_NAME else MAX_FOREIGN_BYTES
        content = read_if_exists(path, limit, _HINT)
        found = {} if content is None else _values(path, decode(content, path))
        if path != files[0]:
            _require_allowed(path, found)
        for name, value in found.items():
            frozen = tuple(value) if isinstance(value, list) else value
            settings[name] = Setting(name, frozen, str(path))
    return settings


def _require_allowed(path: Path, found: dict[str, Any]) -> None:
    """Raise UsageError if the file of a project decides what only the user may decide."""
    for name in found:
        if KEY_NAMED[name].user_only:
            raise UsageError(
                f"{path}: {name} is not allowed in the settings of a project",
                f"Remove it, or set it for yourself in {user_file()}",
            )


def _values(path: Path, text: str) -> dict[str, Any]:
    if path.name == FILE_NAME:
        return _from_toml(path, text)
    from gsd_fsm.config.opti_gsd import from_json, from_markdown

    return from_json(path, text) if path.suffix == ".json" else from_markdown(path, text)


def _from_toml(path: Path, text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what = str(error).split(" (at ")[0].replace("Cannot overwrite a value", "duplicate key")
        row = re.search(r"\(at line (\d+)", str(error))
        line = int(row[1]) if row else text.count("\n") + 1
        raise Malformed(path, line, f"not valid TOML: {what}", _EXAMPLE) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: too many digits or brackets", _EXAMPLE) from error
    for name, value in found.items():
        key = KEY_NAMED.get(name)
        if key is None:
            raise _unknown(_place(path, text, name), name, isinstance(value, dict))
        if not key.rule.accepts(value):
            raise key.refusal(_place(path, text, name), name, value)
    return found


def _place(path: Path, text: str, name: str) -> str:
    # Settings are flat, so the first line that begins with the name is the one that sets it.
    found = re.search(rf"^[ \t\[\"']*{re.escape(name)}(?!\w)", text, re.MULTILINE)
    return f"{path}:{text.count(chr(10), 0, found.start()) + 1}" if found else str(path)


def _unknown(where: str, name: str, is_table: bool) -> UsageError:
    import difflib

    if is_table:
        return UsageError(f"{where}: unknown table {name[:80]!r}", "Write settings without tables.")
    near = difflib.get_close_matches(name[:80].lower(), KEY_NAMED, 1)
    what = f"unknown key {name[:80]!r}" + (f" (did you mean {near[0]!r}?)" if near else "")
    return UsageError(f"{where}: {what}", "Use one of: " + ", ".join(KEY_NAMED))
