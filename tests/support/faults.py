"""Help fault tests: damaged journals, failing calls, killed children."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pkgutil
import posix
import random
import resource
import signal
import socket
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import gsd_fsm.core
from gsd_fsm.core import syscalls as lock
from gsd_fsm.core.errors import Corrupt
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.journal.scan import Cursor, into_fold, scan
from gsd_fsm.core.loop.fold import Loops
from tests.support.events import append, draft, new_journal, start_draft

Intercept = Callable[..., Any]
NOBODY = 65_534  # a user id without permissions
# Every module of the core that makes system calls.
MODULES = [
    module
    for found in pkgutil.walk_packages(gsd_fsm.core.__path__, "gsd_fsm.core.")
    if hasattr(module := import_module(found.name), "system")
    and found.name != "gsd_fsm.core.ancestors"  # their number depends on who runs the tests
]
HARMLESS = ("getpid", "geteuid", "getcwd", "stat_result")


def torture(goal: int) -> int:
    """Return the number of rounds of a long campaign: the goal times GSD_TORTURE."""
    return max(1, int(goal * float(os.environ.get("GSD_TORTURE", "1.0"))))


# journals


def note(text: str) -> dict[str, Any]:
    return draft("note", "lp-1", "agent", {"text": text})


def say(journal_: Journal, *texts: str) -> list[dict[str, Any]]:
    return append(journal_, *[note(text) for text in texts])


def long_journal(gsd: Path, events: int, seed: int = 0, longest: int = 120) -> Journal:
    """Return a journal of this many events, with lines of all lengths."""
    made = new_journal(gsd)
    append(made, start_draft(goal=f"seed {seed}"))
    choose = random.Random(seed)
    for number in range(events - 2):
        say(made, f"{number} " + "x" * choose.randrange(longest))
    return made


def long_bytes(gsd: Path, events: int, seed: int = 0, longest: int = 120) -> bytes:
    long_journal(gsd, events, seed, longest)
    return (gsd / "journal.jsonl").read_bytes()


def pad_to(journal_: Journal, place: int, sector: int = 512) -> None:
    """Append until the next line begins at this offset of a sector."""
    path = Path(journal_.journal_path())
    size = path.stat().st_size
    say(journal_, "x")
    line = path.stat().st_size - size
    say(journal_, "x" * (1 + (place - size - 2 * line) % sector))
    assert path.stat().st_size % sector == place


def sums(data: bytes) -> list[str]:
    """Return the sum of each complete line."""
    return [line[-18:-2].decode("ascii", "replace") for line in data.split(b"\n")[:-1]]


def positions(data: bytes) -> list[Cursor]:
    """Return the cursors of a scan before the first line and after each line."""
    found, offset = [Cursor()], 0
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        offset += len(line) + 1
        found.append(Cursor(offset, number, line[-18:-2].decode()))
    return found


class Verdict(NamedTuple):
    """The result of reading some bytes."""

    events: int
    last: str
    torn: int
    damaged: int  # the line, 0 for none


def judge(data: bytes, at: Cursor | None = None) -> Verdict:
    """Scan and fold; with a position, only scan what follows it."""
    loops = Loops()
    take = into_fold(loops) if at is None else lambda _line: None
    begin = at or Cursor()
    try:
        end = scan(lambda offset, size: data[offset : offset + size], len(data), begin, take)
    except Corrupt as damage:
        return Verdict(damage.line - 1, "", 0, damage.line)
    if at is None:
        assert loops.seq == end.line
    return Verdict(end.line, end.sum, end.torn, 0)


def assert_goes_on(gsd: Path, known: list[str]) -> None:
    """Assert that all known events are there in order, and that the next append works."""
    before = Journal(str(gsd)).read()
    held = sums((gsd / "journal.jsonl").read_bytes() + b"\n")
    assert [sum_ for sum_ in held if sum_ in set(known)] == known
    acknowledged = say(Journal(str(gsd)), "next")[-1]
    assert acknowledged["seq"] > before.seq
    data = (gsd / "journal.jsonl").read_bytes()
    assert judge(data) == (acknowledged["seq"], acknowledged["sum"], 0, 0)
    assert [sum_ for sum_ in sums(data) if sum_ in set(known)] == known


# restored directories


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def put_back(folder: Path, files: dict[str, bytes]) -> None:
    """Restore exactly these files in the directory; keep the lock file."""
    for path in folder.iterdir():
        if path.name not in files and path.name != "journal.lock":
            path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def everything_below(folder: Path) -> dict[str, Any]:
    """Return names, modes and contents, to prove that nothing was written."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        plain = path.is_file() and not path.is_symlink() and info.st_size < 1 << 24
        found[str(path)] = (info.st_mode, info.st_size, path.read_bytes() if plain else b"")
    return found


# system calls


class Wired:
    """A module whose system calls go through `intercept(name, real, *args)`."""

    def __init__(self, module: Any, intercept: Intercept) -> None:
        self.module = module
        self.intercept = intercept

    def __getattr__(self, name: str) -> Any:
        real = getattr(self.module, name)
        if not callable(real) or name in HARMLESS:
            return real
        return lambda *args, **more: self.intercept(name, real, *args, **more)


@contextlib.contextmanager
def wired(intercept: Intercept) -> Iterator[None]:
    """Pass every system call of the journal through `intercept`."""
    with pytest.MonkeyPatch.context() as patch:
        for module in MODULES:
            patch.setattr(module, "system", Wired(posix, intercept))
        patch.setattr(lock, "fcntl", Wired(fcntl, intercept))
        yield


def calls_of(work: Callable[[], Any]) -> list[tuple[str, int]]:
    """Return the calls that the work makes: names and numbers of bytes written."""
    seen: list[tuple[str, int]] = []

    def watch(name: str, real: Any, *args: Any, **more: Any) -> Any:
        seen.append((name, len(args[1]) if name == "write" else 0))
        return real(*args, **more)

    with wired(watch):
        work()
    return seen


def without_sync(name: str, real: Any, *args: Any, **more: Any) -> Any:
    return None if name == "fsync" else real(*args, **more)


@contextlib.contextmanager
def limited(what: int, most: int) -> Iterator[None]:
    """Limit a resource of this process."""
    soft, hard = resource.getrlimit(what)
    resource.setrlimit(what, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(what, (soft, hard))


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


# children


def in_child(work: Callable[[], Any]) -> int:
    """Fork a child that does this and exits with 0; return its pid."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking while threads run
        pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - the child must not run the tests of its parent
        traceback.print_exc()
    finally:
        os._exit(code)


def outcome(pid: int) -> int:
    """Wait for a child; return its exit code, or the negated signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def apart(function: Callable[..., Any], *arguments: str) -> None:
    """Call a function of a module in a process of its own, which must succeed.

    That process is small. In one that has imported all tests, most of the time of a fork is spent
    on copying memory.
    """
    code = "import sys; from importlib import import_module as load"
    code += "; getattr(load(sys.argv[1]), sys.argv[2])(*sys.argv[3:])"
    named = (function.__module__, function.__name__)
    done = subprocess.run(
        [sys.executable, "-c", code, *named, *arguments], cwd=Path(__file__).parents[2],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def drained(reader: int) -> bytes:
    with os.fdopen(reader, "rb") as file:
        return file.read()


# calls that fail


class At:
    """Replaces the n-th call, and keeps its name."""

    def __init__(self, number: int, fate: Callable[..., Any]) -> None:
        self.number, self.fate = number, fate
        self.name = ""

    def __call__(self, name: str, real: Any, *args: Any, **more: Any) -> Any:
        self.number -= 1
        if self.number == -1:
            self.name = name
            return self.fate(name, real, *args, **more)
        return without_sync(name, real, *args, **more)


def failing(error: int) -> Callable[..., Any]:
    def fail(name: str, real: Any, *args: Any, **more: Any) -> Any:
        if name == "close":
            real(*args)  # a failed close still frees the descriptor
        raise OSError(error, os.strerror(error))

    return fail


def cut_short(name: str, real: Any, *args: Any, **more: Any) -> Any:
    return real(args[0], args[1][:-1]) if name == "write" else real(*args, **more)


def killed(written: int) -> Callable[..., Any]:
    def die(name: str, real: Any, *args: Any, **more: Any) -> Any:
        if name == "write":
            real(args[0], args[1][:written])
        os.kill(os.getpid(), signal.SIGKILL)

    return die


# irregular files


def _link(path: Path, away: Path) -> None:
    path.rename(away)
    path.symlink_to(away)


def _replaced(make: Callable[[Path, Path], Any]) -> Callable[[Path, Path], None]:
    def replace(path: Path, away: Path) -> None:
        path.unlink()
        make(path, away)

    return replace


def _socket(path: Path, away: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{folder}/{path.name}")  # the name of a socket must be short
    os.close(folder)


def _device(path: Path, away: Path) -> None:
    """Make a device node, which needs root, else a link to one, which is refused as well."""
    if os.geteuid() == 0:
        os.mknod(path, 0o20600, os.makedev(1, 7))
    else:
        path.symlink_to("/dev/full")


KINDS: dict[str, Callable[[Path, Path], Any]] = {
    "a link": _link,
    "a dangling link": _replaced(lambda path, away: path.symlink_to(away)),
    "a hard link": os.link,
    "a pipe": _replaced(lambda path, away: os.mkfifo(path)),
    "a socket": _replaced(_socket),
    "a device": _replaced(_device),
    "a directory": _replaced(lambda path, away: path.mkdir()),
    "a tebibyte": lambda path, away: os.truncate(path, 1 << 40),
}
