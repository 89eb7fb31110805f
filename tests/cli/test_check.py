from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import Here, git

if TYPE_CHECKING:
    from pathlib import Path


SECRET = "ghp_" + "a1B2" * 9


def test_check_streams_the_output_and_journals_the_evidence(here: Here) -> None:
    here.start("goal", "g", "--check", "t=echo to stdout; echo to stderr >&2", "--criterion", "c")
    answer = here.ok("check")
    assert "[1/1] t: echo to stdout" in answer.out
    assert "to stdout\nto stderr\n" in answer.out
    assert "passed in" in answer.out
    assert "1 check passed." in answer.out
    data = here.last()["data"]
    assert (data["criterion"], data["met"]) == ("t", True)
    evidence = data["evidence"]
    assert set(evidence) == {
        *("command", "exit_code", "tail", "digest", "likeness", "tree", "seconds", "timed_out"),
    }
    assert evidence["command"] == "echo to stdout; echo to stderr >&2"
    assert (evidence["exit_code"], evidence["timed_out"]) == (0, False)
    assert (evidence["tail"], evidence["tree"]) == ("to stdout\nto stderr", None)


def test_a_failed_check_exits_7_and_names_it(here: Here) -> None:
    here.start("goal", "g", "--check", "good=true", "--check", "bad=echo why; exit 3")
    answer = here.run("check")
    assert answer.code == 7
    assert "check failed: bad" in answer.err
    assert "failed with exit code 3" in answer.out
    assert [c["met"] for c in here.status()["criteria"]] == [True, False]
    assert here.status()["criteria"][1]["evidence"]["tail"] == "why"
    found = here.run("check", "--json")
    assert found.code == 7
    assert list(found.json) == ["loop", "seq", "status", "head", "checks", "failed"]
    assert found.json["failed"] == ["bad"]
    assert found.json["checks"]["bad"] == {"exit_code": 3, "timed_out": False}
    assert "why" in found.err


def test_check_runs_the_named_ones_in_the_directory_of_the_project(here: Here) -> None:
    here.start("goal", "g", "--check", "one=pwd > one", "--check", "two=touch two")
    here.where = here.root / "sub"
    here.where.mkdir()
    here.ok("check", "1")
    assert (here.root / "one").read_text().strip() == str(here.root)
    assert not (here.root / "two").exists()
    here.ok("check", "two")
    assert (here.root / "two").exists()
    assert "Its criteria" in here.refused(2, "check", "three").err


def test_check_needs_a_check(here: Here) -> None:
    here.start("goal", "g", "--criterion", "c")
    assert "has no checks" in here.refused(2, "check").err
    assert "no check for: c" in here.refused(2, "check", "c").err
    loop = here.status()["loop"]
    here.ok("cancel")
    here.refused(4, "--loop", loop, "check")
    here.refused(3, "check")


def test_a_checked_criterion_is_met_only_by_its_check(here: Here) -> None:
    here.start("goal", "g", "--check", "t=test -e done")
    answer = here.refused(4, "criterion", "t", "met")
    assert "gsd-fsm check" in answer.err
    assert here.run("check").code == 7
    here.refused(4, "exit-signal")
    (here.root / "done").touch()
    here.ok("check")
    here.ok("exit-signal")
    here.ok("criterion", "t", "unmet")
    here.refused(4, "criterion", "t", "met")
    assert "criterion not met: t" in here.run("complete").err


def test_a_check_has_a_time_limit(here: Here) -> None:
    here.start("goal", "g", "--check", "t=echo begun; sleep 300")
    answer = here.run("check", "--timeout", "1")
    assert answer.code == 7
    assert "timed out" in answer.out
    evidence = here.last()["data"]["evidence"]
    assert (evidence["timed_out"], evidence["exit_code"]) == (True, 124)
    assert evidence["tail"] == "begun"
    here.refused(2, "check", "--timeout", "0")


def test_the_time_limit_may_come_from_the_settings(here: Here) -> None:
    here.gsd.mkdir()
    here.gsd.joinpath("config.toml").write_text("check_timeout_seconds = 1\n")
    here.start("goal", "g", "--check", "t=sleep 300")
    assert here.run("check", "--json").json["checks"]["t"]["timed_out"] is True


def test_secrets_and_escapes_in_the_output_never_reach_the_journal(here: Here) -> None:
    hostile = f"\x1b[31m{SECRET}\x1b[0m\x07 \x1b]0;title\x07".encode() + b"\xff\x00"
    (here.root / "out").write_bytes(hostile)
    here.start("goal", "g", "--check", "t=cat out")
    here.ok("check")
    raw = here.journal.read_bytes()
    assert SECRET.encode() not in raw
    assert b"redacted" in raw
    assert b"u001b" not in raw
    assert b"title" not in raw


def test_a_check_that_writes_much_is_kept_by_its_end(here: Here) -> None:
    here.start("goal", "g", "--check", "t=seq 200000")
    here.ok("check")
    assert here.last()["data"]["evidence"]["tail"].endswith("199999\n200000")
    assert len(here.journal.read_bytes()) < 20_000


def done_goal(here: Here) -> None:
    here.start("goal", "g", "--check", "t=true")
    here.ok("check")
    here.ok("exit-signal")


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "code.py").write_text("two\n"),
        lambda root: (root / "code.py").unlink(),
        lambda root: (root / "new.py").write_text("new\n"),
    ],
)
def test_changed_content_makes_evidence_stale_at_complete(repository: Here, change) -> None:
    done_goal(repository)
    assert repository.last()["type"] == "exit"
    change(repository.root)
    answer = repository.run("complete")
    assert answer.code == 4
    assert "stale" in answer.err
    loop = repository.status()["loop"]
    assert f"gsd-fsm --loop {loop} check" in answer.err
    criterion = repository.status()["criteria"][0]
    assert (criterion["met"], criterion["stale"]) == (False, True)
    repository.ok("check")
    repository.ok("exit-signal")
    repository.ok("complete")


def test_committing_alone_makes_nothing_stale(repository: Here) -> None:
    (repository.root / "new.py").write_text("new\n")
    (repository.root / ".gitignore").write_text("*.log\n")
    done_goal(repository)
    git(repository.root, "add", "-A")
    git(repository.root, "commit", "-qm", "second")
    (repository.root / "x.log").write_text("ignored")
    repository.ok("complete")
    tree = repository.last()["data"]["tree"]
    checked = [line for line in repository.lines() if line["type"] == "criterion"]
    assert checked[0]["data"]["evidence"]["tree"] == tree


def test_the_tree_is_taken_after_the_checks_for_they_may_write(repository: Here) -> None:
    repository.start("goal", "g", "--check", "a=echo 1 > made", "--check", "b=echo 2 > made")
    repository.ok("check")
    trees = {line["data"]["evidence"]["tree"] for line in repository.lines()[-2:]}
    assert len(trees) == 1
    repository.ok("exit-signal")
    repository.ok("complete")


def test_without_git_there_is_no_tree_and_nothing_goes_stale(here: Here) -> None:
    done_goal(here)
    (here.root / "new").write_text("x")
    here.ok("complete")
    assert here.last()["data"] == {}


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.01)


def test_a_loop_cancelled_during_its_check_takes_no_evidence(here: Here) -> None:
    program = f"{sys.executable} -m gsd_fsm cancel"
    here.start("goal", "g", "--check", f"t={program}")
    answer = here.run("check")
    assert answer.code == 4, answer
    assert here.last()["type"] == "cancel"
