"""List in hot_path.txt which functions and classes of core ordinary stops use: `profile_hook.py`.

Ordinary are stops that the hook blocks, in a loop of each kind, with and without a snapshot. The
profile needs Python 3.11, where functions know their class.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench_hook import fresh_snapshot
from build_hook import HOT_PATH, PACKAGE
from synthetic import events, write_journal

from gsd_fsm.config.caller import scratch_environment
from gsd_fsm.core.project import make_gsd, register

SESSION = "profile"
EXECUTE = "start execute --mode yolo --task T1 --task T2"
FAIL = "fail T1 --error slow --class logic"
# What the user and the agent do before the stop.
STORIES = (
    ("start goal Speed",),
    ("start goal Speed --check fast=true --check small=true --task T1", "check small"),
    ("start goal Speed --check fast=false --baseline",),
    ("start goal Speed --mode yolo --criterion fast --criterion small", "criterion fast met"),
    ("start goal Speed --mode yolo --criterion fast", "criterion fast met"),
    (EXECUTE, "task T1 running", FAIL),
    (EXECUTE, "task T1 running", FAIL, "task T1 running", "task T1 complete"),
    ("start verify --mode yolo --task T1", "gap found G1 --description slow"),
)
TRACE = f"""
import sys
names = set()
def note(frame, event, _):
    module = frame.f_globals.get("__name__", "")
    is_function = frame.f_code.co_flags & 1  # not the body of a class
    if event == "call" and is_function and module.startswith("{PACKAGE}"):
        names.add((module, frame.f_code.co_qualname.partition(".")[0]))
sys.setprofile(note)
from gsd_fsm.core.hook import main
def leave(_):
    sys.setprofile(None)
    for module, name in names:
        print(module, name, file=sys.stderr)
main.leave = leave
main.main("profile")
"""


def projects(folder: Path) -> Iterator[Path]:
    """Yield a project for each story with a short journal, and one with a long journal."""
    for number, story in enumerate(STORIES):
        for length in (1, 100):
            project = folder / f"{number}-{length}"
            gsd = project / ".gsd"
            (project / ".git").mkdir(parents=True)
            make_gsd(str(gsd))
            write_journal(gsd / "journal.jsonl", events(length))
            register("j-synthetic", str(gsd), 0)
            for words in story:
                command = [sys.executable, "-m", "gsd_fsm", *words.split()]
                subprocess.run(command, cwd=project, check=True, stdout=subprocess.DEVNULL)
            if length > 1:
                fresh_snapshot(project)
            yield project


def used(project: Path) -> set[str]:
    """Return what one stop uses, as `module.name`."""
    payload = {
        "hook_event_name": "Stop",
        "session_id": SESSION,
        "cwd": str(project),
        "transcript_path": __file__,
        "last_assistant_message": "Done.",
    }
    done = subprocess.run(
        [sys.executable, "-c", TRACE], cwd=project, input=json.dumps(payload), check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    if '"block"' not in done.stdout:
        raise SystemExit(f"the stop in {project} was not blocked: {done.stdout}{done.stderr}")
    found = (line.split() for line in done.stderr.splitlines())
    return {f"{module}.{name}".removeprefix(PACKAGE) for module, name in found if name[0] != "<"}


def main() -> None:
    names: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.clear()
        os.environ.update(scratch_environment(Path(folder)))
        os.environ["CLAUDE_CODE_SESSION_ID"] = SESSION
        with_program = os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()])
        for project in projects(Path(folder)):
            for path in (with_program, os.defpath):  # a client may not find the program
                os.environ["PATH"] = path
                names |= used(project)
    HOT_PATH.write_text("".join(f"{name}\n" for name in sorted(names)), "utf-8")


if __name__ == "__main__":
    main()
