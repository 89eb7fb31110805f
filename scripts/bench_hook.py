"""Compare the hook with a bare interpreter and with the hooks that it replaces."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

from synthetic import ended_loops, write_journal
from synthetic import events as some_events

import gsd_fsm
from gsd_fsm.core.journal.journal import Author, Journal
from gsd_fsm.core.project import make_gsd, register
from gsd_fsm.install.hook_entries import CODE
from gsd_fsm.install.interpreter import choose

RIVALS = Path(__file__).with_name("rivals")
SESSION = "bench"
UNSYNCED = CODE.replace(
    "gsd_fsm_hook.main()",
    "gsd_fsm_hook.load('engine'); gsd_fsm_hook.sync = lambda fd: None; gsd_fsm_hook.main()",
)
TASKS, ENDED = 25_000, 10_000
LIMITS = {"max_iterations": 0, "stuck_limit": 0, "idle_limit": 0}


class Bench:
    """An installed hook and projects of several sizes."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        folder.mkdir()
        self.python = choose(None).path
        self.env = {**env, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
        os.environ["XDG_STATE_HOME"] = self.env["XDG_STATE_HOME"]
        self.installed = folder / "installed"
        self.installed.mkdir()
        shutil.copy(Path(gsd_fsm.__file__).with_name("gsd_fsm_hook.py"), self.installed)

    def project(self, name: str, history: Iterable[dict[str, Any]], tasks: int = 0) -> Path:
        """Make a project with this history and a live loop of our session."""
        gsd = self.folder / name / ".gsd"
        gsd.parent.mkdir()
        make_gsd(str(gsd))
        write_journal(gsd / "journal.jsonl", history)
        (gsd / "journal.jsonl").chmod(0o600)
        register("j-synthetic", str(gsd), 0)
        start = {"kind": "goal", "mode": "yolo", "goal": "Be fast", "limits": LIMITS}
        with Journal(str(gsd)).transaction(Author("human", SESSION)) as tx:
            loop = tx.start("lp-hook", start)
            for first in range(0, tasks, 250):
                numbers = range(first, min(first + 250, tasks))
                specs = [{"id": f"T{n}", "title": f"Task number {n}"} for n in numbers]
                tx.append(loop, "plan", {"tasks": specs})
        return gsd.parent

    def bare(self) -> None:
        self._run(self.folder, [self.python, "-I", "-S", "-c", "pass"])

    def hook(self, project: Path, code: str = CODE) -> str:
        return self._run(
            project, [self.python, "-I", "-S", "-c", code, str(self.installed), "bench"]
        )

    def script(self, project: Path) -> None:
        self._run(
            project, [self.python, "-I", "-S", str(self.installed / "gsd_fsm_hook.py"), "bench"]
        )

    def rival(self, name: str, project: Path) -> None:
        self._run(project, ["bash", str(RIVALS / name)])

    def _run(self, project: Path, command: list[str]) -> str:
        payload = {
            "hook_event_name": "Stop",
            "session_id": SESSION,
            "cwd": str(project),
            "transcript_path": str(self.folder / "none.jsonl"),
            "last_assistant_message": "I am done.",
        }
        done = subprocess.run(
            command, cwd=project, env=self.env, input=json.dumps(payload), check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout

    def sync_seconds(self) -> float:
        """Measure a plain append with fsync on this disk."""
        fd = os.open(self.folder / "plain", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        began = time.perf_counter()
        for _ in range(10):
            os.write(fd, b"x" * 600)
            os.fsync(fd)
        os.close(fd)
        return (time.perf_counter() - began) / 10


def fresh_snapshot(project: Path) -> None:
    """Save the snapshot now, as every 32nd append does."""
    from gsd_fsm.core.journal.snapshot import save_snapshot
    from gsd_fsm.core.syscalls import READ, open_directory, open_regular

    journal = Journal(str(project / ".gsd"))
    journal.read()
    directory = open_directory(journal.path)
    fd = open_regular(directory, "journal.jsonl", READ)
    save_snapshot(directory, fd, journal.loops, journal.at)


def bench_hook(
    folder: Path,
    *,
    env: dict[str, str],
    events: int,
    rounds: int,
    interleave: Callable[..., dict[str, list[float]]],
    row: Callable[[str, str, str], None],
) -> None:
    bench = Bench(folder, env)
    print("\nOne stop from start to end, against bare `python -I -S -c pass`", flush=True)
    empty = folder / "empty"
    empty.mkdir()
    large, small, middle = (
        bench.project(name, some_events(count))
        for name, count in (("large", events), ("small", 10), ("middle", 10_000))
    )
    few_tasks, many_tasks = (
        bench.project(f"tasks-{count}", some_events(10), count) for count in (10, TASKS)
    )
    few_ended, many_ended = (
        bench.project(f"ended-{count}", ended_loops(count)) for count in (10, ENDED)
    )
    old = folder / "old"
    (old / ".gsd").mkdir(parents=True)
    (old / ".gsd" / "STATE.md").write_text(
        "loop:\n  active: true\n  type: execute\n  iteration: 1\n  max_iterations: 99\n  paused: false\n"
    )
    (old / ".gsd" / "state.json").write_text(
        json.dumps({"owner": SESSION, "status": "running", "iteration": 0, "max_iterations": 10**9})
    )
    for project in (large, small, middle, few_tasks, many_tasks, few_ended, many_ended):
        fresh_snapshot(project)
        if '"block"' not in bench.hook(project):
            raise SystemExit(f"the hook did not block in {project}")
    fresh_snapshot(large)

    def no_snapshot() -> None:
        (middle / ".gsd" / "snapshot.json").unlink(missing_ok=True)
        bench.hook(middle)

    times = interleave(
        rounds,
        bare=bench.bare,
        block=lambda: bench.hook(large, UNSYNCED),
        durable=lambda: bench.hook(large),
        small=lambda: bench.hook(small, UNSYNCED),
        few_tasks=lambda: bench.hook(few_tasks, UNSYNCED),
        many_tasks=lambda: bench.hook(many_tasks, UNSYNCED),
        few_ended=lambda: bench.hook(few_ended, UNSYNCED),
        many_ended=lambda: bench.hook(many_ended, UNSYNCED),
        none=lambda: bench.hook(empty),
        script=lambda: bench.script(large),
        state_md=lambda: bench.rival("state_md.sh", old),
        state_json=lambda: bench.rival("state_json.sh", old),
        replay=no_snapshot,
        sync=bench.sync_seconds,
    )
    bare = times["bare"]

    def against(name: str, less: float = 0.0) -> str:
        took = [seconds - less for seconds in times[name]]
        return f"{median(took) / median(bare):.2f} (min {min(took) / min(bare):.2f})"

    thousand = f"{events:,} events"
    row(f"block, {thousand}, fresh snapshot, without the sync", against("block"), "≤ 1.10")
    row(
        "  the same, durable, less this disk's sync",
        against("durable", median(times["sync"])),
        "≤ 1.25",
    )

    def growth(many: str, few: str) -> str:
        grown = [a / b for a, b in zip(times[many], times[few], strict=True)]
        return f"{median(grown):.2f}"

    row(f"  growth: {thousand} against 10", growth("block", "small"), "≤ 1.05")
    row(f"  growth: {ENDED:,} ended loops against 10", growth("many_ended", "few_ended"), "≤ 1.05")
    row(f"  growth: {TASKS:,} tasks against 10", growth("many_tasks", "few_tasks"), "≤ 3")
    row("no project: cost for users who only have it installed", against("none"), "≤ 1.05")
    row("the hook file as a plain script, block", against("script"), "≤ 2.5")
    for name, what in (
        ("state_md", "a hook in bash that greps a file"),
        ("state_json", "a hook in bash and jq"),
    ):
        faster = median(times[name]) / median(times["durable"])
        best = min(times[name]) / min(times["durable"])
        row(
            f"against {what}: times faster",
            f"{faster:.2f} (min {best:.2f})",
            "≥ 2.0" if name == "state_md" else "—",
        )
    row("no snapshot: full replay of 10,000 events in the hook", against("replay"), "≤ 8")
