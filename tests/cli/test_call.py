"""Options of all commands, exit codes, and error messages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Here, Project


def test_unknown_command_exits_2_with_a_suggestion(here: Here) -> None:
    assert "Did you mean 'start'?" in here.refused(2, "strat").err
    assert "unknown command 'xyzzy'" in here.refused(2, "xyzzy").err
    assert "--help" in here.refused(2, "status", "--nope").err
    here.refused(2, "status", "extra")


def test_error_with_json_prints_one_object_on_stdout(here: Here) -> None:
    for code, command in ((2, "start party"), (3, "status"), (2, "--loop ../x status")):
        answer = here.run(*command.split(), "--json")
        assert list(answer.json) == ["error", "hint", "exit_code"]
        assert answer.json["exit_code"] == answer.code == code
        assert answer.out.count("\n") == 1
        assert answer.json["error"] in answer.err


def test_project_and_loop_options_work_before_and_loop_after_the_command(here: Here) -> None:
    loop = here.start("goal", "g")
    here.where = Path("/")
    project = ["--project", str(here.root)]
    for command in (
        [*project, "status", "--json"],
        [*project, "--loop", loop, "status", "--json"],
        ["--loop", loop, *project, "status", "--json"],
        [*project, "status", "--loop", loop, "--json"],
    ):
        assert here.ok(*command).json["loop"] == loop
    following = here.ok(*project, "next", "--json").json["command"]
    assert following == f"gsd-fsm --project {here.root} complete --loop {loop}"
    assert here.run("status").code == 3
    (here.root / "file").touch()
    for wrong in ("/no/such/dir", str(here.root / "file")):
        assert "not a directory" in here.refused(3, "--project", wrong, "status").err


def test_command_without_project_exits_3_and_creates_nothing(here: Here) -> None:
    for command in (
        *("status", "next", "why", "iterate", "task T running", "fsck", "fail --error e", "check"),
        *("gap found --description d", "verified pass", "criterion 1 met", "exit-signal", "stage"),
        *("review begun", "spend 1", "note n", "mode yolo", "wait q", "answer a", "pause"),
        *("resume", "cancel", "complete", "replay", "trust"),
    ):
        assert "gsd-fsm start" in here.refused(3, *command.split()).err, command
    for command in ("graph", "config", "ps"):
        here.ok(command)
    assert list(here.root.iterdir()) == []


def test_command_runs_without_home(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    for command in ("start goal g", "status", "config", "ps"):
        project.ok(*command.split())
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
    script = 'mkdir gone; cd gone; rmdir ../gone; exec "$0" -m gsd_fsm status --json'
    command = ["sh", "-c", script, sys.executable]
    done = subprocess.run(command, cwd=here.root, capture_output=True, timeout=30, check=False)
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
