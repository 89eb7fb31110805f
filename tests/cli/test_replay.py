"""replay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gsd_fsm.core.loop.fold import steps_of
from gsd_fsm.history import machine, replay
from tests.support.command_line import A, B, Here
from tests.support.lines import body, chain, header, plant, start, sums_of


def tell_story(here: Here) -> str:
    """Run an execute loop of six events to its end."""
    loop = here.start("execute", "the goal", "--task", "T1")
    here.ok("fail", "T1", "--error", "AssertionError: 1", env={"CLAUDECODE": "1"})
    here.ok("task", "T1", "running")
    here.ok("task", "T1", "complete")
    here.ok("complete")
    return loop


def remove_transition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build machines in which a running loop cannot complete."""

    def steps(trigger: str, source: Any) -> Any:
        missing = (trigger, source) == ("complete", "running")
        return () if missing else steps_of(trigger, source)

    monkeypatch.setattr(machine, "steps_of", steps)


def test_replay_prints_time_author_event_and_change_of_status(here: Here) -> None:
    loop = tell_story(here)
    before = here.journal.read_bytes()
    lines = here.ok("replay").out.splitlines()
    assert len(lines) == 7
    stamps = [line["ts"][:19].replace("T", " ") for line in here.lines()]
    for number, (line, stamp) in enumerate(zip(lines, stamps, strict=False), 1):
        assert line.split()[0] == str(number)
        assert stamp in line
    assert "agent  failure    running → retrying     T1 (logic): AssertionError: 1" in lines[2]
    assert "human  task       retrying → running     T1 running" in lines[3]
    assert "complete   running → completed" in lines[5]
    assert lines[6] == f"6 events, head 6:{sums_of(before)[-1]}, loop {loop} completed"
    assert here.journal.read_bytes() == before


def test_replay_with_json_prints_head_events_status_and_state(here: Here) -> None:
    tell_story(here)
    found = here.ok("replay", "--json").json
    assert list(found) == ["head", "events", "status", "state"]
    assert (found["events"], found["status"]) == (6, "completed")
    assert found["head"] == f"6:{sums_of(here.journal.read_bytes())[-1]}"
    assert found["state"] == here.status()
    assert here.ok("replay", "--json", "--strict").json == {**found, "findings": []}


def test_replay_events_prints_one_json_line_per_event(here: Here) -> None:
    tell_story(here)
    rows = [json.loads(line) for line in here.ok("replay", "--events").out.splitlines()]
    assert [list(row) for row in rows] == [["seq", "ts", "type", "by", "from", "to", "data"]] * 6
    moves = [(row["type"], row["from"], row["to"]) for row in rows]
    assert moves == [
        ("journal", None, None),
        ("start", "idle", "running"),
        ("failure", "running", "retrying"),
        ("task", "retrying", "running"),
        ("task", "running", "running"),
        ("complete", "running", "completed"),
    ]
    assert [row["data"] for row in rows] == [line["data"] for line in here.lines()]
    assert here.ok("replay", "--events", "--json").out == here.ok("replay", "--events").out


def test_replay_at_stops_after_that_event(here: Here) -> None:
    tell_story(here)
    sums = sums_of(here.journal.read_bytes())
    statuses = [None, "running", "retrying", "running", "running", "completed"]
    for seq, status in enumerate(statuses, 1):
        found = here.ok("replay", "--json", "--at", str(seq)).json
        assert (found["events"], found["status"]) == (seq, status)
        assert found["head"] == f"{seq}:{sums[seq - 1]}"
    assert len(here.ok("replay", "--at", "3").out.splitlines()) == 4
    assert len(here.ok("replay", "--events", "--at", "3").out.splitlines()) == 3
    answer = here.refused(2, "replay", "--at", "7")
    assert answer.out == ""
    assert "ends at event 6" in answer.err
    here.refused(2, "replay", "--at", "0")


def test_replay_until_stops_before_the_first_later_event(here: Here) -> None:
    bodies = [header(), start()] + [body(n, "note", "lp-1", {"text": "x"}) for n in (3, 4)]
    times = [b"2026-11-15T23:00:0%d.500Z" % n for n in range(4)]
    dated = [
        line.replace(b"2026-11-15T23:00:00.000Z", time)
        for line, time in zip(bodies, times, strict=True)
    ]
    plant(here.root, chain(dated))
    for until, events in (
        ("2026-11-15T23:00:01.500Z", 2),
        ("2026-11-15T23:00:01.499Z", 1),
        ("2026-11-16T00:00:02.700+01:00", 3),
        ("2026-11-15 23:00:03", 3),
        ("2026-11-16", 4),
    ):
        assert here.ok("replay", "--json", "--until", until).json["events"] == events, until
    found = here.ok("replay", "--until", "2020-01-01", "--json").json
    assert found == {"head": "", "events": 0, "status": None, "state": None}
    assert here.ok("replay", "--until", "2020-01-01").out == "0 events, head \n"
    assert "is not a time" in here.refused(2, "replay", "--until", "soon").err


def test_replay_of_several_loops_tells_them_apart(here: Here) -> None:
    one = here.start("goal", "one", env=A)
    two = here.start("goal", "two", env=B)
    here.ok("--loop", one, "note", "n")
    lines = here.ok("replay").out.splitlines()
    assert "goal, interactive: one" in lines[1]
    assert lines[2].strip() == f"loop {two}"
    assert "goal, interactive: two" in lines[3]
    assert lines[4].strip() == f"loop {one}"
    assert lines[-1].startswith("4 events, head 4:")
    assert len(here.ok("replay", "--events").out.splitlines()) == 4


def test_replay_of_one_loop_shows_only_its_events(here: Here) -> None:
    one = here.start("goal", "one", env=A)
    two = here.start("goal", "two", env=B)
    here.ok("--loop", two, "note", "n")
    rows = here.ok("replay", "--events", "--loop", two).out.splitlines()
    assert [json.loads(row)["seq"] for row in rows] == [3, 4]
    assert here.ok("replay", "--loop", two).out.splitlines()[-1].startswith("2 of 4 events")
    assert here.ok("--loop", one, "replay", "--json").json["state"]["goal"] == "one"
    here.refused(3, "replay", "--loop", "lp-none")


def test_replay_names_the_line_of_an_illegal_transition(here: Here) -> None:
    bodies = [header(), start(), body(3, "answer", "lp-1", {"text": "nobody asked"})]
    plant(here.root, chain(bodies))
    for command in (["replay"], ["replay", "--json"], ["replay", "--strict"], ["status"]):
        answer = here.refused(5, *command)
        assert "line 3" in answer.err
        assert "cannot run 'answer'" in answer.err


def test_replay_of_damaged_journal_shows_every_valid_event(here: Here) -> None:
    tell_story(here)
    here.journal.write_bytes(
        here.journal.read_bytes().replace(b'"status":"running"', b'"status":"runnnng"')
    )
    answer = here.refused(5, "replay")
    assert [line.split()[0] for line in answer.out.splitlines()] == ["1", "2", "3"]
    lines = [header(), start(), body(3, "answer", "lp-1", {"text": "t"})]
    plant(here.root, chain(lines))
    answer = here.refused(5, "replay")
    assert [line.split()[0] for line in answer.out.splitlines()] == ["1", "2"]


def test_replay_reports_clock_that_went_back_and_torn_tail(here: Here) -> None:
    bodies = [header(), start(), body(3, "note", "lp-1", {"text": "x"}).replace(b"T23", b"T22")]
    journal = plant(here.root, chain(bodies))
    assert "clock went back 1 time" in here.ok("replay").err
    journal.write_bytes(chain(bodies) + b'{"v":1,"seq":4')
    answer = here.ok("replay")
    assert "14 torn bytes" in answer.err
    assert here.ok("replay", "--json").json["events"] == 3
    assert journal.read_bytes().endswith(b'"seq":4')


def test_replay_strict_lists_refused_events_with_their_lines_and_exits_0(here: Here) -> None:
    gap = {"gap": "G1", "description": "d"}
    bodies = [
        header(),
        start(kind="verify"),
        body(3, "gap", "lp-1", {"action": "found", **gap}),
        body(4, "gap", "lp-1", {"action": "closed", **gap}),
        body(5, "gap", "lp-1", {"action": "closed", **gap}),
        body(6, "iteration", "lp-1", {}, by="hook"),
        body(7, "note", "lp-1", {"text": "n"}),
        body(8, "complete", "lp-1", {}),
        start(9, "lp-2"),
        body(10, "iteration", "lp-2", {}, by="hook"),
        body(11, "cancel", "lp-2", {}, by="agent"),
    ]
    plant(here.root, chain(bodies))
    assert "finding" not in here.ok("replay").out
    assert "findings" not in here.ok("replay", "--json").json
    expected = [
        (5, "gap", "gap G1 is already closed"),
        (8, "complete", "no verification has passed since the last gap was closed"),
        (11, "cancel", "agents cannot cancel loop lp-2 until the user sends a message"),
    ]
    found = here.ok("replay", "--strict", "--json").json
    for finding, (line, kind, message) in zip(found["findings"], expected, strict=True):
        assert list(finding) == ["line", "seq", "type", "message"]
        assert (finding["line"], finding["seq"], finding["type"]) == (line, line, kind)
        assert message in finding["message"]
    assert (found["events"], found["status"]) == (11, "cancelled")
    shown = [row for row in here.ok("replay", "--strict").out.splitlines() if "finding:" in row]
    for row, (line, kind, message) in zip(shown, expected, strict=True):
        assert row.startswith(f"finding: line {line}, {kind}: ")
        assert message in row
    assert len(here.ok("replay", "--strict", "--json", "--at", "7").json["findings"]) == 1
    as_lines = here.ok("replay", "--strict", "--events")
    assert len(as_lines.out.splitlines()) == 11
    assert as_lines.err.count("finding: line ") == len(expected)


def test_replay_strict_escapes_control_characters_in_findings(here: Here) -> None:
    bodies = [
        header(),
        start(criteria=[{"name": "a\x1b[31m"}]),
        body(3, "exit", "lp-1", {}),
    ]
    plant(here.root, chain(bodies))
    assert "\x1b" not in here.ok("replay", "--strict").out


@pytest.mark.parametrize(
    "options", [(), ("--strict",), ("--at", "6"), ("--until", "2100-01-01"), ("--json",)]
)
def test_replay_steps_the_machine_with_any_options(
    here: Here, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    tell_story(here)
    remove_transition(monkeypatch)
    error = here.refused(1, "replay", *options).err
    assert "event 6: the fold says completed, the machine refuses it" in error


def test_resume_steps_the_machine(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    tell_story(here)
    here.start("goal", "g")
    here.ok("pause")
    remove_transition(monkeypatch)
    assert "the machine refuses it" in here.refused(1, "resume").err


def test_replay_beyond_the_machine_limit_steps_the_machine_only_if_strict(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell_story(here)
    remove_transition(monkeypatch)
    monkeypatch.setattr(replay, "MACHINE_LIMIT", 5)
    here.ok("replay")
    here.ok("replay", "--at", "5")
    assert "the machine refuses it" in here.refused(1, "replay", "--strict").err


def test_replay_at_event_within_the_machine_limit_steps_the_machine(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell_story(here)
    here.start("goal", "another")
    remove_transition(monkeypatch)
    monkeypatch.setattr(replay, "MACHINE_LIMIT", 6)
    here.ok("replay")
    assert "the machine refuses it" in here.refused(1, "replay", "--at", "6").err
