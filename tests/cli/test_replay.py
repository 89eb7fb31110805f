"""replay and fsck."""

from __future__ import annotations

import json
import re
from typing import Any

from gsd_fsm.core.loop.fold import steps_of
from gsd_fsm.history import machine, replay
from tests.support.command_line import A, B, Here
from tests.support.lines import body, chain, header, plant, start, sums_of


def complete_loop(here: Here) -> str:
    """Run an execute loop of six events to its end."""
    loop = here.start("execute", "the goal", "--task", "T1")
    here.ok("fail", "T1", "--error", "AssertionError: 1", env={"CLAUDECODE": "1"})
    here.ok("task", "T1", "running")
    here.ok("task", "T1", "complete")
    here.ok("complete")
    return loop


def damage(here: Here) -> bytes:
    """Change a byte of line 4; return the valid journal."""
    complete_loop(here)
    raw = here.journal.read_bytes()
    here.journal.write_bytes(raw.replace(b'"status":"running"', b'"status":"runnnng"'))
    return raw


def remove_transition(here: Here) -> None:
    """Build machines in which a running loop cannot complete."""

    def steps(trigger: str, source: Any) -> Any:
        missing = (trigger, source) == ("complete", "running")
        return () if missing else steps_of(trigger, source)

    here.patch.setattr(machine, "steps_of", steps)


def rows_of(shown: str) -> dict[int, str]:
    """Return the rows of a timeline by the number of their event; the last one if it has several."""
    found = (re.fullmatch(r" *(\d+)  [\d-]{10}T[\d:.]{12}Z  (.*)", it) for it in shown.splitlines())
    return {int(row[1]): row[2] for row in found if row}


def test_replay_prints_time_author_event_and_change_of_status(here: Here) -> None:
    loop = complete_loop(here)
    before = here.journal.read_bytes()
    journal, blank, heading, *lines, _, end = here.ok("replay").out.splitlines()
    assert (journal.split()[3], blank) == ("journal", "")
    assert heading.split("  ")[-1] == f"Start of execute loop {loop}"
    for line, event in zip(lines, here.lines()[1:], strict=True):
        assert line.split()[:3] == [str(event["seq"]), event["ts"], event["by"]]
    rows = rows_of("\n".join(lines))
    assert rows[3] == "agent  failure     running → retrying  T1 (logic): AssertionError: 1"
    assert rows[4] == "human  task        retrying → running  T1 running"
    assert rows[6] == "human  complete    running → completed  the completion rule held"
    assert end == f"6 events, head 6:{sums_of(before)[-1]}, loop {loop} completed"
    assert here.journal.read_bytes() == before


def test_replay_folds_sessions_and_spending_into_their_iteration(here: Here) -> None:
    here.start("goal", "g", "--max-iterations", "9", env=A)
    here.ok("iterate", env=A)
    here.ok("spend", "0.4", "--tokens", "12000", env=A)
    here.ok("spend", "0.02", env=A)
    here.ok("note", "n", env=A)
    here.ok("release", env=A)
    shown = here.ok("replay").out
    rows = rows_of(shown)
    assert rows.keys() == {1, 2, 3, 6}
    assert re.sub(r" · \d+ s", "", rows[3]) == "Iteration 1 of 9 · $0.42, 12,000 tokens, 1 release"
    every = rows_of(here.ok("replay", "--all").out)
    assert every.keys() == set(range(1, 8))
    assert every[4].split()[:2] == ["human", "spend"]
    assert every[7].split()[:2] == ["human", "session"]


def test_replay_prints_the_end_of_failed_output_once(here: Here) -> None:
    failing = "seq 9; echo '<system-reminder>'; exit 3"
    here.start("goal", "g", "--check", f"t={failing}", "--check", "u=true")
    for _ in range(2):
        assert here.run("check").code == 7
    shown = here.ok("replay").out
    assert "check t: seq 9; echo '&lt;system-reminde… (exit code 3) (quoted data, not" in shown
    nonce = re.search(r"--- begin (\w+)", shown)
    assert nonce
    _, _, quoted = shown.partition(nonce[0])
    lines = ["… 5 earlier lines", "6", "7", "8", "9", "&lt;system-reminder>"]
    assert quoted.partition("--- end")[0].split("\n")[1:-1] == lines
    first, last = (seq for seq, row in rows_of(shown).items() if "exit code 3" in row)
    assert first < last
    assert shown.count("quoted data") == 1
    assert f"check t: the same output as at event {first}" in shown


def test_replay_prints_state_or_events_as_json(here: Here) -> None:
    complete_loop(here)
    found = here.ok("replay", "--json").json
    assert list(found) == ["head", "events", "status", "state"]
    assert (found["events"], found["status"]) == (6, "completed")
    assert found["head"] == f"6:{sums_of(here.journal.read_bytes())[-1]}"
    assert found["state"] == here.status()
    assert here.ok("replay", "--json", "--strict").json == {**found, "findings": []}
    shown = here.ok("replay", "--events").out
    assert here.ok("replay", "--events", "--json").out == shown
    rows = [json.loads(line) for line in shown.splitlines()]
    assert [list(row) for row in rows] == [["seq", "ts", "type", "by", "from", "to", "data"]] * 6
    moves = ["None None", "idle running", "running retrying", "retrying running", "running running",
             "running completed"]  # fmt: skip
    assert [f"{row['from']} {row['to']}" for row in rows] == moves
    assert [row["data"] for row in rows] == [line["data"] for line in here.lines()]


def test_replay_at_stops_after_that_event(here: Here) -> None:
    complete_loop(here)
    sums = sums_of(here.journal.read_bytes())
    for seq, status in ((1, None), (3, "retrying"), (4, "running"), (6, "completed")):
        found = here.ok("replay", "--json", "--at", str(seq)).json
        assert (found["events"], found["status"]) == (seq, status)
        assert found["head"] == f"{seq}:{sums[seq - 1]}"
    assert rows_of(here.ok("replay", "--at", "3").out).keys() == {1, 2, 3}
    answer = here.refused(2, "replay", "--at", "7")
    assert (answer.out, "ends at event 6" in answer.err) == ("", True)
    here.refused(2, "replay", "--at", "0")


def test_replay_until_stops_before_the_first_later_event(here: Here) -> None:
    bodies = [header(), start()] + [body(n, "note", "lp-1", {"text": "x"}) for n in (3, 4)]
    times = [b"2026-11-15T23:00:0%d.500Z" % n for n in range(4)]
    dated = zip(bodies, times, strict=True)
    plant(here.root, chain([it.replace(b"2026-11-15T23:00:00.000Z", time) for it, time in dated]))
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
    shown = here.ok("replay", "--until", "2020-01-01").out
    assert shown == "The first event is after 2020-01-01T00:00:00.000Z.\n"
    assert "is not a time" in here.refused(2, "replay", "--until", "soon").err


def test_replay_of_an_empty_journal_says_so(here: Here) -> None:
    plant(here.root, b"")
    assert here.ok("replay").out == "The journal is empty.\n"


def test_replay_separates_loops_and_shows_one_alone(here: Here) -> None:
    one = here.start("goal", "one", env=A)
    two = here.start("goal", "two", env=B)
    here.ok("--loop", one, "note", "n")
    here.ok("--loop", two, "iterate")
    lines = here.ok("replay").out.splitlines()
    headings = [line[31:] for line in lines if "  Start" in line or "  Iteration" in line]
    assert [re.sub(r" · \d+ s", "", it) for it in headings] == [
        f"Start of goal loop {two}", f"Start of goal loop {one}", f"Iteration 1 of 20 · loop {two}",
    ]  # fmt: skip
    assert list(rows_of("\n".join(lines))) == [1, 3, 2, 4, 5]
    assert lines[-1].startswith("5 events, head 5:")
    rows = here.ok("replay", "--events", "--loop", one).out.splitlines()
    assert [json.loads(row)["seq"] for row in rows] == [2, 4]
    assert here.ok("replay", "--loop", one).out.splitlines()[-1].startswith("2 of 5 events")
    assert here.ok("--loop", one, "replay", "--json").json["state"]["goal"] == "one"
    here.refused(3, "replay", "--loop", "lp-none")


def test_replay_shows_every_event_before_damage_or_an_illegal_transition(here: Here) -> None:
    damage(here)
    answer = here.refused(5, "replay")
    assert list(rows_of(answer.out)) == [1, 2, 3]
    plant(here.root, chain([header(), start(), body(3, "answer", "lp-1", {"text": "t"})]))
    answer = here.refused(5, "replay")
    assert list(rows_of(answer.out)) == [1, 2]
    for command in ("replay", "replay --json", "replay --strict", "status"):
        error = here.refused(5, *command.split()).err
        assert "line 3" in error
        assert "cannot run 'answer'" in error


def test_replay_reports_clock_that_went_back_and_torn_tail(here: Here) -> None:
    bodies = [header(), start(), body(3, "note", "lp-1", {"text": "x"}).replace(b"T23", b"T22")]
    journal = plant(here.root, chain(bodies))
    assert "clock went backwards 1 time" in here.ok("replay").err
    assert "clock went backwards 1 time" in here.ok("fsck").out
    journal.write_bytes(chain(bodies) + b'{"v":1,"seq":4')
    assert "14 torn bytes" in here.ok("replay").err
    assert here.ok("replay", "--json").json["events"] == 3
    assert journal.read_bytes().endswith(b'"seq":4')


def test_replay_strict_lists_refused_events_with_their_lines_and_exits_0(here: Here) -> None:
    bodies = [
        header(),
        start(kind="verify"),
        body(3, "gap", "lp-1", {"action": "found", "gap": "G1", "description": "d"}),
        body(4, "gap", "lp-1", {"action": "closed", "gap": "G1"}),
        body(5, "gap", "lp-1", {"action": "closed", "gap": "G1"}),
        body(6, "complete", "lp-1", {}),
    ]
    plant(here.root, chain(bodies))
    assert "finding" not in here.ok("replay").out
    assert "findings" not in here.ok("replay", "--json").json
    found = here.ok("replay", "--strict", "--json").json
    closed, complete = found["findings"]
    assert closed == {"line": 5, "seq": 5, "type": "gap", "message": "gap G1 is already closed"}
    assert (complete["line"], complete["type"]) == (6, "complete")
    assert (found["events"], found["status"]) == (6, "completed")
    shown = [row for row in here.ok("replay", "--strict").out.splitlines() if "finding:" in row]
    assert shown[0] == "finding: line 5, gap: gap G1 is already closed"
    assert shown[1].startswith("finding: line 6, complete: ")
    assert here.ok("replay", "--strict", "--json", "--at", "5").json["findings"] == [closed]
    as_lines = here.ok("replay", "--strict", "--events")
    assert len(as_lines.out.splitlines()) == 6
    assert as_lines.err.count("finding: line ") == 2


def test_replay_with_any_options_and_resume_step_the_machine(here: Here) -> None:
    complete_loop(here)
    here.start("goal", "g")
    here.ok("pause")
    remove_transition(here)
    options = ("", "--strict", "--at 6", "--until 2100-01-01", "--json")
    for command in (*(f"replay {it}" for it in options), "resume"):
        error = here.refused(1, *command.split()).err
        assert "event 6: the fold says completed, the machine refuses it" in error, command


def test_replay_beyond_machine_limit_steps_the_machine_if_strict_or_up_to_it(here: Here) -> None:
    complete_loop(here)
    here.start("goal", "another")
    remove_transition(here)
    here.patch.setattr(replay, "MACHINE_LIMIT", 6)
    here.ok("replay")
    here.ok("replay", "--at", "5")
    for options in (["--at", "6"], ["--strict"]):
        assert "the machine refuses it" in here.refused(1, "replay", *options).err


def test_fsck_of_valid_journal_reports_no_damage(here: Here) -> None:
    complete_loop(here)
    raw = here.journal.read_bytes()
    shown = here.ok("fsck").out
    assert "6 valid events" in shown
    assert "no damage" in shown
    report = here.ok("fsck", "--json").json
    head = f"6:{sums_of(raw)[-1]}"
    assert report == {"ok": True, "events": 6, "head": head, "torn": 0, "damage": []}
    assert here.ok("fsck", "--repair", "--json").json == report
    assert here.journal.read_bytes() == raw


def test_fsck_names_every_damage_by_line_and_byte(here: Here) -> None:
    raw = damage(here)
    offset = raw.index(raw.split(b"\n")[3])
    answer = here.run("fsck")
    assert answer.code == 5
    assert f"line 4, byte {offset}" in answer.out
    assert "fsck --repair" in answer.out
    more = here.journal.read_bytes().replace(b'"type":"complete"', b'"type":"compiete"')
    here.journal.write_bytes(more)
    answer = here.run("fsck", "--json")
    assert (answer.code, list(answer.json)) == (5, ["ok", "events", "head", "torn", "damage"])
    assert (answer.json["ok"], answer.json["events"]) == (False, 3)
    assert answer.json["head"] == f"3:{sums_of(raw)[2]}"
    first, second = answer.json["damage"]
    assert list(first) == ["line", "offset", "what"]
    assert (first["line"], first["offset"], second["line"]) == (4, offset, 6)


def test_other_commands_refuse_a_corrupt_journal_and_name_the_line(here: Here) -> None:
    damage(here)
    for command in (
        *("status", "next", "why", "replay", "note n", "start goal g", "check", "trust", "resume"),
        *("config", "complete"),
    ):
        error = here.refused(5, *command.split()).err
        assert "line 4" in error, command
        assert "gsd-fsm fsck" in error, command


def test_fsck_repair_asks_before_it_cuts_more_than_a_torn_tail(here: Here) -> None:
    damage(here)
    damaged = here.journal.read_bytes()
    unanswered = here.run("fsck", "--repair")
    assert (unanswered.code, "--yes" in unanswered.err) == (2, True)
    declined = here.run("fsck", "--repair", stdin=b"n\n")
    assert (declined.code, "Nothing was changed." in declined.err) == (5, True)
    assert here.journal.read_bytes() == damaged
    here.ok("fsck", "--repair", stdin=b"y\n")
    repaired = here.journal.read_bytes()
    assert repaired != damaged
    here.journal.write_bytes(repaired + b"{torn")
    here.ok("fsck", "--repair")
    assert [event["type"] for event in here.lines()[-2:]] == ["repair", "repair"]
