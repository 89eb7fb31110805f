"""Missing permissions: refused with the path, and working once granted."""

from __future__ import annotations

import os
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
        sys.stdout, sys.stderr = (open(stream, "w", closefd=False) for stream in (1, 2))  # noqa: SIM115
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
    for words in ("start goal x", "note x", "status", "fsck"):
        assert run(["--project", str(tmp_path), *words.split()]) == 0
    with tempfile.TemporaryDirectory(prefix="gsd-fsm-") as made:  # pytest's own is closed to others
        root, state = Path(made, "theirs"), Path(made, "state")
        root.parent.chmod(0o755)
        for path in (root, state):
            path.mkdir()
            if os.geteuid() == 0:
                os.chown(path, NOBODY, NOBODY)
        for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
            monkeypatch.setenv(name, str(state))
        yield Project(root)


def _require_refusal(project: Project, words: str, *command: str) -> None:
    """Require exit code 6 and these words, and that nothing is written."""
    before = everything_below(project.root)
    answer = _as_user(project, *command)
    assert (answer.code, words in answer.err) == (6, True), answer
    assert everything_below(project.root) == before


def test_start_and_append_need_write_permission_of_directory_and_files(theirs: Project) -> None:
    theirs.root.chmod(0o500)
    _require_refusal(theirs, "Permission denied", "start", "goal", "No")
    theirs.root.chmod(0o700)
    assert _as_user(theirs, "start", "goal", "Be allowed").code == 0
    theirs.journal.write_bytes(theirs.journal.read_bytes() + b'{"v":1,"torn')
    theirs.gsd.chmod(0o500)
    before = everything_below(theirs.gsd)
    _require_refusal(theirs, "Permission denied", "note", "no")
    assert _as_user(theirs, "status", "--json").code == 0
    assert everything_below(theirs.gsd) == before
    theirs.gsd.chmod(0o700)
    assert _as_user(theirs, "note", "yes").code == 0
    assert judge(theirs.journal.read_bytes())[2:] == (0, 0)
    for name in ("journal.jsonl", "journal.lock"):
        (theirs.gsd / name).chmod(0o400)
        _require_refusal(theirs, f".gsd/{name}", "note", "no")
        (theirs.gsd / name).chmod(0o600)
        assert _as_user(theirs, "note", "yes").code == 0


@pytest.mark.parametrize("what", [".gsd", ".gsd/journal.jsonl", ".gsd/journal.lock"])
def test_append_refuses_files_of_another_user(
    theirs: Project, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _as_user(theirs, "start", "goal", "Mine").code == 0
    if os.geteuid() == 0:
        os.chown(theirs.root / what, NOBODY - 1, NOBODY - 1)
        (theirs.root / what).chmod(0o777)
    else:  # nothing here is foreign to an ordinary user, so he becomes foreign himself
        real = os.geteuid()
        monkeypatch.setattr(disk, "_is_ours", lambda uid: uid != real)
    _require_refusal(theirs, "belongs to another user", "note", "no")
