"""Attacks on the files that decide what a check means: each is prevented, or the proof shows it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.attacks import FAKE, RUN, assert_altered, attempt, begin, fake_program, proven
from tests.support.command_line import AGENT_A, Here
from tests.support.events import write
from tests.support.repositories import git, posix_only

Attack = Callable[[Path], object]
MAKEFILE = "test: build\n\ttest -e done.txt\nbuild:\n\t@true\n"
PACKAGE = {"name": "p", "scripts": {"test": "test -e done.txt"}}
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
FAILING = "def test_a():\n    assert False\n"
PASSING = "def test_a():\n    pass\n"
PASS_ALL = (
    "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
    "    out = yield\n    out.get_result().outcome = 'passed'\n"
)


def move(root: Path, name: str) -> Path:
    (root / name).rename(root / f"{name}.old")
    return root / name


def hard_link(root: Path) -> None:
    os.link(write(root / "fake.sh", FAKE), move(root, "run.sh"))


def symbolic_link(root: Path) -> None:
    write(root / "fake.sh", FAKE).chmod(0o755)
    move(root, "run.sh").symlink_to("fake.sh")


def linked_directory(root: Path) -> None:
    write(root / "fake" / "run.sh", FAKE)
    move(root, "sub").symlink_to("fake")


def same_times(root: Path) -> None:
    """Change a file whose size and times stay as they were."""
    path = root / "run.sh"
    git(root, "config", "core.trustctime", "false")
    before = path.stat()
    path.write_text("true # -e done.txt\n"[: before.st_size - 1] + "\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


FILES: dict[str, tuple[str, dict[str, str], Attack, str]] = {
    "script": ("sh run.sh", {"run.sh": RUN}, lambda it: write(it / "run.sh", FAKE), "run.sh"),
    "script that is moved": (
        "sh run.sh", {"run.sh": RUN}, lambda it: write(move(it, "run.sh"), FAKE), "run.sh",
    ),
    "hard link": ("sh run.sh", {"run.sh": RUN}, hard_link, "run.sh"),
    "symbolic link": ("./run.sh", {"run.sh": f"#!/bin/sh\n{RUN}"}, symbolic_link, "run.sh"),
    "directory": ("sh sub/run.sh", {"sub/run.sh": RUN}, linked_directory, "sub/run.sh"),
    "other spelling": (
        "sh ./sub/../run.sh", {"run.sh": RUN, "sub/a": ""}, lambda it: write(it / "run.sh", FAKE),
        "run.sh",
    ),
    "same size and times": ("sh run.sh", {"run.sh": RUN}, same_times, "run.sh"),
    "script of the script": (
        "sh run.sh", {"run.sh": "sh inner.sh\n", "inner.sh": RUN},
        lambda it: write(it / "inner.sh", FAKE), "inner.sh",
    ),
    "makefile": (
        "make test", {"Makefile": MAKEFILE}, lambda it: write(it / "Makefile", "test:\n\ttrue\n"),
        "Makefile",
    ),
    "package.json": (
        "npm test", {"package.json": json.dumps(PACKAGE)},
        lambda it: write(it / "package.json", json.dumps({"scripts": {"test": "true"}})),
        "package.json",
    ),
    "settings of pytest": (
        PYTEST, {"pytest.ini": "[pytest]\n", "test_a.py": FAILING},
        lambda it: write(it / "pytest.ini", "[pytest]\naddopts = --co\n"), "pytest.ini",
    ),
    "new hook": (
        PYTEST, {"test_a.py": FAILING}, lambda it: write(it / "conftest.py", PASS_ALL), "conftest.py",
    ),
    "new hook that git ignores": (
        PYTEST,
        {"sub/test_a.py": FAILING},
        lambda it: (
            write(it / ".gitignore", "conftest.py\n"),
            write(it / "sub" / "conftest.py", PASS_ALL),
        ),
        "sub/conftest.py",
    ),
    "changed hook": (
        PYTEST, {"test_a.py": FAILING, "conftest.py": "def pytest_configure():\n    pass\n"},
        lambda it: write(it / "conftest.py", PASS_ALL), "conftest.py",
    ),
}  # fmt: skip


@posix_only
@pytest.mark.parametrize("name", FILES)
def test_check_with_altered_file_proves_nothing(
    repository: Here, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in fake_program(tmp_path / "bin", "npm").items():
        monkeypatch.setenv(variable, value)
    command, files, attack, path = FILES[name]
    begin(repository, command, files=files)
    attack(repository.root)
    assert_altered(attempt(repository), path)


# What honest work may do too completes the loop, and the proof shows it.
WATCHED: dict[str, tuple[str, dict[str, str], Attack, dict[str, list[str]]]] = {
    "makefile that is read first": (
        "make test", {"Makefile": MAKEFILE}, lambda it: write(it / "GNUmakefile", "test:\n\ttrue\n"),
        {"new": ["GNUmakefile"]},
    ),
    "new settings of pytest": (
        PYTEST, {"test_a.py": FAILING},
        lambda it: write(it / "pytest.ini", "[pytest]\naddopts = --co\n"), {"new": ["pytest.ini"]},
    ),
    "module in place of pytest": (
        PYTEST, {"test_a.py": FAILING}, lambda it: write(it / "pytest.py", ""), {"new": ["pytest.py"]},
    ),
    "package in place of pytest": (
        PYTEST, {"test_a.py": FAILING},
        lambda it: write(it / "pytest" / "__init__.py", "raise SystemExit(0)"),
        {"new": ["pytest/__init__.py"]},
    ),
    "deleted test": (
        PYTEST, {"test_a.py": FAILING, "test_b.py": PASSING},
        lambda it: (it / "test_a.py").unlink(), {"deleted": ["test_a.py"]},
    ),
    "rewritten test": (
        PYTEST, {"test_a.py": FAILING}, lambda it: write(it / "test_a.py", PASSING),
        {"changed": ["test_a.py"]},
    ),
    "fixture of a conftest.py": (
        PYTEST, {"test_a.py": FAILING, "conftest.py": "X = 1\n"},
        lambda it: (write(it / "conftest.py", "X = 2\n"), write(it / "test_a.py", PASSING)),
        {"changed": ["conftest.py", "test_a.py"]},
    ),
}  # fmt: skip


@posix_only
@pytest.mark.parametrize("name", WATCHED)
def test_proof_shows_changes_of_watched_files_at_the_end(repository: Here, name: str) -> None:
    command, files, attack, watched = WATCHED[name]
    begin(repository, command, files=files)
    attack(repository.root)
    proof = attempt(repository)
    assert proven(proof)["exit_code"] == 0
    assert proof["watched"] == watched
    printed = repository.ok("proof").out
    assert all(path in printed for paths in watched.values() for path in paths)


def test_protected_tests_cannot_be_rewritten(repository: Here) -> None:
    begin(repository, PYTEST, "--protect", "test_*.py", files={"test_a.py": FAILING})
    write(repository.root / "test_a.py", PASSING)
    assert_altered(attempt(repository), "test_a.py")


SKIPPED = "import pytest\n\n\n@pytest.mark.skip\ndef test_a():\n    assert False\n"
SILENT = "import os\nos._exit(0)\n"


@pytest.mark.parametrize(
    ("file", "text", "doubt"),
    [
        ("test_a.py", SKIPPED, "the only test was skipped"),
        ("test_0.py", SILENT, "pytest printed no result"),
    ],
)
def test_proof_shows_tests_that_were_skipped_or_ended_early(
    repository: Here, file: str, text: str, doubt: str
) -> None:
    begin(repository, PYTEST, files={"test_a.py": FAILING})
    write(repository.root / file, text)
    assert proven(attempt(repository))["doubts"] == [doubt]


@pytest.mark.parametrize("text", [SKIPPED, SILENT])
def test_doubtful_tests_fail_a_strict_loop(repository: Here, text: str) -> None:
    begin(repository, PYTEST, "--strict-tests", files={"test_a.py": FAILING})
    write(repository.root / "test_a.py", text)
    assert attempt(repository)["status"] == "running"


def test_script_for_npm_before_the_test_is_altered_or_watched(
    repository: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", fake_program(tmp_path / "bin", "npm")["PATH"])
    begin(repository, "npm test", files={"package.json": json.dumps(PACKAGE)})
    scripts = {**PACKAGE["scripts"], "pretest": "touch done.txt"}  # type: ignore[dict-item]
    write(repository.root / "package.json", json.dumps({**PACKAGE, "scripts": scripts}))
    proof = attempt(repository)
    assert [it["path"] for it in proof["altered"]] == ["package.json"] or proof["watched"]


def test_restored_script_counts_again_and_accepted_one_counts_as_shown(repository: Here) -> None:
    begin(repository, "sh run.sh", files={"run.sh": RUN})
    write(repository.root / "run.sh", FAKE)
    repository.run("check", env=AGENT_A)
    repository.ok("restore", "t", env=AGENT_A)
    assert (repository.root / "run.sh").read_text() == RUN
    write(repository.root / "done.txt", "")
    write(repository.root / "run.sh", FAKE)
    assert_altered(attempt(repository), "run.sh")
    repository.refused(4, "accept", "t", env=AGENT_A)
    repository.ok("accept", "t")
    proof = attempt(repository, check="status")
    assert proven(proof)["accepted"]["by"] == "human"
    (change,) = [it for it in proof["changes"] if it["what"] == "accepted"]
    assert [it["path"] for it in change["accepted"]] == ["run.sh"]


def test_changed_executable_bit_makes_evidence_stale(repository: Here) -> None:
    begin(repository, "./run.sh", files={"run.sh": f"#!/bin/sh\n{RUN}"})
    write(repository.root / "done.txt", "")
    repository.ok("check", env=AGENT_A)
    (repository.root / "run.sh").chmod(0o644)
    assert "stale" in repository.run("complete", env=AGENT_A).err


@posix_only
def test_proof_shows_a_script_that_was_swapped_only_while_the_check_ran(repository: Here) -> None:
    """Let the test itself stand for the background process: `work.sh` is the work of the agent."""
    swap = "mv run.sh old; echo exit 0 > run.sh\n"
    back = "mv old run.sh\n"
    begin(repository, "sh work.sh; sh run.sh; r=$?; sh after.sh; exit $r", "--may-change", "*.sh",
          "--protect", "run.sh", files={"run.sh": RUN})  # fmt: skip
    write(repository.root / "work.sh", swap)
    write(repository.root / "after.sh", back)
    assert proven(attempt(repository))["rewritten"] == ["run.sh"]
    assert "written or moved while it ran: run.sh" in repository.ok("proof").out


def test_file_that_is_altered_only_at_the_beginning_of_the_checks_does_not_count(
    repository: Here,
) -> None:
    """The script that the agent wrote restores the one that it replaced."""
    begin(repository, "sh run.sh", files={"run.sh": RUN})
    git(repository.root, "rm", "-q", "--cached", "run.sh")  # a change would repeat the check
    write(repository.root / ".gitignore", "run.sh\n")
    write(repository.root / "run.sh", f"echo '{RUN.strip()}' > run.sh\nexit 0\n")
    repository.run("check", env=AGENT_A)
    assert (repository.root / "run.sh").read_text() == RUN
    assert_altered(repository.ok("proof", "--json").json, "run.sh")
    assert attempt(repository, check="status")["status"] == "running"
    assert attempt(repository)["status"] == "running"
