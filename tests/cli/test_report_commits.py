"""report: commits of the engine, and the tags of checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import AGENT, Here
from tests.support.plan_loops import INTERACTIVE, report, report_complete, start_plan
from tests.support.repositories import commit, git
from tests.support.verification import FILE, failed_round, start_verify

SECRET = "ghp_" + "a1B2" * 9
OUTPUT = f"""Wrote it, with {SECRET}.

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
    """Return a planned loop whose engine may commit."""
    return start_plan(repository, settings="commit = true\n")


@pytest.fixture
def tagging(repository: Here) -> Here:
    """Return a planned loop whose engine sets tags but does not commit."""
    return start_plan(repository)


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


def test_report_commits_exactly_the_files_of_its_task(committing: Here) -> None:
    write(committing, "01.py", "02.py", "stray.py", "staged.py")
    git(committing.root, "add", "staged.py")
    (committing.root / "code.py").write_text("changed by the user\n")
    answer = report(committing, "T01", OUTPUT, env=AGENT)
    assert answer["commit"] == head(committing)
    assert changed(committing) == ["01.py"]
    assert git(committing.root, "diff", "--cached", "--name-only") == "staged.py"
    assert git(committing.root, "diff", "--name-only") == "code.py"
    assert committing.status()["tasks"][0]["commit"] == head(committing)


def test_report_commit_message_has_scope_details_and_trailer_of_agent(committing: Here) -> None:
    write(committing, "01.py", "02.py")
    report(committing, "T01", OUTPUT, env=AGENT)
    subject, blank, details, *rest = message(committing).splitlines()
    assert subject == "feat(1-01): write the first part"
    assert blank == ""
    assert details.startswith("Wrote it, with ")
    assert SECRET not in details
    assert rest == ["", "Co-Authored-By: Claude <noreply@anthropic.com>"]
    report(committing, "T02", "TASK COMPLETE")
    assert message(committing).strip() == "feat(1-02): Write 02."


def test_report_without_changes_makes_no_commit(committing: Here) -> None:
    write(committing, "01.py")
    first = report(committing, "T01", "TASK COMPLETE")["commit"]
    assert report(committing, "T02", "TASK COMPLETE")["commit"] is None
    assert head(committing) == first


def test_refused_report_commits_and_tags_nothing(committing: Here) -> None:
    before = head(committing)
    write(committing, "01.py", "04.py")
    committing.refused(4, "report", "T04", stdin=b"TASK COMPLETE")
    committing.refused(2, "report", "T01", stdin=b"TASK COMPLETE\nTASK COMPLETE")
    committing.ok("pause")
    committing.refused(4, "report", "T01", stdin=b"TASK COMPLETE")
    assert head(committing) == before
    assert sorted(tags(committing)) == ["pre"]


def test_report_failed_or_checkpoint_commits_nothing(committing: Here) -> None:
    before = head(committing)
    write(committing, "01.py")
    report(committing, "T01", "TASK FAILED: half of it")
    report(committing, "T01", "CHECKPOINT: which half?")
    assert head(committing) == before


def test_report_with_refusing_git_hook_leaves_the_task_open(committing: Here) -> None:
    hook = committing.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no such style; exit 1\n")
    hook.chmod(0o755)
    write(committing, "01.py")
    answer = committing.refused(4, "report", "T01", stdin=b"TASK COMPLETE")
    assert "no such style" in answer.err
    assert git(committing.root, "diff", "--cached", "--name-only") == ""
    hook.unlink()
    assert report(committing, "T01", "TASK COMPLETE")["commit"] == head(committing)


def test_report_finds_the_commit_of_the_agent(tagging: Here) -> None:
    commit(tagging.root, "01.py")
    assert report(tagging, "T01", "TASK COMPLETE")["commit"] == head(tagging)
    assert report(tagging, "T02", "TASK COMPLETE")["commit"] is None


def test_report_ignores_unrelated_commits(tagging: Here) -> None:
    git(tagging.root, "commit", "-q", "--allow-empty", "-m", "unrelated")
    assert report(tagging, "T01", "TASK COMPLETE")["commit"] is None
    refused = tagging.refused(2, "report", "T02", "--commit", "nonsense", stdin=b"TASK COMPLETE")
    assert "not a commit: nonsense" in refused.err
    answer = tagging.run("report", "T02", "--commit", "HEAD", "--json", stdin=b"TASK COMPLETE")
    assert len(json.loads(answer.out)["commit"]) == 40


def test_report_of_fix_commits_the_file_of_its_gap_and_those_it_names(committing: Here) -> None:
    committing.ok("cancel")
    start_verify(committing, FILE, commit=True)
    failed_round(committing)
    write(committing, "a.txt", "parent.py", "stray.py")
    report(committing, "G1", "TASK COMPLETE\nFiles modified: parent.py\n")
    assert changed(committing) == ["a.txt", "parent.py"]
    assert message(committing).startswith("fix(1-G1): ")


def test_report_tags_each_task_and_complete_tags_the_phase(committing: Here) -> None:
    shas = {"pre": head(committing)}
    assert tags(committing) == shas
    for name in ("01", "02", "03", "04"):
        write(committing, f"{name}.py")
        answer = report(committing, f"T{name}", "TASK COMPLETE")
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


def test_report_without_git_neither_commits_nor_tags(here: Here, tmp_path: Path) -> None:
    start_plan(here, settings="commit = true\n")
    assert report(here, "T01", "TASK COMPLETE")["tag"] is None
    here.patch.setenv("PATH", str(tmp_path))
    report_complete(here, "T02", "T03", "T04")
    here.ok("complete")
    assert not [event for event in here.lines() if event["type"] == "checkpoint"]


@pytest.mark.parametrize(("answer", "is_tagged"), [("y", True), ("no", False)])
def test_first_tag_is_set_only_after_the_answer_to_start(
    repository: Here, answer: str, is_tagged: bool
) -> None:
    start_plan(repository, *INTERACTIVE)
    assert tags(repository) == {}
    repository.ok("answer", answer)
    assert tags(repository) == ({"pre": head(repository)} if is_tagged else {})
