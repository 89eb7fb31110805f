"""Which changes alter a check, which are only shown, and which files are looked at."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Here
from tests.support.events import write
from tests.support.repositories import git

TEST, MORE = "def test_a():\n    pass\n", "def test_a():\n    assert True\n"
HOOK = "def pytest_configure(config):\n    pass\n"
TESTS = ("tests/test_a.py", "tests/unit/test_b.py", "more/test_c.py")
MIB = 1 << 20


@pytest.fixture
def tested(repository: Here) -> Here:
    """Return a repository with tests, in which `pytest` is a program that only passes."""
    stand_in = write(
        repository.root.parent / "bin" / "pytest", "#!/bin/sh\necho '1 passed in 0s'\n"
    )
    stand_in.chmod(0o755)
    repository.patch.setenv("PATH", f"{stand_in.parent}:{os.environ['PATH']}")
    for name in TESTS:
        write(repository.root / name, TEST)
    return repository


def change(here: Here, files: Mapping[str, str | None]) -> None:
    for name, text in files.items():
        if text is None:
            (here.root / name).unlink()
        else:
            write(here.root / name, text)


def found(here: Here) -> tuple[list[str], Any]:
    """Run the check, and return altered and watched files."""
    answer = here.run("check", "--json")
    assert answer.code == (7 if answer.json["altered"] else 0), answer
    return [it["path"] for it in answer.json["altered"]], answer.json["watched"]


# wishes


@pytest.mark.parametrize(
    ("glob", "protected"),
    [
        ("tests/**", {"tests/test_a.py", "tests/unit/test_b.py"}),
        ("tests", {"tests/test_a.py", "tests/unit/test_b.py"}),
        ("./tests/*", {"tests/test_a.py", "tests/unit/test_b.py"}),
        ("test_b.py", {"tests/unit/test_b.py"}),
        ("**/test_[bc].py", {"tests/unit/test_b.py", "more/test_c.py"}),
    ],
)
def test_protect_makes_watched_files_protected(
    tested: Here, glob: str, protected: set[str]
) -> None:
    started = tested.ok("start", "goal", "g", "--check", "t=pytest", "--protect", glob, "--json")
    assert set(started.json["protected"]) == protected
    change(tested, dict.fromkeys(TESTS, MORE))
    altered, watched = found(tested)
    assert set(altered) == protected
    assert {*watched.get("changed", ())} == {*TESTS} - protected


def test_protect_without_a_check_alters_every_later_check(tested: Here) -> None:
    tested.ok("start", "goal", "g", "--criterion", "c", "--protect", "code.py")
    change(tested, {"code.py": "2\n"})
    tested.ok("criterion", "c", "met")
    refused = tested.run("complete")
    assert (refused.code, "protected file code.py was changed" in refused.err) == (4, True)
    tested.ok("restore", "code.py")
    tested.ok("complete")


def test_protect_of_a_file_that_git_ignores_finds_it(tested: Here) -> None:
    change(tested, {".gitignore": "secret.txt\n", "secret.txt": "1\n"})
    tested.start("goal", "g", "--check", "t=true", "--protect", "secret.txt")
    change(tested, {"secret.txt": "2\n"})
    assert found(tested) == (["secret.txt"], {})


@pytest.mark.parametrize("glob", ["nothing/**", "../outside.txt", "*.none", ""])
def test_protect_that_fits_no_file_is_refused_before_the_loop(tested: Here, glob: str) -> None:
    write(tested.root.parent / "outside.txt", "1\n")
    told = tested.refused(2, "start", "goal", "g", "--check", "t=true", "--protect", glob)
    assert f"--protect {glob!r} matches no file" in told.err


def test_may_change_lets_the_work_change_what_a_check_depends_on(tested: Here) -> None:
    change(tested, {"ci/all.sh": "true\n", "ci/lib.sh": "true\n"})
    check = "t=sh ci/all.sh && sh ci/lib.sh"
    tested.start("goal", "g", "--check", check, "--may-change", "ci/lib.*")
    change(tested, {"ci/lib.sh": "exit 0\n"})
    assert found(tested) == ([], {"changed": ["ci/lib.sh"]})
    change(tested, {"ci/all.sh": "exit 0\n"})
    assert found(tested) == (["ci/all.sh"], {"changed": ["ci/lib.sh"]})


# watched files


def test_watched_changes_are_in_answer_end_line_and_proof(tested: Here) -> None:
    tested.start("goal", "g", "--check", "t=pytest -q")
    change(tested, {"tests/test_a.py": MORE, "more/test_c.py": None, "pytest.ini": "[pytest]\n"})
    shown = "changed: tests/test_a.py; deleted: more/test_c.py; new: pytest.ini"
    assert f"Since the start: {shown}." in tested.ok("check").out
    assert f"Since the start: {shown}." in tested.ok("complete").out
    assert shown in tested.ok("proof").out
    facts = tested.ok("proof", "--json").json
    assert facts["watched"]["deleted"] == ["more/test_c.py"]


def test_many_watched_changes_are_counted(tested: Here) -> None:
    names = [f"tests/many/test_{number:02d}.py" for number in range(30)]
    change(tested, dict.fromkeys(names, TEST))
    tested.start("goal", "g", "--check", "t=pytest -q")
    change(tested, dict.fromkeys(names, MORE))
    _, watched = found(tested)
    assert watched == {"changed": names[:20], "more": 10}
    assert "test_04.py and 15 more; not listed: 10." in tested.ok("check").out


@pytest.mark.parametrize("name", ["conftest.py", "tests/conftest.py", "tests/unit/conftest.py"])
def test_new_conftest_is_shown_without_hooks_and_altered_with_them(tested: Here, name: str) -> None:
    tested.start("goal", "g", "--check", "t=pytest tests")
    change(tested, {name: "import pytest\n"})
    assert found(tested) == ([], {"new": [name]})
    change(tested, {name: HOOK})
    assert found(tested)[0] == [name]
    change(tested, {name: None})
    assert found(tested) == ([], {})


def test_conftest_of_other_tests_matters_to_nobody(tested: Here) -> None:
    tested.start("goal", "g", "--check", "t=pytest tests")
    change(tested, {"more/conftest.py": HOOK})
    assert found(tested) == ([], {})


# sizes and places


def test_file_over_four_mib_is_compared_but_cannot_be_restored(tested: Here) -> None:
    change(tested, {"check.sh": "true\n" + "#" * 4 * MIB})
    tested.start("goal", "g", "--check", "t=sh check.sh")
    assert found(tested) == ([], {})
    change(tested, {"check.sh": "true\n"})
    assert found(tested)[0] == ["check.sh"]
    assert "was not kept" in tested.refused(4, "restore", "t").err


def test_originals_beyond_sixteen_mib_are_compared_but_not_kept(tested: Here) -> None:
    names = [f"data/{number:02d}.bin" for number in range(20)]
    change(tested, {name: name + "x" * (MIB - 100) for name in names})
    tested.start("goal", "g", "--check", "t=true", "--protect", "data/**")
    folder = Path(os.environ["XDG_STATE_HOME"], "gsd-fsm", "originals")
    kept = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert 15 * MIB < kept <= 16 * MIB
    change(tested, dict.fromkeys(names, "y"))
    assert found(tested)[0] == names


@pytest.mark.parametrize("command", ["sh ../check.sh", "sh {outside}/check.sh", "sh link.sh"])
def test_script_outside_of_the_project_is_run_but_not_protected(
    tested: Here, tmp_path: Path, command: str
) -> None:
    outside = write(tested.root.parent / "check.sh", "true\n")
    (tested.root / "link.sh").symlink_to(outside)
    text = command.format(outside=outside.parent)
    started = tested.ok("start", "goal", "g", "--check", f"t={text}", "--json")
    assert started.json["protected"] == []
    write(outside, "exit 0\n")
    assert found(tested)[0] == []


def test_ignored_script_and_untracked_script_are_protected(tested: Here) -> None:
    change(tested, {".gitignore": "/local/\n", "local/check.sh": "true\n", "new.sh": "true\n"})
    tested.start("goal", "g", "--check", "t=sh local/check.sh && sh new.sh")
    change(tested, {"local/check.sh": "exit 0\n", "new.sh": "exit 0\n"})
    assert found(tested)[0] == ["local/check.sh", "new.sh"]


def test_protection_in_a_directory_of_a_larger_repository_finds_its_files(
    here: Here, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q", "--template=")
    write(here.gsd / ".keep", "")
    write(here.root / "tests" / "test_a.py", TEST)
    write(here.root / "check.sh", "true\n")
    here.start("goal", "g", "--check", "t=sh check.sh tests/test_a.py", "--protect", "tests/**")
    change(here, {"check.sh": "exit 0\n", "tests/test_a.py": MORE})
    assert found(here)[0] == ["check.sh", "tests/test_a.py"]
