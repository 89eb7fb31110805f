"""Files that are not regular files of the user are refused at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gsd_fsm.cli import run
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.journal.journal import Journal, create_journal
from gsd_fsm.core.journal.repair import cut_damage
from tests.support.command_line import Answer, Project
from tests.support.events import NOW
from tests.support.faults import KINDS, everything_below, long_bytes, long_journal, say


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["journal.jsonl", "journal.lock"])
def test_append_refuses_irregular_files_and_writes_nothing(
    gsd: Path, tmp_path: Path, name: str, kind: str
) -> None:
    long_journal(gsd, 3)
    KINDS[kind](gsd / name, tmp_path / "away")
    before = everything_below(tmp_path)
    tries: list[Callable[[], object]] = [
        lambda: say(Journal(str(gsd)), "no"),
        lambda: create_journal(str(gsd), "j-new", NOW),
        lambda: cut_damage(str(gsd), "j-new", NOW),
        lambda: Journal(str(gsd)).read(),
        lambda: Journal(str(gsd)).read_cached(),
    ]
    for attempt in tries:
        with pytest.raises(GsdError) as refused:
            attempt()
        assert refused.value.exit_code == 6
        assert name in refused.value.message
    assert everything_below(tmp_path) == before


@pytest.mark.parametrize("kind", KINDS)
def test_command_refuses_irregular_journal_with_exit_6(
    project: Project, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    long_journal(project.gsd, 3)
    KINDS[kind](project.journal, project.root.parent / "away")
    before = everything_below(project.root.parent)
    for verb in (["note", "no"], ["status"], ["replay"], ["fsck"], ["start", "goal", "no"]):
        assert run(["--project", str(project.root), *verb]) == 6, verb
        assert ".gsd/journal.jsonl" in capsys.readouterr().err
    assert everything_below(project.root.parent) == before


def _ask(project: Project, *arguments: str) -> Answer:
    """Run a command that must not hang."""
    return project.run(*arguments, timeout=10)


@pytest.mark.parametrize("kind", ["a dangling link", "a pipe"])
@pytest.mark.parametrize("verb", [("start", "goal", "no"), ("fsck", "--repair", "--yes")])
def test_every_writing_command_refuses_irregular_journal(
    project: Project, kind: str, verb: tuple[str, ...]
) -> None:
    long_journal(project.gsd, 3)
    KINDS[kind](project.journal, project.root.parent / "away")
    before = everything_below(project.root.parent)
    assert _ask(project, *verb).code == 6
    assert everything_below(project.root.parent) == before


@pytest.mark.parametrize("content", ["a journal", "nothing"])
def test_linked_gsd_is_refused_and_target_unchanged(project: Project, content: str) -> None:
    elsewhere = project.root.parent / "elsewhere"
    if content == "a journal":
        long_journal(elsewhere, 3)
    else:
        elsewhere.mkdir()
    project.gsd.symlink_to(elsewhere)
    before = everything_below(project.root.parent)
    for verb in (("start", "goal", "no"), ("note", "no"), ("status",)):
        answer = _ask(project, *verb)
        assert answer.code == 6, verb
        assert everything_below(project.root.parent) == before, verb


def test_linked_gitignore_is_not_written(project: Project) -> None:
    precious = project.root.parent / "precious"
    precious.write_text("mine\n")
    project.gsd.mkdir()
    (project.gsd / ".gitignore").symlink_to(precious)
    _ask(project, "start", "goal", "A cloned repository brought this link")
    assert precious.read_text() == "mine\n"


def test_start_with_gitignore_pipe_does_not_hang(project: Project) -> None:
    project.gsd.mkdir()
    os.mkfifo(project.gsd / ".gitignore")
    assert _ask(project, "start", "goal", "Do not wait for ever").code in (0, 6)


def test_snapshot_pipe_or_link_is_ignored(
    gsd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gsd_fsm.core.journal.journal.SMALL", 0)
    journal = long_journal(gsd, 63)
    precious = tmp_path / "precious"
    precious.write_text("mine\n")
    pipe, directory = KINDS["a pipe"], KINDS["a directory"]
    for make in (pipe, directory, lambda path, _away: path.symlink_to(precious)):
        snapshot = gsd / "snapshot.json"
        snapshot.touch()
        if make not in (pipe, directory):
            snapshot.unlink()
        make(snapshot, tmp_path / "away")
        assert Journal(str(gsd)).read_cached().seq == journal.loops.seq
        for _ in range(64):
            say(journal, "on")
        assert precious.read_text() == "mine\n"
        if snapshot.is_dir():
            snapshot.rmdir()
        else:
            snapshot.unlink(missing_ok=True)


def test_fsck_of_huge_damaged_journal_uses_little_memory(project: Project) -> None:
    long_bytes(project.gsd, 3)
    os.truncate(project.journal, 8 << 30)
    import resource

    limit = 1 << 30
    done = subprocess.run(
        [sys.executable, "-m", "gsd_fsm", "fsck", "--json"],
        cwd=project.root,
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        timeout=60,
        check=False,
    )
    assert done.returncode == 5, done.stderr
    assert b'"line":4' in done.stdout
