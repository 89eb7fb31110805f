"""Effects that a killed command left: reported, and finished by the next one that appends."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest

from gsd_fsm.engine.complete import complete
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.effects import due_effects, pending_effects
from tests.support.command_line import B
from tests.support.phases import POST, ROADMAP, TICKED, Phase

DOCS = "docs: complete phase 1"


@pytest.fixture
def killed(phase: Phase) -> Phase:
    """Return a phase whose `complete` was killed after its event."""
    phase.killed("complete", after='"type":"complete"')
    return phase


def test_effects_of_a_killed_completion_are_reported_without_changes(killed: Phase) -> None:
    context = Context(killed.root)
    pending = pending_effects(context, context.read().by_id[killed.loop])
    documents = "documents of the phase (summary.md, ROADMAP.md, their commit)"
    assert [effect.what for effect in pending] == [f"tag {POST}", documents]
    for command in ("status", "next", "replay"):
        errors = killed.here.ok(command).err
        assert f"loop {killed.loop}: unfinished: tag {POST}, documents of the phase" in errors
        assert f"Run: gsd-fsm complete --loop {killed.loop}" in errors
    assert killed.documents() == (False, ROADMAP)
    assert POST not in killed.tags()


@pytest.mark.parametrize(
    "command", ["start goal another", "resume", "report T01", "check", "task T01 running"]
)
def test_next_command_that_appends_finishes_effects(killed: Phase, command: str) -> None:
    if command.startswith("start"):
        errors = killed.here.ok(*command.split()).err
    else:  # there is no live loop
        errors = killed.here.refused(3, *command.split(), stdin=b"TASK COMPLETE\n").err
    assert f"loop {killed.loop}: finished tag {POST}" in errors
    assert killed.documents() == (True, TICKED)
    assert killed.subjects()[0] == DOCS


@pytest.mark.parametrize("begin", ["main", "main~1"])
def test_documents_are_written_on_their_branch_only(killed: Phase, begin: str) -> None:
    killed.git("checkout", "-q", "-b", "other", begin)
    assert complete(Context(killed.root)).finished == []
    killed.here.ok("start", "goal", "another")
    assert killed.documents() == (False, ROADMAP)
    assert killed.subjects()[0] != DOCS
    assert list(due_effects(Context(killed.root).read())) == []
    killed.git("checkout", "-q", "main")
    answer = killed.here.ok("--loop", killed.loop, "complete")
    assert answer.out.startswith("Already completed. Finished tag ")
    assert killed.subjects()[0] == DOCS


def test_effects_of_a_command_at_work_are_left_to_it(killed: Phase) -> None:
    with Context(killed.root).at_work():
        answer = killed.here.refused(3, "note", "hello")
    assert "finished" not in answer.err
    assert killed.documents() == (False, ROADMAP)


def test_command_with_effects_waits_for_another_at_work(phase: Phase) -> None:
    order: list[str] = []
    with ExitStack() as other:
        other.enter_context(Context(phase.root).at_work())
        other.callback(order.append, "first")
        threading.Timer(0.5, other.close).start()
        complete(Context(phase.root))
        order.append("second")
    assert order == ["first", "second"]


def test_command_in_parallel_loop_finishes_effects(phase: Phase) -> None:
    phase.here.ok("cancel")
    phase.here.start("goal", "another", env=B)
    loop = phase.here.start("execute", "--phase", "1", "--mode", "yolo")
    for name in ("T01", "T02"):
        phase.here.ok("--loop", loop, "task", name, "skipped")
    phase.killed("--loop", loop, "complete", after='"type":"complete"')
    phase.here.ok("note", "hello", env=B)
    assert phase.documents() == (True, TICKED)


def test_failing_effect_does_not_fail_another_command_and_is_reported_later(killed: Phase) -> None:
    killed.summary.touch(0o444)
    errors = killed.here.ok("start", "goal", "another").err
    assert f"loop {killed.loop}: finished tag {POST}" in errors
    assert f"loop {killed.loop}: unfinished: documents of the phase: " in errors
    assert "summary.md is read-only" in errors
    assert killed.roadmap.read_text() == ROADMAP
    errors = killed.here.ok("status").err
    assert f"loop {killed.loop}: unfinished: documents of the phase" in errors
    assert f"Run: gsd-fsm complete --loop {killed.loop}" in errors
