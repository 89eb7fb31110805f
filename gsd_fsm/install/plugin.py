"""A plugin directory for Claude Code: the hook, the commands, and the manifest that names them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gsd_fsm
from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.files import Change, current_content
from gsd_fsm.install.hook_entries import EVENTS, entry, items_of
from gsd_fsm.install.installer import packaged_hook

NAME = "gsd-fsm"
MANIFEST = ".claude-plugin/plugin.json"
HOOKS = "hooks/hooks.json"
ROOT = "${CLAUDE_PLUGIN_ROOT}"  # replaced by the client, inside each argument
_DESCRIPTION = "Loops that end when they are done: a journalled state machine decides every stop"


def contents(python: str) -> dict[str, bytes]:
    """Every file of the plugin by its name; the hook is started by this interpreter."""
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
    """What must be written so that the directory is this plugin; UsageError if it is another's."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is not a directory", "name a new or empty directory")
    if directory.is_dir() and any(directory.iterdir()) and not is_ours(directory):
        raise UsageError(
            f"{directory} is not empty and not a plugin of gsd-fsm",
            "name a new or empty directory",
        )
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
    """Under which names these settings switch our plugin on."""
    return {
        name
        for document in documents
        for name, on in items_of(document, "enabledPlugins")
        if on and name.partition("@")[0] == NAME
    }


def read_json(path: Path) -> Any:
    """What the file says, None if there is none or it is no JSON."""
    try:
        return json.loads(current_content(path) or b"")
    except ValueError:
        return None


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
