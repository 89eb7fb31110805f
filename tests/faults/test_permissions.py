"""Missing permissions: refused with the path, and working once granted."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gsd_fsm.cli import run
from gsd_fsm.core import syscalls as disk
from tests.support.command_line import Answer, Project
from tests.support.faults import NOBODY, everything_below, in_child, judge, outcome


def _as_user(project: Project, *arguments: str) -> Answer:
    """Run a command in a child that is not root."""
    out, err = project.root.parent / "out", project.root.parent / "err"

    def work() -> None:
        for stream, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        os.chdir(project.root)
        code = run(list(arguments))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    code = outcome(in_child(work))
    return Answer(code, out.read_text(), err.read_text())


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: object) -> Iterator[Project]:
    """Return a project of an ordinary user, in a directory that all users can enter."""
    # The interpreter itself may lie where only we can read: load all that is needed now.
    for number, words in enumerate((["start", "goal", "x"], ["note", "x"], ["status"], ["fsck"])):
        warm = tmp_path / "warm"
        warm.mkdir(exist_ok=True)
        assert run(["--project", str(warm), *words]) == 0, number
    open_place = Path(tempfile.mkdtemp(prefix="gsd-fsm-"))  # pytest's own is closed to others
    open_place.chmod(0o755)
    state = open_place / "state"
    state.mkdir()
    root = open_place / "theirs"
    root.mkdir()
    for path in (root, state):
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(state))
    monkeypatch.setenv("HOME", str(state))
    yield Project(root)
    shutil.rmtree(open_place, ignore_errors=True)


def test_append_needs_write_permission_of_directory_and_files(theirs: Project) -> None:
    assert _as_user(theirs, "start", "goal", "Be allowed").code == 0
    data = theirs.journal.read_bytes()
    theirs.journal.write_bytes(data + b'{"v":1,"torn')
    theirs.gsd.chmod(0o500)
    before = everything_below(theirs.gsd)
    answer = _as_user(theirs, "note", "no")
    assert answer.code == 6
    assert "Permission denied" in answer.err
    assert _as_user(theirs, "status", "--json").code == 0
    assert everything_below(theirs.gsd) == before
    theirs.gsd.chmod(0o700)
    assert _as_user(theirs, "note", "yes").code == 0
    assert judge(theirs.journal.read_bytes())[2:] == (0, 0)
    for name in ("journal.jsonl", "journal.lock"):
        before = theirs.journal.read_bytes()
        (theirs.gsd / name).chmod(0o400)
        answer = _as_user(theirs, "note", "no")
        assert answer.code == 6
        assert f".gsd/{name}" in answer.err
        assert theirs.journal.read_bytes() == before
        (theirs.gsd / name).chmod(0o600)
        assert _as_user(theirs, "note", "yes").code == 0


def test_start_in_unwritable_directory_is_refused(theirs: Project) -> None:
    theirs.root.chmod(0o500)
    answer = _as_user(theirs, "start", "goal", "No")
    assert answer.code == 6
    assert "Permission denied" in answer.err
    assert list(theirs.root.iterdir()) == []
    theirs.root.chmod(0o700)
    assert _as_user(theirs, "start", "goal", "Yes").code == 0


@pytest.mark.parametrize("what", [".gsd", ".gsd/journal.jsonl", ".gsd/journal.lock"])
def test_append_refuses_files_of_another_user(
    theirs: Project, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _as_user(theirs, "start", "goal", "Mine").code == 0
    before = theirs.journal.read_bytes()
    if os.geteuid() == 0:
        os.chown(theirs.root / what, NOBODY - 1, NOBODY - 1)
        (theirs.root / what).chmod(0o777)
    else:  # nothing here is foreign to an ordinary user, so he becomes foreign himself
        real = os.geteuid()
        monkeypatch.setattr(disk, "_is_ours", lambda uid: uid != real)
    answer = _as_user(theirs, "note", "no")
    assert answer.code == 6
    assert "belongs to another user" in answer.err
    assert theirs.journal.read_bytes() == before
