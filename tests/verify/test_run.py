from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest

from gsd_fsm.evidence.interruption import Output
from gsd_fsm.plans.claim import manual_checks
from gsd_fsm.plans.load import load_plan
from gsd_fsm.verify.gaps import tally
from gsd_fsm.verify.run import run_plan_checks
from tests.support.check_commands import ends, posix_only
from tests.support.verification import DOCUMENT, DONE, lay, plan_of, probed, sh, task

SECRET = "ghp_" + "a1B2" * 9


def test_checks_of_a_finished_plan_pass_and_unquoted_ones_are_manual(tmp_path: Path) -> None:
    lay(tmp_path, DONE)
    results = probed(load_plan(DOCUMENT), tmp_path)
    verdicts = {key: result.verdict for key, result in results.items()}
    assert verdicts == {**dict.fromkeys(results, "passed"), "T02#4": "manual"}
    assert list(results)[:5] == ["T01#1", "T01#2", "T01#3", "T02#1", "T02#2"]
    assert len(results) == 3 + 4 + 3 + 4 + 4 + 3 + 2
    assert results["T02#4"].text == "Script reads loop state from STATE.md"
    assert results["T07#2"].file == ".gsd/ROADMAP.md"


def test_manual_checks_of_a_plan_are_those_that_verify_cannot_decide(tmp_path: Path) -> None:
    checks = [
        ("file", "src/a.py exists"), ("file", "Makefile exists"), ("file", "It is documented"),
        ("content", 'README.md contains "x"'), ("content", 'The output contains "x"'),
        ("content", 'Somewhere, perhaps in docs/b.md, is "x"'), ("content", "It is well written"),
        ("content", 'The names are in "a.py" and in "b.py"'), ("test", "All tests pass"),
        ("manual", "a.py exists"), ("command", "true"), ("lint", "true"),
    ]  # fmt: skip
    plan = plan_of(tmp_path, task("01", checks), task("02", checks, "a.py", "src/b.py"))
    left = [key for key, result in probed(plan, tmp_path).items() if result.passed is None]
    assert [it.check for it in manual_checks(plan)] == left
    assert left == ["T01#2", "T01#3", "T01#5", "T01#7", "T01#8", "T01#9", "T01#10",
                    "T02#7", "T02#8", "T02#9", "T02#10"]  # fmt: skip


def test_missed_checks_name_the_missing_file_or_text(tmp_path: Path) -> None:
    results = probed(load_plan(DOCUMENT), tmp_path)
    missed = [result for result in results.values() if result.passed is False]
    assert len(missed) == len(results) - 1
    assert {result.evidence for result in missed} == {f"missing file: {name}" for name in DONE}
    assert results["T01#1"].file == "hooks/hooks.json"
    lay(tmp_path, {**DONE, "hooks/hooks.json": '{"Stop": 1}'})
    results = probed(load_plan(DOCUMENT), tmp_path)
    assert [key for key, result in results.items() if result.passed is False] == ["T01#3"]
    assert results["T01#3"].evidence == "hooks/hooks.json: 'stop-hook.sh' not found"


def test_checks_of_several_files_want_all_files_and_one_with_all_texts(tmp_path: Path) -> None:
    both = [("content", 'It has "x" and "y"'), ("file", "Everything exists")]
    plan = plan_of(tmp_path, task("01", both, "a", "b"))
    lay(tmp_path, {"a": "x", "b": "y"})
    results = probed(plan, tmp_path)
    assert (results["T01#1"].passed, results["T01#1"].file) == (False, None)
    assert results["T01#1"].evidence == "a: 'y' not found\nb: 'x' not found"
    lay(tmp_path, {"b": "y x"})
    (tmp_path / "a").unlink()
    results = probed(plan, tmp_path)
    assert results["T01#1"].passed is True
    assert (results["T01#2"].passed, results["T01#2"].evidence) == (False, "missing file: a")


def test_check_of_absence_passes_if_file_or_text_is_gone(tmp_path: Path) -> None:
    gone = [("file", "old.py was removed"), ("content", 'new.py does not contain "TODO"')]
    deleted = task("02", [("file", "older.py")], "older.py").replace("create", "delete")
    plan = plan_of(tmp_path, task("01", gone, "new.py"), deleted)
    lay(tmp_path, {"old.py": "", "new.py": "TODO", "older.py": ""})
    found = [result.evidence for result in probed(plan, tmp_path).values()]
    assert found == ["old.py: still exists", "new.py: contains 'TODO'", "older.py: still exists"]
    lay(tmp_path, {"new.py": "done"})
    (tmp_path / "old.py").unlink()
    (tmp_path / "older.py").unlink()
    assert all(result.passed for result in probed(plan, tmp_path).values())
    (tmp_path / "new.py").unlink()
    assert probed(plan, tmp_path)["T01#2"].evidence == "missing file: new.py"


def test_check_of_a_file_outside_the_project_is_missed(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "secret").write_text("hidden")
    (root / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(root / "pipe")
    outside = [("content", 'link contains "hidden"'), ("file", "../secret exists")]
    waits = [("content", 'pipe has "x"'), ("file", "pipe")]
    plan = plan_of(root, task("01", outside, "link"), task("02", waits, "pipe"))
    results = list(probed(plan, root).values())
    assert [result.passed for result in results] == [False] * 4
    assert all("points outside the project" in result.evidence for result in results[:2])
    assert [result.evidence for result in results[2:]] == ["pipe: not a regular file"] * 2


def test_content_check_searches_binary_files_and_is_manual_without_a_file(tmp_path: Path) -> None:
    checks = [("content", 'It has "é!"'), ("manual", 'Looks "good"')]
    plan = plan_of(tmp_path, task("01", checks, "data"))
    (tmp_path / "data").write_bytes(b"\x00\xff" + "é!".encode() + b"\xfe")
    assert [result.passed for result in probed(plan, tmp_path).values()] == [True, None]
    bare = plan._replace(tasks=(plan.tasks[0]._replace(files=()),))
    assert [result.passed for result in probed(bare, tmp_path).values()] == [None, None]


def test_commands_run_in_the_project_and_leave_exit_code_and_output(tmp_path: Path) -> None:
    commands = [("command", "pwd; echo why; exit 3"), ("command", "true")]
    plan = plan_of(tmp_path, task("01", commands, "a"))
    ci = {"ci:lint": "true", "ci:test": "no-such-command-here", "ci:e2e": "echo e2e"}
    results = probed(plan, tmp_path, ci)
    assert list(results) == ["T01#1", "T01#2", "ci:lint", "ci:test", "ci:e2e"]
    assert [result.passed for result in results.values()] == [False, True, True, False, True]
    missed = results["T01#1"]
    assert missed.evidence == f"exit code 3\n{os.path.realpath(tmp_path)}\nwhy"
    assert (missed.kind, missed.task, missed.file) == ("command", "T01", None)
    assert (results["ci:e2e"].task, results["ci:e2e"].text) == (None, "echo e2e")
    assert results["ci:e2e"].evidence == "exit code 0"
    assert "no-such-command-here" in results["ci:test"].evidence


def test_failed_command_is_run_again_and_a_pass_on_a_rerun_is_flaky(tmp_path: Path) -> None:
    ci = {"ci:lint": "test -e seen || { touch seen; exit 1; }", "ci:test": "echo x >> log; exit 3"}
    results = run_plan_checks(None, tmp_path, ci, 60, Output(), find_shell=sh, reruns=2)
    assert [(it.passed, it.flaky, it.evidence) for it in results] == [
        (True, True, "exit code 0 on rerun 1"), (False, False, "exit code 3 on rerun 2"),
    ]  # fmt: skip
    assert (tmp_path / "log").read_text() == "x\n" * 3
    assert tally(results) == "1 passed, 1 missed, flaky: ci:lint"


def test_equal_commands_run_once_and_before_files_are_checked(tmp_path: Path) -> None:
    tasks = [task(number, [("command", "echo x &gt;&gt; log")], "a") for number in ("01", "02")]
    tasks.append(task("03", [("file", "made.txt exists")], "made.txt"))
    ci = {"ci:test": "echo x >> log", "ci:build": "sleep 0.2; touch made.txt"}
    results = probed(plan_of(tmp_path, *tasks), tmp_path, ci)
    assert [result.passed for result in results.values()] == [True] * 5
    assert (tmp_path / "log").read_text() == "x\n"


def test_commands_run_in_parallel(tmp_path: Path) -> None:
    # Each waits for a file that the other one creates.
    waits = "touch {0}; for i in $(seq 500); do [ -e {1} ] && exit 0; sleep 0.02; done; exit 1"
    ci = {"ci:lint": waits.format("one", "two"), "ci:test": waits.format("two", "one")}
    assert all(result.passed for result in probed(None, tmp_path, ci).values())


def test_commands_are_named_while_they_run(tmp_path: Path) -> None:
    named: list[list[str]] = []

    class Watched(Output):
        def running(self, names: Sequence[str]) -> None:
            if list(names) not in named[-1:]:
                named.append(list(names))

    ci = {"ci:lint": "touch lint", "ci:test": "until [ -e lint ]; do :; done; sleep 0.3"}
    run_plan_checks(None, tmp_path, ci, 60, Watched(), find_shell=sh)
    assert named == [list(ci.values()), [ci["ci:test"]], []]


def test_results_are_in_the_order_of_the_plan(tmp_path: Path) -> None:
    lines: list[str] = []

    class Shown(Output):
        def say(self, text: str) -> None:
            lines.append(text)
            (tmp_path / "shown").touch()

    ci = {"ci:lint": "while [ ! -e shown ]; do sleep 0.02; done", "ci:test": "true"}
    checks = [("file", "a.txt exists"), ("content", "By hand")]
    plan = plan_of(tmp_path, task("01", checks, "a.txt"))
    results = run_plan_checks(plan, tmp_path, ci, 60, Shown(), find_shell=sh)
    assert [result.key for result in results] == ["T01#1", "T01#2", "ci:lint", "ci:test"]
    assert lines == [
        "[1/4] ci:test command true … passed",
        f"[2/4] ci:lint command {ci['ci:lint']} … passed",
        "[3/4] T01#1 file a.txt exists … missed",
        "[4/4] T01#2 manual By hand … manual",
    ]


def test_command_that_times_out_or_cannot_start_is_missed(tmp_path: Path) -> None:
    ci = {"ci:test": "echo begun; sleep 300"}
    (late,) = run_plan_checks(None, tmp_path, ci, 0.5, Output(), find_shell=sh)
    assert (late.passed, late.evidence) == (False, "timed out\nbegun")
    lost = probed(None, tmp_path / "nowhere", {"ci:test": "true"})["ci:test"]
    assert lost.passed is False
    assert "cannot run the check" in lost.evidence


def test_results_contain_no_secrets(tmp_path: Path) -> None:
    results = probed(None, tmp_path, {"ci:test": f"echo {SECRET}; exit 1"})
    assert SECRET not in repr([result.facts() for result in results.values()])
    assert "redacted" in results["ci:test"].evidence
    assert "redacted" in results["ci:test"].text


@posix_only
def test_exception_of_say_ends_all_commands(tmp_path: Path) -> None:
    # The long one writes its process group and never ends; the short one waits for that.
    ci = {
        "ci:lint": "echo $$ > pid.new; mv pid.new pid; sleep 300",
        "ci:test": "while [ ! -e pid ]; do sleep 0.02; done",
    }
    output = Mock(Output, say=Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        run_plan_checks(None, tmp_path, ci, 60, output, find_shell=sh)
    assert ends(int((tmp_path / "pid").read_text()))
