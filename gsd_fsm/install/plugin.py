"""Write a plugin directory for Claude Code: hook, commands, agent and manifest."""

from __future__ import annotations

import contextlib
import json
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import gsd_fsm
from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.files import Change, current_content
from gsd_fsm.install.hook_entries import EVENTS, entry, items_of, ours
from gsd_fsm.install.hook_file import packaged_hook

NAME = "gsd-fsm"
MARKETPLACE = ".claude-plugin/marketplace.json"
MANIFEST = ".claude-plugin/plugin.json"
HOOKS = "hooks/hooks.json"
_SHELL = "sh"
# Run the arguments with the first Python that can run the hook, from an absolute directory of the
# PATH outside of the project that is not a store's. Without one, a new session shows why, and the
# agent may stop. Not a file, since a shell whose script is missing may exit with the code of a block.
_LAUNCH = """set -f
IFS=:
project=${CLAUDE_PROJECT_DIR:-$PWD}
for place in $PATH; do
    case $place in
    "$project" | "$project"/* | */WindowsApps*) continue ;;
    /*) ;;
    *) continue ;;
    esac
    for python in "$place/python3" "$place/python"; do
        [ -f "$python" ] && [ -x "$python" ] &&
            "$python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null </dev/null &&
            exec "$python" "$@"
    done
done
IFS= read -r signal
case $signal in
*'"hook_event_name":'*'"SessionStart"'*)
    echo '{"systemMessage": "gsd-fsm: no python3 on the PATH: the hook of the plugin cannot run"}' ;;
esac"""
ROOT = "${CLAUDE_PLUGIN_ROOT}"  # the client replaces it in each argument
_DESCRIPTION = "Loops that end when they are done: a journalled state machine decides every stop"


def hook_of(root: str, python: str | None) -> dict[str, Any]:
    """Return the hook of the plugin in this directory.

    Without an interpreter, a launcher finds one: such a plugin works on every machine.
    """
    if python is not None:
        return entry(python, f"{root}/hooks", "plugin")
    hook = entry(_SHELL, f"{root}/hooks", "plugin")
    return {**hook, "args": ["-c", _LAUNCH, NAME, *hook["args"]]}


def is_portable(hook: dict[str, Any]) -> bool:
    return hook.get("command") == _SHELL


def contents(python: str | None) -> dict[str, bytes]:
    """Return every file of the plugin by its name; this interpreter runs the hook, or a launcher."""
    hook = hook_of(ROOT, python)
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


def is_portable_at(directory: Path) -> bool:
    """Return whether the plugin in this directory works on every machine."""
    found = ours(read_json(directory / HOOKS))
    return bool(found) and is_portable(found[0].hook)


def plan(directory: Path, python: str | None) -> list[Change]:
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


class Installed(NamedTuple):
    """An installed copy of our plugin: the directory that the client reads, and the command that updates it."""

    directory: Path
    fix: str


def fix_of(directory: Path) -> str:
    """Return the command that rewrites the plugin in this directory."""
    return f"gsd-fsm init --plugin {shlex.quote(str(directory))}"


def installed(documents: list[Any], client: Path) -> list[Installed]:
    """Return the installed copies of our plugin that these settings enable."""
    known = read_json(client / "plugins" / "installed_plugins.json")
    markets = read_json(client / "plugins" / "known_marketplaces.json")
    found = []
    with contextlib.suppress(TypeError, KeyError):
        for name in sorted(enabled(documents)):
            market = name.partition("@")[2]
            place = _read_in_place(markets, market)
            again = f"claude plugin uninstall {name} && claude plugin install {name}"
            update = f"claude plugin marketplace update {market} && {again}"
            found += [
                Installed(Path(each["installPath"]), update)
                if place is None
                else Installed(place, fix_of(place))
                for each in known["plugins"][name]
            ]
    return found


def _read_in_place(markets: Any, market: str) -> Path | None:
    """Return the directory of our plugin if the client reads it in the marketplace, else None."""
    try:
        if markets[market]["source"]["source"] != "directory":
            return None
        root = Path(markets[market]["installLocation"])
        (source,) = (
            it["source"] for it in read_json(root / MARKETPLACE)["plugins"] if it["name"] == NAME
        )
        return Path(root, source).resolve()
    except (TypeError, KeyError, ValueError):
        return None


def marketplace() -> bytes:
    """Return the file that lets the client install the plugin from the directory `plugin`."""
    plugin = {"name": NAME, "source": "./plugin", "description": _DESCRIPTION}
    return _json(
        {
            "name": NAME,
            "owner": {"name": NAME},
            "metadata": {"description": _DESCRIPTION},
            "plugins": [plugin],
        }
    )


def read_json(path: Path) -> Any:
    """Return the content of the file; None if it is missing or not JSON."""
    try:
        return json.loads(current_content(path) or b"")
    except ValueError:
        return None


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
