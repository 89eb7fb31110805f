"""Options of all commands, exit codes, and error messages."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gsd_fsm import cli
from tests.support.command_line import Here, Project

COMMAND = [sys.executable, "-m", "gsd_fsm"]
AS_NOBODY = """
import codecs, os, sys, tempfile, platformdirs.unix, json, secrets
from gsd_fsm.cli import COMMANDS, cli, main
for name in COMMANDS:
    cli.get_command(None, name)
import gsd_fsm.core.text.redact, traceback
codecs.lookup("ascii")
if os.geteuid() == 0:
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
main(sys.argv[1:])
"""


@pytest.fixture
def open_place() -> Iterator[Path]:
    """Yield a directory with a project that every user may enter."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "project").mkdir()
        (place / "state").mkdir()
        yield place


def as_nobody(place: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
    for path in (place, *place.rglob("*")):
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
    return subprocess.run(
        [sys.executable, "-c", AS_NOBODY, *args],
        cwd=place / "project",
        env={
            **os.environ,
            "XDG_STATE_HOME": str(place / "state"),
            "XDG_CONFIG_HOME": str(place / "config"),
            "HOME": "/nonexistent",
        },
        capture_output=True,
        timeout=30,
        check=False,
    )


def test_unknown_command_or_option_suggests_the_nearest_one(here: Here) -> None:
    assert "Did you mean 'start'?" in here.refused(2, "strat").err
    assert "unknown command 'xyzzy'" in here.refused(2, "xyzzy").err
    assert "--help" in here.refused(2, "status", "--nope").err
    here.refused(2, "status", "extra")


def test_command_without_arguments_prints_help_and_exits_2(here: Here) -> None:
    answer = here.run()
    assert (answer.code, answer.err) == (2, "")
    assert "start " in answer.out


def test_error_with_json_prints_one_object_on_stdout(here: Here) -> None:
    for code, command in (
        (2, ["start", "party"]),
        (3, ["status"]),
        (3, ["note", "n"]),
        (2, ["--loop", "../x", "status"]),
    ):
        answer = here.run(*command, "--json")
        assert answer.code == code
        assert list(answer.json) == ["error", "hint", "exit_code"]
        assert answer.json["exit_code"] == code
        assert answer.out.count("\n") == 1
        assert answer.json["error"] in answer.err
    here.start("goal", "g")
    answer = here.run("complete", "--json")
    assert (answer.code, answer.json["exit_code"]) == (4, 4)


def test_project_and_loop_options_work_before_and_loop_after_the_command(here: Here) -> None:
    loop = here.start("goal", "g")
    here.where = Path("/")
    project = str(here.root)
    for command in (
        ["--project", project, "status", "--json"],
        ["--project", project, "--loop", loop, "status", "--json"],
        ["--loop", loop, "--project", project, "status", "--json"],
        ["--project", project, "status", "--loop", loop, "--json"],
        ["--project", project, "status", "--json", "--loop", loop],
    ):
        assert here.ok(*command).json["loop"] == loop
    assert here.run("status").code == 3


@pytest.mark.parametrize("wrong", ["/no/such/dir", "file"])
def test_project_option_that_is_not_a_directory_exits_3(here: Here, wrong: str) -> None:
    (here.root / "file").touch()
    answer = here.refused(3, "--project", wrong, "status")
    assert "not a directory" in answer.err


def test_command_without_project_exits_3_and_creates_nothing(here: Here) -> None:
    for command in (
        *(["status"], ["next"], ["why"], ["iterate"], ["task", "T", "running"], ["fsck"]),
        *(["fail", "--error", "e"], ["gap", "found", "--description", "d"], ["verified", "pass"]),
        *(["criterion", "1", "met"], ["check"], ["exit-signal"], ["review", "begun"], ["stage"]),
        *(["spend", "1"], ["note", "n"], ["mode", "yolo"], ["wait", "q"], ["answer", "a"]),
        *(["pause"], ["resume"], ["cancel"], ["complete"], ["replay"], ["trust"]),
    ):
        answer = here.refused(3, *command)
        assert "gsd-fsm start" in answer.err, command
    for command in (["graph"], ["config"], ["ps"]):
        here.ok(*command)
    assert list(here.root.iterdir()) == []


def test_command_with_held_lock_exits_6_until_it_is_free(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.start("goal", "g")
    clock = iter(range(0, 10_000, 5))
    monkeypatch.setattr("gsd_fsm.core.syscalls.monotonic", lambda: next(clock))
    with (here.gsd / "journal.lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        answer = here.refused(6, "note", "n")
        assert "journal.lock is held" in answer.err
        assert here.ok("status", "--json").json["status"] == "running"
    here.ok("note", "n")


def test_command_without_write_permission_exits_6_until_it_is_granted(open_place: Path) -> None:
    project = open_place / "project"
    project.chmod(0o500)
    done = as_nobody(open_place, "start", "goal", "g")
    assert (done.returncode, b"Permission denied" in done.stderr) == (6, True), done
    assert list(project.iterdir()) == []
    project.chmod(0o700)
    assert as_nobody(open_place, "start", "goal", "g").returncode == 0
    journal = project / ".gsd/journal.jsonl"
    before = journal.read_bytes()
    journal.chmod(0o400)
    done = as_nobody(open_place, "note", "n")
    assert (done.returncode, b"Permission denied" in done.stderr) == (6, True), done
    assert as_nobody(open_place, "status").returncode == 0
    assert journal.read_bytes() == before
    journal.chmod(0o600)
    assert as_nobody(open_place, "note", "n").returncode == 0


def test_command_runs_without_home(project: Project) -> None:
    env = {name: value for name, value in os.environ.items() if name != "HOME"}
    for command in (["start", "goal", "g"], ["status"], ["config"], ["ps"]):
        done = subprocess.run(
            [*COMMAND, *command], cwd=project.root, env=env, capture_output=True, check=False
        )
        assert done.returncode == 0, done
    assert len(project.lines()) == 2


@pytest.mark.parametrize(
    "name", ["a b", 'it\'s "quoted" $HOME `x`', "日本 ümläut 🚀", "new\nline", "-rf", "caf\udce9"]
)
def test_command_works_in_directory_with_odd_name(here: Here, name: str) -> None:
    here.where = place = here.root / name
    place.mkdir()
    here.start("goal", "g", "--check", "t=touch made")
    here.ok("check")
    assert (place / "made").exists()
    if name.isprintable() or "\n" in name:
        assert here.ok("ps", "--json").json["loops"][0]["project"] == str(place)
    for command in (["ps"], ["fsck"], ["config"], ["trust"], ["ps", "--json"]):
        here.ok(*command)
    here.where = Path("/")
    here.ok("--project", str(place), "note", "n")


def test_command_in_deleted_directory_exits_3(here: Here) -> None:
    gone = here.root / "gone"
    gone.mkdir()
    program = (
        "import os,sys; os.rmdir(os.getcwd()); from gsd_fsm.cli import main; main(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "status", "--json"],
        cwd=gone,
        capture_output=True,
        timeout=30,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])},
    )
    assert done.returncode == 3, done
    assert "no longer exists" in json.loads(done.stdout)["error"]
    assert b"Traceback" not in done.stderr


def test_bug_exits_1_without_traceback(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("\x1b[31moops")

    here.start("goal", "g")
    monkeypatch.setattr("gsd_fsm.engine.status.status_view", broken)
    answer = here.refused(1, "status")
    assert "this is a bug in gsd-fsm: ZeroDivisionError at" in answer.err
    assert "\x1b" not in answer.err
