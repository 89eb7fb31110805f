"""Hostile journals, texts, names and arguments: nothing crashes, nothing reaches the terminal raw."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gsd_fsm.core.project import register
from tests.support.command_line import EVIL, Here, Project, assert_harmless
from tests.support.lines import body, chain, header, plant, start

READING = (
    *(["status"], ["status", "--json"], ["next"], ["next", "--json"], ["why"], ["why", "--json"]),
    *(["replay"], ["replay", "--json"], ["replay", "--events"], ["fsck"], ["fsck", "--json"]),
    *(["ps"], ["ps", "--json"], ["trust"], ["trust", "--json"], ["config"], ["config", "--json"]),
)


def hostile_events() -> list[bytes]:
    loop = "lp-1"
    facts: list[tuple[str, dict[str, object]]] = [
        ("iteration", {"reason": EVIL, "code": EVIL}),
        ("failure", {"task": "T1", "error": EVIL, "class": "logic", "analysis": EVIL, "fix": EVIL}),
        ("task", {"task": "T1", "status": "running", "ref": EVIL, "commit": EVIL}),
        ("gap", {"action": "found", "gap": "G1", "file": EVIL, "description": EVIL}),
        ("criterion", {"criterion": EVIL, "met": False}),
        ("verified", {"passed": False, "report": EVIL}),
        ("review", {"action": "light", "wave": 1, "report": EVIL}),
        ("plan", {"file": EVIL, "digest": EVIL}),
        ("spend", {"usd": 1, "what": EVIL}),
        ("note", {"text": EVIL, EVIL: EVIL}),
        ("issue", {"text": EVIL, "severity": EVIL}),
        ("checkpoint", {"name": EVIL, "commit": EVIL}),
        ("session", {"action": "start", "source": EVIL}),
        ("stop", {"code": EVIL, "reason": EVIL}),
        ("wait", {"for": "human", "question": EVIL}),
        ("pause", {"code": "manual", "reason": EVIL}),
        ("note", {"text": "last"}),
    ]
    first = start(
        goal=EVIL,
        phase=EVIL,
        plan={"file": EVIL},
        must_not=[EVIL],
        criteria=[{"name": EVIL, "check": EVIL}],
        tasks=[{"id": "T1", "title": EVIL, "step": True}],
    )
    return [header(), first] + [
        body(number, kind, loop, data) for number, (kind, data) in enumerate(facts, 3)
    ]


def note(seq: int = 3, **data: object) -> bytes:
    return body(seq, "note", "lp-1", {"text": "x", **data})


DEEP = b"[" * 200_000 + b"]" * 200_000
CORRUPT = {
    "NaN": note(x="@").replace(b'"@"', b"NaN"),
    "-Infinity": note(x="@").replace(b'"@"', b"-Infinity"),
    "1e999": note(x="@").replace(b'"@"', b"1e999"),
    "2^64": note(x="@").replace(b'"@"', b"18446744073709551616"),
    "200,000 deep": note(x="@").replace(b'"@"', DEEP),
    "30,000 deep": note(x="@").replace(b'"@"', b"[" * 30_000 + b"]" * 30_000),
    "17 deep": note(x="@").replace(b'"@"', b"[" * 17 + b"]" * 17),
    "10 MB line": note(x="y" * 10_000_000),
    "invalid UTF-8": note(x="@").replace(b"@", b"\xff\xfe"),
    "raw UTF-8": note(x="@").replace(b"@", "é".encode()),
    "lone surrogate": note(x="@").replace(b"@", b"\\ud800"),
    "path as loop id": body(3, "note", "../../etc", {"text": "x"}),
    "path as task id": body(3, "task", "lp-1", {"task": "../T", "status": "running"}),
    "path as gap id": body(3, "gap", "lp-1", {"action": "found", "gap": "a/../b"}),
    "unknown type": body(3, "party", "lp-1", {}),
    "type is a list": body(3, ["note"], "lp-1", {"text": "x"}),
    "loop is a list": body(3, "note", ["lp-1"], {"text": "x"}),
    "loop of an unknown type is a list": body(3, "party", ["x"], {}, optional=True),
    "unknown type is an object": body(3, {"a": 1}, "lp-1", {}, optional=True),
    "action is a list": body(3, "gap", "lp-1", {"action": ["found"], "gap": "G1"}),
    "status is an object": body(3, "task", "lp-1", {"task": "T", "status": {}}),
    "by is a list": note().replace(b'"by":"human"', b'"by":["human"]'),
    "data is a list": body(3, "note", "lp-1", []),
    "no data": note().replace(b'"data":{"text":"x"}', b'"data":null'),
    "text is a number": body(3, "note", "lp-1", {"text": 7}),
    "wrong seq": note(4),
    "seq is true": note().replace(b'"seq":3', b'"seq":true'),
    "not a time": note().replace(b"T23:00", b"T25:00"),
    "a second header": header().replace(b'"seq":1', b'"seq":3'),
    "an array": b"[1]",
    "a string": b'"x}',
    "another start": start(3),
    "outside": note(outside=1).replace(b'"v":1', b'"v":1,"extra":1e999'),
}


quiet = settings(
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
words = st.text(st.characters(exclude_characters="\0"), max_size=40)
some_arguments = st.lists(
    st.one_of(
        words,
        st.sampled_from(
            ["start", "goal", "task", "fail", "note", "gap", "found", "--error", "--json", "--loop"]
        ),
    ),
    max_size=6,
)


@pytest.mark.parametrize("length", [2, 3, 4, 5, 6, 7, 16, 17, 18, 19])
def test_commands_escape_every_text_of_a_journal(here: Here, length: int) -> None:
    plant(here.root, chain(hostile_events()[:length]))
    register("j-forged", str(here.gsd), 0)
    seen = 0
    for command in (*READING, *(["why", str(seq)] for seq in range(2, length + 1))):
        answer = here.run(*command)
        assert answer.code == 0 or (length == 2 and command[0] == "why"), (command, answer)
        assert_harmless(answer.out + answer.err, command)
        seen += "[31mred" in answer.out
    assert seen >= 6


def test_errors_escape_hostile_arguments(here: Here) -> None:
    plant(here.root, chain(hostile_events()))
    register("j-forged", str(here.gsd), 0)
    for command in (
        *(["criterion", "1", "met"], ["check", EVIL.replace("\0", "")], ["exit-signal"]),
        *([EVIL], ["--loop", EVIL, "status"], ["--project", EVIL.replace("\0", ""), "status"]),
        *(["task", EVIL, "running"], ["start", EVIL], ["status", f"--{EVIL}"]),
        *(["start", "goal", "--goal-file", EVIL.replace("\0", "")], ["replay", "--until", EVIL]),
        *(["gap", "close", EVIL], ["start", "execute", "--task", EVIL], ["complete"]),
        *(["start", "execute", "--check", EVIL], ["wait", "--until", EVIL], ["cancel", EVIL]),
    ):
        answer = here.run(*command)
        assert answer.code in (2, 3, 4), (command, answer)
        assert_harmless(answer.out + answer.err, command)


def test_commands_escape_the_name_of_the_directory(here: Here) -> None:
    here.where = here.root / "x\x1b[31m\u202ey"
    here.where.mkdir()
    here.start("goal", "g")
    here.ok("note", "n")
    for command in READING[:4] + READING[6:]:
        answer = here.ok(*command)
        assert_harmless(answer.out + answer.err, command)
    (here.where / ".gsd/journal.jsonl").write_bytes(b"rubbish\n")
    for command in (["status"], ["fsck"], ["ps"], ["fsck", "--repair"], ["note", "n"]):
        answer = here.run(*command)
        assert_harmless(answer.out + answer.err, command)


@pytest.mark.parametrize("what", CORRUPT)
def test_every_command_rejects_hostile_lines_with_valid_checksums(here: Here, what: str) -> None:
    plant(here.root, chain([header(), start(), CORRUPT[what]]))
    register("j-forged", str(here.gsd), 0)
    for command in (
        *(["status"], ["replay"], ["replay", "--events"], ["replay", "--json"], ["fsck"], ["why"]),
        *(["why", "3"], ["next"], ["note", "n"], ["trust"], ["check"], ["start", "goal", "g"]),
    ):
        answer = here.run(*command)
        assert answer.code == 5, (command, answer.code, answer.out[-500:], answer.err[-500:])
        assert "line 3" in answer.out + answer.err, (command, answer)
        assert len(answer.out + answer.err) < 5_000
        assert "bug" not in answer.err
    assert sorted(path.name for path in here.root.iterdir()) == [".gsd"]


@pytest.mark.parametrize("what", ["200,000 deep", "10 MB line", "NaN"])
def test_command_rejects_huge_lines_in_time(here: Here, what: str) -> None:
    plant(here.root, chain([header(), start(), CORRUPT[what]]))
    for command in (["status"], ["replay", "--json"]):
        answer = Project(here.root).run(*command, timeout=20)
        assert answer.code == 5
        assert "Traceback" not in answer.err


@pytest.mark.parametrize("loop", ["lp-1", "lp-9"])
def test_commands_skip_optional_events_of_unknown_type(here: Here, loop: str) -> None:
    events = [header(), start(), body(3, "party", loop, {"text": "x"}, optional=True), note(4)]
    plant(here.root, chain(events))
    assert here.ok("replay", "--json").json["events"] == 4
    for command in READING:
        if command[0] not in ("why", "next"):  # no stop was decided, and it is not trusted
            here.ok(*command)
    assert "party" in here.ok("replay").out
    assert here.run("why", "3").code in ((2,) if loop == "lp-9" else (0, 2))


@pytest.mark.parametrize(
    "newer",
    [
        [header(incompat=["compressed\x1b[31m"]), start()],
        [header(), start(), note().replace(b'"v":1', b'"v":2')],
    ],
)
def test_commands_refuse_a_newer_journal_and_leave_it_unchanged(
    here: Here, newer: list[bytes]
) -> None:
    journal = plant(here.root, chain(newer))
    register("j-forged", str(here.gsd), 0)
    before = journal.read_bytes()
    for command in (["status"], ["replay"], ["fsck"], ["note", "n"], ["start", "goal", "g"]):
        answer = here.run(*command)
        assert answer.code == 5
        assert "newer gsd-fsm" in answer.err
        assert "Upgrade gsd-fsm" in answer.err
        assert_harmless(answer.out + answer.err, command)
    assert here.run("fsck", "--repair", "--yes").code == 5
    assert journal.read_bytes() == before
    report = here.run("fsck", "--json").json
    assert (report["ok"], report["events"], report["damage"]) == (True, len(newer), [])
    raw = here.run("replay").out.splitlines()
    assert raw[-1] == before.decode().splitlines()[-1]
    journal.write_bytes(before.replace(b'"start"', b'"stort"'))
    assert here.run("fsck", "--json").json["damage"][0]["line"] == 2


def test_status_recognizes_a_newer_version_by_its_number_alone(here: Here) -> None:
    later = b'{"v":2,"n":3,"at":"2027","what":"note"}'
    plant(here.root, chain([header(), start(), later]))
    answer = here.run("status")
    assert (answer.code, "newer gsd-fsm" in answer.err) == (5, True)
    assert "fsck --repair" not in answer.err


def test_replay_ignores_compatible_flags(here: Here) -> None:
    plant(here.root, chain([header(compat=["anything"]), start()]))
    here.ok("replay")


@quiet
@given(raw=st.binary(max_size=2000))
def test_random_bytes_as_journal_never_crash_a_command(here: Here, raw: bytes) -> None:
    plant(here.root, raw)
    for command in (["status"], ["replay"], ["fsck", "--json"], ["note", "n"]):
        answer = here.run(*command)
        assert answer.code in ((0, 5) if command[0] == "fsck" else (0, 3, 5, 6)), answer
        assert_harmless(answer.out + answer.err, raw)
    assert here.journal.read_bytes() == raw


@quiet
@given(arguments=some_arguments, stdin=st.binary(max_size=50))
def test_random_arguments_never_crash_a_command(
    here: Here, arguments: list[str], stdin: bytes
) -> None:
    answer = here.run(*arguments, stdin=stdin)
    assert answer.code in (0, 2, 3, 4), (arguments, answer)
    assert_harmless(answer.out + answer.err, arguments)


@quiet
@given(text=st.text(max_size=200))
def test_note_records_any_text(here: Here, text: str) -> None:
    here.run("start", "goal", "g")
    answer = here.run("note", "--file", "-", stdin=text.encode())
    assert answer.code == (0 if text.strip() else 2), answer
    assert here.run("fsck").code == 0
    assert Path(here.journal).read_bytes().isascii()
