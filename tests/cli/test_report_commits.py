"""What `report` leaves in git: commits where the engine may, and tags to go back to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_planned import YOLO, done, say, write_plan
from tests.cli.test_report import SECRET
from tests.cli.test_verify import FILE, begin, gaps_found
from tests.support.command_line import AGENT, Here
from tests.support.git_commands import commit
from tests.support.repositories import git

MAY_COMMIT = "commit = true\n"
WORDS = f"""Wrote it, with {SECRET}.

TASK COMPLETE
Commit message: feat(1-01): write the first part
"""


@pytest.fixture(autouse=True)
def _known_to_git(_own_home: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "T")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@example.org")


@pytest.fixture
def committing(repository: Here) -> Here:
    """A planned loop whose engine may commit."""
    write_plan(repository)
    (repository.gsd / "config.toml").write_text(MAY_COMMIT)
    repository.ok(*YOLO)
    return repository


def head(here: Here) -> str:
    return git(here.root, "rev-parse", "HEAD")


def message(here: Here) -> str:
    return git(here.root, "log", "-1", "--format=%B")


def changed(here: Here) -> list[str]:
    return git(here.root, "show", "--format=", "--name-only", "HEAD").split()


def tags(here: Here) -> dict[str, str]:
    form = "--format=%(refname:short) %(objectname)"
    lines = git(here.root, "for-each-ref", form, "refs/tags").splitlines()
    return {
        name.removeprefix("gsd/checkpoint/phase-1/"): sha for name, sha in map(str.split, lines)
    }


def write(here: Here, *names: str) -> None:
    for name in names:
        (here.root / name).write_text(f"{name}\n")


def test_the_commit_holds_exactly_the_files_of_the_task(committing: Here) -> None:
    write(committing, "01.py", "02.py", "stray.py", "staged.py")
    git(committing.root, "add", "staged.py")
    (committing.root / "code.py").write_text("changed by the user\n")
    answer = say(committing, "T01", WORDS, env=AGENT)
    assert answer["commit"] == head(committing)
    assert changed(committing) == ["01.py"]
    assert git(committing.root, "diff", "--cached", "--name-only") == "staged.py"
    assert git(committing.root, "diff", "--name-only") == "code.py"
    assert committing.status()["tasks"][0]["commit"] == head(committing)


def test_the_message_has_a_scope_details_and_a_trailer_for_an_agent_only(committing: Here) -> None:
    write(committing, "01.py", "02.py")
    say(committing, "T01", WORDS, env=AGENT)
    subject, blank, details, *rest = message(committing).splitlines()
    assert subject == "feat(1-01): write the first part"
    assert blank == ""
    assert details.startswith("Wrote it, with ")
    assert SECRET not in details
    assert rest == ["", "Co-Authored-By: Claude <noreply@anthropic.com>"]
    say(committing, "T02", "TASK COMPLETE")
    assert message(committing).strip() == "feat(1-02): Write 02."


def test_a_deleted_file_and_a_task_without_changes(committing: Here) -> None:
    write(committing, "01.py")
    first = say(committing, "T01", "TASK COMPLETE")["commit"]
    assert say(committing, "T02", "TASK COMPLETE")["commit"] is None
    assert head(committing) == first


def test_a_refused_report_commits_nothing(committing: Here) -> None:
    before = head(committing)
    write(committing, "01.py", "04.py")
    committing.refused(4, "report", "T04", stdin=b"TASK COMPLETE")
    committing.refused(2, "report", "T01", stdin=b"TASK COMPLETE\nTASK COMPLETE")
    committing.ok("pause")
    committing.refused(4, "report", "T01", stdin=b"TASK COMPLETE")
    assert head(committing) == before
    assert sorted(tags(committing)) == ["pre"]


def test_a_failure_and_a_checkpoint_commit_nothing(committing: Here) -> None:
    before = head(committing)
    write(committing, "01.py")
    say(committing, "T01", "TASK FAILED: half of it")
    say(committing, "T01", "CHECKPOINT: which half?")
    assert head(committing) == before


def test_a_hook_of_the_user_that_refuses_leaves_the_task_open(committing: Here) -> None:
    hook = committing.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no such style; exit 1\n")
    hook.chmod(0o755)
    write(committing, "01.py")
    answer = committing.refused(4, "report", "T01", stdin=b"TASK COMPLETE")
    assert "no such style" in answer.err
    assert git(committing.root, "diff", "--cached", "--name-only") == ""
    hook.unlink()
    assert say(committing, "T01", "TASK COMPLETE")["commit"] == head(committing)


def test_without_the_setting_nothing_is_committed(repository: Here) -> None:
    write_plan(repository)
    repository.ok(*YOLO)
    before = head(repository)
    write(repository, "01.py")
    assert say(repository, "T01", "TASK COMPLETE")["commit"] is None
    assert head(repository) == before


def test_a_commit_of_the_agent_is_found(repository: Here) -> None:
    write_plan(repository)
    repository.ok(*YOLO)
    commit(repository.root, "01.py")
    assert say(repository, "T01", "TASK COMPLETE")["commit"] == head(repository)
    assert say(repository, "T02", "TASK COMPLETE")["commit"] is None


def test_a_fix_commits_the_file_of_its_gap_and_those_it_names(committing: Here) -> None:
    committing.ok("cancel")
    begin(committing, FILE, commit=True)
    gaps_found(committing)
    write(committing, "a.txt", "parent.py", "stray.py")
    say(committing, "G1", "TASK COMPLETE\nFiles modified: parent.py\n")
    assert changed(committing) == ["a.txt", "parent.py"]
    assert message(committing).startswith("fix(1-G1): ")


def test_tags_lead_back_to_before_the_phase_and_after_each_task(committing: Here) -> None:
    shas = {"pre": head(committing)}
    assert tags(committing) == shas
    for name in ("01", "02", "03", "04"):
        write(committing, f"{name}.py")
        answer = say(committing, f"T{name}", "TASK COMPLETE")
        assert answer["tag"] == f"gsd/checkpoint/phase-1/T{name}"
        shas[f"T{name}"] = head(committing)
    committing.ok("complete")
    found = tags(committing)
    assert {name: found[name] for name in shas} == shas
    assert sorted(found) == [*sorted(name for name in shas if name != "pre"), "post", "pre"]
    told = [event for event in committing.lines() if event["type"] == "checkpoint"]
    assert [event["data"]["name"].rpartition("/")[2] for event in told] == [
        "pre", "T01", "T02", "T03", "T04", "post",
    ]  # fmt: skip
    assert {event["by"] for event in told} == {"cli"}
    assert told[1]["data"]["task"] == "T01"
    assert told[1]["data"]["commit"] == shas["T01"]


def test_no_tags_where_they_are_switched_off(repository: Here) -> None:
    write_plan(repository)
    (repository.gsd / "config.toml").write_text("checkpoints = false\n")
    repository.ok(*YOLO)
    done(repository, "T01", "T02", "T03", "T04")
    repository.ok("complete")
    assert tags(repository) == {}
    assert not [event for event in repository.lines() if event["type"] == "checkpoint"]


def test_without_git_all_of_it_works_without_a_trace(here: Here, tmp_path: Path) -> None:
    write_plan(here)
    (here.gsd / "config.toml").write_text(MAY_COMMIT)
    here.ok(*YOLO)
    assert say(here, "T01", "TASK COMPLETE")["tag"] is None
    here.patch.setenv("PATH", str(tmp_path))
    done(here, "T02", "T03", "T04")
    here.ok("complete")
    assert not [event for event in here.lines() if event["type"] == "checkpoint"]


def test_the_first_tag_waits_for_the_word_to_begin(repository: Here) -> None:
    write_plan(repository)
    repository.ok("start", "execute", "--phase", "1", "--mode", "interactive")
    assert tags(repository) == {}
    repository.ok("answer", "y")
    assert tags(repository) == {"pre": head(repository)}


def test_answer_no_to_the_start_sets_no_first_checkpoint(repository: Here) -> None:
    write_plan(repository)
    repository.ok("start", "execute", "--phase", "1", "--mode", "interactive")
    repository.ok("answer", "no")
    assert repository.status()["status"] == "paused"
    assert tags(repository) == {}
