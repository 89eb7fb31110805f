"""Tell whether a file that a check depends on still means the same, and show the difference."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from gsd_fsm.protection import syntax
from gsd_fsm.protection.tables import read_toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LARGEST = 1 << 20
LARGEST_SHOWN, MOST_LINES_SHOWN = 1 << 17, 3_000  # difflib takes quadratic time
LONGEST_LINE = 200
_INI_NAMES = frozenset({".flake8", ".coveragerc", ".pylintrc", "pylintrc"})
_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def same(path: str, before: bytes | None, now: bytes | None, parts: Sequence[str] = ()) -> bool:
    """Return whether two contents of a file mean the same to a check; None is a missing file.

    With `parts`, compare only these values: a path of keys ("tool/pytest") in JSON and TOML, a
    section in INI files, "hooks" in Python; a last `*` matches any ending. Compare contents that
    cannot be parsed as bytes.
    """
    if before == now:
        return True
    if not parts and (before is None or now is None):
        return False
    try:
        return _meaning(path, before, parts) == _meaning(path, now, parts)
    except _UNPARSABLE:
        return _without_cr(before) == _without_cr(now)


def has_values(path: str, content: bytes | None, parts: Sequence[str]) -> bool:
    """Return whether any of the parts is in the content, or may be because it cannot be parsed."""
    if content is None or not parts:
        return content is not None
    try:
        return bool(_selection(path, content, parts))
    except _UNPARSABLE:
        return True


def difference(path: str, before: bytes | None, now: bytes | None, most_lines: int = 40) -> str:
    """Return a unified diff of at most that many lines, or one line if it cannot be shown."""
    if before == now:
        return ""
    old, new = _shown(before), _shown(now)
    if old is None or new is None:
        return f"{path}: {_described(before)} as frozen, {_described(now)} now"
    import difflib

    names = f"{path} (as frozen)", f"{path} (now)"
    lines = [*difflib.unified_diff(old, new, *names, n=2, lineterm="")]
    if not lines:
        return f"{path}: only line ends differ"
    if len(lines) > most_lines:
        more = len(lines) - max(most_lines - 1, 0)
        lines[-more:] = [f"… {more} more lines"]
    return "\n".join(_shortened(line) for line in lines)


def _meaning(path: str, content: bytes | None, parts: Sequence[str]) -> str | bytes | None:
    """Return what is to be compared, with keys in one order; raise if it cannot be parsed."""
    if parts:
        selected = {} if content is None else _selection(path, content, parts)
        return _canonical(selected)
    values = None if content is None else _values(path, content)
    return _without_cr(content) if values is None else _canonical(values)


def _canonical(values: Any) -> str:
    """Return JSON, because comparing values would take `true` for 1."""
    return json.dumps(values, sort_keys=True, default=repr)


def _selection(path: str, content: bytes, parts: Sequence[str]) -> dict[str, Any]:
    """Return the selected values by their places; raise if the file has no known structure."""
    if _kind(path, content) == "python":
        values: Any = {"hooks": found} if (found := syntax.hooks(_bounded(content))) else {}
    else:
        values = _values(path, content)
    if values is None:
        raise ValueError("not a file of values")
    keys = [[part] if _kind(path, content) == "ini" else part.split("/") for part in parts]
    return {place: value for wanted in keys for place, value in _selected(values, wanted)}


def _selected(values: Any, keys: Sequence[str], place: str = "") -> Iterator[tuple[str, Any]]:
    if not keys:
        yield place, values
    elif isinstance(values, dict):
        for name, value in values.items():
            if name == keys[0] or (keys[0].endswith("*") and name.startswith(keys[0][:-1])):
                yield from _selected(value, keys[1:], f"{place}/{name}")


def _kind(path: str, content: bytes) -> str:
    """Return the kind of values that a file holds, "" if it is compared as bytes."""
    file = PurePosixPath(path.lower())
    if file.suffix in (".ini", ".cfg") or file.name in _INI_NAMES:
        return "ini"
    if file.suffix in (".json", ".toml"):
        return file.suffix[1:]
    is_python = file.suffix in (".py", ".pyw", ".pyi") or syntax.is_script(content)
    return "python" if is_python else ""


def _values(path: str, content: bytes) -> Any:
    """Return the values of a whole file, None if it is compared as bytes; raise if unparsable."""
    kind = _kind(path, content)
    if not kind:
        return None
    if kind == "python":
        return syntax.meaning(_bounded(content))
    if kind == "json":
        return json.loads(_bounded(content))
    text = _bounded(content).decode("utf-8-sig")
    return read_toml(text) if kind == "toml" else _from_ini(text.replace("\r\n", "\n"))


def _bounded(content: bytes) -> bytes:
    if len(content) > LARGEST:
        raise ValueError("too large to be parsed")
    return content


def _from_ini(text: str) -> dict[str, dict[str, list[str]]]:
    """Return the lines of each value, by section and key; sections inherit those of DEFAULT.

    Raise ValueError for what the parsers of the runners do not read alike.
    """
    if len(text.splitlines()) != len(text.removesuffix("\n").split("\n")) and text:
        raise ValueError("unusual line separators")
    sections: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] | None = None
    value: list[str] | None = None
    for line in text.split("\n"):
        entry = line.strip()
        if not entry or entry[0] in "#;":
            continue
        if line[0].isspace() and value is not None:
            value.append(entry)
        elif entry[0] == "[":
            section, value = _added(sections, _header(entry), {}), None
        else:
            key, *rest = (part.strip() for part in re.split("[=:]", entry, maxsplit=1))
            section = _added(sections, "", {}) if section is None else section
            value = _added(section, key, [part for part in rest if part])
    return {name: sections.get("DEFAULT", {}) | section for name, section in sections.items()}


def _header(line: str) -> str:
    name, end, rest = line[1:].partition("]")
    if not end or "]" in rest or rest.lstrip()[:1] not in ("", "#", ";"):
        raise ValueError("not a section")
    return name


def _added(values: dict[str, Any], key: str, value: Any) -> Any:
    """Return the value after adding it; raise ValueError if the key has one."""
    if key in values:
        raise ValueError("duplicate key or section")
    values[key] = value
    return value


def _without_cr(content: bytes | None) -> bytes | None:
    """Return the content of a text with LF line ends; that of a binary file as it is."""
    if content is None or b"\0" in content:
        return content
    return content.replace(b"\r\n", b"\n")


def _shown(content: bytes | None) -> list[str] | None:
    """Return the lines of a text; None if it is missing, binary or too large for a diff."""
    if content is None or b"\0" in content or len(content) > LARGEST_SHOWN:
        return None
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None
    lines = text.removesuffix("\n").split("\n") if text else []
    return lines if len(lines) <= MOST_LINES_SHOWN else None


def _described(content: bytes | None) -> str:
    if content is None:
        return "missing"
    kind = "" if _shown(content) is not None else "binary or large, "
    return f"{kind}{len(content):,} byte{'' if len(content) == 1 else 's'}"


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
