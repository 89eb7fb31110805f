"""Full disks: exit code 6 with the cause, no partial write, and recovery."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from resource import RLIMIT_FSIZE as FILE_SIZE

import pytest

from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.journal.journal import Journal
from tests.support.command_line import Project
from tests.support.faults import judge, limited, long_bytes, long_journal, say


def _mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _small_disk(where: Path) -> Path:
    _mount("-t", "tmpfs", "-o", "size=64k", "none", where)
    return where


def _fill(where: Path) -> Path:
    """Fill the disk; return the file that fills it."""
    with (where / "ballast").open("ab", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"b" * size):
                    pass
    return where / "ballast"


def commands_on_a_full_disk(where: Path) -> None:
    disk = _small_disk(where)
    new, old = Project(disk / "new"), Project(disk / "old")
    new.root.mkdir()
    old.root.mkdir()
    old.ok("start", "goal", "Live through a full disk")
    ballast = _fill(disk)
    while (answer := old.run("note", "x" * 1500)).code == 0:
        pass
    before = old.journal.read_bytes()
    assert (answer.code, "space" in answer.err, "Traceback" in answer.err) == (6, True, False)
    assert old.run("note", "x" * 4000).code == 6
    assert old.journal.read_bytes() == before
    assert old.ok("fsck", "--json").json["torn"] == 0
    assert new.run("start", "goal", "No room for me").code == 6
    ballast.unlink()
    old.ok("note", "room again")
    new.ok("start", "goal", "Room for me")
    assert old.lines()[-1]["data"]["text"] == "room again"


def torn_on_a_full_disk(where: Path) -> None:
    disk = _small_disk(where)
    gsd, path = disk / ".gsd", disk / ".gsd" / "journal.jsonl"
    torn = long_bytes(gsd, 4) + b'{"v":1,"seq"' + b"x" * 3000
    path.write_bytes(torn)
    ballast = _fill(disk)
    with pytest.raises(CannotWrite):
        say(Journal(str(gsd)), "no room to save the tail")
    assert path.read_bytes() == torn
    ballast.unlink()
    written = say(Journal(str(gsd)), "room again")[-1]
    assert judge(path.read_bytes()) == (6, written["sum"], 0, 0)


def read_only_mount(where: Path) -> None:
    project = Project(where / "p")
    project.root.mkdir()
    project.ok("start", "goal", "Be read only")
    _mount("--bind", project.root, project.root)
    _mount("-o", "remount,ro,bind", project.root)
    answer = project.run("note", "no")
    assert (answer.code, "Read-only file system" in answer.err) == (6, True)
    for verb in ("fsck", "status", "replay"):
        project.ok(verb)
    _mount("-o", "remount,rw,bind", project.root)
    project.ok("note", "yes")


@pytest.mark.parametrize(
    "function", ["commands_on_a_full_disk", "torn_on_a_full_disk", "read_only_mount"]
)
def test_full_disk_leaves_no_partial_write_and_recovers(tmp_path: Path, function: str) -> None:
    """Run the function in its own mount namespace."""
    code = f"import sys; from tests.faults import test_full_disk as t; t.{function}"
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, "-c", f"{code}(t.Path(sys.argv[1]))", tmp_path],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


def test_short_write_at_any_byte_leaves_file_unchanged(gsd: Path) -> None:
    journal = long_journal(gsd, 4)
    path = gsd / "journal.jsonl"
    before = path.read_bytes()
    say(journal, "short")
    line = path.stat().st_size - len(before)
    path.write_bytes(before)
    for count in range(line):
        problem = f"only {count} of {line} bytes" if count else "File too large"
        with pytest.raises(CannotWrite, match=problem), limited(FILE_SIZE, len(before) + count):
            say(journal if count % 2 else Journal(str(gsd)), "short")
        assert path.read_bytes() == before
    with limited(FILE_SIZE, len(before) + line):
        say(journal, "short")
    assert judge(path.read_bytes())[::2] == (5, 0)
