"""The unmodified hook with a kill or an error at each system call: nothing is lost or invented.

strace does it from outside: the file under test is the one that clients run.
"""

from __future__ import annotations

import itertools
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from gsd_fsm.core.hook.main import reply
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.state import LIVE
from gsd_fsm.history.replay import examine
from tests.support.faults import files_in, judge, put_back, say, sums, torture
from tests.support.hook_project import HOOK, SESSION, HookProject, Told, blocks, run_hook, said

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


def _scene(project: HookProject, event: str = "Stop", **more: Any) -> Scene:
    transcript = project.root / "transcript.jsonl"
    if transcript.exists():
        more["transcript_path"] = str(transcript)
    return Scene(project, files_in(project.gsd), project.signal(event, **more), HOOK)


def blocking(root: Path, goal: str = "Be done") -> Scene:
    return _scene(HookProject(root, goal=goal))


def pausing(root: Path, goal: str = "Be done") -> Scene:
    project = HookProject(root, goal=goal, limits={"max_iterations": 1})
    project.append("iteration", by="hook")
    return _scene(project)


def completing(root: Path, goal: str = "Be done") -> Scene:
    project = HookProject(root, goal=goal)
    project.append("criterion", criterion="one", met=True)
    return _scene(project, last_assistant_message="<loop-complete>all</loop-complete>")


def asking(root: Path, goal: str = "Be done") -> Scene:
    project = HookProject(root, "execute", goal=goal, mode="interactive")
    project.append("failure", task="T1", error="it broke", **{"class": "logic"})
    return _scene(project)


def recovering(root: Path, goal: str = "Be done") -> Scene:
    project = HookProject(root, goal=goal)
    project.append("wait", by="hook", **{"for": "throttled"})
    return _scene(project)


def binding(root: Path, goal: str = "Be done") -> Scene:
    project = HookProject(root, goal=goal)
    project.append("session", by="hook", action="release")
    return _scene(project, "UserPromptSubmit", prompt="go on")


def saving_a_snapshot(root: Path, goal: str = "Be done") -> Scene:
    project = HookProject(root, goal=goal)
    say(Journal(str(project.gsd)), *["on"] * 61)
    return _scene(project)


def repairing(root: Path, goal: str = "Be done") -> Scene:
    scene = blocking(root, goal)
    torn = scene.files["journal.jsonl"] + TAIL
    return scene._replace(files={**scene.files, "journal.jsonl": torn})


def starting_for_the_first_time(root: Path, goal: str = "Be done") -> Scene:
    hook = Path(shutil.copy(HOOK, root.parent))
    return blocking(root, goal)._replace(hook=hook)


SCENES: dict[str, Callable[..., Scene]] = {
    "a block": blocking,
    "a pause": pausing,
    "a completion": completing,
    "a question": asking,
    "the end of a throttle": recovering,
    "a prompt that binds": binding,
    "a snapshot": saving_a_snapshot,
    "a torn tail": repairing,
    "no bytecode yet": starting_for_the_first_time,
}


def _run(scene: Scene, *options: str) -> Told:
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
    told = _run(scene)
    assert told.code == 0, told
    lines = (scene.project.root / "strace.log").read_text("utf-8", "replace").splitlines()
    made = [match.groups() for match in map(CALL.match, lines) if match]
    count: Counter[str] = Counter()
    found: list[tuple[Point, str]] = []
    for pid, call, arguments in made:
        if pid == made[0][0]:
            count[call] += 1
            found.append((Point(call, count[call]), arguments))
    begin = next(
        number
        for number, (point, arguments) in enumerate(found)
        if point.call == "read" and arguments.startswith("0,")
    )
    return [entry for entry in found[begin:] if entry[0].call not in RESTLESS]


def _points(scene: Scene, calls: set[str] | None = None) -> list[Point]:
    return [point for point, _ in _calls(scene) if calls is None or point.call in calls]


def _sample(points: list[Point], seed: int) -> list[Point]:
    """Return every call that changes a file, and each of the others once."""
    choose = Random(seed)
    others = dict.fromkeys(point.call for point in points if point.call not in CHANGING)
    return [point for point in points if point.call in CHANGING] + [
        choose.choice([point for point in points if point.call == call]) for call in others
    ]


def _wrong(scene: Scene, told: Told) -> Iterator[str]:
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
    answer = told.answer
    text = said(answer)
    if blocks(answer) and [e["type"] for e in new if e["data"].get("reason") == text] != [
        "iteration"
    ]:
        yield "a block without its event"
    if text and not blocks(answer) and text not in [e["data"].get("said") for e in new]:
        yield "a notice without its event"
    if "Traceback" in told.err:
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


def _campaign(scene: Scene, trials: list[tuple[Point, str]]) -> list[Told]:
    """Run each trial: a point and a fault in the syntax of strace."""
    told = []
    problems = []
    for point, fate in trials:
        where = f"{point.call}:{fate}:when={point.number}"
        told.append(_run(scene, "-e", f"trace={point.call}", "-e", f"inject={where}"))
        if fate.startswith("error") and told[-1].code:
            problems.append(f"{where}: exit code {told[-1].code}")
        problems += [f"{where}: {wrong}" for wrong in _wrong(scene, told[-1])]
    assert problems == []
    return told


def _killed(told: list[Told]) -> int:
    return sum(run.code == -signal.SIGKILL for run in told)


@pytest.mark.parametrize("name", ["a block", "a completion", "a prompt that binds", "a torn tail"])
def test_killed_hook_printed_nothing_unrecorded(tmp_path: Path, name: str) -> None:
    scene = SCENES[name](tmp_path / "project")
    points = _points(scene)
    assert len(points) > 60
    trials = [(point, "signal=SIGKILL") for point in _sample(points, seed=1)]
    assert _killed(_campaign(scene, trials)) == len(trials)


@pytest.mark.parametrize("name", list(SCENES)[:2])
def test_hook_with_failing_calls_exits_0_and_keeps_journal_valid(tmp_path: Path, name: str) -> None:
    scene = SCENES[name](tmp_path / "project")
    points = _sample(_points(scene, REFUSABLE), seed=2)
    errors = itertools.cycle(ERRORS)
    _campaign(scene, [(point, f"error={next(errors)}") for point in points])


def test_hook_syncs_block_before_printing_it(tmp_path: Path) -> None:
    scene = blocking(tmp_path / "project")
    kept = [(point.call, args) for point, args in _calls(scene)]
    writes = [(call, args[:1]) for call, args in kept if call in ("write", "fsync")]
    assert [call for call, _ in writes] == ["write", "fsync", "write"]
    assert writes[0][1] == writes[1][1] != "1"
    assert writes[2][1] == "1"


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
@pytest.mark.parametrize("name", SCENES)
def test_hook_killed_at_every_call_loses_nothing(tmp_path: Path, name: str) -> None:
    kills = 0
    for seed in range(torture(6)):
        root = tmp_path / str(seed) / "project"
        scene = SCENES[name](root, _history(root, seed))
        trials = [(point, "signal=SIGKILL") for point in _points(scene)]
        assert _killed(_campaign(scene, trials)) == len(trials)
        kills += len(trials)
    print(f"{name}: {kills} kills")


@pytest.mark.torture
@pytest.mark.parametrize("name", SCENES)
def test_hook_with_every_call_failing_exits_0(tmp_path: Path, name: str) -> None:
    scene = SCENES[name](tmp_path / "project")
    trials = [(p, f"error={e}") for p in _points(scene, REFUSABLE) for e in ERRORS]
    _campaign(scene, trials[:: round(1 / min(1.0, torture(100) / 100))])
    print(f"{name}: {len(trials)} failing calls")
