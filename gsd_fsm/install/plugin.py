"""Write a plugin directory for Claude Code: hook, commands, agent and manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gsd_fsm
from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.files import Change, current_content
from gsd_fsm.install.hook_entries import EVENTS, entry, items_of
from gsd_fsm.install.hook_file import packaged_hook

NAME = "gsd-fsm"
MANIFEST = ".claude-plugin/plugin.json"
HOOKS = "hooks/hooks.json"
ROOT = "${CLAUDE_PLUGIN_ROOT}"  # the client replaces it in each argument
_DESCRIPTION = "Loops that end when they are done: a journalled state machine decides every stop"


def contents(python: str) -> dict[str, bytes]:
    """Return every file of the plugin by its name; this interpreter runs the hook."""
    hook = entry(python, f"{ROOT}/hooks", "plugin")
    templates = Path(__file__).with_name("plugin_files")
    return {
        MANIFEST: _json(
            {
                "name": NAME,
                "version": gsd_fsm.__version__,
                "description": _DESCRIPTION,
                "author": {"name": NAME},
                "license": "MIT",
            }
        ),
        HOOKS: _json(
            {
                "description": _DESCRIPTION,
                "hooks": {event: [{"hooks": [hook]}] for event in EVENTS},
            }
        ),
        f"hooks/{packaged_hook().name}": packaged_hook().read_bytes(),
        **{
            path.relative_to(templates).as_posix(): path.read_bytes()
            for path in sorted(templates.rglob("*"))
            if path.is_file()
        },
    }


def plan(directory: Path, python: str) -> list[Change]:
    """Return the changes that make this directory the plugin; raise UsageError if it is not ours."""
    hint = "Name a new or empty directory."
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is not a directory", hint)
    if directory.is_dir() and any(directory.iterdir()) and not is_ours(directory):
        raise UsageError(f"{directory} is neither empty nor a gsd-fsm plugin", hint)
    changes = []
    for name, content in contents(python).items():
        path = directory / name
        before = current_content(path)
        if before != content:
            changes.append(Change(path, before, content))
    return changes


def is_ours(directory: Path) -> bool:
    manifest = read_json(directory / MANIFEST)
    return isinstance(manifest, dict) and manifest.get("name") == NAME


def enabled(documents: list[Any]) -> set[str]:
    """Return the names under which these settings enable our plugin."""
    return {
        name
        for document in documents
        for name, on in items_of(document, "enabledPlugins")
        if on and name.partition("@")[0] == NAME
    }


def installed(documents: list[Any], client: Path) -> list[Path]:
    """Return the directories of our plugin that these settings enable, and the client has."""
    known = read_json(client / "plugins" / "installed_plugins.json")
    try:
        return [
            Path(each["installPath"])
            for name in enabled(documents)
            for each in known["plugins"][name]
        ]
    except (TypeError, KeyError):
        return []


def read_json(path: Path) -> Any:
    """Return the content of the file; None if it is missing or not JSON."""
    try:
        return json.loads(current_content(path) or b"")
    except ValueError:
        return None


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
