"""Measure speed as ratios to a reference that runs side by side."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import orjson
from bench_hook import bench_hook
from bench_plans import bench_plans, bench_proofs
from bench_protection import bench_protection
from synthetic import events, write_journal

from gsd_fsm.core.journal.journal import Author, Journal
from gsd_fsm.core.journal.scan import load_event
from gsd_fsm.history.machine import MachineLoops
from gsd_fsm.history.replay import Replay, examine, fast_loads, in_bulk

EVENTS = int(os.environ.get("GSD_BENCH_EVENTS", "1000000"))
ROUNDS = int(os.environ.get("GSD_BENCH_ROUNDS", "5"))
APPENDS = 1000
WRITERS = 8
# Run a command from a small process: the peak of a child includes that of the process it forks from.
PEAK = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""
# A separate project for each measurement of the command line.
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("CLAUDE", "GSD_", "AI_", "PYTHON"))}


def interleave(rounds: int, **works: Callable[[], object]) -> dict[str, list[float]]:
    """Return the seconds of each work in each round; a work may return its own measurement."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for done in range(rounds):
        for name, work in works.items():
            print(f"\r  round {done + 1}/{rounds} {name:<20}", end="", file=sys.stderr, flush=True)
            began = time.perf_counter()
            own = work()
            times[name].append(own if isinstance(own, float) else time.perf_counter() - began)
    print("\r" + " " * 50 + "\r", end="", file=sys.stderr)
    return times


def row(what: str, figure: str, goal: str) -> None:
    print(f"{what:<58}{figure:>22}   goal {goal}", flush=True)


def ratio(fast: list[float], slow: list[float]) -> str:
    """Return the ratio of slow to fast, by medians and by the best of each."""
    return f"{median(slow) / median(fast):.2f} (min {min(slow) / min(fast):.2f})"


def parse_only(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            orjson.loads(line)


def bench_replay(folder: Path) -> None:
    gsd = folder / "long" / ".gsd"
    gsd.mkdir(parents=True, mode=0o700)
    path = gsd / "journal.jsonl"
    write_journal(path, events(EVENTS))
    path.chmod(0o600)
    print(f"\n{EVENTS} events, {path.stat().st_size / 1e6:.0f} MB; whole file, every sum verified")
    times = interleave(
        ROUNDS,
        parse=lambda: parse_only(path),
        replay=lambda: Replay(Journal(str(gsd))).run(),
        fsck=lambda: examine(Journal(str(gsd))) and None,
    )
    row("replay against orjson parsing alone", ratio(times["replay"], times["parse"]), "≥ 0.35")
    row("fsck against orjson parsing alone", ratio(times["fsck"], times["parse"]), "≥ 0.35")
    short = folder / "short" / ".gsd"
    short.mkdir(parents=True, mode=0o700)
    write_journal(short / "journal.jsonl", events(min(EVENTS, 20_000)))
    (short / "journal.jsonl").chmod(0o600)
    steps = interleave(
        ROUNDS,
        machine=lambda: drive_machine(Journal(str(short))),
        fold=lambda: fold_only(Journal(str(short))),
    )
    row("replay by the fold against Machine.trigger", ratio(steps["fold"], steps["machine"]), "≥ 4")
    done = subprocess.run(
        [sys.executable, "-c", PEAK, sys.executable, "-m", "gsd_fsm", "replay", "--json"],
        cwd=gsd.parent, env=ENV, check=True, capture_output=True, text=True,
    )  # fmt: skip
    row("memory of `gsd-fsm replay --json`", f"{int(done.stdout) / 1024:.0f} MB", "≤ 40 MB")


def drive_machine(journal: Journal) -> None:
    """Replay the journal, every line verified, with Machine.trigger for each step."""
    machine = MachineLoops()
    journal.read(
        lambda _loops: lambda line: machine.fold(load_event(line, fast_loads)), hashlib.sha256
    )


def fold_only(journal: Journal) -> None:
    journal.read(in_bulk, hashlib.sha256)


def new_journal(folder: Path) -> Journal:
    from gsd_fsm.core.journal.journal import create_journal
    from gsd_fsm.core.project import make_gsd

    gsd = folder / ".gsd"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make_gsd(str(gsd))
    create_journal(str(gsd), "j-bench", 1_794_783_600_000)
    journal = Journal(str(gsd))
    limits = {"max_iterations": 0, "stuck_limit": 0}
    start = {"kind": "goal", "mode": "yolo", "goal": "Be fast", "limits": limits}
    with journal.transaction(Author("human")) as tx:
        tx.start("lp-bench", start)
    return journal


def append_events(journal: Journal, count: int) -> None:
    hook, data = Author("hook"), {"activity": True, "code": "continue"}
    for _ in range(count):
        with journal.transaction(hook) as tx:
            tx.append(tx.loops.by_id["lp-bench"], "iteration", data)


def append_plain(path: Path, count: int) -> None:
    line = b"x" * 170 + b"\n"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for _ in range(count):
        os.write(fd, line)
        os.fsync(fd)
    os.close(fd)


def append_sqlite(path: Path, count: int) -> None:
    base = sqlite3.connect(path, timeout=60, isolation_level=None)
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("PRAGMA synchronous=FULL")
    base.execute("CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, line TEXT)")
    for _ in range(count):
        base.execute("INSERT INTO events (line) VALUES (?)", ("x" * 170,))
    base.close()


def together(work: Callable[[], None]) -> None:
    """Run the same work in several processes at once."""
    children = []
    for _ in range(WRITERS):
        child = os.fork()
        if child == 0:
            work()
            os._exit(0)
        children.append(child)
    for child in children:
        if os.waitpid(child, 0)[1]:
            raise SystemExit("a writer failed")


def bench_append(folder: Path) -> None:
    each = APPENDS // WRITERS
    print(f"\n{APPENDS} durable appends, by 1 and by {WRITERS} writers")
    one = new_journal(folder / "one")
    many = new_journal(folder / "many")
    times = interleave(
        ROUNDS,
        plain=lambda: append_plain(folder / "plain", APPENDS),
        ours=lambda: append_events(one, APPENDS),
        sqlite=lambda: append_sqlite(folder / "one.db", APPENDS),
        ours_many=lambda: together(lambda: append_events(Journal(many.path), each)),
        sqlite_many=lambda: together(lambda: append_sqlite(folder / "many.db", each)),
    )
    row("1 writer against plain write + fsync", ratio(times["ours"], times["plain"]), "≥ 0.7")
    row(
        "8 writers against plain write + fsync", ratio(times["ours_many"], times["plain"]), "≥ 0.25"
    )
    row(
        "1 writer against sqlite3 WAL, synchronous=FULL",
        ratio(times["ours"], times["sqlite"]),
        "> 1",
    )
    row(
        "8 writers against sqlite3 WAL, synchronous=FULL",
        ratio(times["ours_many"], times["sqlite_many"]),
        "> 1",
    )


def bench_verbs(folder: Path) -> None:
    project = folder / "verbs"
    project.mkdir()
    home = {
        "HOME": str(folder),
        "XDG_STATE_HOME": f"{folder}/state",
        "XDG_CONFIG_HOME": f"{folder}/config",
        "XDG_DATA_HOME": f"{folder}/data",
    }
    command = str(Path(sys.executable).with_name("gsd-fsm"))

    def run(*args: str) -> None:
        subprocess.run(
            args, cwd=project, env={**ENV, **home}, check=True, stdout=subprocess.DEVNULL
        )

    run(command, "init", "--yes")
    run(command, "start", "goal", "Be fast", "--stuck-limit", "0", "--max-iterations", "0")
    print("\nOne command from start to end, against bare `python -I -S -c pass`")
    times = interleave(
        ROUNDS * 4,
        bare=lambda: run(sys.executable, "-I", "-S", "-c", "pass"),
        iterate=lambda: run(command, "iterate"),
        status=lambda: run(command, "status", "--json"),
        click=lambda: run(sys.executable, "-c", "import click"),
    )
    row("a command that appends (iterate)", ratio(times["bare"], times["iterate"]), "≤ 7")
    row("a command that reads (status --json)", ratio(times["bare"], times["status"]), "≤ 7")
    row("  of which Python and `import click`", ratio(times["bare"], times["click"]), "—")


def main() -> None:
    print("Ratio by medians (by the best of each round).")
    with tempfile.TemporaryDirectory(prefix="gsd-fsm-bench-") as name:
        folder = Path(name)
        bench_hook(
            folder / "hook",
            env=ENV,
            events=EVENTS,
            rounds=ROUNDS * 6,
            interleave=interleave,
            row=row,
        )
        bench_verbs(folder)
        bench_plans(folder, ENV, interleave, row, ratio)
        bench_proofs(folder, ENV, interleave, row)
        bench_protection(
            folder / "large",
            ENV,
            rounds=ROUNDS * 3,
            interleave=interleave,
            row=row,
            ratio=ratio,
        )
        bench_append(folder)
        bench_replay(folder)


if __name__ == "__main__":
    main()
