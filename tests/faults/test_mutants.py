"""Mutation tests: a named test fails for each small mistake in mutants.txt."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

# Each entry: the mistake | its file in gsd_fsm | the test in tests that must fail; then the change.
TABLE = (Path(__file__).parent / "mutants.txt").read_text("utf-8")


class Mutant(NamedTuple):
    name: str
    file: str
    test: str
    old: str
    new: str


def _mutant(entry: str) -> Mutant:
    title, *diff = entry.strip("\n").split("\n")
    name, file, test = title.split(" | ")
    old, new = ("".join(f"{line[1:]}\n" for line in diff if line[0] in " " + sign) for sign in "-+")
    return Mutant(name, f"gsd_fsm/{file}", f"tests/{test}", old, new)


MUTANTS = [_mutant(entry) for entry in ("\n" + TABLE).split("\n* ")[1:]]
NAMES = [mutant.name for mutant in MUTANTS]


def test_every_mutant_fits_its_source_in_one_place() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 18
    for name, file, test, old, new in MUTANTS:
        source = "\n" + (ROOT / file).read_text("utf-8")
        assert source.count("\n" + old) == 1, name
        compile(source.replace("\n" + old, "\n" + new), file, "exec")
        assert old != new, name
        path, function = test.split("::")
        assert f"\ndef {function}(" in (ROOT / path).read_text("utf-8"), name


def test_guarantees_page_states_number_of_mutants() -> None:
    assert f" {len(MUTANTS)} mutants " in (ROOT / "docs" / "guarantees.md").read_text("utf-8")


def _copy(place: Path) -> Path:
    for name in ("gsd_fsm", "scripts", "tests"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


def _python(place: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the copied package before any that is installed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def _pytest(place: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    # From elsewhere, as the tests start their own children: only the path must lead to the copy.
    asked = _python(place, place / "tests", "-c", "import gsd_fsm; print(gsd_fsm.__file__)")
    assert asked.stdout.strip() == str(place / "gsd_fsm" / "__init__.py"), asked
    return _python(place, place, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests)


@pytest.mark.torture
def test_named_tests_pass_without_mutant(tmp_path: Path) -> None:
    done = _pytest(_copy(tmp_path), *sorted({mutant.test for mutant in MUTANTS}))
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.torture
@pytest.mark.parametrize("name", NAMES)
def test_every_mutant_is_killed_by_its_test(tmp_path: Path, name: str) -> None:
    mutant = MUTANTS[NAMES.index(name)]
    place = _copy(tmp_path)
    source = "\n" + (place / mutant.file).read_text("utf-8")
    changed = source.replace("\n" + mutant.old, "\n" + mutant.new)
    (place / mutant.file).write_text(changed[1:], "utf-8")
    if mutant.file.startswith("gsd_fsm/core/"):
        built = _python(place, place, "scripts/build_hook.py")
        assert built.returncode == 0, built.stderr
    done = _pytest(place, mutant.test)
    # 1: a test failed. Anything else but 0 means that the mutant does not even run.
    assert done.returncode == 1, done.stdout[-4000:] + done.stderr[-1000:]
