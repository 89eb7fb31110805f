"""Run commands of gsd-fsm, in a process of their own or in that of the test."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gsd_fsm.cli import run
from gsd_fsm.core.hook.clients import prompt_digest
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.engine.goals import DIMENSIONS
from tests.support.events import append, draft, write
from tests.support.repositories import commit_all

A = {"CLAUDE_CODE_SESSION_ID": "session-a"}
B = {"CLAUDE_CODE_SESSION_ID": "session-b"}
AGENT = {"CLAUDECODE": "1"}
AGENT_A = {**AGENT, **A}
HOOK_INSTALLED = json.dumps({"enabledPlugins": {"gsd-fsm@here": True}})


def without_loop(text: str) -> str:
    """Return a text whose commands do not name their loop."""
    return re.sub(r" --loop lp-\w+", "", text)


def homes(home: Path) -> dict[str, str]:
    """Return the variables that put every home of a user below this directory."""
    local = str(home / "Local")
    return {
        "HOME": str(home), "XDG_STATE_HOME": str(home / "state"),
        "XDG_CONFIG_HOME": str(home / "config"), "USERPROFILE": str(home), "LOCALAPPDATA": local,
        "APPDATA": str(home / "Roaming"), "WIN_PD_OVERRIDE_LOCAL_APPDATA": local,
    }  # fmt: skip


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Project:
    """A directory in which commands run as processes of their own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.gsd = root / ".gsd"
        self.journal = self.gsd / "journal.jsonl"

    def run(self, *args: str, env: dict[str, str] | None = None, stdin: bytes = b"") -> Answer:
        done = subprocess.run(
            [sys.executable, "-m", "gsd_fsm", *args], cwd=self.root, input=stdin,
            env={**os.environ, **(env or {})}, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())

    def ok(self, *args: str, **how: Any) -> Answer:
        """Run a command that must succeed."""
        answer = self.run(*args, **how)
        assert answer.code == 0, answer
        return answer

    def status(self) -> Any:
        return self.ok("status", "--json").json

    def lines(self) -> list[Any]:
        """Return the events of the journal."""
        return [json.loads(line) for line in self.journal.read_bytes().splitlines()]


class Here(Project):
    """A project whose commands run in this process, in the directory `where`."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        super().__init__(root)
        self.patch = patch
        self.where = root

    def run(self, *args: str, env: dict[str, str] | None = None, stdin: bytes = b"") -> Answer:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
        before = Path.cwd()
        with self.patch.context() as patch:
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
            os.chdir(self.where)
            try:
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                    code = run(list(args))
            finally:
                os.chdir(before)
        out.flush()
        err.flush()
        printed = [it.buffer.getvalue().decode("utf-8", "surrogateescape") for it in (out, err)]
        return Answer(code, *printed)

    def refused(self, code: int, *args: str, **how: Any) -> Answer:
        """Run a command that must exit with this code, explain why and write nothing."""
        before = self.journal.read_bytes() if self.journal.is_file() else b""
        answer = self.run(*args, **how)
        assert answer.code == code, answer
        assert answer.err.startswith("gsd-fsm: "), answer
        assert "Traceback" not in answer.err
        after = self.journal.read_bytes() if self.journal.is_file() else b""
        assert after == before
        return answer

    def start(self, *args: str, **how: Any) -> str:
        """Start a loop and return its id."""
        return str(self.ok("start", *args, "--json", **how).json["loop"])

    def last(self) -> Any:
        return self.lines()[-1]

    def configure(self, **settings: Any) -> None:
        """Write the settings of the project."""
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
        write(self.gsd / "config.toml", "".join(lines))


def install_hook() -> None:
    """Let the client of this user run the hook, so that no command warns that none is installed."""
    write(Path(os.environ["HOME"], ".claude", "settings.json"), HOOK_INSTALLED)


@pytest.fixture
def here(project: Project, monkeypatch: pytest.MonkeyPatch) -> Here:
    return Here(project.root, monkeypatch)


@pytest.fixture
def repository(here: Here) -> Here:
    """Return a project in a git repository with one commit."""
    write(here.root / "code.py", "one\n")
    commit_all(here.root, "code.py")
    return here


# The row of a prompt in the transcript of Claude Code.
TYPED = {"type": "user", "origin": {"kind": "human"}, "promptSource": "typed"}


def send_prompt(here: Here, loop: str, text: str = "go on") -> None:
    """Record a prompt of the user to session A, as the hook and the client do."""
    transcript = here.root.parent / "session-a.jsonl"
    with transcript.open("a") as file:
        place = {"file": str(transcript), "transcript": file.tell()}
        data = {"action": "prompt", "digest": prompt_digest(text), **place}
        append(Journal(str(here.gsd)), draft("session", loop, "hook", data, session="session-a"))
        file.write(json.dumps({**TYPED, "message": {"role": "user", "content": text}}) + "\n")


CLEAR = (2, 2, 2, 2, 2)
REVIEWED = (2, 2, 1, 1, 1)  # spec 7, fit 35
COLLEAGUE = (1, 1, 1, 1, 1)  # spec 5, fit 25


def score_options(*points: int) -> list[str]:
    named = zip(DIMENSIONS, points, strict=True)
    return [text for name, number in named for text in (f"--{name}", str(number))]


def score(here: Here, *points: int, familiarity: int = 0, **how: Any) -> Any:
    """Score the goal; return the JSON answer."""
    more = ("--familiarity", str(familiarity), "--json")
    return here.ok("score", *score_options(*points), *more, **how).json


EVIL = (
    "a\x1b[31mred\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x1b\\ b\x9b2Jc\x85 d\u202eback\u2066iso\u2069 "
    "e\u200bzero\ufeff\u00ad\u2060 f\U000e0041\U000e007f tag\x00nul\x08\x7f\r\u2028\u3164end"
)
DECEPTIVE = {
    *(0xAD, 0x61C, 0x180E, 0x3164, 0xFEFF, 0xFFA0, 0x115F, 0x1160), *range(0x200B, 0x2010),
    *range(0x2028, 0x202F), *range(0x2060, 0x2070), *range(0xE0000, 0xE0080), *range(0x7F, 0xA0),
}  # fmt: skip


def assert_harmless(text: str, what: object) -> None:
    bad = {c for c in text if (ord(c) < 32 and c not in "\n\t") or ord(c) in DECEPTIVE}
    assert not bad, (what, bad)
