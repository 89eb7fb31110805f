"""The source of a `bash.exe` for Wine, where there is no Git Bash: it hands `-c` to the /bin/sh of Linux.

Wine starts programs of Linux in the same directory and with the same variables, but gives them neither
its pipes nor a handle to wait for: the shell writes into files, and these are passed on.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_TEMP = "/tmp"  # which Wine calls Z:\tmp
_RUN = (
    'sh -c "$SHELL_COMMAND" >$SHELL_FILES/out 2>&1 </dev/null; echo $? >$SHELL_FILES/new; '
    "mv $SHELL_FILES/new $SHELL_FILES/code"
)
_SLICE_SECONDS = 0.01


def is_wine() -> bool:
    return sys.platform == "win32" and hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")


def run_in_sh(command: str) -> int:
    """Run a command in /bin/sh, pass its output on, and return its exit code."""
    import _winapi

    folder = Path(tempfile.mkdtemp(dir=f"Z:{_TEMP}"))
    variables = {"SHELL_COMMAND": command, "SHELL_FILES": f"{_TEMP}/{folder.name}"}
    line = subprocess.list2cmdline(["sh", "-c", _RUN])
    output, code = folder / "out", folder / "code"
    output.touch()
    try:
        _winapi.CreateProcess(
            r"\\?\unix\bin\sh", line, None, None, False, 0, {**os.environ, **variables}, None, None
        )
        with output.open("rb") as printed:
            has_ended = False
            while not has_ended:
                time.sleep(_SLICE_SECONDS)
                has_ended = code.exists()
                sys.stdout.buffer.write(printed.read())
                sys.stdout.buffer.flush()
        return int(code.read_text())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    option, text = sys.argv[1:]
    if option != "-c":
        sys.exit(f"this shell knows only -c, not {option}")
    # The shells of Git split their command line at line feeds too: only the first line is left.
    sys.exit(run_in_sh(text.partition("\n")[0]))
