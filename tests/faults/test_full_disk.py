"""Full disks: exit code 6 with the cause, no partial write, and recovery."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.journal.journal import Journal
from tests.support.command_line import Project
from tests.support.events import append, new_journal, start_draft
from tests.support.faults import files_in, judge, limited, long_bytes, long_journal, say, sums

HERE = Path(__file__).resolve().parents[2]


def _in_own_mounts(function: str, *arguments: Path) -> None:
    """Run a function of this module in its own mount namespace."""
    code = f"from tests.faults import test_full_disk as t; from pathlib import Path; t.{function}("
    code += ", ".join(f"Path({str(argument)!r})" for argument in arguments) + ")"
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(HERE)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _small_disk(where: Path, kilobytes: int) -> None:
    where.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(where))


def _fill(where: Path) -> Path:
    """Fill the disk; return the file that fills it."""
    ballast = where / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"b" * size):
                    pass
    return ballast


def _say_until_refused(journal: Journal, text: str, known: list[str]) -> CannotWrite:
    try:
        while True:
            known.extend(event["sum"] for event in say(journal, text))
    except CannotWrite as refused:
        return refused


def append_until_full(where: Path) -> None:
    for length in (1, 10, 100, 333, 700, 1500, 5000):
        disk = where / f"disk-{length}"
        _small_disk(disk, 40)
        (disk / "reserve").write_bytes(b"r" * 16384)
        journal = new_journal(disk / ".gsd")
        append(journal, start_draft())
        path = disk / ".gsd" / "journal.jsonl"
        known: list[str] = []
        refused = _say_until_refused(journal, "x" * length, known)
        assert refused.exit_code == 6
        assert refused.hint
        full = path.read_bytes()
        assert judge(full)[2:] == (0, 0)
        assert sums(full)[2:] == known
        for again in (journal, Journal(str(disk / ".gsd"))):
            with pytest.raises(CannotWrite):
                say(again, "x" * 5000)
            assert path.read_bytes() == full
        (disk / "reserve").unlink()
        known += [
            say(again, "x" * length)[0]["sum"] for again in (journal, Journal(str(disk / ".gsd")))
        ]
        assert sums(path.read_bytes())[2:] == known
        assert judge(path.read_bytes())[2:] == (0, 0)


def commands_on_a_full_disk(where: Path) -> None:
    disk = where / "disk"
    _small_disk(disk, 64)
    (disk / "new").mkdir()
    (disk / "old").mkdir()
    new, old = Project(disk / "new"), Project(disk / "old")
    old.ok("start", "goal", "Live through a full disk")
    ballast = _fill(disk)
    while (answer := old.run("note", "x" * 1500)).code == 0:
        pass
    before = old.journal.read_bytes()
    assert answer.code == 6
    assert "space" in answer.err
    assert "Traceback" not in answer.err
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
    disk = where / "disk"
    _small_disk(disk, 64)
    data = long_bytes(disk / ".gsd", 4)
    (disk / ".gsd" / "journal.jsonl").write_bytes(data + b'{"v":1,"seq"' + b"x" * 3000)
    ballast = _fill(disk)
    before = files_in(disk / ".gsd")["journal.jsonl"]
    for _ in range(3):
        with pytest.raises(CannotWrite):
            say(Journal(str(disk / ".gsd")), "no room to set the tail aside")
        assert files_in(disk / ".gsd")["journal.jsonl"] == before
    ballast.unlink()
    say(Journal(str(disk / ".gsd")), "room again")
    after = (disk / ".gsd" / "journal.jsonl").read_bytes()
    assert judge(after) == (6, sums(after)[-1], 0, 0)


def read_only_mount(where: Path) -> None:
    project = Project(where / "p")
    project.root.mkdir()
    project.ok("start", "goal", "Be read only")
    before = project.journal.read_bytes()
    _mount("--bind", str(project.root), str(project.root))
    _mount("-o", "remount,ro,bind", str(project.root))
    answer = project.run("note", "no")
    assert answer.code == 6
    assert "Read-only file system" in answer.err
    assert project.run("fsck", "--json").json["ok"]
    assert project.status()["goal"] == "Be read only"
    assert project.run("replay").code == 0
    assert project.journal.read_bytes() == before
    _mount("-o", "remount,rw,bind", str(project.root))
    project.ok("note", "yes")


@pytest.mark.parametrize(
    "function",
    ["append_until_full", "commands_on_a_full_disk", "torn_on_a_full_disk", "read_only_mount"],
)
def test_full_disk_leaves_no_partial_write_and_recovers(tmp_path: Path, function: str) -> None:
    _in_own_mounts(function, tmp_path)


def test_short_write_at_any_byte_leaves_file_unchanged(gsd: Path) -> None:
    journal = long_journal(gsd, 4)
    path = gsd / "journal.jsonl"
    before = path.read_bytes()
    line = len(say(journal, "short")[0]["sum"]) and len(path.read_bytes()) - len(before)
    path.write_bytes(before)

    for count in range(line):
        with pytest.raises(CannotWrite), limited(resource.RLIMIT_FSIZE, len(before) + count):
            say(Journal(str(gsd)), "short")
        assert path.read_bytes() == before
    with limited(resource.RLIMIT_FSIZE, len(before) + line):
        say(Journal(str(gsd)), "short")
    assert judge(path.read_bytes()).events == 5


def test_command_over_file_size_limit_reports_it_and_leaves_file(project: Project) -> None:
    project.ok("start", "goal", "Stay small")
    before = project.journal.read_bytes()
    limit = len(before) + 50
    done = subprocess.run(
        [sys.executable, "-B", "-m", "gsd_fsm", "note", "too much"],
        cwd=project.root,
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        check=False,
    )
    assert done.returncode == 6
    assert b"only 50 of" in done.stderr
    assert project.journal.read_bytes() == before
    project.ok("note", "enough")


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
    assert b"Traceback" not in done.stderr
    assert done.returncode != 1
    texts = [line["data"].get("text") for line in project.lines()]
    assert texts.count("written once") == 1
    assert project.ok("fsck", "--json").json["ok"]
