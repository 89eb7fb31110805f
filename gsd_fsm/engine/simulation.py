"""Run a script of signals and commands without an agent: real decisions, a temporary journal.

A script has one step per line. Blank lines and lines that begin with `#` are ignored.

    start goal "All tests pass" --criterion tests     a command, without `gsd-fsm`
    complete => 4                                     a command that must exit with code 4
    CLAUDECODE=1 iterate                              a command with its own environment variables
    --loop {1} note "Use Python 3.12"                 {1} is the id of the first loop of the script
    prompt Please continue                            the user sends a prompt
    stop I am done.                                   the agent stops with this message
    stop --tool Still working.                        the same, after a tool call
    stop --background shell:b1 Waiting.               the same, while background work runs
    failure rate_limit                                the client reports an error
    session clear                                     /clear or /compact; resume, fork, startup: a new client
    code.py <- print("hello")                         write a file of the project
    git init                                          make the project a git repository
    x10 stop Still thinking.                          ten times
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from gsd_fsm.config.caller import CLIENTS, scratch_environment
from gsd_fsm.core.ancestors import PRETENDED
from gsd_fsm.core.command_line import PROGRAM, program, set_program
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.hook.main import reply
from gsd_fsm.core.journal.journal import JOURNAL_NAME, Author, Journal
from gsd_fsm.core.journal.scan import Cursor, load_event, scan
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.project import make_gsd, register
from gsd_fsm.core.system import home
from gsd_fsm.git.run import git_program

SESSION = "simulation"
MOST_STEPS = 10_000
_HELP = "Run: gsd-fsm simulate --help"
_SIGNALS = ("stop", "prompt", "failure", "session")
# Commands that act on the user's machine, or that would simulate within a simulation.
_EXCLUDED = ("init", "uninstall", "doctor", "hook", "simulate", "trust")
_SOURCES = ("startup", "resume", "clear", "compact", "fork")
# Other variables could lead a command out of the temporary project.
_VARIABLES = {name for _, markers, session in CLIENTS for name in (*markers, session)}
# Higher than any real process id: a copied journal names real ones.
_FIRST_PROCESS = 9_000_000

Run = Callable[[list[str]], int]


class Step(NamedTuple):
    """One line of a script; `arguments` and the members after it belong to commands."""

    line: int
    verb: str
    text: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = MappingProxyType({})
    expected: int | None = None


class Outcome(NamedTuple):
    """The events that a step appended, and the answer to it."""

    step: Step
    events: list[dict[str, Any]]
    blocks: bool
    output: str
    status: str
    exit_code: int


def read_script(text: str) -> list[Step]:
    """Return the steps with repetitions unrolled; raise UsageError with the line of a mistake."""
    steps: list[Step] = []
    for number, raw in enumerate(text.splitlines(), 1):
        words = raw.strip()
        if not words or words.startswith("#"):
            continue
        times, words = _repetition(words)
        if not words:
            raise UsageError(f"line {number}: no step to repeat", "Example: x10 stop Still here.")
        steps += [_step(number, words)] * min(times, MOST_STEPS + 1)
        if len(steps) > MOST_STEPS:
            raise UsageError(f"line {number}: more than {MOST_STEPS} steps", _HELP)
    if not steps:
        raise UsageError("the script has no steps", _HELP)
    return steps


def _repetition(words: str) -> tuple[int, str]:
    head, _, rest = words.partition(" ")
    if head[:1] == "x" and head[1:].isdecimal():
        # Python refuses to read a number of thousands of digits.
        return int(head[1:].lstrip("0")[:9] or 0), rest.strip()
    return 1, words


def _step(line: int, words: str) -> Step:
    verb, _, rest = words.partition(" ")
    if verb in _SIGNALS:
        return Step(line, verb, rest.strip())
    if words == "git init":
        return Step(line, "git", "init")
    if rest.startswith("<- "):
        if not re.fullmatch(r"\w[\w.-]*", verb):
            raise UsageError(f"line {line}: not a plain file name: {verb}", _HELP)
        return Step(line, "<-", rest.removeprefix("<- "), (verb,))
    command, _, code = words.rpartition(" => ")
    expected = int(code) if command and code.isdecimal() and len(code) <= 3 else None
    try:
        arguments = shlex.split(command if expected is not None else words)
    except ValueError as error:
        raise UsageError(f"line {line}: {error}", "Close the quotes.") from error
    environment = {}
    while arguments and arguments[0].partition("=")[0] in _VARIABLES:
        name, _, environment[name] = arguments.pop(0).partition("=")
    named = arguments[2:] if arguments[:1] == ["--loop"] else arguments
    name = named[0] if named else words
    if name in _EXCLUDED or name.startswith("-"):
        raise UsageError(f"line {line}: not possible in a simulation: {name}", _HELP)
    return Step(line, verb, rest.strip(), tuple(arguments), environment, expected)


@contextlib.contextmanager
def simulation(run: Run, journal: Path | None = None) -> Iterator[Simulation]:
    """Yield a simulation in a temporary project, on a copy of `journal` if given."""
    before, called = dict(os.environ), program()
    with tempfile.TemporaryDirectory(
        prefix="gsd-fsm-simulate-", ignore_cleanup_errors=True
    ) as folder:
        PRETENDED.append([])  # the result must not depend on who runs it
        set_program(PROGRAM)
        try:
            _replace_environment(scratch_environment(folder))
            yield Simulation(run, Path(folder), journal)
        finally:
            _replace_environment(before)
            set_program(called)
            PRETENDED.pop()


def _replace_environment(variables: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


class Simulation:
    """A temporary project and the client that works in it."""

    def __init__(self, run: Run, folder: Path, journal: Path | None) -> None:
        self.run = run
        self.folder = folder
        # Inside the temporary home, where the search for a project ends.
        self.project = Path(home(), "project")
        self.project.mkdir(parents=True)
        settings = Path(home(), ".claude", "settings.json")
        settings.parent.mkdir()
        settings.write_text('{"enabledPlugins":{"gsd-fsm@simulation":true}}')
        self.gsd = self.project / ".gsd"
        self.loops = Loops()
        self.started: list[str] = []
        self._at = Cursor()
        self._session = SESSION
        self._sessions = 1
        self._process = _FIRST_PROCESS
        self._blocked = False
        if journal is not None:
            self._copy(journal)

    def play(self, steps: list[Step]) -> Iterator[Outcome]:
        """Yield the outcome of each step as soon as it is known."""
        for step in steps:
            blocks, output, code = self._take(step)
            events = self._new_events()
            last = max(self.loops.by_id.values(), key=lambda loop: loop.last_seq, default=None)
            yield Outcome(step, events, blocks, output, last.status if last else "", code)

    def _copy(self, journal: Path) -> None:
        """Copy a journal, trust the copy, and continue in the session that owns its live loop."""
        make_gsd(str(self.gsd))
        shutil.copyfile(journal, self.gsd / JOURNAL_NAME)
        (self.gsd / JOURNAL_NAME).chmod(0o600)
        with Journal(str(self.gsd)).transaction(Author("human")):
            pass  # opening it repairs a torn tail
        self._new_events()
        register(self.loops.journal_id, str(self.gsd), 0)
        owners = [loop.owner for loop in self.loops.live() if loop.owner]
        self._session = owners[-1] if owners else SESSION

    def _new_events(self) -> list[dict[str, Any]]:
        """Return the events since the last call, after folding them."""
        events: list[Any] = []

        def take(line: bytes) -> None:
            events.append(load_event(line))
            self.loops.fold(events[-1])

        with contextlib.suppress(FileNotFoundError), (self.gsd / JOURNAL_NAME).open("rb") as file:

            def read(at: int, size: int) -> bytes:
                file.seek(at)
                return file.read(size)

            self._at = scan(read, os.fstat(file.fileno()).st_size, self._at, take)
            self.loops.settle()
        self.started += [event["loop"] for event in events if event["type"] == "start"]
        return events

    def _take(self, step: Step) -> tuple[bool, str, int]:
        match step.verb:
            case "stop":
                return self._stop(step)
            case "prompt":
                return self._prompt(step.text or "continue")
            case "failure":
                return self._signal("StopFailure", error=step.text or "unknown")
            case "session":
                return self._start_session(step)
            case "<-":
                (self.project / step.arguments[0]).write_text(f"{step.text}\n", "utf-8")
                return False, "", 0
            case "git":
                return self._git_init(step)
        return self._command(step)

    def _git_init(self, step: Step) -> tuple[bool, str, int]:
        program = git_program(self.project)
        if program is None:
            raise UsageError(f"line {step.line}: git was not found", "Install git.")
        subprocess.run([program, "init", "-q", "--template="], cwd=self.project, check=True)
        return False, "", 0

    def _stop(self, step: Step) -> tuple[bool, str, int]:
        text = step.text
        background = []
        while text.startswith("--"):
            option, _, text = text.partition(" ")
            if option == "--tool":
                with self._transcript().open("a") as file:
                    file.write('{"type":"assistant","message":{"content":[{"type":"tool_use"}]}}\n')
            elif option == "--background":
                task, _, text = text.partition(" ")
                kind, _, name = task.partition(":")
                background.append({"id": name or kind, "type": kind, "status": "running"})
            else:
                raise UsageError(f"line {step.line}: unknown option {option}", _HELP)
        self._blocked, output, code = self._signal(
            "Stop",
            last_assistant_message=text,
            background_tasks=background,
            stop_hook_active=self._blocked,
        )
        return self._blocked, output, code

    def _prompt(self, text: str) -> tuple[bool, str, int]:
        self._blocked = False
        answer = self._signal("UserPromptSubmit", prompt=text)
        row = {"type": "user", "message": {"role": "user", "content": text}}
        with self._transcript().open("a") as file:
            file.write(json.dumps(row) + "\n")
        return answer

    def _start_session(self, step: Step) -> tuple[bool, str, int]:
        source = step.text or "startup"
        if source not in _SOURCES:
            raise UsageError(
                f"line {step.line}: unknown session source {source}",
                f"Use one of: {', '.join(_SOURCES)}.",
            )
        if source == "compact":
            self._signal("PreCompact", trigger="manual")
        else:
            self._signal("SessionEnd", reason="clear" if source == "clear" else "other")
            self._blocked = False
            if source != "clear":
                self._process += 1
            if source != "resume":
                self._sessions += 1
                self._session = f"{SESSION}-{self._sessions}"
        return self._signal("SessionStart", source=source)

    def _transcript(self) -> Path:
        return self.folder / f"{self._session.replace('/', '-')}.jsonl"

    def _signal(self, event: str, **more: Any) -> tuple[bool, str, int]:
        self._transcript().touch()
        os.environ["CLAUDE_PID"] = str(self._process)
        payload = {
            "hook_event_name": event,
            "session_id": self._session,
            "transcript_path": str(self._transcript()),
            "cwd": str(self.project),
            "session_crons": [],
            **more,
        }
        answer = reply(json.dumps(payload), SESSION)
        inner = answer.get("hookSpecificOutput", {})
        text = answer.get("reason") or inner.get("additionalContext") or ""
        notice = answer.get("systemMessage", "")
        return answer.get("decision") == "block", "\n".join(filter(None, (text, notice))), 0

    def _command(self, step: Step) -> tuple[bool, str, int]:
        arguments = list(step.arguments)
        for number, loop in enumerate(self.started, 1):
            arguments = [it.replace(f"{{{number}}}", loop) for it in arguments]
        output = io.BytesIO()
        # A check writes bytes, everything else text.
        stream = io.TextIOWrapper(output, "utf-8", newline="", write_through=True)
        before, here = dict(os.environ), Path.cwd()
        os.environ.update(step.environment)
        os.chdir(self.project)
        try:
            with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
                code = self.run(arguments)
        finally:
            os.chdir(here)
            _replace_environment(before)
        return False, output.getvalue().decode("utf-8", "replace").rstrip(), code
