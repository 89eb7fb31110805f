"""`init` makes git ignore machine-specific files in this clone; `uninstall` undoes that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gsd_fsm.install.git_exclude import plan_exclusion, plan_inclusion
from tests.support.client_settings import Client
from tests.support.command_line import Here
from tests.support.repositories import git

LOCAL = "/.claude/settings.local.json"


def exclude_of(here: Here) -> Path:
    return here.root / ".git" / "info" / "exclude"


def untracked(here: Here) -> list[str]:
    return git(here.root, "status", "--porcelain", "-uall").splitlines()


def test_init_excludes_local_settings_once_and_uninstall_includes_them(
    repository: Here, client: Client
) -> None:
    assert not exclude_of(repository).parent.exists()
    shown = repository.ok("init", "--yes").out
    assert f"Adds {LOCAL} to .git/info/exclude\n" in shown
    assert untracked(repository) == []
    assert exclude_of(repository).read_text() == f"{LOCAL}\n"
    assert ".git" not in repository.ok("init", "--raise-cap", "30", "--yes").out
    assert exclude_of(repository).read_text() == f"{LOCAL}\n"
    assert f"Removes {LOCAL} from .git/info/exclude\n" in repository.ok("uninstall", "--yes").out
    assert not exclude_of(repository).exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"# mine\n*.log\n", f"# mine\n*.log\n{LOCAL}\n"),
        (b"*.log", f"*.log\n{LOCAL}\n"),
        (b"*.log\r\n*.tmp\r\n", f"*.log\r\n*.tmp\r\n{LOCAL}\r\n"),
        (b"caf\xe9\n", f"caf\udce9\n{LOCAL}\n"),
        (b"a\n\n\nb", f"a\n\n\nb\n{LOCAL}\n"),
    ],
)
def test_init_keeps_existing_exclusions(
    repository: Here, client: Client, before: bytes, after: str
) -> None:
    path = exclude_of(repository)
    path.parent.mkdir()
    path.write_bytes(before)
    repository.ok("init", "--yes")
    assert path.read_bytes() == os.fsencode(after)
    assert untracked(repository) == []
    repository.ok("uninstall", "--yes")
    assert path.read_bytes() == before
    repository.ok("init", "--yes")
    path.write_bytes(path.read_bytes() + b"later\n")
    removed = repository.ok("uninstall", "--yes").out
    assert f"Removes {LOCAL} from .git/info/exclude\n" in removed
    glue = b"" if before.endswith(b"\n") else b"\n"
    assert path.read_bytes() == before + glue + b"later\n"


def test_init_excludes_generated_views_in_the_directory_of_the_project(
    repository: Here, client: Client
) -> None:
    project = repository.root / "a [b]"
    (project / ".gsd").mkdir(parents=True)
    (project / ".gsd" / "config.toml").write_text('views = ["state", "progress", "report"]\n')
    repository.where = project
    assert "state.json and 1 more to" in repository.ok("init", "--scope", "user", "--yes").out
    repository.ok("init", "--yes")
    names = ("/.loop/state.json", "/.loop/PROGRESS.md", LOCAL)
    assert exclude_of(repository).read_text().splitlines() == [f"/a \\[b]{it}" for it in names]
    for name in names:
        git(repository.root, "check-ignore", "-q", f"a [b]{name}")
    repository.ok("uninstall", "--all", "--yes")
    assert not exclude_of(repository).exists()


def test_init_excludes_nothing_that_git_ignores_or_tracks(repository: Here, client: Client) -> None:
    client.write({})
    git(repository.root, "add", "-f", ".claude")
    repository.ok("init", "--yes")
    assert not exclude_of(repository).exists()
    git(repository.root, "rm", "-qf", "--cached", ".claude/settings.local.json")
    (repository.root / ".gitignore").write_text(".claude/\n")
    repository.ok("init", "--raise-cap", "30", "--yes")
    assert not exclude_of(repository).exists()


def test_init_in_a_linked_work_tree_excludes_in_the_repository(
    repository: Here, client: Client
) -> None:
    linked = repository.root.with_name("linked")
    git(repository.root, "worktree", "add", "-q", str(linked))
    repository.where = linked
    repository.ok("init", "--yes")
    assert exclude_of(repository).read_text() == f"{LOCAL}\n"
    assert git(linked, "status", "--porcelain") == ""


def test_init_asks_before_it_excludes_anything(repository: Here, client: Client) -> None:
    repository.refused(2, "init")
    assert not exclude_of(repository).exists()
    shown = repository.ok("init", "--yes", "--diff").out
    assert f"+{LOCAL}" in shown


def test_init_notes_an_exclude_file_that_cannot_be_written(
    repository: Here, client: Client
) -> None:
    path = exclude_of(repository)
    path.parent.mkdir()
    path.write_text("*.log\n")
    path.chmod(0o444)
    (*_, note) = repository.ok("init", "--yes", "--json").json["notes"]
    assert note == f"git may commit machine-specific files: {path} is read-only"
    assert path.read_text() == "*.log\n"


def test_init_follows_an_exclude_file_that_is_a_link(repository: Here, client: Client) -> None:
    target = repository.root.with_name("patterns")
    target.write_text("*.log")
    exclude_of(repository).parent.mkdir()
    exclude_of(repository).symlink_to(target)
    assert f"Adds {LOCAL} to {target}\n" in repository.ok("init", "--yes").out
    assert target.read_text() == f"*.log\n{LOCAL}\n"
    assert f"Removes {LOCAL} from {target}\n" in repository.ok("uninstall", "--yes").out
    assert exclude_of(repository).is_symlink()
    assert target.read_text() == "*.log"


def test_init_of_a_moved_project_remembers_what_it_excluded(
    repository: Here, client: Client
) -> None:
    repository.start("goal", "g")
    repository.ok("init", "--yes")
    new = repository.root.with_name("moved")
    repository.root.rename(new)
    repository.root = repository.where = new
    repository.ok("init", "--yes")
    assert exclude_of(repository).read_text() == f"{LOCAL}\n"
    repository.ok("uninstall", "--yes")
    assert not exclude_of(repository).exists()


def test_exclusion_outside_of_a_repository_is_empty(here: Here) -> None:
    assert plan_exclusion(here.root, [here.root / "file"]) == (None, "", "")
    missing = here.root / "exclude"
    assert plan_inclusion(missing, ["/file"]) == (missing, None, None, False)
