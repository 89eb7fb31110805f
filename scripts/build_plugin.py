"""Write the plugin that the client installs from this repository: `build_plugin.py`."""

from __future__ import annotations

from pathlib import Path

from gsd_fsm.install.plugin import MARKETPLACE, contents, marketplace

ROOT = Path(__file__).resolve().parents[1]


def build() -> dict[str, bytes]:
    """Return the content of every generated file by its path in the repository."""
    files = {f"plugin/{name}": content for name, content in contents(None).items()}
    return {MARKETPLACE: marketplace(), **files}


def main() -> None:
    files = build()
    for name, content in files.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    print(f"plugin: {len(files)} files")


if __name__ == "__main__":
    main()
