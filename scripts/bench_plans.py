"""Compare `next` and `report` in a plan with many tasks and with few."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

FEW, MANY, WAVES = 10, 1000, 50
TASK = """<task id="{number}" wave="{wave}">
  <files>
    <file action="create">src/part_{number}.py</file>
  </files>
  <action>
    Write part {number} of the program.

    It takes what the part before it returns, checks it, and hands it on. Errors are told in words.
  </action>
  <verify>
    <check type="file">src/part_{number}.py exists</check>
    <check type="content">File contains "def part_{number}"</check>
  </verify>
  <done>Part {number} hands on what it got.</done>
</task>

"""


class Planned:
    """Make a project that has executed half of a plan with this many tasks."""

    def __init__(self, folder: Path, tasks: int, waves: int, env: dict[str, str]) -> None:
        self.root = folder / f"plan-{tasks}"
        place = self.root / ".gsd" / "plans" / "phase-1"
        place.mkdir(parents=True)
        self.env = {**env, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
        size = tasks // waves
        (place / "plan.md").write_text(
            "---\nphase: 1\ntitle: Parts\n---\n\n"
            + "".join(TASK.format(number=f"{n:04d}", wave=n // size + 1) for n in range(tasks))
        )
        self.run("start", "execute", "--phase", "1", "--mode", "yolo")
        self.reported = 0

    def run(self, *args: str, stdin: str = "") -> None:
        subprocess.run(
            [sys.executable, "-m", "gsd_fsm", *args],
            cwd=self.root,
            env=self.env,
            input=stdin.encode(),
            check=True,
            capture_output=True,
        )

    def next(self) -> None:
        self.run("next")

    def prompt(self) -> None:
        self.run("next", f"T{self.reported:04d}")

    def report(self) -> None:
        self.run("report", f"T{self.reported:04d}", stdin="TASK COMPLETE\n")
        self.reported += 1


def bench_plans(
    folder: Path,
    env: dict[str, str],
    interleave: Callable[..., dict[str, list[float]]],
    row: Callable[[str, str, str], None],
    ratio: Callable[[list[float], list[float]], str],
) -> None:
    few, many = Planned(folder, FEW, 1, env), Planned(folder, MANY, WAVES, env)
    rounds = min(8, int(os.environ.get("GSD_BENCH_ROUNDS", "5")) + 3)
    for name in ("next", "prompt", "report"):
        works = {"few": getattr(few, name), "many": getattr(many, name)}
        times = interleave(rounds, **works)
        what = {"next": "next", "prompt": "next ID (its prompt)", "report": "report"}[name]
        row(f"{what}: {MANY} tasks against {FEW}", ratio(times["few"], times["many"]), "≤ 1.5")
