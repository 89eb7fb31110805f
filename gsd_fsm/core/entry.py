"""The door of the hook: a signal comes in on stdin, at most one JSON object goes out.

Whatever happens in between, the stop is allowed, the exit code is 0, and nobody waits for ever.
"""

from __future__ import annotations

import sys
from _thread import start_new_thread
from time import monotonic, sleep

from gsd_fsm.core.codec import digest_of, dumps, parse_json
from gsd_fsm.core.disk import getenv, leave, system
from gsd_fsm.core.errors import NotFound
from gsd_fsm.core.log import complain
from gsd_fsm.core.names import session_name
from gsd_fsm.core.places import find_gsd
from gsd_fsm.core.signal import Signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Seconds for the whole signal to arrive, and for everything after it.
_PATIENCE = 2.0
_WORK = 6.0
_MAX_INPUT = 8 << 20
_PROJECTS = (
    "CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "QWEN_PROJECT_DIR", "COPILOT_PROJECT_DIR",
    "FACTORY_PROJECT_DIR", "AUGMENT_PROJECT_DIR", "CURSOR_PROJECT_DIR", "DEVIN_PROJECT_DIR",
)  # fmt: skip
_HANDLED = frozenset((
    "Stop", "SubagentStop", "SessionStart", "UserPromptSubmit", "StopFailure", "PreCompact",
    "SessionEnd", "TaskCreated", "TaskCompleted",
))  # fmt: skip


def main(copy: str = "") -> None:
    """Answer one signal on stdin, as the copy of this name, and leave with 0."""
    copy = copy or (sys.argv[1] if len(sys.argv) > 1 else digest_of(__file__))
    deadline = [monotonic() + _PATIENCE, "no complete signal on stdin within %g s" % _PATIENCE]
    answer: dict[str, Any] = {}
    try:
        start_new_thread(_watch_over, (deadline,))
        text = _read_input()
        deadline[:] = [monotonic() + _WORK, "no answer within %g s" % _WORK]
        answer = reply(text, session_name(copy))
    except BaseException as error:  # noqa: BLE001 - whatever happens, the user is not trapped
        complain(error, _projects([]))
    if answer:
        _print(dumps(answer))
    leave(0)


def reply(text: str, copy: str) -> dict[str, Any]:
    """The answer to this signal as it reached this copy of the hook; {} for none."""
    signal = Signal(text, copy, getenv)
    projects = _projects(signal.folders) if signal.event in _HANDLED else []
    if not projects:
        return {}
    from gsd_fsm.core.hook import respond

    return respond(signal, projects)


def _watch_over(deadline: list[Any]) -> None:
    while True:
        left = deadline[0] - monotonic()
        if left <= 0:
            complain(deadline[1], _projects([]))
            leave(0)
        sleep(min(left, 0.5))


def _read_input() -> str:
    """One whole JSON object; stdin need not end after it."""
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
            parse_json(text)
        except ValueError:
            if not part:
                raise ValueError("no JSON object on stdin") from None
        else:
            return text
    raise ValueError("a signal of more than %d bytes" % _MAX_INPUT)


def _print(text: str) -> None:
    data = (text + "\n").encode("ascii")
    try:
        while data:
            data = data[system.write(1, data) :]
    except OSError:
        pass  # nobody listens


def _projects(folders: list[str]) -> list[str]:
    """Every `.gsd` that a signal from these folders may be about, the likeliest first."""
    starts = [getenv(name) for name in _PROJECTS] + folders
    try:
        starts.append(system.getcwd())
    except OSError:
        pass  # the directory was deleted under the agent
    found: list[str] = []
    for start in dict.fromkeys(filter(None, starts)):
        try:
            gsd = find_gsd(start)
        except (NotFound, OSError, ValueError):
            continue
        if gsd not in found:
            found.append(gsd)
    return found
