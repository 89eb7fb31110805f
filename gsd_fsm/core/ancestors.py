"""Read which processes started this one, and which of them are coding clients.

Linux reports them in /proc, Windows through its tool help library, other systems through `ps`.
Importing what the latter two need is expensive: only callers that depend on it read ancestors.
"""

from __future__ import annotations

import sys

from gsd_fsm.core.client_programs import client_of_command, is_headless_command
from gsd_fsm.core.system import exists, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    Find = Callable[[int], Optional["Process"]]

# The ancestors that a simulation pretends to have; the last ones count.
PRETENDED: list[list[Process]] = []
_MOST = 64
_MAX_ARGUMENTS = 1 << 16
_SECONDS = 5


class Process:
    """A process: its parent, the names and paths of its program, and its arguments."""

    __slots__ = ("arguments", "parent", "pid", "programs")

    def __init__(self, pid: int, parent: int, programs: list[str], arguments: list[str]) -> None:
        self.pid = pid
        self.parent = parent
        self.programs = programs
        self.arguments = arguments


class Client:
    """A coding client that runs above this process; `headless`: without a user."""

    __slots__ = ("headless", "name", "pid")

    def __init__(self, name: str, pid: int, headless: bool) -> None:
        self.name = name
        self.pid = pid
        self.headless = headless


def ancestors() -> list[Process]:
    """Return the processes above this one, the nearest first; [] if they cannot be read."""
    if PRETENDED:
        return PRETENDED[-1]
    try:
        if sys.platform == "win32":
            return _climb(_windows_finder())
        if exists("/proc/self/stat"):
            return _climb(_in_proc)
        return _climb(_ps_finder())
    except Exception:  # noqa: BLE001 - whatever the system refuses, the variables decide then
        return []


def clients_among(processes: list[Process]) -> list[Client]:
    """Return the clients among these processes, the nearest first.

    A client may consist of several processes, each the parent of the next.
    """
    found: list[Client] = []
    below = ""
    for process in processes:
        name = client_of_command(process.programs, process.arguments)
        headless = is_headless_command(name, process.arguments) if name else False
        if name and name == below:
            found[-1].headless = found[-1].headless or headless
        elif name:
            found.append(Client(name, process.pid, headless))
        below = name
    return found


def start_time(pid: int) -> str:
    """Return the start time of a process as the system writes it; "" if it cannot be read.

    Two processes with the same id began at different times.
    """
    if PRETENDED:
        return "pretended"
    try:
        if sys.platform == "win32":
            return str(_windows_closer()(pid)[0] or "")
        if exists("/proc/self/stat"):
            return _text(_read("/proc/%d/stat" % pid).rpartition(b")")[2].split()[19])
        return _ps("-o", "lstart=", "-p", str(pid)).strip()
    except Exception:  # noqa: BLE001 - whatever the system refuses
        return ""


def _climb(find: Find) -> list[Process]:
    found: list[Process] = []
    process = find(system.getpid())
    while process is not None and process.parent > 0 and len(found) < _MOST:
        process = find(process.parent)
        if process is not None:
            found.append(process)
    return found


# Linux


def _in_proc(pid: int) -> Process | None:
    place = "/proc/%d/" % pid
    try:
        stat = _read(place + "stat")
    except OSError:
        return None  # it has ended, or this user may not see it
    # The name is in parentheses and may contain any character.
    name, _, rest = stat.partition(b"(")[2].rpartition(b")")
    programs = [_text(name)]
    try:
        programs.append(system.readlink(place + "exe"))
    except OSError:
        pass  # a process of another user
    return Process(pid, int(rest.split()[1]), programs, _arguments(place))


def _arguments(place: str) -> list[str]:
    try:
        return [_text(word) for word in _read(place + "cmdline")[:-1].split(b"\0")]
    except OSError:
        return []


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _read(path: str) -> bytes:
    fd = system.open(path, system.O_RDONLY)
    try:
        return bytes(system.read(fd, _MAX_ARGUMENTS))
    finally:
        system.close(fd)


# macOS and other systems


def _ps(*options: str) -> str:
    from subprocess import DEVNULL, PIPE, run

    command = ["/bin/ps", *options]
    done = run(command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, timeout=_SECONDS, check=False)
    return done.stdout.decode("utf-8", "replace")


def _ps_finder() -> Find:
    known: dict[int, Process] = {}
    for line in _ps("-A", "-ww", "-o", "pid=,ppid=,args=").splitlines():
        pid, parent, *words = line.split()
        known[int(pid)] = Process(int(pid), int(parent), [], words)
    return known.get


# Windows


def _windows_closer() -> Callable[[int], tuple[int, str]]:
    """Return a function that finds the start time of a process, 0 if unknown, and its command line."""
    import ctypes

    if sys.platform != "win32":
        raise OSError("not Windows")
    pointer = ctypes.c_void_p
    kernel: Any = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.OpenProcess.restype = pointer

    def look_closer(pid: int) -> tuple[int, str]:
        handle = pointer(kernel.OpenProcess(0x1000, False, pid))  # for limited information
        if not handle.value:
            return 0, ""
        try:
            times = (ctypes.c_uint64 * 4)()
            places = [ctypes.byref(times, 8 * n) for n in range(4)]
            began = int(times[0]) if kernel.GetProcessTimes(handle, *places) else 0
            # A UNICODE_STRING and its text; class 60 is ProcessCommandLineInformation.
            answer = ctypes.create_string_buffer(_MAX_ARGUMENTS + 1024)
            query: Any = ctypes.WinDLL("ntdll").NtQueryInformationProcess
            if query(handle, 60, answer, len(answer), None):
                return began, ""
            size = int.from_bytes(answer.raw[:2], "little")
            text = answer.raw[2 * ctypes.sizeof(pointer) :][:size]
            return began, text.decode("utf-16-le", "replace")
        finally:
            kernel.CloseHandle(handle)

    return look_closer


def _windows_finder() -> Find:
    """Return a function that finds a process in a list of all; the list names only programs."""
    import ctypes

    if sys.platform != "win32":
        raise OSError("not Windows")
    word, pointer = ctypes.c_uint32, ctypes.c_void_p

    class Entry(ctypes.Structure):
        _fields_ = (
            ("size", word), ("uses", word), ("pid", word), ("heap", ctypes.c_size_t),
            ("module", word), ("threads", word), ("parent", word), ("priority", ctypes.c_int32),
            ("flags", word), ("program", ctypes.c_wchar * 260),
        )  # fmt: skip

    kernel: Any = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.CreateToolhelp32Snapshot.restype = pointer
    snapshot = pointer(kernel.CreateToolhelp32Snapshot(2, 0))  # TH32CS_SNAPPROCESS
    entry = Entry(size=ctypes.sizeof(Entry))
    known: dict[int, Process] = {}
    more = kernel.Process32FirstW(snapshot, ctypes.byref(entry))
    while more:
        known[entry.pid] = Process(entry.pid, entry.parent, [entry.program], [])
        more = kernel.Process32NextW(snapshot, ctypes.byref(entry))
    kernel.CloseHandle(snapshot)

    look_closer = _windows_closer()

    def find(pid: int) -> Process | None:
        process = known.get(pid)
        if process is not None:
            began, line = look_closer(pid)
            process.arguments = split_command_line(line)
            # The id of a parent that has ended may belong to a younger process now.
            if began and look_closer(process.parent)[0] > began:
                process.parent = 0
        return process

    return find


def split_command_line(line: str) -> list[str]:
    """Return the arguments in a command line of Windows: blanks separate them, except in quotes."""
    words = [""]
    quoted = False
    for char in line:
        if char == '"':
            quoted = not quoted
        elif char.isspace() and not quoted:
            words.append("")
        else:
            words[-1] += char
    return [word for word in words if word]
