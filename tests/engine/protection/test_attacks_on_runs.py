"""Attacks on the run of a check: variables, programs, git, and files that are there for a moment."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.attacks import FAKE, RUN, TASK, attempt, begin, fake_program, proven
from tests.support.command_line import AGENT_A, A, Here
from tests.support.events import write
from tests.support.plan_loops import TITLE, start_plan
from tests.support.repositories import git, posix_only

MAKEFILE = "test:\n\ttest -e done.txt\n"
FAILING = "def test_a():\n    assert False\n"
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
pytestmark = posix_only

# The command of a check with its files, and the variable with which it passes.
VARIABLES: dict[str, tuple[str, dict[str, str], str, str]] = {
    "MAKEFLAGS": ("make test", {"Makefile": MAKEFILE}, "MAKEFLAGS", "-n"),
    "GNUMAKEFLAGS": ("make test", {"Makefile": MAKEFILE}, "GNUMAKEFLAGS", "-n"),
    "MAKEFILES": ("make test", {"Makefile": MAKEFILE}, "MAKEFILES", "{outside}/fake.mk"),
    "BASH_ENV": ("bash run.sh", {"run.sh": RUN}, "BASH_ENV", "{outside}/exit.sh"),
    "PYTEST_ADDOPTS": (PYTEST, {"test_a.py": FAILING}, "PYTEST_ADDOPTS", "--co"),
    "PYTHONPATH": (PYTEST, {"test_a.py": FAILING}, "PYTHONPATH", "{outside}/python"),
    "named by the command": ("test -e ${FILE:-done.txt}", {}, "FILE", "/"),
    "named by the script": ("sh run.sh", {"run.sh": "test -e ${FILE-done.txt}\n"}, "FILE", "/"),
    "named by a makefile": ("make", {"Makefile": "all:\n\t$(PRE) test -e done.txt\n"}, "PRE", ": "),
    "named by Python": (
        f"{sys.executable} run.py",
        {"run.py": "import os\nraise SystemExit('FAKE' not in os.environ)\nos.environ['FAKE']\n"},
        *("FAKE", "1"),
    ),
}  # fmt: skip


def lay_outside(outside: Path) -> None:
    write(outside / "fake.mk", "override SHELL := true\n")
    write(outside / "exit.sh", "exit 0\n")
    write(outside / "python" / "sitecustomize.py", "import os\nos._exit(0)\n")


@pytest.mark.parametrize("name", VARIABLES)
def test_proof_names_the_variable_with_which_a_check_passed(
    repository: Here, name: str, tmp_path: Path
) -> None:
    command, files, variable, value = VARIABLES[name]
    lay_outside(tmp_path / "outside")
    begin(repository, command, files=files)
    proof = attempt(repository, {variable: value.format(outside=tmp_path / "outside")})
    assert variable in proven(proof)["variables"]
    assert variable in repository.ok("proof").out
    assert variable in proof["variables"]  # `complete` had it too


@pytest.mark.parametrize("name", VARIABLES)
def test_strict_env_resets_the_variables_of_the_start(
    repository: Here, name: str, tmp_path: Path
) -> None:
    command, files, variable, value = VARIABLES[name]
    lay_outside(tmp_path / "outside")
    repository.configure(strict_env=True)
    begin(repository, command, files=files)
    proof = attempt(repository, {variable: value.format(outside=tmp_path / "outside")})
    assert (proof["status"], proof["proven"]) == ("running", [])


def test_env_of_the_shell_is_not_read_by_checks(repository: Here, tmp_path: Path) -> None:
    exit_0 = write(tmp_path / "exit.sh", "exit 0\n")
    begin(repository, "sh run.sh", files={"run.sh": RUN})
    assert attempt(repository, {"ENV": str(exit_0)})["status"] == "running"


def test_proof_shows_another_program_of_a_check_and_the_one_of_the_start(
    repository: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "PATH", fake_program(tmp_path / "honest", "prover", "#!/bin/sh\n" + RUN)["PATH"]
    )
    begin(repository, "prover --all")
    proof = attempt(repository, fake_program(tmp_path / "fake", "prover"))
    (program,) = proven(proof)["programs"]
    assert program["path"] == str(tmp_path / "fake" / "prover")
    assert program["was"]["path"] == str(tmp_path / "honest" / "prover")
    assert "PATH" in proof["proven"][0]["variables"]
    assert f"(was {program['was']['path']}" in repository.ok("proof").out


def test_proof_shows_a_program_that_was_overwritten_where_it_is(
    repository: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "PATH", fake_program(tmp_path / "bin", "prover", "#!/bin/sh\n" + RUN)["PATH"]
    )
    begin(repository, "prover --all")
    fake_program(tmp_path / "bin", "prover")
    (program,) = proven(attempt(repository))["programs"]
    assert program["digest"] != program["was"]["digest"]


def test_proof_shows_a_program_that_was_missing_at_the_start(
    repository: Here, tmp_path: Path
) -> None:
    begin(repository, "prover --all")
    (program,) = proven(attempt(repository, fake_program(tmp_path / "fake", "prover")))["programs"]
    assert program["was"] is None


# git


def committed_work(here: Here) -> None:
    begin(here, "test -e done.txt")
    write(here.root / "done.txt", "work\n")
    here.ok("check", env=AGENT_A)


def undo_and_complete(here: Here, **env: str) -> Any:
    """Undo the work that a check has seen, and complete with these variables."""
    (here.root / "done.txt").unlink()
    here.run("complete", env={**AGENT_A, **env})
    return here.ok("proof", "--json").json


def test_check_without_git_since_start_completes_nothing(repository: Here) -> None:
    begin(repository, "true")
    assert attempt(repository, {"PATH": "/nonexistent"})["status"] == "paused"


@pytest.mark.parametrize(
    "name", ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY"]
)
def test_variable_that_points_git_elsewhere_hides_no_change(repository: Here, name: str) -> None:
    committed_work(repository)
    proof = undo_and_complete(repository, **{name: "/nonexistent"})
    assert (proof["status"], proof["proven"]) == ("running", [])


def test_proof_names_the_variables_of_a_filter_that_hides_changes(repository: Here) -> None:
    write(repository.root / ".gitattributes", "*.txt filter=same\n")
    begin(repository, "test -s done.txt", files={"done.txt": ""})
    write(repository.root / "done.txt", "work\n")
    given = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "filter.same.clean"}
    env = {**given, "GIT_CONFIG_VALUE_0": "echo same"}
    repository.ok("check", env={**AGENT_A, **env})
    write(repository.root / "done.txt", "")
    repository.run("complete", env={**AGENT_A, **env})
    proof = repository.ok("proof", "--json").json
    assert given.keys() <= set(proven(proof)["variables"])
    assert given.keys() <= set(proof["variables"])


def test_proof_shows_another_git_at_the_end(repository: Here, tmp_path: Path) -> None:
    committed_work(repository)
    real = git(repository.root, "--exec-path")
    script = (
        f'#!/bin/sh\ncase "$*" in *diff-files*|*ls-files\\ -o*) ;; *) exec {real}/git "$@";; esac\n'
    )
    write(repository.root / "done.txt", "work\n")
    git(repository.root, "add", "-A")
    repository.ok("check", env=AGENT_A)
    proof = undo_and_complete(repository, **fake_program(tmp_path / "fake", "git", script))
    assert proven(proof)["exit_code"] == 0
    assert "PATH" in proof["variables"]
    (program,) = proof["programs"]
    assert program["path"] == str(tmp_path / "fake" / "git")
    assert program["was"]["path"] != program["path"]


# files that are not part of the tree


@pytest.mark.parametrize("ignore", [".gitignore", ".git/info/exclude"])
def test_proof_that_git_ignores_is_shown_and_makes_evidence_stale_when_it_is_gone(
    repository: Here, ignore: str
) -> None:
    write(repository.root / ignore, "done.txt\n")
    begin(repository, "grep -q work done.txt")
    write(repository.root / "done.txt", "work\n")
    repository.ok("check", env=AGENT_A)
    (evidence,) = repository.ok("proof", "--json").json["proven"]
    assert [it["path"] for it in evidence["outside"]] == ["done.txt"]
    assert "not part of the tree: done.txt" in repository.ok("proof").out
    for change in (lambda it: it.write_text("none\n"), lambda it: it.unlink()):
        change(repository.root / "done.txt")
        assert "stale" in repository.run("complete", env=AGENT_A).err
        write(repository.root / "done.txt", "work\n")
        repository.ok("check", env=AGENT_A)
    repository.ok("complete", env=AGENT_A)


def test_file_that_git_ignores_since_the_start_is_shown(repository: Here) -> None:
    write(repository.root / ".git" / "info" / "exclude", "")
    begin(repository, "test -e done.txt")
    write(repository.root / ".git" / "info" / "exclude", "done.txt\n")
    write(repository.root / "done.txt", "")
    proof = attempt(repository)
    assert [it["path"] for it in proven(proof)["outside"]] == ["done.txt"]
    assert proof["watched"]["changed"] == [".git/info/exclude"]


def test_proof_shows_a_named_file_that_existed_only_while_the_check_ran(repository: Here) -> None:
    """The script of the agent stands for its background process."""
    begin(
        repository,
        "sh work.sh; test -e done.txt; r=$?; sh after.sh; exit $r",
        "--may-change",
        "*.sh",
    )
    write(repository.root / "work.sh", "touch done.txt\n")
    write(repository.root / "after.sh", "rm done.txt\n")
    named = {it["path"]: it.get("digest") for it in proven(attempt(repository))["outside"]}
    assert named == {"done.txt": None}
    assert "not part of the tree: done.txt (missing)" in repository.ok("proof").out


def test_clean_room_does_not_pass_with_a_file_that_git_ignores(repository: Here) -> None:
    write(repository.root / ".gitignore", "done.txt\n")
    begin(repository, "test -e done.txt", "--clean")
    write(repository.root / "done.txt", "")
    proof = attempt(repository)
    assert (proof["status"], proof["proven"]) == ("running", [])


@pytest.mark.parametrize("place", [".gsd/done.txt", "node_modules/p/done.txt", ".venv/done.txt"])
def test_evidence_is_bound_to_named_files_that_are_never_part_of_the_tree(
    repository: Here, place: str
) -> None:
    write(repository.root / ".gitignore", "node_modules\n.venv\n")
    begin(repository, f"test -e {place}")
    write(repository.root / place, "")
    repository.ok("check", env=AGENT_A)
    (repository.root / place).unlink()
    assert "stale" in repository.run("complete", env=AGENT_A).err


def test_file_that_a_check_writes_itself_counts_while_it_exists(repository: Here) -> None:
    write(repository.root / ".gitignore", "out.txt\n")
    begin(repository, "sh build.sh && test -e out.txt", files={"build.sh": "date +%N > out.txt\n"})
    repository.ok("check", env=AGENT_A)
    repository.ok("check", env=AGENT_A)
    write(repository.root / "out.txt", "built again\n")
    repository.ok("complete", env=AGENT_A)


def test_loop_without_git_shows_named_files_and_that_evidence_has_no_tree(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--check", "t=test -e done.txt", env=A)
    write(here.root / "done.txt", "")
    here.ok("check", env=AGENT_A)
    (evidence,) = here.ok("proof", "--json").json["proven"]
    assert (evidence["tree"], evidence["outside"][0]["path"]) == (None, "done.txt")
    assert "no tree" in here.ok("proof").out
    (here.root / "done.txt").unlink()
    assert "stale" in here.run("complete", env=AGENT_A).err


# repositories inside the work tree


@pytest.mark.parametrize("place", ["nested/done.txt", "nested/.gsd/done.txt"])
def test_change_in_a_nested_repository_makes_evidence_stale(repository: Here, place: str) -> None:
    begin(repository, "true")
    git(repository.root, "init", "-q", "--template=", "nested")
    write(repository.root / place, "work\n")
    repository.ok("check", env=AGENT_A)
    (repository.root / place).unlink()
    assert "stale" in repository.run("complete", env=AGENT_A).err


def test_time_put_back_hides_no_change(repository: Here) -> None:
    begin(repository, "grep -q work done.txt", files={"done.txt": "none\n"})
    git(repository.root, "config", "core.trustctime", "false")
    write(repository.root / "done.txt", "work\n")
    git(repository.root, "add", "-A")
    repository.ok("check", env=AGENT_A)
    path = repository.root / "done.txt"
    before = path.stat()
    path.write_text("none\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "stale" in repository.run("complete", env=AGENT_A).err


# commands that are no check of a goal


def test_proof_shows_the_fake_program_of_a_round(
    repository: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "PATH", fake_program(tmp_path / "honest", "prover", "#!/bin/sh\n" + RUN)["PATH"]
    )
    repository.configure(ci_test="prover --all")
    repository.start("verify", "--mode", "yolo", "--task", "T1:Work", env=A)
    fake = fake_program(tmp_path / "fake", "prover", FAKE)
    repository.run("verify", env={**AGENT_A, **fake})
    proof = attempt(repository, check="status")
    (program,) = proven(proof)["programs"]
    assert program["was"]["path"] == str(tmp_path / "honest" / "prover")


def test_proof_shows_the_fake_program_of_a_task(
    repository: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "PATH", fake_program(tmp_path / "honest", "prover", "#!/bin/sh\n" + RUN)["PATH"]
    )
    start_plan(repository, plan=TITLE + TASK.replace("sh run.sh", "prover --all"), env=A)
    write(repository.root / "a.py", "a = 1\n")
    fake = {**AGENT_A, **fake_program(tmp_path / "fake", "prover")}
    repository.run("report", "T01", stdin=b"TASK COMPLETE\n", env=fake)
    proof = attempt(repository, check="status")
    (program,) = next(it["programs"] for it in proof["proven"] if "programs" in it)
    assert (proof["status"], program["was"]["path"]) == (
        "completed",
        str(tmp_path / "honest" / "prover"),
    )
