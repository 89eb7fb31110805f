"""Attacks on what a loop keeps of its checks: settings, plans, the state directory, the loop itself."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.attacks import FAKE, RUN, TASK, assert_altered, attempt, begin, proven
from tests.support.command_line import AGENT_A, A, Here
from tests.support.events import write
from tests.support.plan_loops import TITLE, report, start_plan
from tests.support.repositories import posix_only

VERIFY = ("verify", "--mode", "yolo", "--task", "T1:Work")
EXECUTE = ("start", "execute", "--phase", "1", "--mode", "yolo")
TESTED = (
    '<task id="01" wave="1" test_required="true"><files><file>a.py</file></files>'
    "<test_files><file>test_a.py</file></test_files><action>A</action>"
    '<verify><check type="command">test -e a.py</check></verify><done>D</done></task>\n'
)
pytestmark = posix_only


def state_of(loop: str) -> Path:
    """Return the directory in which the originals of a loop are kept."""
    (found,) = Path(os.environ["XDG_STATE_HOME"]).rglob(f"originals/*/{loop}")
    return found


def proof_of(here: Here) -> Any:
    return here.ok("proof", "--json").json


# settings


@pytest.mark.parametrize("now", [{"ci_test": "true"}, {}])
def test_ci_command_that_was_rewritten_or_deleted_is_still_run(
    repository: Here, now: dict[str, str]
) -> None:
    repository.configure(ci_test="test -e done.txt")
    repository.start(*VERIFY, env=A)
    repository.configure(**now)
    done = repository.run("verify", env=AGENT_A)
    assert "the settings have changed: ci:test" in done.err
    gap = proof_of(repository)["missing"]
    assert any("gap" in it for it in gap)
    repository.run("gap", "close", "G1", env=AGENT_A)
    proof = attempt(repository, check="verify")
    assert proof["status"] != "completed"
    assert [it["command"] for it in proof["unproven"]] == ["test -e done.txt"]


def test_changed_settings_of_a_running_loop_weaken_nothing(repository: Here) -> None:
    repository.configure(strict_env=True, clean_checks=True, clean_setup="test -e no.txt")
    begin(repository, "sh run.sh", files={"run.sh": RUN})
    repository.configure(strict_env=False, clean_checks=False, clean_setup="true", check_reruns=5)
    write(repository.root / "done.txt", "")
    repository.ok("check", env=AGENT_A)
    refused = repository.run("complete", env=AGENT_A)
    assert (refused.code, "clean_setup" in refused.err) == (7, True)


def test_shell_that_a_project_sets_is_refused(repository: Here) -> None:
    begin(repository, "sh run.sh", files={"run.sh": RUN})
    repository.configure(check_shell="/bin/true")
    assert attempt(repository)["status"] == "running"


# the loop


def test_agent_cannot_replace_its_loop_by_one_with_weaker_checks(repository: Here) -> None:
    begin(repository, "sh run.sh", files={"run.sh": RUN})
    weaker = ("start", "goal", "g", "--check", "t=true", "--fresh")
    assert repository.run(*weaker, env=AGENT_A).code == 4
    assert repository.run(*weaker[:-1], env=AGENT_A).code != 0
    assert repository.run("cancel", env=AGENT_A).code == 4


def test_agent_cannot_accept_and_the_command_is_named_for_the_user(repository: Here) -> None:
    begin(repository, "sh run.sh", files={"run.sh": RUN})
    write(repository.root / "run.sh", FAKE)
    repository.run("check", env=AGENT_A)
    refused = repository.refused(4, "accept", "t", env=AGENT_A)
    assert "gsd-fsm accept" in refused.err
    assert_altered(attempt(repository), "run.sh")


def test_proof_shows_who_started_a_loop_and_what_may_change(repository: Here) -> None:
    write(repository.root / "run.sh", RUN)
    repository.start("goal", "g", "--check", "t=sh run.sh", "--may-change", "**", env=AGENT_A)
    write(repository.root / "run.sh", FAKE)
    proof = attempt(repository)
    assert proven(proof)["exit_code"] == 0
    assert (proof["started"]["by"], proof["may_change"]) == ("agent", ["**"])
    assert proof["watched"]["changed"] == ["run.sh"]
    assert "may change" in repository.ok("proof").out


# the state directory


def test_forged_original_is_neither_compared_nor_restored(repository: Here) -> None:
    loop = begin(repository, "sh run.sh", files={"run.sh": RUN})
    for kept in state_of(loop).iterdir():
        kept.chmod(0o600)
        kept.write_text(FAKE)
    write(repository.root / "run.sh", FAKE)
    proof = attempt(repository)
    assert_altered(proof, "run.sh")
    assert "was not kept" in repository.run("restore", "t", env=AGENT_A).err


@pytest.mark.parametrize("forged", [None, '{"files":{},"missing":[],"hooks":{},"named":{}}'])
def test_proof_shows_that_the_list_of_watched_files_is_missing(
    repository: Here, forged: str | None
) -> None:
    loop = begin(repository, "test -e done.txt && cat test_a.txt", files={"test_a.txt": "1\n"})
    place = state_of(loop)
    if forged is None:
        shutil.rmtree(place)
    else:
        for kept in place.iterdir():
            kept.write_text(forged)
    write(repository.root / "done.txt", "")
    proof = attempt(repository)
    assert (proof["status"], proof["watched"]) == ("completed", {"lost": True})
    assert "the list of watched files is missing" in repository.ok("proof").out


def test_checks_do_not_run_with_another_state_directory(repository: Here, tmp_path: Path) -> None:
    begin(repository, "true")
    proof = attempt(repository, {"XDG_STATE_HOME": str(tmp_path / "state")})
    assert (proof["status"], proof["proven"]) == ("running", [])


def test_strict_env_without_its_variables_runs_no_check(repository: Here) -> None:
    repository.configure(strict_env=True)
    loop = begin(repository, "true")
    shutil.rmtree(state_of(loop))
    assert attempt(repository)["status"] == "running"
    assert "strict_env" in repository.run("check", env=AGENT_A).err


def test_proof_names_another_home(repository: Here, tmp_path: Path) -> None:
    begin(repository, "test -e $HOME/done.txt")
    write(tmp_path / "home" / "done.txt", "")
    assert "HOME" in proven(attempt(repository, {"HOME": str(tmp_path / "home")}))["variables"]


# plans


def test_task_with_altered_script_is_not_proven(repository: Here) -> None:
    write(repository.root / "run.sh", RUN)
    start_plan(repository, *EXECUTE, plan=TITLE + TASK, env=A)
    write(repository.root / "run.sh", FAKE)
    write(repository.root / "a.py", "a = 1\n")
    repository.run("report", "T01", stdin=b"TASK COMPLETE\n", env=AGENT_A)
    proof = attempt(repository)
    assert proof["proven"] == []
    assert_altered_task(proof)


def assert_altered_task(proof: Any) -> None:
    assert proof["status"] != "completed"
    assert [it["path"] for it in proof["altered"]] == ["run.sh"]


def test_proof_shows_the_tree_of_a_task_and_of_the_end(repository: Here) -> None:
    write(repository.root / "run.sh", RUN)
    start_plan(repository, *EXECUTE, plan=TITLE + TASK, env=A)
    write(repository.root / "done.txt", "")
    write(repository.root / "a.py", "a = 1\n")
    report(repository, "T01", "TASK COMPLETE\n", env=AGENT_A)
    (repository.root / "done.txt").unlink()
    proof = attempt(repository, check="status")
    assert proof["status"] == "completed"
    (task,) = [it for it in proof["proven"] if it["check"].startswith("T01") and it.get("tree")][
        -1:
    ]
    assert task["tree"] != proof["tree"]


@pytest.mark.parametrize("name", ["pytest.ini", "run.sh"])
def test_tdd_run_with_altered_tests_settings_counts_nothing(repository: Here, name: str) -> None:
    write(repository.root / "run.sh", "pytest -q; test -e done.txt\n")
    write(repository.root / "pytest.ini", "[pytest]\n")
    repository.configure(ci_test="sh run.sh")
    start_plan(repository, *EXECUTE, plan=TITLE + TESTED, env=A, settings="ci_test = 'sh run.sh'\n")
    repository.ok("tdd", "T01", env=AGENT_A)
    write(repository.root / "test_a.py", "def test_a():\n    assert False\n")
    write(
        repository.root / name, "[pytest]\naddopts = --co\n" if name == "pytest.ini" else "exit 1\n"
    )
    done = repository.run("tdd", "T01", "--run", env=AGENT_A)
    assert "does not count" in done.out + done.err
    assert [it["path"] for it in proof_of(repository)["altered"]] == [name]
