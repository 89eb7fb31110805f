"""The operating system, without the cost of importing `os`."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import nt

    system = nt
else:
    import posix

    system = posix

WINDOWS = sys.platform == "win32"
# Nothing is buffered when it is called: finalizing the interpreter would only cost time.
leave = vars(system)["_exit"]  # missing in some type stubs


def getenv(name: str) -> str:
    """Return a variable's value, "" if unset; see changes made through `os` if it is loaded."""
    loaded = sys.modules.get("os")
    if loaded is not None:
        return str(loaded.environ.get(name, ""))
    if sys.platform == "win32":
        return str(system.environ.get(name.upper(), ""))
    return system.environ.get(name.encode(), b"").decode("utf-8", "surrogateescape")


def join(directory: str, name: str) -> str:
    return directory.rstrip("/" if not WINDOWS else "/\\") + ("\\" if WINDOWS else "/") + name
