"""An interactive session shows failures of the hook, and the agent may always stop."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.e2e.fake_model import Held, say
from tests.support.e2e.project import FINISH, GOAL, Rig
from tests.support.lines import chain, header
from tests.support.lines import start as forged_start

pytestmark = pytest.mark.e2e

IDLE = "the hook failed at session start: "
UNDECIDED = "this stop was allowed without a decision: "


def corrupt(rig: Rig) -> None:
    rig.journal.write_bytes(rig.journal.read_bytes().replace(b"Ship it", b"Sink it"))


def newer(rig: Rig) -> None:
    known = rig.lines()[0]["data"]["id"]
    lines = [header(id=known, incompat=["segments"]), forged_start(goal="Ship it")]
    rig.journal.write_bytes(chain(lines))


def replaced(rig: Rig) -> None:
    rig.journal.unlink()
    rig.ok("start", *GOAL, env={"XDG_STATE_HOME": str(rig.scratch / "another")})


def moved(rig: Rig) -> None:
    place = rig.root.with_name("moved")
    rig.root.rename(place)
    rig.root, rig.gsd, rig.journal = place, place / ".gsd", place / ".gsd" / "journal.jsonl"


def disabled(rig: Rig) -> None:
    (rig.gsd / "STOP").touch()


def without_program(rig: Rig) -> None:
    (rig.scratch / "bin" / "gsd-fsm").unlink()
    words = f"{rig.scratch}/gone/gsd-fsm\n"
    Path(os.environ["XDG_STATE_HOME"], "gsd-fsm", "program").write_text(words)


# What happens before the session, and a part of its line at the start and at the stop.
BEFORE: dict[str, tuple[Callable[[Rig], None], str, str]] = {
    "corrupt": (corrupt, f"{IDLE}journal", f"{UNDECIDED}journal"),
    "newer": (newer, f"{IDLE}written by a newer", f"{UNDECIDED}written by a newer"),
    "replaced": (replaced, "the journal was replaced by one", "the journal was replaced by one"),
    "moved": (moved, "the journal was moved here", "the journal was moved here"),
    "disabled": (disabled, "the hook is disabled by .gsd/STOP", "the hook is disabled by .gsd/STOP"),
    "without program": (
        without_program, "agents cannot run gsd-fsm: it is not", "agents cannot run gsd-fsm: it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BEFORE)
def test_session_shows_a_failure_of_the_hook_at_start_and_stop(rig: Rig, what: str) -> None:
    cause, at_start, at_stop = BEFORE[what]
    rig.start(*GOAL)
    cause(rig)
    rig.model.main.then(say("I stop."))
    screen = rig.screen()
    screen.until(at_start)
    before = screen.shown.count(at_stop)
    screen.type("Ship it.")
    screen.until("I stop.")
    rig.until(lambda: screen.shown.count(at_stop) > before, f"line {at_stop!r}")
    assert rig.sent_back() == []


def test_session_shows_that_a_file_disables_the_hook(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    rig.model.main.then(held := Held(say("I stop.")))
    screen = rig.screen()
    screen.type("Ship it.")
    held.until_wanted()
    disabled(rig)
    held.let_go()
    screen.until("the hook is disabled by .gsd/STOP; remove the file")
    assert rig.story(loop)[-1] == "stop disabled"


def test_session_shows_a_held_lock_and_the_next_signal_records_the_stop(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    rig.model.main.then(held := Held(say("I stop.")))
    screen = rig.screen()
    screen.type("Ship it.")
    held.until_wanted()
    with (rig.gsd / "journal.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        held.let_go()
        screen.until(f"{UNDECIDED}.gsd/journal.lock is held by another process")
    shown = rig.ok("status").out
    assert "journal.lock is held" in shown
    rig.model.main.then(FINISH, say("It is shipped."))
    screen.type("Continue.")
    rig.until(lambda: rig.story(loop)[-1] == "complete", "completion")
    assert rig.story(loop).count("stop error") == 1
    (failed,) = (it["seq"] for it in rig.lines() if it["data"].get("code") == "error")
    assert "held by another process" in rig.ok("why", str(failed)).out


def let_stops_write_to_a_slow_disk(rig: Rig) -> None:
    """Run the hook of stops so that no sync of what it writes ends in time."""
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"]
    command += ["-e", "inject=fsync,fdatasync:delay_enter=8000000"]
    settings = rig.root / ".claude" / "settings.json"
    document = json.loads(settings.read_text())
    (hook,) = document["hooks"]["Stop"][0]["hooks"]
    hook["command"], *hook["args"] = [*command, hook["command"], *hook["args"]]
    settings.write_text(json.dumps(document))


def test_session_shows_that_the_hook_gave_no_answer_in_time(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    let_stops_write_to_a_slow_disk(rig)
    rig.model.main.then(say("I stop."))
    screen = rig.screen()
    screen.type("Ship it.")
    screen.until(f"{UNDECIDED}no answer within 6 s")
    assert rig.sent_back() == []
    assert "no answer within 6 s" in rig.ok("status").out
    rig.ok("pause")
    assert rig.story(loop)[-2:] == ["stop error", "pause manual"]
    assert rig.ok("fsck").code == 0
