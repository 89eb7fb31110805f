"""Read configuration files: TOML, JSON and INI as tables, and the parts that a program reads."""

from __future__ import annotations

import re
import sys
from typing import Any

Table = dict[str, Any]
_MOST_DOTS = 100  # of a line
_SECTION = re.compile(r"\[([^]\n]+)\]")
_INI = (".ini", ".cfg", ".conf", ".coveragerc", ".flake8", "pylintrc")


def table_of(path: str, text: str) -> Table:
    """Return the content of a TOML, JSON or INI file; {} if it is another one, or not valid."""
    try:
        if path.endswith((".toml", "Pipfile")):
            return read_toml(text)
        if path.endswith(".json"):
            import json

            found = json.loads(text)
            return found if isinstance(found, dict) else {}
    except (ValueError, RecursionError):  # both decoders raise subclasses of ValueError
        return {}
    return _from_ini(text) if path.endswith(_INI) else {}


def read_toml(text: str) -> Table:
    """Return the content of a TOML file; raise ValueError if it is not valid, or costly to read."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    if any(line.count(".") > _MOST_DOTS for line in text.split("\n")):
        raise ValueError("too many dots")  # tomllib takes quadratic time
    return tomllib.loads(text)


def _from_ini(text: str) -> Table:
    """Return sections and their values; a value goes on in indented lines.

    configparser refuses a whole file for one line, and most runners do not use it.
    """
    found: dict[str, dict[str, str]] = {}
    section: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith(("#", ";")):
            continue
        if header := _SECTION.match(line):
            section, key = found.setdefault(header[1].strip(), {}), ""
        elif line[0].isspace() and key:
            section[key] += f"\n{line.strip()}"
        else:
            name, sign, value = _pair(line)
            key = name.strip() if sign else ""
            if key:
                section[key] = value.strip()
    return found


def _pair(line: str) -> tuple[str, str, str]:
    """Return key, sign and value of a line, split at the first "=" or ":"."""
    place = min((line.find(sign) for sign in "=:" if sign in line), default=-1)
    return (line, "", "") if place < 0 else (line[:place], line[place], line[place + 1 :])


def find_part(table: object, part: str) -> Any:
    """Return the value at a path of keys joined by "/", None without it; a key may contain "/"."""
    if not isinstance(table, dict):
        return None
    if part in table:
        return table[part]
    for key, value in table.items():
        if part.startswith(f"{key}/"):
            found = find_part(value, part[len(key) + 1 :])
            if found is not None:
                return found
    return None


def strings(value: object) -> list[str]:
    """Return the strings of a list, or the words of a string."""
    if isinstance(value, str):
        return value.split()
    return [it for it in value if isinstance(it, str)] if isinstance(value, list) else []
