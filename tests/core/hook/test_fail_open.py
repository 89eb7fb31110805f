"""Whatever reaches the hook, the user is not trapped: exit code 0, nothing but JSON, one line why."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.hook_agent import COMMAND, Agent, call, judged, kinds, start, told, user

GOAL = ("goal", "Ship it", "--criterion", "it is shipped")


@pytest.fixture
def looping(agent: Agent) -> Agent:
    start(agent, *GOAL)
    return agent


def env(agent: Agent) -> dict[str, str]:
    return {**user(), **agent.env}


BAD = {
    "nothing": b"",
    "blanks": b" \n\t",
    "garbage": b"\x00\xff\x7f not json",
    "truncated": b'{"hook_event_name":"Stop","session_id":"s-1"',
    "array": b'[{"hook_event_name":"Stop"}]',
    "text": b'"Stop"',
    "number": b"7",
    "null": b"null",
    "two objects": b'{"hook_event_name":"Stop"}{"hook_event_name":"Stop"}',
    "text after": b'{"hook_event_name":"Stop"} and more',
    "NaN": b'{"hook_event_name":"Stop","session_id":"s-1","x":NaN}',
    "Infinity": b'{"hook_event_name":"Stop","session_id":"s-1","x":-Infinity}',
    "single quotes": b"{'hook_event_name':'Stop'}",
    "deep list": b'{"hook_event_name":"Stop","x":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "deep object": b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
    "long number": b'{"hook_event_name":"Stop","x":' + b"9" * 10_000 + b"}",
    "nine megabytes": b'{"hook_event_name":"Stop","x":"' + b"y" * (9 << 20) + b'"}',
    "utf-16": json.dumps({"hook_event_name": "Stop", "session_id": "s-1"}).encode("utf-16"),
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD)
def test_bad_input_is_told_on_stderr_and_in_the_log(looping: Agent, raw: bytes) -> None:
    before = looping.here.journal.read_bytes()
    reply = call(raw, looping.env, cwd=looping.here.root)
    assert reply.answer is None
    assert reply.err.startswith("gsd-fsm hook: the stop is allowed: ")
    assert reply.err.isascii()
    log = (looping.here.gsd / "hook.log").read_text("ascii").splitlines()
    assert len(log) == 1
    assert looping.here.journal.read_bytes() == before


def test_bad_input_outside_of_a_project_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    call(b"garbage", cwd=tmp_path / "empty")
    assert list((tmp_path / "empty").iterdir()) == []


WELL = {
    "utf-8": lambda s: json.dumps(s, ensure_ascii=False).encode(),
    "bom": lambda s: b"\xef\xbb\xbf" + json.dumps(s).encode(),
    "pretty": lambda s: json.dumps(s, indent=4).encode(),
    "windows lines": lambda s: json.dumps(s, indent=1).replace("\n", "\r\n").encode() + b"\r\n",
    "blanks around": lambda s: b"\n\t " + json.dumps(s).encode() + b"\n\n  ",
    "bad utf-8": lambda s: json.dumps(s).encode()[:-1] + b',"x":"\xff\xfe"}',
    "seven megabytes": lambda s: json.dumps({**s, "x": "y" * (7 << 20)}).encode(),
    "a megabyte of braces": lambda s: json.dumps({**s, "x": "}" * (1 << 20)}).encode(),
    "duplicates": lambda s: b'{"session_id":"x",' + json.dumps(s).encode()[1:],
    "unknown members": lambda s: json.dumps({**s, "new": [{"a": None}], "z": 1.5}).encode(),
    "wrong types": lambda s: json.dumps({**s, "background_tasks": 1, "prompt": []}).encode(),
}


@pytest.mark.parametrize("form", WELL.values(), ids=WELL)
def test_every_form_of_one_object_is_understood(looping: Agent, form: object) -> None:
    raw = form(looping.stop_signal("Grüße"))  # type: ignore[operator]
    assert told(call(raw, looping.env, cwd=looping.here.root).answer)
    assert kinds(looping.here)[-1] == "iteration continue"


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_an_object_without_an_end_of_input_is_answered(looping: Agent, end: bytes) -> None:
    process = _open(looping)
    assert process.stdin
    raw = json.dumps(looping.stop_signal()).encode() + end
    for start_at in range(0, len(raw), 100):
        process.stdin.write(raw[start_at : start_at + 100])
        process.stdin.flush()
    assert process.stdout
    assert told(json.loads(process.stdout.read()))
    assert process.wait(10) == 0
    _close(process)


def test_an_unfinished_object_ends_by_the_watchdog(looping: Agent) -> None:
    process = _open(looping)
    assert process.stdin
    process.stdin.write(b'{"hook_event_name":"Stop",')
    process.stdin.flush()
    assert process.wait(10) == 0
    assert process.stdout
    assert process.stderr
    assert process.stdout.read() == b""
    assert b"no complete signal" in process.stderr.read()
    assert (looping.here.gsd / "hook.log").is_file()
    _close(process)


def _open(agent: Agent) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "one"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env(agent),
        cwd=agent.here.root,
    )


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_harm_nobody(looping: Agent, closed: str) -> None:
    signal = json.dumps(looping.stop_signal())
    before = looping.here.journal.read_bytes()
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, "one"],
        input=signal.encode(),
        env=env(looping),
        cwd=looping.here.root,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert looping.here.ok("fsck", "--json").json["ok"]
    if "<" in closed:
        assert looping.here.journal.read_bytes() == before
    else:
        assert [event["type"] for event in looping.new(before)] == ["iteration"]


def test_a_reader_that_has_gone_harms_nobody(looping: Agent) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*COMMAND, "one"],
        input=json.dumps(looping.stop_signal()).encode(),
        stdout=write,
        stderr=subprocess.PIPE,
        env=env(looping),
        cwd=looping.here.root,
        timeout=60,
        check=False,
    )
    os.close(write)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def test_a_reader_that_never_reads_does_not_hold_the_hook_for_ever(looping: Agent) -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while os.write(write, b"x" * 65_536):
            pass
    except BlockingIOError:
        os.set_blocking(write, True)
    process = subprocess.Popen(
        [*COMMAND, "one"],
        stdin=subprocess.PIPE,
        stdout=write,
        stderr=subprocess.PIPE,
        env=env(looping),
        cwd=looping.here.root,
    )
    os.close(write)
    try:
        _, err = process.communicate(json.dumps(looping.stop_signal()).encode(), timeout=10)
        judged(process.returncode, b"", err)
    finally:
        process.kill()
        process.wait()
        os.close(read)


SURROUNDINGS = {
    "cp1252": {"PYTHONIOENCODING": "cp1252", "LANG": "C"},
    "posix": {"LC_ALL": "POSIX"},
    "unknown locale": {"LC_ALL": "xx_XX.nope"},
    "no path": {"PATH": ""},
    "python variables": {"PYTHONHOME": "/nowhere", "PYTHONPATH": "/nowhere", "PYTHONSTARTUP": "x"},
    "optimised": {"PYTHONOPTIMIZE": "2", "PYTHONDONTWRITEBYTECODE": "1"},
}


@pytest.mark.parametrize("more", SURROUNDINGS.values(), ids=SURROUNDINGS)
def test_the_hook_works_in_any_surroundings(looping: Agent, more: dict[str, str]) -> None:
    looping.here.ok("note", "Grüße, 世界 \U0001f30d", env=looping.shell)
    text = looping.blocked("Grüße", env=more)
    assert "Grüße, 世界 \U0001f30d" in text


@pytest.mark.parametrize("missing", ["HOME", "everything"])
def test_without_variables_the_hook_leaves_quietly(looping: Agent, missing: str) -> None:
    kept = {} if missing == "everything" else {**env(looping)}
    kept.pop("HOME", None)
    done = subprocess.run(
        [*COMMAND, "one"],
        input=json.dumps(looping.stop_signal()).encode(),
        env=kept,
        cwd=looping.here.root,
        capture_output=True,
        timeout=60,
        check=False,
    )
    reply = judged(done.returncode, done.stdout, done.stderr)
    # Without a home there is no trust, unless the state directory is named.
    assert bool(told(reply.answer)) is (missing == "HOME")


def test_a_message_with_a_lone_surrogate_is_a_message(looping: Agent) -> None:
    looping.blocked("\ud800 lone")
