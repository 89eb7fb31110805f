"""Shapes as data: YAML in the front matter or in a fence, and JSON in a fence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from gsd_fsm.shapes.command import read_method
from gsd_fsm.shapes.entry import CRITERIA, MUST_NOT, VERIFICATION, Entry, Unreadable

# Both bound the work that a hostile text can make.
MOST_CHARACTERS = 64 * 1024
_DEEPEST = 12
_KEYS = {
    **dict.fromkeys(("criteria", "successcriteria", "acceptancecriteria"), CRITERIA),
    **dict.fromkeys(("mustnot", "mustnots", "mustnever"), MUST_NOT),
    **dict.fromkeys(
        ("verification", "verifications", "verificationcommands", "verify", "checks"), VERIFICATION
    ),
}
_WRAPPERS = ("shape", "loop", "loopintegration", "output", "spec", "goal")
_NAMES = ("name", "criterion", "text", "title", "description", "constraint", "what", "id")
_COMMANDS = ("command", "cmd", "run", "check", "shell", "exec")
_METHODS = ("verify", "verification", "method", "how", "test", "proof")


class Tree(NamedTuple):
    """A value as it was written: a text, a list or a mapping; None is nothing at all.

    Numbers and the like are texts too, but `is_text` only what was meant to be one.
    """

    line: int
    value: str | list[Tree] | dict[str, Tree] | None
    is_text: bool = True


def yaml_tree(text: str, first: int) -> Tree:
    """The document in this text, whose first line has this number; Unreadable if it is none."""
    import yaml

    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > _DEEPEST:
                line = event.start_mark.line if event.start_mark else 0
                raise Unreadable(first + line, "YAML that is too deep, or has an alias")
        return _from_node(yaml.compose(text, Loader=yaml.SafeLoader), first)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
        raise Unreadable(first + (mark.line if mark else 0), f"not valid YAML: {why}") from error


def _from_node(node: Any, first: int) -> Tree:
    import yaml

    if node is None:
        return Tree(first, None)
    line = first + node.start_mark.line
    if isinstance(node, yaml.SequenceNode):
        return Tree(line, [_from_node(item, first) for item in node.value])
    if isinstance(node, yaml.MappingNode):
        members: dict[str, Tree] = {}
        for key, value in node.value:
            at = first + key.start_mark.line
            if not isinstance(key, yaml.ScalarNode):
                raise Unreadable(at, "a key that is no text: put it in quotes")
            if key.value in members:
                raise Unreadable(at, f"duplicate key {key.value[:80]!r}")
            members[key.value] = _from_node(value, first)
        return Tree(line, members)
    kind = node.tag.rpartition(":")[2]
    return Tree(line, None if kind == "null" else str(node.value).strip(), kind in ("str", "null"))


def json_tree(text: str, first: int) -> Tree:
    """The value in this text, whose first line has this number; Unreadable if it is none."""
    import json

    def refuse(constant: str) -> NoReturn:
        raise Unreadable(first, f"{constant} is no JSON value")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise Unreadable(first, f"duplicate key {twice[:80]!r}")
        return members

    try:
        value = json.loads(
            text, object_pairs_hook=unique, parse_constant=refuse, parse_int=str, parse_float=str
        )
    except json.JSONDecodeError as error:
        what = f"not valid JSON: {error.msg}"
        raise Unreadable(first + error.lineno - 1, what) from error
    except RecursionError as error:
        raise Unreadable(first, "JSON that is too deep") from error
    return _from_value(value, first, _DEEPEST)


def _from_value(value: Any, line: int, deepest: int) -> Tree:
    if not deepest:
        raise Unreadable(line, "JSON that is too deep")
    if isinstance(value, list):
        return Tree(line, [_from_value(item, line, deepest - 1) for item in value])
    if isinstance(value, dict):
        members = {name: _from_value(item, line, deepest - 1) for name, item in value.items()}
        return Tree(line, members)
    if value is None or isinstance(value, bool):
        return Tree(line, None if value is None else str(value).lower(), value is None)
    return Tree(line, str(value).strip())


def data_entries(tree: Tree, section: str) -> list[Entry]:
    """The entries under known keys; without any, those of the section that the text stands in."""
    if isinstance(tree.value, dict):
        for name, value in tree.value.items():
            if _plain(name) in _WRAPPERS and section_keys(value):
                return data_entries(value, section)
        if section_keys(tree):
            return [
                entry
                for name, value in tree.value.items()
                if _plain(name) in _KEYS
                for entry in _entries(_KEYS[_plain(name)], value)
            ]
        if not _is_meant(section, tree.value):
            return []
    return list(_entries(section, tree)) if section else []


def _is_meant(section: str, members: dict[str, Tree]) -> bool:
    """Whether a mapping without our keys, somewhere under our headings, is more than an example."""
    if section == VERIFICATION:
        found = [
            entry for name, value in members.items() for entry in _member(section, name, value)
        ]
        return any(
            read_method(e.text, e.method, certain=e.certain).command for e in found if e.method
        )
    values = members.values()
    if section == CRITERIA:
        return all(isinstance(tree.value, dict) or not tree.is_text for tree in values)
    return all(isinstance(tree.value, str) for tree in values)


def section_keys(tree: Tree) -> list[str]:
    """The keys of a mapping that begin a part of a shape."""
    return (
        [name for name in tree.value if _plain(name) in _KEYS]
        if isinstance(tree.value, dict)
        else []
    )


def _plain(name: str) -> str:
    return "".join(filter(str.isalpha, name.lower()))


def _entries(section: str, tree: Tree) -> Iterator[Entry]:
    if isinstance(tree.value, str):
        if not tree.is_text:
            raise Unreadable(tree.line, f"a list of texts is wanted, not {tree.value[:80]}")
        yield Entry(section, tree.value, tree.line)
    elif isinstance(tree.value, list):
        for item in tree.value:
            yield from _item(section, item)
    elif isinstance(tree.value, dict):
        for name, value in tree.value.items():
            yield from _member(section, name, value)


def _item(section: str, tree: Tree) -> Iterator[Entry]:
    if isinstance(tree.value, str):
        yield Entry(section, tree.value, tree.line)
    elif isinstance(tree.value, list):
        raise Unreadable(tree.line, "a list in a list: each entry is one text")
    elif isinstance(tree.value, dict):
        known = {name.lower(): value for name, value in tree.value.items()}
        named = next((known[name].value for name in _NAMES if name in known), None)
        if isinstance(named, str):
            yield _described(section, named, known, tree.line)
        elif section == VERIFICATION:
            yield from _entries(section, tree)
        else:
            parts = [f"{name}: {inner.value}" for name, inner in tree.value.items()]
            if not all(isinstance(inner.value, str) for inner in tree.value.values()):
                raise Unreadable(tree.line, "an entry that is no text: put it in quotes")
            yield Entry(section, "; ".join(parts), tree.line)


def _member(section: str, name: str, tree: Tree) -> Iterator[Entry]:
    """`name: value`, of which the value is a command, words, a list of them, or a description."""
    value = tree.value
    if isinstance(value, dict):
        known = {member.lower(): inner for member, inner in value.items()}
        yield _described(section, name, known, tree.line)
    elif isinstance(value, list):
        for item in value:
            yield from _member(section, name, item)
    elif value is None or not tree.is_text:  # such as whether it is met
        yield Entry(section, name, tree.line)
    elif section == VERIFICATION:
        yield Entry(section, name, tree.line, value)
    else:
        yield Entry(section, f"{name}: {value}", tree.line)


def _described(section: str, name: str, known: dict[str, Tree], line: int) -> Entry:
    def text(names: tuple[str, ...]) -> str:
        found = (known[key].value for key in names if key in known)
        return next((value for value in found if isinstance(value, str)), "")

    command = text(_COMMANDS)
    return Entry(section, name, line, command or text(_METHODS), certain=bool(command))
