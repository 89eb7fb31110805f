"""Programs that a test makes from Python source, and that start on every system."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from pathlib import Path

SUFFIX = ".exe" if sys.platform == "win32" else ""


def make_program(path: Path, source: str) -> Path:
    """Write a program that runs this source; on Windows in the launcher with which pip makes commands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(path.name + SUFFIX)
    if sys.platform == "win32":
        from importlib.resources import files

        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("__main__.py", source)
        launcher = files("distlib").joinpath("t64.exe").read_bytes()
        line = f'#!"{sys.executable}"\r\n'.encode()
        made.write_bytes(launcher + line + content.getvalue())
    else:
        made.write_text(f"#!{sys.executable}\n{source}", "utf-8")
        made.chmod(0o755)
    return made


def on_path(*folders: Path | str) -> str:
    """Return a PATH of these directories."""
    return os.pathsep.join(map(str, folders))
