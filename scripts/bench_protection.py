"""Measure what protected checks add to `start` and `check` in a project of many files."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

PACKAGES, SOURCES, TESTS = 100, 70, 30
SETTINGS = '[project]\nname = "large"\n\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'
PYTEST, NOTHING = "pytest -q", "true"


class Large:
    """A project of 10,000 files in git, 3,000 of them tests, with a loop that has this check."""

    def __init__(self, folder: Path, name: str, env: dict[str, str], check: str) -> None:
        self.root, self.check_command = folder / name, check
        stand_in = folder / "bin" / "pytest"
        stand_in.parent.mkdir(parents=True, exist_ok=True)
        stand_in.write_text("#!/bin/sh\nexit 0\n")
        stand_in.chmod(0o755)
        home = folder / f"home of {name}"
        self.env = {**env, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
        self.env["PATH"] = f"{stand_in.parent}:{env['PATH']}"
        for package in range(PACKAGES):
            for kind, form, count in (("src", "{}.py", SOURCES), ("tests", "test_{}.py", TESTS)):
                place = self.root / kind / f"package_{package}"
                place.mkdir(parents=True)
                for number in range(count):
                    (place / form.format(number)).write_text(f"NUMBER = {package}, {number}\n")
        (self.root / "tests" / "conftest.py").write_text("import pytest\n")
        self.run("git", "init", "-q")
        self.run("git", "add", ".")
        time.sleep(1.1)  # git reads files again that are as new as its index
        (self.root / "pyproject.toml").write_text(SETTINGS)
        self.run("git", "add", ".")
        self.run("git", *["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "all"])

    def run(self, *words: str) -> None:
        subprocess.run(words, cwd=self.root, env=self.env, check=True, capture_output=True)

    def command(self, *words: str) -> None:
        self.run(sys.executable, "-m", "gsd_fsm", *words)

    def start(self) -> None:
        self.command("start", "goal", "Ship it", "--check", f"t={self.check_command}", "--fresh")

    def start_without_check(self) -> None:
        self.command("start", "goal", "Ship it", "--criterion", "it is shipped", "--fresh")

    def check(self) -> None:
        self.command("check")

    def status(self) -> None:
        self.run("git", "status", "--porcelain")


def bench_protection(
    folder: Path,
    env: dict[str, str],
    *,
    rounds: int,
    interleave: Callable[..., dict[str, list[float]]],
    row: Callable[[str, str, str], None],
    ratio: Callable[[list[float], list[float]], str],
) -> None:
    """Print the cost of freezing and comparing, as ratios and in times of `git status`."""
    tested, free = Large(folder, "tested", env, PYTEST), Large(folder, "free", env, NOTHING)
    plain = Large(folder, "plain", env, NOTHING)
    plain.start_without_check()
    print("\nA project of 10,000 files, 3,000 of them tests")
    times = interleave(
        rounds,
        start=tested.start,
        start_free=free.start,
        start_plain=plain.start_without_check,
        check=tested.check,
        check_free=free.check,
        status=tested.status,
    )
    cost = {name: median(found) for name, found in times.items()}

    def in_status(work: str, reference: str) -> str:
        return f"{(cost[work] - cost[reference]) / cost['status']:.2f}"

    row(
        "start with `true`, against no check",
        ratio(times["start_plain"], times["start_free"]),
        "≤ 1.1",
    )
    row(
        "start with `pytest -q`, against no check",
        ratio(times["start_plain"], times["start"]),
        "≤ 1.1",
    )
    row("  what that adds, in git status", in_status("start", "start_plain"), "—")
    row("check of `pytest -q`, against `true`", ratio(times["check_free"], times["check"]), "≤ 1.1")
    row("  what that adds, in git status", in_status("check", "check_free"), "—")
