"""A rehearsal without an agent: scripted signals and commands, the real hook code, a scratch journal.

A script is text, one step a line. Blank lines and lines that begin with `#` say nothing.

    start goal "All tests pass" --criterion tests     a command, without `gsd-fsm`
    prompt Please go on                               the user writes
    stop I am done.                                   the agent stops, saying this
    stop --tool Still at it.                          the same, after a tool call
    stop --background shell:b1 Waiting.               the same, while background work runs
    failure rate_limit                                the client reports an error
    session clear                                     /clear (or compact; resume, fork, startup: a new client)
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

from gsd_fsm.config.caller import scratch_environment
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.hook.main import reply
from gsd_fsm.core.journal.journal import JOURNAL_NAME, Journal
from gsd_fsm.core.journal.scan import Position, scan
from gsd_fsm.core.journal.transaction import Author
from gsd_fsm.core.loop.envelope import load_event
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.paths import home
from gsd_fsm.core.project import make_gsd
from gsd_fsm.core.trust import register

SESSION = "rehearsal"
MOST_STEPS = 10_000
_SIGNALS = ("stop", "prompt", "failure", "session")
# What is about the user's machine, and what would rehearse within a rehearsal.
_OUTSIDE = ("init", "uninstall", "doctor", "hook", "simulate", "trust")
_SOURCES = ("startup", "resume", "clear", "compact", "fork")
# Beyond every number that a system gives to a process: a copied journal names real ones.
_FIRST_PROCESS = 9_000_000


class Step(NamedTuple):
    """One line of a script."""

    line: int
    verb: str
    words: str
    # What the command line gets; nothing for a signal.
    arguments: tuple[str, ...]


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
            # Python refuses to read a number of thousands of digits.
            times, words = int(head[1:].lstrip("0")[:9] or 0), rest.strip()
        if not words:
            raise UsageError(f"line {number}: what is to be repeated?", "x10 stop Still thinking.")
        verb, _, rest = words.partition(" ")
        arguments = () if verb in _SIGNALS else _arguments(number, words)
        steps += [Step(number, verb, rest.strip(), arguments)] * min(times, MOST_STEPS + 1)
        if len(steps) > MOST_STEPS:
            raise UsageError(f"line {number}: more than {MOST_STEPS} steps", "repeat less often")
    if not steps:
        raise UsageError("the script has no step", "gsd-fsm simulate --help")
    return steps


def _arguments(line: int, words: str) -> tuple[str, ...]:
    """The words of a command; UsageError for one that has no place in a rehearsal."""
    try:
        arguments = tuple(shlex.split(words))
    except ValueError as error:
        raise UsageError(f"line {line}: {error}", "close the quotes") from error
    if arguments[0] in _OUTSIDE or arguments[0].startswith("-"):
        raise UsageError(
            f"line {line}: {arguments[0]} has no place in a rehearsal",
            "a step begins with stop, prompt, failure, session or a command about a loop",
        )
    return arguments


@contextlib.contextmanager
def rehearsal(run: Callable[[list[str]], int], journal: Path | None = None) -> Iterator[Rehearsal]:
    """A place to rehearse in, on a copy of this journal if one is given; it leaves nothing behind."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(
        prefix="gsd-fsm-simulate-", ignore_cleanup_errors=True
    ) as folder:
        try:
            _replace_environment(scratch_environment(folder))
            yield Rehearsal(run, Path(folder), journal)
        finally:
            _replace_environment(before)


def _replace_environment(variables: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


class Rehearsal:
    """A scratch project in which the steps are played, and the client that it is open in."""

    def __init__(self, run: Callable[[list[str]], int], folder: Path, journal: Path | None) -> None:
        self.run = run
        self.folder = folder
        # Below the scratch home, where the search for a project ends.
        self.project = Path(home(), "project")
        self.project.mkdir(parents=True)
        self.gsd = self.project / ".gsd"
        self.loops = Loops()
        self.at = Position()
        self.session = SESSION
        self.sessions = 1
        self.process = _FIRST_PROCESS
        self.blocked = False
        if journal is not None:
            self._adopt(journal)

    def play(self, steps: list[Step]) -> Iterator[Outcome]:
        """Each step's outcome, as soon as it is known."""
        for step in steps:
            blocks, said, code = self._take(step)
            events = self._news()
            last = max(self.loops.by_id.values(), key=lambda loop: loop.last_seq, default=None)
            yield Outcome(step, events, blocks, said, last.status if last else "", code)

    def _adopt(self, journal: Path) -> None:
        """Copy a journal, make the copy this user's, and its live loop this session's."""
        make_gsd(str(self.gsd))
        shutil.copyfile(journal, self.gsd / JOURNAL_NAME)
        (self.gsd / JOURNAL_NAME).chmod(0o600)
        with Journal(str(self.gsd)).transaction(Author("human")):
            pass  # opening it repairs a torn tail
        self._news()
        register(self.loops.journal_id, str(self.gsd), 0)
        owners = [loop.owner for loop in self.loops.live() if loop.owner]
        self.session = owners[-1] if owners else SESSION

    def _news(self) -> list[dict[str, Any]]:
        """The events since the last time, folded into the loops; each line is read once."""
        events: list[Any] = []

        def take(line: bytes) -> None:
            events.append(load_event(line))
            self.loops.fold(events[-1])

        with contextlib.suppress(FileNotFoundError), (self.gsd / JOURNAL_NAME).open("rb") as file:

            def read(at: int, size: int) -> bytes:
                file.seek(at)
                return file.read(size)

            self.at = scan(read, os.fstat(file.fileno()).st_size, self.at, take)
            self.loops.settle()
        return events

    def _take(self, step: Step) -> tuple[bool, str, int]:
        if step.verb == "stop":
            return self._stop(step)
        if step.verb == "prompt":
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
                with self._transcript().open("a") as file:
                    file.write('{"type":"assistant","message":{"content":[{"type":"tool_use"}]}}\n')
            elif option == "--background":
                task, _, words = words.partition(" ")
                kind, _, name = task.partition(":")
                background.append({"id": name or kind, "type": kind, "status": "running"})
            else:
                raise UsageError(f"line {step.line}: there is no {option}", "--tool, --background")
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
        if source == "compact":
            self._signal("PreCompact", trigger="manual")
        else:
            self._signal("SessionEnd", reason="clear" if source == "clear" else "other")
            self.blocked = False
            if source != "clear":
                self.process += 1
            if source != "resume":
                self.sessions += 1
                self.session = f"{SESSION}-{self.sessions}"
        return self._signal("SessionStart", source=source)

    def _transcript(self) -> Path:
        return self.folder / f"transcript-{self.sessions}.jsonl"

    def _signal(self, event: str, **more: Any) -> tuple[bool, str, int]:
        self._transcript().touch()
        os.environ["CLAUDE_PID"] = str(self.process)
        payload = {
            "hook_event_name": event,
            "session_id": self.session,
            "transcript_path": str(self._transcript()),
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
        said = io.BytesIO()
        # A check writes bytes, everything else text.
        stream = io.TextIOWrapper(said, "utf-8", newline="", write_through=True)
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            code = self.run(["--project", str(self.project), *step.arguments])
        return False, said.getvalue().decode("utf-8", "replace").strip(), code
