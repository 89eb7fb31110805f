"""The entry of the hook: read one signal from stdin, print at most one JSON object, exit with 0.

Nothing else is loaded if the signal concerns no project. Failures and timeouts allow the stop.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock, start_new_thread
from time import monotonic, sleep

from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.system import getenv, leave, nearest_gsd, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.hook.clients import Signal

# Seconds for the whole signal to arrive, for everything after it, and to report a timeout.
_READ_SECONDS = 2.0
_WORK_SECONDS = 6.0
_REPORT_SECONDS = 1.0
_MAX_INPUT = 8 << 20
_VARIABLES = (
    "CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "QWEN_PROJECT_DIR", "COPILOT_PROJECT_DIR",
    "FACTORY_PROJECT_DIR", "AUGMENT_PROJECT_DIR", "CURSOR_PROJECT_DIR", "DEVIN_PROJECT_DIR",
)  # fmt: skip
_MEMBERS = ("cwd", "working_dir", "workspace_roots", "workspacePaths")


class _Call:
    """One call of the hook: what it has read, when it must end; only one thread gets to answer."""

    __slots__ = ("copy", "deadline", "payload", "problem", "signal", "text", "turn")

    def __init__(self, copy: str) -> None:
        self.copy = copy
        self.payload: Any = {}
        self.text = ""
        self.signal: Signal | None = None
        self.turn = allocate_lock()
        self.allow(_READ_SECONDS, "no complete signal on stdin within %g s")

    def allow(self, seconds: float, problem: str) -> None:
        """Set the deadline to this many seconds from now."""
        self.problem = problem % seconds
        self.deadline = monotonic() + seconds


def main(copy: str = "") -> None:
    """Answer one signal on stdin, as the copy of the hook with this name, then exit with 0."""
    call = _Call(copy or "".join(sys.argv[1:2]))
    try:
        start_new_thread(_watch, (call,))
        call.payload, call.text = _read_signal()
        call.allow(_WORK_SECONDS, "no answer within %g s")
        answer = _reply(call)
        if not call.turn.acquire(False):
            sleep(_REPORT_SECONDS)  # the watchdog answers
        elif answer:
            _print(answer)
    except BaseException as error:  # noqa: BLE001 - no failure may prevent the stop
        if call.turn.acquire(False):
            _fail(call, error)
        sleep(_REPORT_SECONDS)
    leave(0)


def reply(text: str, copy: str) -> dict[str, Any]:
    """Return the answer of this copy of the hook to this signal, {} for none."""
    call = _Call(copy)
    call.payload, call.text = parse_json(text), text
    return _reply(call)


def _reply(call: _Call) -> dict[str, Any]:
    if type(call.payload) is not dict:
        raise ValueError("not a JSON object")
    projects = _projects(call.payload)
    if not projects:
        return {}
    from gsd_fsm.core.hook.clients import HANDLED, Signal
    from gsd_fsm.core.hook.respond import respond

    signal = Signal(call.payload, call.text, call.copy, getenv)
    signal.place = projects[0]
    call.signal = signal
    return respond(signal, projects) if signal.event in HANDLED else {}


def _watch(call: _Call) -> None:
    """End the process at the deadline, which may be moved meanwhile."""
    left = _READ_SECONDS
    while left > 0:
        sleep(min(left, 0.5))
        left = call.deadline - monotonic()
    try:
        if call.turn.acquire(False):
            start_new_thread(_fail, (call, call.problem))
        sleep(_REPORT_SECONDS)  # the report may hang where the answer hangs
    finally:
        leave(0)


def _fail(call: _Call, problem: BaseException | str) -> None:
    """Report why the stop is allowed, to the user first, then exit with 0."""
    try:
        from gsd_fsm.core.hook.hook_log import failure_answer, log_failure, remember_stop

        if call.signal is None:
            log_failure(problem, _projects({}))
        else:
            answer = failure_answer(problem, call.signal)
            if answer:
                _print(answer)
            remember_stop(problem, call.signal)
            log_failure(problem, [call.signal.place])
    except Exception as error:  # noqa: BLE001 - the log itself cannot be loaded
        line = "gsd-fsm hook: the stop is allowed: %a\n" % error
        system.write(2, line.encode("ascii"))
    finally:
        leave(0)


def _read_signal() -> tuple[Any, str]:
    """Return one JSON object, parsed and as text; stdin may stay open after it."""
    data = b""
    while len(data) <= _MAX_INPUT:
        part = system.read(0, 65_536)
        data += part
        if part and not part.rstrip().endswith(b"}"):
            continue
        if data[:16].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b""):
            raise ValueError("no JSON object on stdin")
        text = data.decode("utf-8", "replace").lstrip("\ufeff").strip()
        try:
            payload = parse_json(text)
        except ValueError:
            if not part:
                raise ValueError("no JSON object on stdin") from None
        else:
            return payload, text
    raise ValueError("the signal is larger than %d bytes" % _MAX_INPUT)


def _print(answer: dict[str, Any]) -> None:
    from gsd_fsm.core.codec import dumps

    data = (dumps(answer) + "\n").encode("ascii")
    try:
        while data:
            data = data[system.write(1, data) :]
    except OSError:
        pass  # the client has closed stdout


def _projects(payload: dict[str, Any]) -> list[str]:
    """Return each `.gsd` that this signal may concern, the most likely first."""
    starts = [getenv(name) for name in _VARIABLES]
    for name in _MEMBERS:
        value = payload.get(name)
        if type(value) is list and value:
            value = value[0]
        if type(value) is str:
            starts.append(value)
    try:
        starts.append(system.getcwd())
    except OSError:
        pass  # the directory was deleted
    found: list[str] = []
    for start in dict.fromkeys(filter(None, starts)):
        try:
            gsd = nearest_gsd(start)
        except (OSError, ValueError):
            continue  # not a path
        if gsd and gsd not in found:
            found.append(gsd)
    return found
