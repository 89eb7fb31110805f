"""Files that are not regular files of the user are refused at once."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.journal.journal import Journal, create_journal
from gsd_fsm.core.journal.repair import cut_damage
from tests.support.command_line import Here, Project, here
from tests.support.events import NOW
from tests.support.faults import KINDS, everything_below, long_bytes, long_journal, say

__all__ = ["here"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["journal.jsonl", "journal.lock"])
def test_append_refuses_irregular_file_and_writes_nothing(here: Here, name: str, kind: str) -> None:
    gsd, outside = str(here.gsd), here.root.parent
    long_journal(here.gsd, 3)
    KINDS[kind](here.gsd / name, outside / "away")
    before = everything_below(outside)
    for attempt in (
        lambda: say(Journal(gsd), "no"),
        lambda: create_journal(gsd, "j-new", NOW),
        lambda: cut_damage(gsd, "j-new", NOW),
        Journal(gsd).read,
        Journal(gsd).read_cached,
    ):
        with pytest.raises(GsdError) as refused:
            attempt()
        assert (refused.value.exit_code, name in refused.value.message) == (6, True)
    for command in ("note no", "status", "replay", "fsck", "fsck --repair --yes", "start goal no"):
        answer = here.run(*command.split())
        assert (answer.code, f".gsd/{name}" in answer.err) == (6, True), command
    assert everything_below(outside) == before


@pytest.mark.parametrize("content", ["a journal", "nothing"])
def test_linked_gsd_is_refused_and_target_unchanged(here: Here, content: str) -> None:
    elsewhere = here.root.parent / "elsewhere"
    if content == "a journal":
        long_journal(elsewhere, 3)
    else:
        elsewhere.mkdir()
    here.gsd.symlink_to(elsewhere)
    before = everything_below(here.root.parent)
    for command in ("start goal no", "note no", "status"):
        assert here.run(*command.split()).code == 6, command
        assert everything_below(here.root.parent) == before, command


@pytest.mark.parametrize("kind", ["a link", "a pipe"])
def test_linked_gitignore_is_not_written_and_no_pipe_blocks(project: Project, kind: str) -> None:
    project.gsd.mkdir()
    ignore, precious = project.gsd / ".gitignore", project.root.parent / "precious"
    ignore.write_text("mine\n")
    KINDS[kind](ignore, precious)
    assert project.run("start", "goal", "A cloned repository").code in (0, 6)
    assert kind == "a pipe" or precious.read_text() == "mine\n"


def test_snapshot_pipe_or_link_is_ignored(
    gsd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gsd_fsm.core.journal.journal.SMALL", 0)
    journal = long_journal(gsd, 63)
    snapshot, precious = gsd / "snapshot.json", tmp_path / "precious"
    precious.write_text("mine\n")
    for make in (os.mkfifo, lambda path: path.symlink_to(precious), Path.mkdir):
        snapshot.unlink(missing_ok=True)
        make(snapshot)
        assert Journal(str(gsd)).read_cached().seq == journal.loops.seq
        for _ in range(64):
            say(journal, "on")
        assert precious.read_text() == "mine\n"


def test_fsck_of_huge_damaged_journal_uses_little_memory(project: Project) -> None:
    long_bytes(project.gsd, 3)
    os.truncate(project.journal, 8 << 30)
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
