"""fsck: damage is found with line and byte, and a repair keeps the damaged file."""

from __future__ import annotations

from tests.support.command_line import Here
from tests.support.lines import body, chain, header, plant, start, sums_of

KEYS = ["ok", "events", "head", "torn", "damage"]


def fill(here: Here) -> bytes:
    """Write a journal of six events."""
    here.start("goal", "g")
    for number in range(4):
        here.ok("note", f"note {number}")
    return here.journal.read_bytes()


def damage(here: Here) -> bytes:
    """Change a byte of line 4; return the valid journal."""
    raw = fill(here)
    here.journal.write_bytes(raw.replace(b"note 1", b"note x"))
    return raw


def test_fsck_of_valid_journal_reports_no_damage(here: Here) -> None:
    raw = fill(here)
    answer = here.ok("fsck")
    assert "6 valid events" in answer.out
    assert "no damage" in answer.out
    report = here.ok("fsck", "--json").json
    head = f"6:{sums_of(raw)[-1]}"
    assert report == {"ok": True, "events": 6, "head": head, "torn": 0, "damage": []}
    assert list(report) == KEYS
    assert here.ok("fsck", "--repair", "--json").json == report
    assert here.journal.read_bytes() == raw


def test_fsck_names_damage_by_line_and_byte(here: Here) -> None:
    raw = fill(here)
    lines = raw.split(b"\n")
    offset = raw.index(lines[3])
    here.journal.write_bytes(raw.replace(b'"text":"note 1"', b'"text":"note x"'))
    answer = here.run("fsck")
    assert answer.code == 5
    assert f"line 4, byte {offset}" in answer.out
    assert "fsck --repair" in answer.out
    report = here.run("fsck", "--json")
    assert report.code == 5
    assert list(report.json) == KEYS
    assert (report.json["ok"], report.json["events"]) == (False, 3)
    assert report.json["head"] == f"3:{sums_of(raw)[2]}"
    first = report.json["damage"][0]
    assert list(first) == ["line", "offset", "what"]
    assert (first["line"], first["offset"]) == (4, offset)


def test_fsck_lists_every_damaged_line(here: Here) -> None:
    bodies = [header(), start()] + [body(n, "note", "lp-1", {"text": f"n{n}"}) for n in range(3, 9)]
    raw = chain(bodies).replace(b'"n3"', b'"x3"').replace(b'"n6"', b'"x6"')
    plant(here.root, raw)
    report = here.run("fsck", "--json").json
    assert [found["line"] for found in report["damage"]] == [3, 6]


def test_other_commands_refuse_a_corrupt_journal_and_name_the_line(here: Here) -> None:
    damage(here)
    for command in (
        *(["status"], ["next"], ["why"], ["replay"], ["note", "n"], ["start", "goal", "g"]),
        *(["check"], ["trust"], ["resume"], ["config"], ["complete"]),
    ):
        answer = here.refused(5, *command)
        assert "line 4" in answer.err, command
        assert "gsd-fsm fsck" in answer.err, command


def test_fsck_repair_saves_a_torn_tail(here: Here) -> None:
    raw = fill(here)
    here.journal.write_bytes(raw + b"{torn")
    report = here.ok("fsck", "--repair", "--json").json
    assert (report["ok"], report["torn"], report["events"]) == (True, 0, 7)
    assert here.last()["type"] == "repair"


def test_fsck_repair_asks_before_it_cuts(here: Here) -> None:
    damage(here)
    damaged = here.journal.read_bytes()
    unanswered = here.run("fsck", "--repair")
    assert unanswered.code == 2
    assert "--yes" in unanswered.err
    declined = here.run("fsck", "--repair", stdin=b"n\n")
    assert declined.code == 5
    assert "Nothing was changed." in declined.err
    assert here.journal.read_bytes() == damaged
    assert here.run("fsck", "--repair", stdin=b"y\n").code == 0
    assert here.journal.read_bytes() != damaged
