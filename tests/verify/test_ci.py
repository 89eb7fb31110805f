"""A loop runs the commands that the settings had when it started."""

from __future__ import annotations

from gsd_fsm.verify.ci import ci_checks
from tests.support.command_line import AGENT, Here, here
from tests.support.plan_loops import TDD_TASK, start_plan, write_plan

__all__ = ["here"]


def test_ci_commands_are_those_that_are_set() -> None:
    settings = {f"ci_{name}": None for name in ("lint", "typecheck", "build", "e2e")}
    assert ci_checks({**settings, "ci_test": "make test"}) == {"ci:test": "make test"}


def test_verify_runs_the_commands_of_start_until_a_user_accepts_others(here: Here) -> None:
    here.configure(ci_test="true")
    write_plan(here)
    loop = here.start("verify", "--phase", "1", "--mode", "yolo")
    here.configure(ci_test="touch ran", ci_lint="touch ran")
    answer = here.run("verify", env=AGENT)
    accept = f"gsd-fsm accept --loop {loop} ci:"
    assert f"ci:test is now touch ran, but loop {loop} runs true for it. To accept" in answer.err
    assert f"{accept}test" in answer.err
    assert f"ci:lint is now touch ran, but loop {loop} runs nothing for it" in answer.err
    assert here.run("verify").code == 7
    assert not (here.root / "ran").exists()
    assert "agents cannot accept" in here.refused(4, "accept", "ci:test", env=AGENT).err
    here.ok("accept", "ci:test")
    assert f"{accept}lint" in here.run("verify", env=AGENT).err
    assert (here.root / "ran").exists()


def test_verify_runs_a_command_that_was_removed_from_the_settings(here: Here) -> None:
    here.configure(ci_test="touch ran; false")
    write_plan(here)
    here.start("verify", "--phase", "1", "--mode", "yolo")
    (here.gsd / "config.toml").unlink()
    assert "ci:test is now not set" in here.run("verify").err
    assert (here.root / "ran").exists()


def test_tdd_runs_the_command_of_start_until_a_user_accepts_another(here: Here) -> None:
    plan = TDD_TASK.format(id="01", tests="true")
    start_plan(here, plan=plan, settings="ci_test = 'false'\n")
    here.configure(ci_test="touch ran; false")
    assert "gsd-fsm accept --loop" in here.run("tdd", "T01", "--run", env=AGENT).err
    assert not (here.root / "ran").exists()
    here.ok("accept", "tdd")
    here.run("tdd", "T01", "--run", env=AGENT)
    assert (here.root / "ran").exists()


def test_accepted_command_is_protected_like_those_of_start(here: Here) -> None:
    here.configure(ci_test="true")
    (here.root / "ci.sh").write_text("exit 0\n")
    write_plan(here)
    here.start("verify", "--phase", "1", "--mode", "yolo")
    here.configure(ci_test="sh ci.sh")
    here.ok("accept", "ci:test")
    (here.root / "ci.sh").write_text("exit 0 # changed\n")
    answer = here.run("verify")
    assert "protected file ci.sh was changed" in answer.out + answer.err
