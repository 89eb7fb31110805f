"""Effects that a killed command left: found without changes, finished by the next one that appends."""

from __future__ import annotations

import threading
import time

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


def test_pending_effects_of_killed_completion_are_found_without_changes(killed: Phase) -> None:
    context = Context(killed.root)
    loops = context.read()
    pending = pending_effects(context, loops.by_id[killed.loop])
    assert [effect.what for effect in pending] == [
        f"tag {POST}",
        "documents of the phase (summary.md, ROADMAP.md, their commit)",
    ]
    assert killed.documents() == (False, ROADMAP)
    assert POST not in killed.tags()


@pytest.mark.parametrize("command", [["status"], ["next"], ["replay"]])
def test_reading_command_reports_unfinished_effects(killed: Phase, command: list[str]) -> None:
    answer = killed.here.ok(*command)
    assert f"loop {killed.loop}: unfinished: tag {POST}, documents of the phase" in answer.err
    assert f"Run: gsd-fsm --loop {killed.loop} complete" in answer.err
    assert killed.documents() == (False, ROADMAP)


def test_reading_command_reports_nothing_after_completion(phase: Phase) -> None:
    phase.here.ok("complete")
    assert phase.here.ok("status").err == ""


def test_next_command_that_appends_finishes_effects(killed: Phase) -> None:
    answer = killed.here.ok("start", "goal", "another")
    assert f"loop {killed.loop}: finished tag {POST}" in answer.err
    assert killed.documents() == (True, TICKED)
    assert killed.subjects()[0] == DOCS


def test_command_on_another_branch_leaves_effects_alone(killed: Phase) -> None:
    killed.git("checkout", "-q", "-b", "other", "main~1")
    killed.here.ok("start", "goal", "another")
    assert killed.documents() == (False, ROADMAP)
    assert killed.subjects()[0] != DOCS


def test_effects_are_not_due_after_next_loop_began(killed: Phase) -> None:
    killed.git("checkout", "-q", "-b", "other", "main~1")
    killed.here.ok("start", "goal", "another")
    assert list(due_effects(Context(killed.root).read())) == []


def test_status_reports_unfinished_effects_after_next_loop_began(killed: Phase) -> None:
    killed.summary.touch(0o444)
    killed.here.ok("start", "goal", "another")
    answer = killed.here.ok("status")
    assert f"loop {killed.loop}: unfinished: documents of the phase" in answer.err
    assert f"Run: gsd-fsm --loop {killed.loop} complete" in answer.err


@pytest.mark.parametrize(
    "command", [["resume"], ["report", "T01"], ["check"], ["task", "T01", "running"]]
)
def test_command_without_a_live_loop_finishes_effects(killed: Phase, command: list[str]) -> None:
    answer = killed.here.refused(3, *command, stdin=b"TASK COMPLETE\n")
    assert f"loop {killed.loop}: finished tag {POST}" in answer.err
    assert killed.documents() == (True, TICKED)


def test_effects_of_a_command_at_work_are_left_to_it(killed: Phase) -> None:
    with Context(killed.root).at_work(str(killed.here.gsd)):
        answer = killed.here.refused(3, "note", "hello")
    assert "finished" not in answer.err
    assert killed.documents() == (False, ROADMAP)


def test_command_with_effects_waits_for_another_at_work(phase: Phase) -> None:
    order: list[str] = []
    begun = threading.Event()

    def work() -> None:
        with Context(phase.root).at_work(str(phase.here.gsd)):
            begun.set()
            time.sleep(0.5)
            order.append("first")

    other = threading.Thread(target=work)
    other.start()
    begun.wait()
    complete(Context(phase.root))
    order.append("second")
    other.join()
    assert order == ["first", "second"]


def test_documents_are_written_on_the_branch_of_the_completion_only(killed: Phase) -> None:
    killed.git("checkout", "-q", "-b", "hotfix")
    killed.here.ok("start", "goal", "another")
    assert killed.subjects()[0] != DOCS
    killed.git("checkout", "-q", "main")
    killed.here.ok("--loop", killed.loop, "complete")
    assert killed.subjects()[0] == DOCS


def test_command_in_parallel_loop_finishes_effects(phase: Phase) -> None:
    phase.here.ok("cancel")
    phase.here.start("goal", "another", env=B)
    loop = phase.here.start("execute", "--phase", "1", "--mode", "yolo")
    for name in ("T01", "T02"):
        phase.here.ok("--loop", loop, "task", name, "skipped")
    phase.killed("--loop", loop, "complete", after='"type":"complete"')
    phase.here.ok("note", "hello", env=B)
    assert phase.documents() == (True, TICKED)


def test_failing_effect_does_not_fail_another_command(killed: Phase) -> None:
    killed.summary.touch(0o444)
    answer = killed.here.ok("start", "goal", "another")
    assert f"loop {killed.loop}: finished tag {POST}" in answer.err
    assert f"loop {killed.loop}: unfinished: documents of the phase: " in answer.err
    assert "summary.md is read-only" in answer.err
    assert killed.roadmap.read_text() == ROADMAP


def test_loop_without_plan_has_no_effects(phase: Phase) -> None:
    phase.here.ok("cancel")
    phase.here.start("execute", "--task", "T1")
    phase.here.ok("task", "T1", "skipped")
    phase.here.ok("complete")
    assert list(due_effects(Context(phase.root).read())) == []
