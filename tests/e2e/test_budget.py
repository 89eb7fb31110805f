"""Budgets with the real client: they hold with a user and without, by the client's figure or ours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.e2e.fake_model import FakeModel, Held, Turn, bash, delegate, say
from tests.support.e2e.project import GOAL, Rig

pytestmark = pytest.mark.e2e

BUDGET = 2.0
# A reply of the model that the client uses by default costs 0.47 US dollars like this.
MUCH = {
    "input_tokens": 20_000,
    "output_tokens": 10_000,
    "cache_read_input_tokens": 300_000,
    "cache_creation_input_tokens": 20_000,
    "cache_creation": {"ephemeral_5m_input_tokens": 10_000, "ephemeral_1h_input_tokens": 10_000},
}


def costly(turn: Turn) -> Turn:
    return replace(turn, usage=MUCH)


def charged(model: FakeModel) -> float:
    """Return what the model has charged, in US dollars, by its own list of prices."""
    millionths = sum(
        4 * it["input_tokens"]
        + 20 * it["output_tokens"]
        + 0.2 * it.get("cache_read_input_tokens", 0)
        + 5 * it.get("cache_creation", {}).get("ephemeral_5m_input_tokens", 0)
        + 8 * it.get("cache_creation", {}).get("ephemeral_1h_input_tokens", 0)
        for it in model.charged
    )
    return round(millionths / 1_000_000, 6)


def require_held(rig: Rig, loop: str, calls: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Require a pause at the budget, with the figure of the model in every place that shows one."""
    status = rig.status()
    assert (status["status"], status["pause_code"]) == ("paused", "budget")
    assert status["spent_usd"] == pytest.approx(charged(rig.model), abs=1e-5)
    assert len(rig.model.charged) == calls
    shown = f"${status['spent_usd']:.2f}"
    for words in (status["pause_reason"], rig.ok("status").out, rig.ok("why").out):
        assert f"{shown} of $2.00" in words, words
    assert f"{shown}/$2" in rig.ok("statusline").out
    more = status["spent_usd"] - BUDGET + BUDGET / 2
    added = float(status["next"].rpartition(" ")[2])
    assert more <= added < more + 0.011
    with capsys.disabled():
        print(
            f"\n  {calls} model calls, {charged(rig.model):.4f} USD charged, {shown} of $2.00 counted"
        )


@pytest.mark.parametrize("line", [[], ["--status-line"]], ids=["", "status line"])
def test_headless_session_pauses_at_its_budget(
    rig: Rig, line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    rig.ok("init", "--scope", "project", "--yes", *line)
    loop = rig.start(*GOAL, "--budget", str(BUDGET), "--stuck-limit", "0")
    # Each iteration costs 0.94: the second stop is at 1.88, the third beyond the budget.
    rig.model.main.then(*[costly(turn) for turn in (bash("true"), say("I stop.")) * 3])
    chat = rig.chat()
    chat.ask("Go on for ever.")
    chat.close()
    assert "is paused (budget): ~$2.82 of $2.00" in chat.notices
    require_held(rig, loop, 6, capsys)


def test_interactive_session_pauses_at_its_budget(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    rig.ok("init", "--scope", "project", "--status-line", "--yes")
    loop = rig.start(*GOAL, "--budget", str(BUDGET), "--stuck-limit", "0")
    rig.model.main.then(*[costly(turn) for turn in (bash("true"), say("I stop.")) * 3])
    screen = rig.screen()
    screen.type("Go on for ever.")
    screen.until("is paused (budget)")
    require_held(rig, loop, 6, capsys)


def test_budget_counts_running_subagents_and_pauses_while_they_run(rig: Rig) -> None:
    loop = rig.start(*GOAL, "--budget", "1")
    held = Held(say("The rest of it."))
    rig.model.sub.then(costly(bash("true")), costly(bash("true")), held)
    late = Held(say("I wait for it."))
    rig.model.main.then(costly(delegate("Do it.", background=True)), late)
    chat = rig.chat()
    chat.tell("Let another do it.")
    held.until_wanted()
    late.let_go()
    chat.until(lambda: "is paused (budget)" in chat.notices, "pause")
    (pause,) = [event for event in rig.lines() if event["type"] == "pause"]
    assert pause["data"]["reason"].startswith("~$1.41 of $1.00")
    held.let_go()
    assert loop == rig.status()["loop"]


def test_loop_pauses_when_nothing_reports_what_it_spends(rig: Rig) -> None:
    loop = rig.start(*GOAL, "--budget", "5")
    rig.model.main.then(bash("true"), say("I stop."), bash("true"), say("I stop again."))
    chat = rig.chat("--no-session-persistence")
    chat.ask("Ship it.")
    chat.close()
    assert f"loop {loop} is paused (budget): the budget cannot be enforced" in chat.notices
    assert len(rig.sent_back()) == 1
