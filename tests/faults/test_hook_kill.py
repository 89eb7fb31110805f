"""The unmodified hook with a kill or an error at each system call: nothing is lost or invented.

strace does it from outside: the file under test is the one that clients run.
"""

from __future__ import annotations

import itertools
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from gsd_fsm.core.hook.main import reply
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.state import LIVE
from gsd_fsm.core.text.notices import failure_notice
from gsd_fsm.history.replay import examine
from tests.support.faults import files_in, judge, put_back, sums, torture
from tests.support.hook_project import (
    HOOK,
    SESSION,
    HookProject,
    HookRun,
    blocks,
    run_hook,
    text_of,
)

STRACE = shutil.which("strace") or ""
CALL = re.compile(r"^(\d+) +(\w+)\((.{0,60})")
# How often these are called depends on memory and threads, and none of them touches a file.
RESTLESS = {"futex", "mmap", "munmap", "mprotect", "brk", "madvise", "clone3", "clock_nanosleep"}
ERRORS = ("ENOSPC", "EIO", "EROFS", "EACCES", "EMFILE")
REFUSABLE = {"openat", "read", "pread64", "write", "fsync", "flock", "ftruncate", "rename",
             "renameat", "unlink", "unlinkat", "newfstatat", "fstat", "lseek", "getcwd", "chdir",
             "close"}  # fmt: skip
# Each of these leaves the disk, or what others see of it, other than it was.
CHANGING = {"write", "fsync", "ftruncate", "flock", "rename", "renameat", "unlink", "unlinkat"}
TAIL = b'{"v":1,"seq":9,"ts":"2026'


class Scene(NamedTuple):
    """A project before the stop, and the input of the hook."""

    project: HookProject
    files: dict[str, bytes]
    signal: str
    hook: Path

    @property
    def known(self) -> list[str]:
        return sums(self.files["journal.jsonl"])


class Point(NamedTuple):
    """The N-th call of this system call."""

    call: str
    number: int


# what starts the loop, the events after it, and what is in the signal
_Story = tuple[dict[str, Any], list[tuple[str, str, dict[str, Any]]], dict[str, Any]]
STORIES: dict[str, _Story] = {
    "a block": ({}, [], {}),
    "a pause": ({"limits": {"max_iterations": 1}}, [("iteration", "hook", {})], {}),
    "a completion": ({}, [("criterion", "agent", {"criterion": "one", "met": True})],
                     {"last_assistant_message": "<loop-complete>all</loop-complete>"}),
    "a question": ({"kind": "execute", "mode": "interactive"},
                   [("failure", "agent", {"task": "T1", "error": "no", "class": "logic"})], {}),
    "the end of a throttle": ({}, [("wait", "hook", {"for": "throttled"})], {}),
    "a prompt that binds": ({}, [("session", "hook", {"action": "release"})],
                            {"event": "UserPromptSubmit", "prompt": "go on"}),
    "a snapshot": ({}, [("note", "agent", {"text": "on"})] * 61, {}),
    "a torn tail": ({}, [], {}),
    "no bytecode yet": ({}, [], {}),
}  # fmt: skip


def make_scene(name: str, root: Path, goal: str = "Be done") -> Scene:
    start, events, signal_members = STORIES[name]
    project = HookProject(root, **start, goal=goal)
    for kind, by, data in events:
        project.append(kind, by, **data)
    transcript = root / "transcript.jsonl"
    seen = {"transcript_path": str(transcript)} if transcript.exists() else {}
    files = files_in(project.gsd)
    if name == "a torn tail":
        files["journal.jsonl"] += TAIL
    hook = Path(shutil.copy(HOOK, root.parent)) if name == "no bytecode yet" else HOOK
    return Scene(project, files, project.signal(**signal_members, **seen), hook)


def _run(scene: Scene, *options: str) -> HookRun:
    """Run the hook under strace on the restored project."""
    assert STRACE, "these tests need strace: install it (apt-get install strace)"
    put_back(scene.project.gsd, scene.files)
    if scene.hook != HOOK:
        shutil.rmtree(scene.hook.with_name("__pycache__"), ignore_errors=True)
    log = str(scene.project.root / "strace.log")
    return run_hook(scene.signal, hook=scene.hook, under=(STRACE, "-f", "-qq", "-o", log, *options))


def _calls(scene: Scene) -> list[tuple[Point, str]]:
    """Return every call of the main thread after it reads stdin, with its arguments."""
    run_hook(scene.signal)  # which writes the bytecode
    answered = _run(scene)
    assert answered.code == 0, answered
    lines = (scene.project.root / "strace.log").read_text("utf-8", "replace").splitlines()
    made = [match.groups() for match in map(CALL.match, lines) if match]
    count: Counter[str] = Counter()
    found: list[tuple[Point, str]] = []
    for pid, call, arguments in made:
        if pid == made[0][0]:
            count[call] += 1
            found.append((Point(call, count[call]), arguments))
    is_read = [point.call == "read" and arguments.startswith("0,") for point, arguments in found]
    return [entry for entry in found[is_read.index(True) :] if entry[0].call not in RESTLESS]


def _sample(points: list[Point], seed: int) -> list[Point]:
    """Return every call that changes a file, and each of the others once."""
    choose = Random(seed)
    others = dict.fromkeys(point.call for point in points if point.call not in CHANGING)
    return [point for point in points if point.call in CHANGING] + [
        choose.choice([point for point in points if point.call == call]) for call in others
    ]


def _wrong(scene: Scene, answered: HookRun) -> Iterator[str]:
    """Yield the problems after this run of the hook."""
    project = scene.project
    data = project.file.read_bytes()
    if judge(data).damaged or not examine(Journal(str(project.gsd)))["ok"]:
        yield "the journal is damaged"
        return
    if sums(data)[: len(scene.known)] != scene.known:
        yield "an acknowledged event is missing"
    kept = [data, *(path.read_bytes() for path in project.gsd.glob("journal.broken-*"))]
    if scene.files["journal.jsonl"].endswith(TAIL) and not any(TAIL in held for held in kept):
        yield "the torn tail was not kept"
    new = project.events()[len(scene.known) :] if not judge(data).torn else []
    answer = answered.answer
    text = text_of(answer)
    given = [e["type"] for e in new if e["data"].get("reason") == text]
    if blocks(answer) and given != ["iteration"]:
        yield "a block without its event"
    failures = [failure_notice(event, "").rstrip() for event in ("Stop", "UserPromptSubmit")]
    is_decided = not text.startswith(tuple(failures))
    if (
        text
        and not blocks(answer)
        and is_decided
        and text not in [e["data"].get("said") for e in new]
    ):
        yield "a notice without its event"
    if "Traceback" in answered.err:
        yield "a traceback"
    yield from _stuck(scene)


def _stuck(scene: Scene) -> Iterator[str]:
    """Yield a problem unless the next stop is decided on a whole journal."""
    project = scene.project
    before = Journal(str(project.gsd)).read()
    loop = before.by_id["lp-1"]
    due = loop.status in LIVE and loop.owner == SESSION
    answer = reply(project.signal(last_assistant_message="the next stop"), "a")
    data = project.file.read_bytes()
    verdict = judge(data)
    if verdict.torn or verdict.damaged:
        yield "the journal is not whole after the next stop"
        return
    if due != (verdict.events > before.seq) or (blocks(answer) and not due):
        yield "the next stop was not decided"
    elif due and blocks(answer) != (project.events()[-1]["type"] == "iteration"):
        yield "the next stop is not what it says"


def _campaign(scene: Scene, trials: list[tuple[Point, str]]) -> int:
    """Run each trial, a point and a fault in the syntax of strace; return the number of kills."""
    kills, problems = 0, []
    for point, fate in trials:
        where = f"{point.call}:{fate}:when={point.number}"
        answered = _run(scene, "-e", f"trace={point.call}", "-e", f"inject={where}")
        kills += answered.code == -signal.SIGKILL
        if fate.startswith("error") and answered.code:
            problems.append(f"{where}: exit code {answered.code}")
        problems += [f"{where}: {wrong}" for wrong in _wrong(scene, answered)]
    assert problems == []
    return kills


@pytest.mark.parametrize("name", ["a block", "a completion", "a prompt that binds", "a torn tail"])
def test_killed_hook_printed_nothing_unrecorded(tmp_path: Path, name: str) -> None:
    scene = make_scene(name, tmp_path / "project")
    points = [point for point, _ in _calls(scene)]
    assert len(points) > 60
    trials = [(point, "signal=SIGKILL") for point in _sample(points, seed=1)]
    assert _campaign(scene, trials) == len(trials)


@pytest.mark.parametrize("name", list(STORIES)[:2])
def test_hook_with_failing_calls_exits_0_and_keeps_journal_valid(tmp_path: Path, name: str) -> None:
    scene = make_scene(name, tmp_path / "project")
    points = _sample([point for point, _ in _calls(scene) if point.call in REFUSABLE], seed=2)
    errors = itertools.cycle(ERRORS)
    _campaign(scene, [(point, f"error={next(errors)}") for point in points])


def test_hook_syncs_block_before_printing_it(tmp_path: Path) -> None:
    calls = _calls(make_scene("a block", tmp_path / "project"))
    made = [(point.call, args[:1]) for point, args in calls if point.call in ("write", "fsync")]
    assert [call for call, _ in made] == ["write", "fsync", "write"]
    assert made[0][1] == made[1][1] != made[2][1] == "1"


def _history(root: Path, seed: int) -> str:
    """Make files around the project for this seed; return a goal."""
    choose = Random(seed)
    root.mkdir(parents=True)
    if seed % 2:
        (root / ".git" / "refs").mkdir(parents=True)
        (root / ".git" / "HEAD").write_text(choose.choice(["ref: refs/main\n", "0" * 40]))
        (root / ".git" / "refs" / "main").write_text("1" * 40)
    if seed % 3:
        call = '{"type":"tool_use"}\n'
        (root / "transcript.jsonl").write_text(call * choose.randrange(3))
    return choose.choice(["x", "é→\u202e", "\x1b]0;"]) * choose.choice([1, 40, 900])


@pytest.mark.torture
@pytest.mark.parametrize("name", STORIES)
def test_hook_killed_at_every_call_loses_nothing(tmp_path: Path, name: str) -> None:
    kills = 0
    for seed in range(torture(6)):
        root = tmp_path / str(seed) / "project"
        scene = make_scene(name, root, _history(root, seed))
        trials = [(point, "signal=SIGKILL") for point, _ in _calls(scene)]
        assert _campaign(scene, trials) == len(trials)
        kills += len(trials)
    print(f"{name}: {kills} kills")


@pytest.mark.torture
@pytest.mark.parametrize("name", STORIES)
def test_hook_with_every_call_failing_exits_0(tmp_path: Path, name: str) -> None:
    scene = make_scene(name, tmp_path / "project")
    points = [point for point, _ in _calls(scene) if point.call in REFUSABLE]
    trials = [(point, f"error={error}") for point in points for error in ERRORS]
    _campaign(scene, trials[:: round(1 / min(1.0, torture(100) / 100))])
    print(f"{name}: {len(trials)} failing calls")
