"""Commands of the settings that were changed after `start` are not run for an agent."""

from __future__ import annotations

from gsd_fsm.verify.ci import ci_commands
from tests.support.command_line import AGENT, Here, here
from tests.support.plan_loops import TDD_TASK, start_plan, write_plan

__all__ = ["here"]
CHANGED = "the commands of the settings (ci_…) changed after loop"


def test_ci_commands_are_those_that_are_set() -> None:
    settings = {f"ci_{name}": None for name in ("lint", "typecheck", "build", "e2e")}
    assert ci_commands({**settings, "ci_test": "make test"}) == {"test": "make test"}


def test_verify_runs_new_commands_only_for_a_user(here: Here) -> None:
    here.configure(ci_test="true")
    write_plan(here)
    loop = here.start("verify", "--phase", "1", "--mode", "yolo")
    assert here.run("verify", env=AGENT).code == 7
    here.configure(ci_test="touch ran")
    before = here.journal.read_bytes()
    refused = here.refused(4, "verify", env=AGENT).err
    assert f"{CHANGED} {loop} started" in refused
    assert f"and to run: gsd-fsm verify --loop {loop}" in refused
    assert not (here.root / "ran").exists()
    assert here.journal.read_bytes() == before
    assert here.run("verify").code == 7
    assert (here.root / "ran").exists()


def test_tdd_runs_a_new_command_only_for_a_user(here: Here) -> None:
    plan = TDD_TASK.format(id="01", tests="true")
    start_plan(here, plan=plan, settings="ci_test = 'false'\n")
    here.ok("tdd", "T01", env=AGENT)
    here.configure(ci_test="touch ran; false")
    refused = here.refused(4, "tdd", "T01", "--run", env=AGENT).err
    assert f"run: gsd-fsm tdd --loop {here.status()['loop']} T01 --run" in refused
    assert not (here.root / "ran").exists()
    here.run("tdd", "T01", "--run")
    assert (here.root / "ran").exists()
