"""The status line with the real client: the loop is shown below the prompt, and its cost counted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.e2e.fake_model import Held, bash, say
from tests.support.e2e.project import FINISH, GOAL, Rig

pytestmark = pytest.mark.e2e


def test_status_line_shows_loop_and_records_cost(rig: Rig) -> None:
    rig.ok("init", "--scope", "project", "--status-line", "--yes")
    loop = rig.start(*GOAL, "--budget", "25")
    rig.model.main.then(bash("true"), say("I stop."), held := Held(FINISH), say("It is shipped."))
    screen = rig.screen()
    screen.until("gsd-fsm goal ▸ 0/20 · 0/1 criteria · $0.00/$25 · running")
    screen.type("Ship it.")
    held.until_wanted()
    screen.until("gsd-fsm goal ▸ 1/20 ")
    rig.until(lambda: figures(rig), "figure of the session")
    held.let_go()
    screen.until(f"loop {loop} completed")
    assert {figure["meter"] for figure in figures(rig)} == {rig.lines()[-1]["session"]}


def figures(rig: Rig) -> list[Any]:
    spent = [event["data"] for event in rig.lines() if event["type"] == "spend"]
    return [data for data in spent if data.get("what") == "status line"]
