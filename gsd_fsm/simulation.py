"""A rehearsal without an agent: scripted signals and commands, the real hook code, a scratch journal.

A script is text, one step a line. Blank lines and lines that begin with `#` say nothing.

    start goal "All tests pass" --criterion tests     a command, without `gsd-fsm`
    prompt Please go on                               the user writes
    stop I am done.                                   the agent stops, saying this
    stop --tool Still at it.                          the same, after a tool call
    stop --background shell:b1 Waiting.               the same, while background work runs
    failure rate_limit                                the client reports an error
    session resume                                    the session starts again (or clear, compact, fork)
    x10 stop Still thinking.                          ten times
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.caller import CLIENTS
from gsd_fsm.core.entry import reply
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.journal import JOURNAL_NAME, Journal
from gsd_fsm.core.places import make_gsd, register

SESSION = "rehearsal"
MOST_STEPS = 10_000
_SOURCES = ("startup", "resume", "clear", "compact", "fork")


class Step(NamedTuple):
    """One line of a script."""

    line: int
    verb: str
    words: str


class Outcome(NamedTuple):
    """What a step led to: the events it appended, and what was answered."""

    step: Step
    events: list[dict[str, Any]]
    blocks: bool
    said: str
    status: str
    exit_code: int


def read_script(text: str) -> list[Step]:
    """The steps of a script, repetitions unrolled; UsageError names the line that is none."""
    steps: list[Step] = []
    for number, raw in enumerate(text.splitlines(), 1):
        words = raw.strip()
        if not words or words.startswith("#"):
            continue
        times = 1
        head, _, rest = words.partition(" ")
        if head[:1] == "x" and head[1:].isdecimal():
            times, words = int(head[1:]), rest.strip()
        if not words:
            raise UsageError(f"line {number}: what is to be repeated?", "x10 stop Still thinking.")
        verb, _, rest = words.partition(" ")
        steps += [Step(number, verb, rest.strip())] * min(times, MOST_STEPS + 1)
        if len(steps) > MOST_STEPS:
            raise UsageError(f"line {number}: more than {MOST_STEPS} steps", "repeat less often")
    if not steps:
        raise UsageError("the script has no step", "gsd-fsm simulate --help")
    return steps


class Rehearsal:
    """A scratch project in which the steps are played; it leaves nothing behind."""

    def __init__(self, run: Callable[[list[str]], int], journal: Path | None = None) -> None:
        self.run = run
        self.folder = Path(tempfile.mkdtemp(prefix="gsd-fsm-simulate-"))
        self.project = self.folder / "project"
        self.gsd = self.project / ".gsd"
        self.transcript = self.folder / "transcript.jsonl"
        self.project.mkdir()
        self.transcript.touch()
        self.session = SESSION
        self.turn = 0
        self.blocked = False
        if journal is not None:
            make_gsd(str(self.gsd))
            shutil.copyfile(journal, self.gsd / JOURNAL_NAME)
            (self.gsd / JOURNAL_NAME).chmod(0o600)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def play(self, steps: list[Step]) -> Iterator[Outcome]:
        """Each step's outcome, as soon as it is known."""
        with _surroundings(self.folder):
            self._adopt()
            for step in steps:
                before = self._seq()
                blocks, said, code = self._take(step)
                yield self._outcome(step, before, blocks, said, code)

    def _adopt(self) -> None:
        """Make a copied journal this user's, and its live loop this session's."""
        if not (self.gsd / JOURNAL_NAME).exists():
            return
        world = Journal(str(self.gsd)).read()
        register(world.journal, str(self.gsd), 0)
        owners = [loop.owner for loop in world.live() if loop.owner]
        self.session = owners[-1] if owners else SESSION

    def _seq(self) -> int:
        return Journal(str(self.gsd)).read().seq if (self.gsd / JOURNAL_NAME).exists() else 0

    def _outcome(self, step: Step, before: int, blocks: bool, said: str, code: int) -> Outcome:
        if not (self.gsd / JOURNAL_NAME).exists():
            return Outcome(step, [], blocks, said, "", code)
        with (self.gsd / JOURNAL_NAME).open("rb") as file:
            events = [json.loads(line) for number, line in enumerate(file, 1) if number > before]
        loops = Journal(str(self.gsd)).read().loops.values()
        last = max(loops, key=lambda loop: loop.last_seq, default=None)
        return Outcome(step, events, blocks, said, last.status if last else "", code)

    def _take(self, step: Step) -> tuple[bool, str, int]:
        if step.verb == "stop":
            return self._stop(step)
        if step.verb == "prompt":
            self.turn += 1
            self.blocked = False
            return self._signal("UserPromptSubmit", prompt=step.words or "go on")
        if step.verb == "failure":
            return self._signal("StopFailure", error=step.words or "unknown")
        if step.verb == "session":
            return self._start(step)
        return self._command(step)

    def _stop(self, step: Step) -> tuple[bool, str, int]:
        words = step.words
        background = []
        while words.startswith("--"):
            option, _, words = words.partition(" ")
            if option == "--tool":
                with self.transcript.open("a") as file:
                    file.write('{"type":"assistant","message":{"content":[{"type":"tool_use"}]}}\n')
            elif option == "--background":
                task, _, words = words.partition(" ")
                kind, _, name = task.partition(":")
                background.append({"id": name or kind, "type": kind, "status": "running"})
            else:
                raise UsageError(f"line {step.line}: there is no {option}", "--tool, --background")
        self.turn += 1
        blocks, said, code = self._signal(
            "Stop",
            last_assistant_message=words,
            background_tasks=background,
            stop_hook_active=self.blocked,
        )
        self.blocked = blocks
        return blocks, said, code

    def _start(self, step: Step) -> tuple[bool, str, int]:
        source = step.words or "startup"
        if source not in _SOURCES:
            raise UsageError(
                f"line {step.line}: no session starts by {source}", ", ".join(_SOURCES)
            )
        if source in ("clear", "fork"):
            self.turn += 1
            self.session = f"{SESSION}-{self.turn}"
        return self._signal("SessionStart", source=source)

    def _signal(self, event: str, **more: Any) -> tuple[bool, str, int]:
        payload = {
            "hook_event_name": event,
            "session_id": self.session,
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
            "session_crons": [],
            **more,
        }
        answer = reply(json.dumps(payload), SESSION)
        inner = answer.get("hookSpecificOutput", {})
        said = answer.get("reason") or inner.get("additionalContext") or ""
        notice = answer.get("systemMessage", "")
        return answer.get("decision") == "block", "\n".join(filter(None, (said, notice))), 0

    def _command(self, step: Step) -> tuple[bool, str, int]:
        try:
            words = shlex.split(f"{step.verb} {step.words}")
        except ValueError as error:
            raise UsageError(f"line {step.line}: {error}", "close the quotes") from error
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = self.run(["--project", str(self.project), *words])
        return False, said.getvalue().strip(), code


@contextlib.contextmanager
def _surroundings(folder: Path) -> Iterator[None]:
    """An environment in which nothing reaches the user's own state, and the user speaks."""
    before = dict(os.environ)
    agents = {name for _, markers, session in CLIENTS for name in (*markers, session)}
    for name in (*agents, "CLAUDE_PROJECT_DIR", "CLAUDE_PID", "GSD_FSM_DISABLE"):
        os.environ.pop(name, None)
    state = {"XDG_STATE_HOME": str(folder), "HOME": str(folder), "LOCALAPPDATA": str(folder)}
    os.environ.update(state)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
