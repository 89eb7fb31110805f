"""Tags of checkpoints, their order, and the tasks that a rollback undoes."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsd_fsm.core.loop.records import Task
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.git.checkpoints import (
    TAG,
    checkpoint_named,
    checkpoint_tag,
    checkpoints_of,
    lost_without,
    phase_part,
    ref_part,
    rollback_tag,
    undone_by,
)
from gsd_fsm.git.snapshots import take_snapshot
from tests.support.events import build
from tests.support.repositories import commit, git


def test_checkpoint_tags_contain_phase_and_name():
    assert checkpoint_tag(1, "pre") == "gsd/checkpoint/phase-1/pre"
    assert checkpoint_tag("02", "T01") == "gsd/checkpoint/phase-2/T01"
    assert checkpoint_tag("2.1", "post") == "gsd/checkpoint/phase-2.1/post"
    tag = rollback_tag("3", "2026-11-15T23:00:07.123Z")
    assert tag == "gsd/rollback/phase-3/20261115T230007.123Z"


def assert_ref(phase: str, name: str) -> None:
    tag = checkpoint_tag(phase, name)
    subprocess.run(["git", "check-ref-format", f"refs/tags/{tag}"], check=True)
    parts = TAG.fullmatch(tag)
    assert (parts["phase"], parts["name"]) == (phase_part(phase), ref_part(name))


def test_ref_part_replaces_invalid_characters():
    for text in ("two words", "a/b", "..", ".hidden", "x.lock", "end.", "a..b", "@{0}", "ü", "", "*",
                 "T" * 64):  # fmt: skip
        assert_ref(text, text)


@settings(max_examples=25)
@given(
    st.text(st.characters(exclude_characters="\0"), max_size=80), st.sampled_from(["pre", "T01"])
)
def test_checkpoint_tag_of_any_phase_is_a_valid_ref(phase, name):
    assert_ref(phase, name)
    assert checkpoint_tag(phase, name).endswith(f"/{name}")


@given(st.lists(st.text("aA.-/ ü", min_size=1, max_size=4).map(str.lower), unique=True, min_size=2))
def test_ref_part_of_different_texts_differs(names):
    assert len({checkpoint_tag(1, name) for name in names}) == len(names)


def test_checkpoints_are_listed_in_order_of_work(repo, repository, monkeypatch):
    assert checkpoints_of(repository, "1") == []
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-11-15T23:00:00Z")
    for name in ("pre", "T10", "T2", "post"):
        commit(repo, name)
        repository.tag(checkpoint_tag(1, name))
    repository.tag(checkpoint_tag(11, "pre"))
    assert [it.name for it in checkpoints_of(repository, "1")] == ["pre", "T10", "T2", "post"]
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-11-15T22:00:00Z")
    commit(repo, "earlier")
    repository.tag(checkpoint_tag(1, "T3"))
    found = checkpoints_of(repository, "1")
    assert [it.name for it in found] == ["T3", "pre", "T10", "T2", "post"]
    assert found[0] == ("T3", "gsd/checkpoint/phase-1/T3", repository.head(), "earlier", True, None)


def test_checkpoint_outside_head_is_not_contained(repo, repository):
    first = repository.head()
    repository.tag(checkpoint_tag(1, "pre"))
    commit(repo, "one")
    repository.tag(checkpoint_tag(1, "T01"))
    repository.move_branch(first)
    assert [it.contained for it in checkpoints_of(repository, "1")] == [True, False]
    git(repo, "checkout", "-q", "--orphan", "unborn")
    assert [it.contained for it in checkpoints_of(repository, "1")] == [False, False]


def test_checkpoint_of_snapshot_names_the_commit_of_the_branch(repo, repository):
    head = repository.head()
    (repo / "new").write_text("new")
    snapshot = take_snapshot(repository, head, "about").commit
    repository.tag(checkpoint_tag(1, "T01"), snapshot)
    commit(repo, "one")
    (found,) = checkpoints_of(repository, "1")
    assert found == ("T01", "gsd/checkpoint/phase-1/T01", head, "first", True, snapshot)
    git(repo, "checkout", "-q", "--orphan", "unborn")
    assert checkpoints_of(repository, "1") == [found._replace(contained=False)]


def test_checkpoint_is_found_by_full_tag_only(repository):
    repository.tag(checkpoint_tag(1, "pre"))
    repository.tag("gsd/rollback/phase-1/x")
    repository.tag("release")
    assert checkpoint_named(repository, "gsd/checkpoint/phase-1/pre").name == "pre"
    assert checkpoint_named(repository, "gsd/rollback/phase-1/x").name == "x"
    for name in ("release", "pre", "gsd/checkpoint/phase-1/*", "gsd/checkpoint/phase-1", "-d", ""):
        assert checkpoint_named(repository, name) is None


@pytest.fixture
def shas(repo, repository):
    """Set checkpoints; return their commits by name."""
    found = {"none": None, "unknown": "no commit"}
    for name in ("pre", "T01", "T02", "T03"):
        found[name] = commit(repo, name)
        repository.tag(checkpoint_tag(1, name))
    return found


def a_loop(shas, checkpoints: dict[str, str], **commits: str) -> Loop:
    """Return a loop of phase 1 whose tasks are complete, with checkpoints and commits by name."""
    tasks = {name: build(Task, status="complete", commit=shas[it]) for name, it in commits.items()}
    recorded = {checkpoint_tag(1, name): shas[it] for name, it in checkpoints.items()}
    return build(Loop, phase=1, tasks=tasks, checkpoints=recorded)


def undone(repository, loop, name):
    return undone_by(repository, loop, checkpoint_named(repository, checkpoint_tag(1, name)))


def test_rollback_undoes_tasks_completed_after_checkpoint(repository, shas):
    checkpoints = {name: name for name in ("pre", "T01", "T02", "T03")}
    loop = a_loop(shas, checkpoints, T01="none", T02="T02", T03="none")
    assert undone(repository, loop, "T03") == []
    assert undone(repository, loop, "T01") == ["T02", "T03"]
    assert undone(repository, loop, "pre") == ["T01", "T02", "T03"]
    loop.tasks["T02"].status = "skipped"
    loop.tasks["T03"].status = "running"
    assert undone(repository, loop, "pre") == ["T01"]


def test_rollback_compares_commits_of_tasks_or_checkpoints_that_are_not_recorded(repository, shas):
    loop = a_loop(shas, {"T01": "T01"}, T02="T02", T03="none", T04="unknown", T05="pre")
    assert undone(repository, loop, "T01") == ["T02", "T04"]
    assert lost_without(repository, loop, shas["T02"]) == ["T04"]
    loop = a_loop(shas, {"T02": "T02"}, T01="T01", T02="none")
    assert undone(repository, loop, "T01") == ["T02"]
    assert undone(repository, loop, "T03") == []


def test_rollback_of_files_undoes_task_without_checkpoint_and_commit(repository, shas):
    loop = a_loop(shas, {"T01": "T01"}, T01="none", T02="none")
    assert undone(repository, loop, "T01") == []
    loop.snapshots[checkpoint_tag(1, "T01")] = shas["T01"]
    assert undone(repository, loop, "T01") == ["T02"]


def test_rollback_undoes_unchanged_task_by_checkpoint_order(repository, shas):
    loop = a_loop(shas, {"T01": "T01", "T02": "T01"}, T01="none", T02="none")
    assert undone(repository, loop, "T01") == ["T02"]
    assert lost_without(repository, loop, shas["T01"]) == []
