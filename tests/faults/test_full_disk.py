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
from tests.support.events import append, new_journal, start_draft
from tests.support.faults import judge, limited, long_bytes, long_journal, say, sums


def _mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _small_disk(where: Path, kilobytes: int) -> Path:
    where.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "none", where)
    return where


def _fill(where: Path) -> Path:
    """Fill the disk; return the file that fills it."""
    with (where / "ballast").open("ab", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"b" * size):
                    pass
    return where / "ballast"


def append_until_full(where: Path) -> None:
    for length in (1, 10, 100, 333, 700, 1500, 5000):
        disk = _small_disk(where / f"disk-{length}", 40)
        (disk / "reserve").write_bytes(b"r" * 16384)
        journal, path = new_journal(disk / ".gsd"), disk / ".gsd" / "journal.jsonl"
        append(journal, start_draft())
        known: list[str] = []
        with pytest.raises(CannotWrite) as refused:  # noqa: PT012 - the call that fails is the last
            while True:
                known.append(say(journal, "x" * length)[0]["sum"])
        assert (refused.value.exit_code, bool(refused.value.hint)) == (6, True)
        full = path.read_bytes()
        assert (judge(full)[2:], sums(full)[2:]) == ((0, 0), known)
        for again in (journal, Journal(str(disk / ".gsd"))):
            with pytest.raises(CannotWrite):
                say(again, "x" * 5000)
            assert path.read_bytes() == full
        (disk / "reserve").unlink()
        known += [say(it, "x" * length)[0]["sum"] for it in (journal, Journal(str(path.parent)))]
        assert (judge(path.read_bytes())[2:], sums(path.read_bytes())[2:]) == ((0, 0), known)


def commands_on_a_full_disk(where: Path) -> None:
    disk = _small_disk(where / "disk", 64)
    new, old = Project(disk / "new"), Project(disk / "old")
    new.root.mkdir()
    old.root.mkdir()
    old.ok("start", "goal", "Live through a full disk")
    ballast = _fill(disk)
    while (answer := old.run("note", "x" * 1500)).code == 0:
        pass
    before = old.journal.read_bytes()
    assert (answer.code, "space" in answer.err, "Traceback" in answer.err) == (6, True, False)
    assert old.run("note", "x" * 4000, "--json").json["exit_code"] == 6
    assert old.journal.read_bytes() == before
    assert old.ok("fsck", "--json").json["torn"] == 0
    assert old.status()["status"] == "running"
    assert new.run("start", "goal", "No room for me").code == 6
    ballast.unlink()
    old.ok("note", "room again")
    new.ok("start", "goal", "Room for me")
    assert new.ok("fsck", "--json").json["events"] == 2
    assert old.lines()[-1]["data"]["text"] == "room again"


def torn_on_a_full_disk(where: Path) -> None:
    disk = _small_disk(where / "disk", 64)
    gsd, path = disk / ".gsd", disk / ".gsd" / "journal.jsonl"
    torn = long_bytes(gsd, 4) + b'{"v":1,"seq"' + b"x" * 3000
    path.write_bytes(torn)
    ballast = _fill(disk)
    for _ in range(3):
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
    before = project.journal.read_bytes()
    _mount("--bind", project.root, project.root)
    _mount("-o", "remount,ro,bind", project.root)
    answer = project.run("note", "no")
    assert (answer.code, "Read-only file system" in answer.err) == (6, True)
    assert project.run("fsck", "--json").json["ok"]
    assert project.status()["goal"] == "Be read only"
    assert project.run("replay").code == 0
    assert project.journal.read_bytes() == before
    _mount("-o", "remount,rw,bind", project.root)
    project.ok("note", "yes")


@pytest.mark.parametrize(
    "function",
    ["append_until_full", "commands_on_a_full_disk", "torn_on_a_full_disk", "read_only_mount"],
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
            say(Journal(str(gsd)), "short")
        assert path.read_bytes() == before
    with limited(FILE_SIZE, len(before) + line):
        say(Journal(str(gsd)), "short")
    assert judge(path.read_bytes()).events == 5


def test_command_that_cannot_print_keeps_its_event(project: Project) -> None:
    project.ok("start", "goal", "Be heard")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gsd_fsm", "note", "written once"],
            cwd=project.root,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (b"Traceback" in done.stderr, done.returncode != 1) == (False, True)
    assert [line["data"].get("text") for line in project.lines()].count("written once") == 1
    assert project.ok("fsck", "--json").json["ok"]
