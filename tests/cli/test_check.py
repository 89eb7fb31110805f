"""check, criterion and exit-signal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Here, git

SECRET = "ghp_" + "a1B2" * 9


def done_goal(here: Here) -> None:
    here.start("goal", "g", "--check", "t=true")
    here.ok("check")
    here.ok("exit-signal")


def test_check_prints_output_and_records_evidence(here: Here) -> None:
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


def test_check_that_fails_exits_7_and_is_named(here: Here) -> None:
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


def test_check_runs_the_named_checks_in_the_project_directory(here: Here) -> None:
    here.start("goal", "g", "--check", "one=pwd > one", "--check", "two=touch two")
    here.where = here.root / "sub"
    here.where.mkdir()
    here.ok("check", "1")
    assert (here.root / "one").read_text().strip() == str(here.root)
    assert not (here.root / "two").exists()
    here.ok("check", "two")
    assert (here.root / "two").exists()
    assert "Use one of: " in here.refused(2, "check", "three").err


def test_check_without_any_check_is_refused(here: Here) -> None:
    here.start("goal", "g", "--criterion", "c")
    assert "has no checks" in here.refused(2, "check").err
    assert "no check for: c" in here.refused(2, "check", "c").err
    loop = here.status()["loop"]
    here.ok("cancel")
    here.refused(4, "--loop", loop, "check")
    here.refused(3, "check")


@pytest.mark.parametrize(
    ("options", "settings"), [(("--timeout", "1"), ""), ((), "check_timeout_seconds = 1\n")]
)
def test_check_beyond_its_time_limit_fails(
    here: Here, options: tuple[str, ...], settings: str
) -> None:
    here.gsd.mkdir()
    here.gsd.joinpath("config.toml").write_text(settings)
    here.start("goal", "g", "--check", "t=echo begun; sleep 300")
    answer = here.run("check", *options)
    assert answer.code == 7
    assert "timed out" in answer.out
    evidence = here.last()["data"]["evidence"]
    assert (evidence["timed_out"], evidence["exit_code"]) == (True, 124)
    assert evidence["tail"] == "begun"
    here.refused(2, "check", "--timeout", "0")


def test_check_records_output_without_secrets_and_escapes(here: Here) -> None:
    hostile = f"\x1b[31m{SECRET}\x1b[0m\x07 \x1b]0;title\x07".encode() + b"\xff\x00"
    (here.root / "out").write_bytes(hostile)
    here.start("goal", "g", "--check", "t=cat out")
    here.ok("check")
    raw = here.journal.read_bytes()
    assert SECRET.encode() not in raw
    assert b"redacted" in raw
    assert b"u001b" not in raw
    assert b"title" not in raw


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "code.py").write_text("two\n"),
        lambda root: (root / "code.py").unlink(),
        lambda root: (root / "new.py").write_text("new\n"),
    ],
)
def test_complete_with_changed_content_finds_stale_evidence(
    repository: Here, change: Callable[[Path], object]
) -> None:
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


def test_commit_alone_does_not_make_evidence_stale(repository: Here) -> None:
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


def test_check_takes_the_tree_after_all_checks(repository: Here) -> None:
    repository.start("goal", "g", "--check", "a=echo 1 > made", "--check", "b=echo 2 > made")
    repository.ok("check")
    trees = {line["data"]["evidence"]["tree"] for line in repository.lines()[-2:]}
    assert len(trees) == 1
    repository.ok("exit-signal")
    repository.ok("complete")


def test_complete_with_tree_evidence_needs_git(
    repository: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.start("goal", "g", "--check", "t=true")
    repository.ok("check")
    repository.ok("exit-signal")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "/nowhere")
        assert "git" in repository.refused(6, "complete").err
    repository.ok("complete")


def test_check_of_loop_cancelled_meanwhile_records_nothing(here: Here) -> None:
    program = f"{sys.executable} -m gsd_fsm cancel"
    here.start("goal", "g", "--check", f"t={program}")
    answer = here.run("check")
    assert answer.code == 4, answer
    assert here.last()["type"] == "cancel"


def test_criterion_that_is_unknown_names_the_known_ones(here: Here) -> None:
    here.start("goal", "g", "--criterion", "one", "--criterion", "two words")
    for wrong in ("3", "0", "One", "9" * 5000):
        answer = here.refused(2, "criterion", wrong, "met")
        assert "1 one, 2 two words" in answer.err
    here.refused(2, "criterion", "one", "perhaps")
