"""The event of a completion comes first; its effects follow, and can be finished later."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import pytest

from gsd_fsm.core.errors import CannotWrite, NotFound, UsageError
from gsd_fsm.core.journal.journal import Author, Journal
from gsd_fsm.engine.complete import complete
from gsd_fsm.engine.context import Context
from tests.support.command_line import A, Here, install_hook
from tests.support.events import append, draft
from tests.support.phases import POST, ROADMAP, TICKED, Impatient, Phase, held_lock

DOCS = "docs: complete phase 1"
NEXT_COMMANDS = (["complete"], ["start", "goal", "another"], ["note", "hello"])


def test_complete_writes_documents_commits_them_and_tags_last_task(phase: Phase) -> None:
    last = phase.head()
    done = complete(Context(phase.root))
    assert phase.documents() == (True, TICKED)
    assert phase.subjects()[0] == DOCS
    assert phase.tags()[POST] == last
    assert (done.tag, done.already_completed) == (POST, False)
    assert done.written == [str(phase.summary), str(phase.roadmap)]
    assert [event["type"] for event in phase.here.lines()[-2:]] == ["checkpoint", "complete"]
    assert phase.here.ok("status").err == ""


def test_complete_of_a_phase_that_a_limit_paused_writes_its_documents(phase: Phase) -> None:
    paused = draft("pause", phase.loop, "cli", {"code": "minutes"})
    append(Journal(str(phase.here.gsd)), paused)
    phase.roadmap.write_text("# Roadmap\n")
    with pytest.raises(UsageError):
        complete(Context(phase.root))
    assert phase.here.last()["type"] == "pause"
    phase.roadmap.write_text(ROADMAP)
    assert complete(Context(phase.root)).tag == POST
    assert phase.documents() == (True, TICKED)
    assert [event["v"] for event in phase.here.lines()[-3:]] == [1, 1, 2]


def test_complete_under_held_lock_changes_nothing(phase: Phase) -> None:
    before = (phase.head(), phase.tags(), phase.here.journal.read_bytes())
    with held_lock(phase.here), pytest.raises(CannotWrite) as error:
        complete(Impatient(phase.root))
    assert error.value.exit_code == 6
    assert phase.documents() == (False, ROADMAP)
    assert (phase.head(), phase.tags(), phase.here.journal.read_bytes()) == before


def test_complete_again_finds_nothing_missing_and_leaves_later_changes(phase: Phase) -> None:
    phase.here.ok("complete")
    before = (phase.head(), phase.here.journal.read_bytes())
    answer = phase.here.ok("complete")
    assert answer.out == f"Already completed. Loop {phase.loop} is completed.\n"
    phase.roadmap.write_text(TICKED + "\n### Phase 2: More\n")
    (phase.summary.parent / "plan.md").write_text("another plan\n")
    assert complete(Context(phase.root)).finished == []
    assert (phase.head(), phase.here.journal.read_bytes()) == before
    assert "ROADMAP.md" in phase.git("status", "--porcelain")


def test_complete_finds_no_cancelled_loop_and_none_of_another_session(here: Here) -> None:
    here.start("execute", "--task", "T1", env=A)
    here.ok("cancel")
    with pytest.raises(NotFound, match="is cancelled"):
        complete(Context(here.root))
    here.start("execute", "--task", "T1", env=A)
    here.ok("task", "T1", "skipped")
    here.ok("complete")
    with pytest.raises(NotFound, match="there is no live loop"):
        complete(Context(here.root, author=Author("human", "session-b")))
    assert complete(Context(here.root, author=Author("human", "session-a"))).already_completed


def test_complete_with_impossible_documents_leaves_loop_running(phase: Phase) -> None:
    phase.roadmap.write_text("# Roadmap\n")
    before = phase.here.journal.read_bytes()
    with pytest.raises(UsageError):
        complete(Context(phase.root))
    assert phase.here.journal.read_bytes() == before
    assert POST not in phase.tags()


def test_complete_names_only_commits_on_the_branch(phase: Phase) -> None:
    gone = phase.head()
    phase.git("reset", "-q", "--soft", "HEAD~1")
    report = complete(Context(phase.root)).report
    assert gone[:7] not in phase.summary.read_text() + report
    assert phase.git("rev-parse", "HEAD~1")[:7] in phase.summary.read_text()


def test_complete_killed_at_any_step_is_finished_later(phase: Phase, tmp_path: Path) -> None:
    install_hook()
    last = phase.head()
    # The state directory of the user remembers the head of the journal.
    places = [phase.root, Path(os.environ["HOME"])]
    for place in places:
        shutil.copytree(place, tmp_path / "before" / place.name)
    killed_after_event = 0
    for number in itertools.count(0, 2):
        if not phase.killed_at_step(number, "complete"):
            break
        is_completed = phase.here.status()["status"] == "completed"
        killed_after_event += is_completed
        command = NEXT_COMMANDS[number // 2 % 3] if is_completed else ["complete"]
        answer = phase.here.run(*command)
        assert answer.code == (3 if command[0] == "note" else 0), (number, answer)
        assert phase.documents() == (True, TICKED), number
        assert phase.subjects()[:2] == [DOCS, phase.git("log", "-1", "--format=%s", last)], number
        assert phase.tags()[POST] == last, number
        assert [event["type"] for event in phase.here.lines()].count("complete") == 1, number
        assert phase.here.ok("--loop", phase.loop, "status").err == "", number
        for place in places:
            shutil.rmtree(place)
            shutil.copytree(tmp_path / "before" / place.name, place)
    assert killed_after_event > len(NEXT_COMMANDS)
