"""task, fail and iterate."""

from __future__ import annotations

import re

import pytest

from tests.support.command_line import Here

SECRET = "ghp_" + "a1B2" * 9
# Text that a shell or a format string would change.
NASTY = "a 'b' \"c\" `d` $(touch pwned) ; touch pwned2 && x | y > z\n\tnew 🚀 \\n %s {0}"


def waves(here: Here) -> dict[str, int | None]:
    return {task["id"]: task["wave"] for task in here.status()["tasks"]}


def test_iterate_at_its_limit_pauses_and_exits_4(here: Here) -> None:
    loop = here.start("execute", "--task", "T1", "--max-iterations", "2", "--stuck-limit", "0")
    assert "Iteration 1/2" in here.ok("iterate").out
    here.ok("iterate")
    answer = here.run("iterate")
    assert answer.code == 4
    assert "paused (iterations)" in answer.err
    assert f"gsd-fsm resume --loop {loop} --add-iterations" in answer.err
    assert (here.last()["type"], here.last()["by"]) == ("pause", "cli")
    here.ok("resume", "--add-iterations", "1")
    assert "Iteration 3/3" in here.ok("iterate").out


def test_task_records_reference_phase_question_and_commit(here: Here) -> None:
    here.start("execute", "--task", "T1:First")
    here.ok("task", "T1", "running", "--ref", "bg-7", "--phase", "red")
    background = [{"task_id": "bg-7", "task_num": "T1", "status": "running"}]
    assert here.status()["background_tasks"] == background
    for phase in ("green", "green", "refactor"):
        here.ok("task", "T1", "running", "--phase", phase)
    here.ok("task", "T1", "checkpoint", "--question", "Which one?")
    here.ok("task", "T1", "complete", "--commit", "abc123")
    task = here.status()["tasks"][0]
    assert (task["title"], task["status"], task["commit"]) == ("First", "complete", "abc123")
    assert (task["phase"], task["attempts"]) == ("refactor", 2)


def test_task_refuses_illegal_status_and_names_the_next_command(here: Here) -> None:
    here.start("execute", "--task", "T1", "--task", "T2")
    for before, refused, words, hint in (
        ("", "T1 complete", "pending", "Run: gsd-fsm task T1 running"),
        ("", "T9 running", "no task T9", "T1, T2"),
        ("T1 running", "T1 complete --phase red", "running task", ""),
        ("T1 complete", "T1 running", "complete", "gsd-fsm next"),
        ("T2 skipped", "T2 failed", "skipped", "can no longer fail"),
    ):
        if before:
            here.ok("task", *before.split())
        error = here.refused(4, "task", *refused.split()).err
        assert (words in error, hint in error) == (True, True), error
    assert "fail T1" in here.refused(2, "task", "T1", "failed", "--commit", "x").err


def test_task_and_fail_reject_invalid_task_ids(here: Here) -> None:
    here.start("execute", "--task", "T1")
    for name in ("../T1", "", "-T", "T\n1"):
        assert here.refused(2, "task", "--", name, "running").out == ""
        assert here.refused(2, "fail", "--error", "e", "--", name).out == ""


@pytest.mark.parametrize("last", [["fail", "T1", "--error", "way 4"], ["task", "T1", "failed"]])
def test_fail_with_default_retries_used_up_prints_every_error(here: Here, last: list[str]) -> None:
    loop = here.start("execute", "--task", "T1:First")
    for number in (1, 2, 3):
        answer = here.ok("fail", "T1", "--error", f"way {number}", "--analysis", f"why {number}")
        assert f"Retry {number} of 3." in answer.out
        assert "## Task" not in answer.out
    shown = here.ok(*last).out
    assert "Task T1 failed after 3 retries" in shown
    assert "## Task T1 Failed" in shown
    for number in (1, 2, 3):
        assert f"### Error {number} of 4 (" in shown
        quoted = rf"begin (\w{{16}})\nway {number}\n--- end \1\n- Analysis: why {number}\n"
        assert re.search(quoted, shown)
    assert "### Error 4 of 4 (" in shown
    assert f"gsd-fsm resume --loop {loop} --add-retries 1" in shown
    assert here.run("fail", "T1", "--error", "way 5").code == 4


def test_fail_retries_or_pauses_by_the_class_of_the_error(here: Here) -> None:
    for text, given, kind, then in (
        ("permission denied", [], "blocking", "paused"),
        ("HTTP 503 service unavailable", [], "transient", "retrying"),
        ("permission denied", ["--class", "logic"], "logic", "retrying"),
    ):
        here.start("execute", "--task", "T1", "--fresh")
        answer = here.ok("fail", "T1", "--error", text, *given, "--json").json
        assert (here.last()["data"]["class"], answer["status"]) == (kind, then), text


def test_fail_needs_exactly_one_error_text_of_at_most_16_mib(here: Here) -> None:
    here.start("execute", "--task", "T1")
    (here.root / "log").write_text("from the file\n")
    assert "--error" in here.refused(2, "fail", "T1").err
    assert "needs an error message" in here.refused(2, "fail", "T1", "--error", " ").err
    assert "twice" in here.refused(2, "fail", "--error", "a", "--error-file", "log").err
    assert "nope" in here.refused(2, "fail", "--error-file", "nope").err
    here.refused(2, "fail", "--error", "a", "--class", "odd")
    too_long = b"x" * (17 << 20)
    assert "16 MiB" in here.refused(2, "fail", "--error-file", "-", stdin=too_long).err
    here.ok("fail", "T1", "--error-file", "log")
    assert here.last()["data"]["error"] == "from the file"
    here.ok("fail", "T1", "--error-file", "-", stdin=b"\xef\xbb\xbffrom\r\nstdin\n")
    assert here.last()["data"]["error"] == "from\nstdin"
    here.ok("fail", "T1", "--error", "caf\udce9 \udcff")  # not UTF-8
    assert "caf" in here.last()["data"]["error"]
    here.ok("replay")


def test_texts_are_recorded_unchanged_and_never_reach_a_shell(here: Here) -> None:
    (here.root / "text").write_text(NASTY)
    here.start("goal", NASTY, "--criterion", NASTY, "--must-not", NASTY, "--step", NASTY)
    assert here.last()["data"]["goal"] == NASTY
    assert here.last()["data"]["criteria"] == [{"name": NASTY}]
    here.ok("fail", "--error", NASTY)
    assert here.last()["data"]["error"] == NASTY
    here.ok("note", "--file", "text")
    assert here.last()["data"]["text"] == NASTY
    here.ok("criterion", NASTY, "met")
    assert here.status()["criteria"][0]["met"] is True
    here.ok("start", "goal", "--goal-file", "-", "--fresh", stdin=NASTY.encode())
    assert here.status()["goal"] == NASTY
    assert sorted(path.name for path in here.root.iterdir()) == [".gsd", "text"]


def test_fail_truncates_long_errors_and_start_rejects_long_goals(here: Here) -> None:
    text = b"begin " + b"lorem ipsum " * 20_000 + b" end"
    assert "longer" in here.refused(2, "start", "goal", "--goal-file", "-", stdin=text).err
    here.start("goal", "g")
    here.ok("fail", "--error-file", "-", stdin=text)
    error = here.last()["data"]["error"]
    assert (error[:6], error[-4:], "bytes, sha256" in error) == ("begin ", " end", True)
    assert len(here.journal.read_bytes().split(b"\n")[-2]) < 65_536


def test_texts_are_redacted_in_journal_and_output(here: Here) -> None:
    words = f"token {SECRET} end"
    (here.root / "text").write_text(words)
    here.start(
        *("goal", words, "--criterion", words, "--task", f"T1:{words}", "--step", words),
        *("--must-not", words, "--phase", words, "--check", f"check {words}=true"),
    )
    commands = (
        ("fail", "T1", "--error", words, "--analysis", words, "--fix", words),
        ("fail", "T1", "--error-file", "text"),
        ("task", "T1", "running", "--commit", words, "--ref", words),
        ("task", "T1", "checkpoint", "--question", words),
        ("gap", "found", "--description", words, "--file", words, "--evidence", words),
        ("verified", "fail", "--report", words),
        ("review", "light", "--wave", "1", "--report", words),
        *(("spend", "0.1", "--what", words), ("note", words), ("wait", words), ("answer", words)),
        *(("pause", "--reason", words), ("resume",), ("cancel", "--reason", words)),
        *(("status",), ("replay",), ("status", "--json")),
    )
    output = "".join("".join(here.ok(*command)[1:]) for command in commands)
    assert SECRET not in output
    for path in here.gsd.iterdir():
        assert SECRET.encode() not in path.read_bytes(), path


def test_waves_follow_from_dependencies_of_start_and_of_tasks_added_later(here: Here) -> None:
    names = [x for name in "ABCD" for x in ("--task", name)]
    names += ["--criterion", "c"]
    here.start("goal", "g", *names, "--blocked-by", "C=A,B", "--blocked-by", "D=C")
    assert waves(here) == {"A": 1, "B": 1, "C": 2, "D": 3}
    assert here.status()["wave"] == 1
    assert "Start task A. These can run in parallel: B." in here.ok("next").out
    here.ok("task", "E", "pending", "--title", "Implement validateToken", "--blocked-by", "D")
    here.ok("task", "F", "pending")
    here.ok("task", "F", "pending", "--blocked-by", "A, E")
    task = here.status()["tasks"][4]
    assert (task["title"], task["depends"]) == ("Implement validateToken", ["D"])
    assert here.run("complete").code == 4  # and adds the task of an unmet condition
    assert waves(here) == {"A": 1, "B": 1, "C": 2, "D": 3, "E": 4, "F": 5, "F1": None}
    assert "depends on unfinished tasks: D" in here.refused(4, "task", "E", "running").err


def test_task_and_start_refuse_dependency_cycles(here: Here) -> None:
    cycle = ("--task", "A", "--task", "B", "--blocked-by", "A=B", "--blocked-by", "B=A")
    assert "dependency cycle: A → B → A" in here.refused(4, "start", "goal", "g", *cycle).err
    here.start("goal", "g", "--task", "A", "--task", "B", "--blocked-by", "B=A")
    refused = here.refused(4, "task", "A", "pending", "--blocked-by", "B").err
    assert "dependency cycle" in refused
    assert "Remove one of these dependencies" in refused


def test_dependencies_must_be_known_and_belong_to_a_pending_task(here: Here) -> None:
    for wrong in ("B", "B=", "=A", "X=A", "A=X", "A=../x"):
        here.refused(2, "start", "goal", "g", "--task", "A", "--task", "B", "--blocked-by", wrong)
        assert not here.journal.exists()
    here.start("goal", "g", "--task", "A")
    here.refused(2, "task", "B", "pending", "--blocked-by", "X")
    here.refused(2, "task", "A", "running", "--blocked-by", "A")
    here.refused(2, "task", "A", "running", "--title", "t")
    here.ok("task", "A", "running")
    here.ok("task", "B", "pending")
    here.refused(4, "task", "A", "pending", "--blocked-by", "B")
    assert "already exists" in here.refused(4, "task", "A", "pending").err
