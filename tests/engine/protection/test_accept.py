"""The change of a protected file is accepted by a human, or undone by anybody."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import AGENT, Here, without_loop
from tests.support.events import write
from tests.support.repositories import git, status

PASSES, WEAKER = "test -e code.py\n", "exit 0\n"
HOOK = "def pytest_collection_modifyitems(items):\n    items.clear()\n"


def weaken(here: Here) -> None:
    """Overwrite the script of the check, and run it."""
    write(here.root / "check.sh", WEAKER)
    assert here.run("check").code == 7


def kept(here: Here) -> list[Path]:
    """Return the original contents that were kept for the loop."""
    (folder,) = Path(os.environ["XDG_STATE_HOME"]).glob("gsd-fsm/originals/*/lp-*")
    return sorted(folder.iterdir())


def altered(here: Here) -> list[str]:
    """Return the altered files that the next check finds; it must pass without them."""
    answer = here.run("check", "--json")
    assert answer.code == (7 if answer.json["altered"] else 0), answer
    return [it["path"] for it in answer.json["altered"]]


# accept


@pytest.mark.parametrize("name", ["t", "1", "check.sh"])
def test_accept_by_human_meets_criterion_and_names_complete(guarded: Here, name: str) -> None:
    weaken(guarded)
    told = without_loop(guarded.ok("accept", name).out)
    assert f"Accepted for {name}: check.sh." in told
    assert "Run: gsd-fsm complete\n" in told
    change = guarded.lines()[-2]["data"]
    assert change["check"] == name
    assert change["accepted"][0]["path"] == "check.sh"
    assert change["accepted"][0]["before"] != change["accepted"][0]["after"]
    assert "Accepted changes: check.sh." in guarded.ok("complete").out


def test_accept_by_agent_is_refused_and_names_the_command_for_the_user(guarded: Here) -> None:
    weaken(guarded)
    told = guarded.refused(4, "accept", "t", env=AGENT).err
    assert "agents cannot accept" in told
    assert "Ask the user to run this in another terminal: gsd-fsm accept t" in without_loop(told)


def test_accept_before_the_check_ran_lets_the_next_one_count(guarded: Here) -> None:
    write(guarded.root / "check.sh", WEAKER)
    assert guarded.ok("accept", "t", "--json").json["met"] == []
    assert altered(guarded) == []


def test_accept_of_other_content_than_the_check_ran_with_meets_nothing(guarded: Here) -> None:
    weaken(guarded)
    write(guarded.root / "check.sh", WEAKER + WEAKER)
    assert guarded.ok("accept", "t", "--json").json["met"] == []
    assert guarded.run("complete").code == 4
    assert altered(guarded) == []


def test_accept_of_a_failed_check_meets_nothing(guarded: Here) -> None:
    write(guarded.root / "check.sh", "exit 1\n")
    guarded.run("check")
    assert guarded.ok("accept", "t", "--json").json["met"] == []


def test_accept_of_a_deletion_counts_until_the_file_is_back(repository: Here) -> None:
    write(repository.root / "notes.txt", "1\n")
    repository.start("goal", "g", "--check", "t=true", "--protect", "notes.txt")
    (repository.root / "notes.txt").unlink()
    assert altered(repository) == ["notes.txt"]
    assert repository.ok("accept", "notes.txt", "--json").json["met"] == ["t"]
    assert altered(repository) == []
    write(repository.root / "notes.txt", "1\n")
    assert altered(repository) == ["notes.txt"]
    repository.ok("restore", "notes.txt")
    assert not (repository.root / "notes.txt").exists()
    assert altered(repository) == []


def test_accepted_new_hooks_count_until_they_change_again(repository: Here) -> None:
    write(repository.root.parent / "bin" / "pytest", "#!/bin/sh\n").chmod(0o755)
    repository.patch.setenv("PATH", f"{repository.root.parent / 'bin'}:{os.environ['PATH']}")
    repository.start("goal", "g", "--check", "t=pytest -q")
    write(repository.root / "conftest.py", HOOK)
    assert altered(repository) == ["conftest.py"]
    repository.ok("accept", "t")
    assert altered(repository) == []
    write(repository.root / "conftest.py", HOOK + HOOK)
    assert altered(repository) == ["conftest.py"]
    repository.ok("restore", "t")
    assert (repository.root / "conftest.py").read_text() == HOOK


def test_accepted_file_that_changes_again_is_restored_as_accepted(guarded: Here) -> None:
    weaken(guarded)
    guarded.ok("accept", "t")
    write(guarded.root / "check.sh", "true\n")
    assert altered(guarded) == ["check.sh"]
    guarded.ok("restore", "t")
    assert (guarded.root / "check.sh").read_text() == WEAKER


@pytest.mark.parametrize("command", ["accept", "restore"])
def test_unaltered_and_unknown_names_are_refused(guarded: Here, command: str) -> None:
    assert "no file that t depends on has changed" in guarded.refused(4, command, "t").err
    assert "has no check 'other'" in guarded.refused(2, command, "other").err
    guarded.ok("cancel")
    assert "is cancelled" in guarded.refused(4, command, "t").err


# restore


def test_restore_by_agent_puts_back_missing_changed_and_moved_files(guarded: Here) -> None:
    script = guarded.root / "check.sh"
    for spoil in (
        script.unlink,
        lambda: write(script, WEAKER),
        lambda: script.rename(guarded.root / "moved.sh"),
        lambda: script.unlink() or script.mkdir(),
    ):
        spoil()
        guarded.run("check")
        told = guarded.ok("restore", "t", env=AGENT).out
        assert "Run: gsd-fsm check\n" in without_loop(told)
        assert script.read_text() == PASSES
        assert altered(guarded) == []


def test_restore_keeps_the_executable_bit_and_every_other_one(repository: Here) -> None:
    script = write(repository.root / "check.sh", "#!/bin/sh\n" + PASSES)
    script.chmod(0o750)
    repository.start("goal", "g", "--check", "t=./check.sh")
    write(script, WEAKER).chmod(0o640)
    repository.run("check")
    repository.ok("restore", "t")
    assert script.stat().st_mode & 0o777 == 0o751
    assert altered(repository) == []


def test_restore_of_a_partly_protected_file_says_where_other_changes_are(repository: Here) -> None:
    settings = '[project]\nversion = "1"\n[tool.pytest.ini_options]\naddopts = "-q"\n'
    file = repository.root / "pyproject.toml"
    write(file, settings)
    repository.start("goal", "g", "--check", "t=pytest")
    changed = settings.replace("-q", "--co").replace('"1"', '"2"')
    write(file, changed)
    told = repository.ok("restore", "t", "--json").json
    assert (repository.root / told["saved"][0]).read_text() == changed
    write(file, changed)
    told = repository.ok("restore", "t").out
    assert "Protected is only pyproject.toml [tool/pytest]: other changes are in the saved" in told


@pytest.mark.parametrize("what", ["link", "target", "replaced", "missing"])
def test_restore_puts_back_link_and_target(repository: Here, what: str) -> None:
    script, target = repository.root / "check.sh", repository.root / "tools" / "all.sh"
    write(target, PASSES)
    write(repository.root / "tools" / "none.sh", WEAKER)
    script.symlink_to("tools/all.sh")
    repository.start("goal", "g", "--check", "t=sh check.sh")
    if what == "target":
        write(target, WEAKER)
    else:
        script.unlink()
        {"link": lambda: script.symlink_to("tools/none.sh"), "missing": lambda: None,
         "replaced": lambda: write(script, WEAKER)}[what]()  # fmt: skip
    assert altered(repository) == ["check.sh"] if what != "missing" else repository.run("check")
    repository.ok("restore", "t")
    assert script.readlink() == Path("tools/all.sh")
    assert target.read_text() == PASSES
    assert altered(repository) == []


def test_restore_saves_what_it_replaces_where_git_does_not_see_it(guarded: Here) -> None:
    weaken(guarded)
    (saved,) = guarded.ok("restore", "t", "--json").json["saved"]
    assert (guarded.root / saved).read_text() == WEAKER
    assert status(guarded.root) == ["?? .gsd/.gitignore", "?? check.sh"]


@pytest.mark.parametrize("damage", [Path.unlink, lambda it: it.write_text(WEAKER)])
def test_restore_without_its_original_names_git_and_changes_nothing(
    guarded: Here, damage: Any
) -> None:
    weaken(guarded)
    for original in kept(guarded):
        if original.read_text() == PASSES:
            damage(original)
    told = guarded.refused(4, "restore", "t").err
    assert "the original of check.sh was not kept" in told
    assert "Run: git checkout -- check.sh. Or ask the user to accept it: gsd-fsm accept" in told
    assert (guarded.root / "check.sh").read_text() == WEAKER


def test_file_without_its_original_is_compared_by_its_digest(guarded: Here) -> None:
    for original in kept(guarded):
        original.unlink()
    assert altered(guarded) == []
    write(guarded.root / "check.sh", WEAKER)
    assert altered(guarded) == ["check.sh"]
    write(guarded.root / "check.sh", PASSES)
    assert altered(guarded) == []


def test_restore_does_not_write_outside_of_the_project(repository: Here, tmp_path: Path) -> None:
    write(repository.root / "ci" / "check.sh", PASSES)
    repository.start("goal", "g", "--check", "t=sh ci/check.sh")
    outside = tmp_path / "outside"
    (repository.root / "ci").rename(outside)
    (repository.root / "ci").symlink_to(outside)
    write(outside / "check.sh", WEAKER)
    assert altered(repository) == ["ci/check.sh"]
    assert "points outside" in repository.run("restore", "t").err
    assert (outside / "check.sh").read_text() == WEAKER


def test_originals_of_ended_loops_are_dropped_at_the_next_start(guarded: Here) -> None:
    before = kept(guarded)
    guarded.ok("cancel")
    guarded.start("goal", "g", "--check", "t=sh check.sh")
    assert kept(guarded)[0].parent != before[0].parent


# the upstream branch


def test_content_of_the_upstream_branch_names_accept_not_restore(guarded: Here) -> None:
    remote = guarded.root.parent / "remote.git"
    git(guarded.root, "init", "-q", "--bare", str(remote))
    git(guarded.root, "add", "-A")
    git(guarded.root, "commit", "-qm", "check")
    git(guarded.root, "push", "-q", str(remote), "HEAD:main")
    git(guarded.root, "remote", "add", "origin", str(remote))
    git(guarded.root, "fetch", "-q", "origin")
    git(guarded.root, "branch", "-q", "--set-upstream-to=origin/main")
    write(guarded.root / "check.sh", WEAKER)
    assert "Run: gsd-fsm restore t" in without_loop(guarded.run("check").err)
    git(guarded.root, "commit", "-qam", "weaker")
    git(guarded.root, "push", "-q", "origin", "HEAD:main")
    told = without_loop(guarded.run("check").err)
    assert "It is as in the upstream branch. Ask the user to run: gsd-fsm accept t" in told
    told = without_loop(guarded.ok("next").out)
    assert told.endswith("ask the user to accept it.\nRun: gsd-fsm accept t\n")
    assert guarded.ok("accept", "t", "--json").json["met"] == ["t"]
