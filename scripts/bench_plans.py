"""Compare `next` and `report` in a plan with many tasks and with few, with and without proofs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

FEW, MANY, WAVES = 10, 1000, 50
FILES = 200  # in the repository in which proofs are measured
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
        (self.root / "src").mkdir()
        for number in range(tasks):
            text = f"def part_{number:04d}(): pass\n"
            (self.root / "src" / f"part_{number:04d}.py").write_text(text)
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


class Proven(Planned):
    """Make a project in git whose tasks run one after the other, each with one command."""

    def __init__(self, folder: Path, env: dict[str, str], *, proves: bool) -> None:
        home = folder / ("proven" if proves else "claimed")
        self.root = home / "project"
        place = self.root / ".gsd" / "plans" / "phase-1"
        place.mkdir(parents=True)
        settings = home / "config" / "gsd-fsm"
        settings.mkdir(parents=True)
        (settings / "config.toml").write_text(f"prove_tasks = {str(proves).lower()}\n")
        self.env = {**env, "HOME": str(home), "XDG_STATE_HOME": f"{home}/state"}
        self.env["XDG_CONFIG_HOME"] = f"{home}/config"
        for number in range(FILES):
            (self.root / f"{number}.py").write_text("pass\n")
        command = '<check type="command">true</check>'
        tasks = "".join(_task(f"{n:04d}", command) for n in range(100))
        (place / "plan.md").write_text(f"---\nphase: 1\n---\n## Wave 1 (Sequential)\n{tasks}")
        for words in ("init -q", "add .", "-c user.name=b -c user.email=b@b commit -qm all"):
            self.act("git", *words.split())
        self.run("start", "execute", "--phase", "1", "--mode", "yolo")
        self.reported = 0

    def act(self, *words: str) -> None:
        subprocess.run(words, cwd=self.root, env=self.env, check=True, capture_output=True)


def _task(number: str, checks: str) -> str:
    return (
        f'<task id="{number}" wave="1"><action>Do it.</action><verify>{checks}</verify>'
        f"<done>Done.</done></task>\n"
    )


def bench_proofs(
    folder: Path,
    env: dict[str, str],
    interleave: Callable[..., dict[str, list[float]]],
    row: Callable[[str, str, str], None],
) -> None:
    """Print what a proof adds to a report and to its check, in times of `git status`."""
    proven, claimed = (Proven(folder, env, proves=proves) for proves in (True, False))
    times = interleave(
        20,
        proven=proven.report,
        claimed=claimed.report,
        check=lambda: proven.act("sh", "-c", "true"),
        status=lambda: proven.act("git", "status", "--porcelain"),
    )
    cost = {name: median(found) for name, found in times.items()}
    added = cost["proven"] - cost["claimed"] - cost["check"]
    row(
        "report with a proof, beside its check, in git status",
        f"{added / cost['status']:.2f}",
        "≤ 2",
    )


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
