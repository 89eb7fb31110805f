"""The entry of the hook: whatever it gets, it exits with 0 and prints JSON or nothing."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Here
from tests.support.hook_agent import (
    COMMAND,
    GOAL,
    Agent,
    Reply,
    block_of,
    call,
    judged,
    kinds,
    start,
    user,
)

STOP = b'{"hook_event_name":"Stop","session_id":"s-1"'
BAD = (
    b"", b" \n\t", b"\x00\xff\x7f not json", b"Sure! Here is the JSON: {", STOP, b"[%s}]" % STOP,
    b'"Stop"', b"7", b"null", b"%s}%s}" % (STOP, STOP), b"%s} and more" % STOP,
    b"{'hook_event_name':'Stop'}", b'%s,"x":NaN}' % STOP, b'%s,"x":-Infinity}' % STOP,
    b'%s,"x":%s%s}' % (STOP, b"[" * 200_000, b"]" * 200_000), b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
    b'%s,"x":%s}' % (STOP, b"9" * 10_000), b'%s,"x":"%s"}' % (STOP, b"y" * (9 << 20)),
    (STOP + b"}").decode().encode("utf-16"),
)  # fmt: skip


@pytest.mark.parametrize("raw", BAD, ids=lambda raw: f"{len(raw)} {ascii(raw)[2:60]}")
def test_hook_allows_stop_and_logs_bad_input(looping: Agent, raw: bytes) -> None:
    before = looping.here.journal.read_bytes()
    reply = call(raw, looping.env, cwd=looping.here.root)
    assert reply.answer is None
    assert reply.err.startswith("gsd-fsm hook: the stop is allowed: ")
    assert reply.err.isascii()
    (line,) = (looping.here.gsd / "hook.log").read_text("ascii").splitlines()
    assert line[25:] in reply.err
    if not raw.strip().startswith(b"{"):
        assert "no JSON object on stdin" in line
    assert looping.here.journal.read_bytes() == before


def test_hook_outside_a_project_leaves_no_trace_of_bad_input(tmp_path: Path) -> None:
    call(b"garbage", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


FORMS = {
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
    "lone surrogate": lambda s: json.dumps({**s, "last_assistant_message": "\ud800"}).encode(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_hook_understands_every_form_of_one_object(looping: Agent, form: Any) -> None:
    raw = form(looping.stop_signal("Grüße"))
    assert block_of(call(raw, looping.env, cwd=looping.here.root).answer)
    assert kinds(looping.here)[-1] == "iteration continue"


# streams


def begin(agent: Agent, *command: str, **how: Any) -> Any:
    """Start the hook, after these words of a command; return the process, by default with pipes."""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    surroundings = {"env": {**user(), **agent.env}, "cwd": agent.here.root}
    return subprocess.Popen([*command, *COMMAND, "one"], **{**streams, **surroundings, **how})


def finish(process: Any, signal: dict[str, Any], seconds: float = 60) -> Reply:
    """Send a signal to the hook that was started; return its reply."""
    out, err = process.communicate(json.dumps(signal).encode(), timeout=seconds)
    return judged(process.returncode, out or b"", err)


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_hook_answers_an_object_before_the_end_of_input(looping: Agent, end: bytes) -> None:
    raw = json.dumps(looping.stop_signal()).encode() + end
    with begin(looping, bufsize=0) as process:
        for at in range(0, len(raw), 100):
            process.stdin.write(raw[at : at + 100])
        assert block_of(json.loads(process.stdout.read()))
        assert process.wait(10) == 0


def test_hook_times_out_on_an_unfinished_object(looping: Agent) -> None:
    with begin(looping, bufsize=0) as process:
        process.stdin.write(b'{"hook_event_name":"Stop",')
        assert process.wait(10) == 0
        assert process.stdout.read() == b""
        assert b"no complete signal" in process.stderr.read()
    assert (looping.here.gsd / "hook.log").is_file()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_hook_survives_closed_streams(looping: Agent, closed: str) -> None:
    before = looping.here.journal.read_bytes()
    process = begin(looping, "/bin/sh", "-c", f'exec "$@" {closed}', "sh")
    finish(process, looping.stop_signal())
    assert looping.here.ok("fsck", "--json").json["ok"]
    expected = [] if "<" in closed else ["iteration"]
    assert [event["type"] for event in looping.new(before)] == expected


@pytest.mark.parametrize("reader", ["gone", "never reads"])
def test_hook_survives_a_client_that_does_not_read_its_answer(looping: Agent, reader: str) -> None:
    read, write = os.pipe()
    if reader == "gone":
        os.close(read)
    else:
        os.set_blocking(write, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(write, b"x" * 65_536):
                pass
        os.set_blocking(write, True)
    process = begin(looping, stdout=write)
    os.close(write)
    try:
        finish(process, looping.stop_signal(), 10)
    finally:
        process.kill()
        process.wait()
        if reader != "gone":
            os.close(read)


# environment

ENVIRONMENTS = {
    "cp1252": {"PYTHONIOENCODING": "cp1252", "LANG": "C"},
    "posix": {"LC_ALL": "POSIX"},
    "unknown locale": {"LC_ALL": "xx_XX.nope"},
    "no path": {"PATH": ""},
    "python variables": {"PYTHONHOME": "/nowhere", "PYTHONPATH": "/nowhere", "PYTHONSTARTUP": "x"},
    "optimised": {"PYTHONOPTIMIZE": "2", "PYTHONDONTWRITEBYTECODE": "1"},
}


@pytest.mark.parametrize("more", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_hook_works_in_any_environment(looping: Agent, more: dict[str, str]) -> None:
    looping.do("note 'Grüße, 世界 \U0001f30d'")
    reply = call(looping.stop_signal("Grüße"), {**looping.env, **more}, cwd=looping.here.root)
    assert "Grüße, 世界 \U0001f30d" in block_of(reply.answer)


@pytest.mark.parametrize("missing", ["HOME", "everything"])
def test_hook_without_variables_exits_quietly(looping: Agent, missing: str) -> None:
    kept = {} if missing == "everything" else {**user(), **looping.env}
    kept.pop("HOME", None)
    reply = finish(begin(looping, env=kept), looping.stop_signal())
    # Without HOME there is no trust, unless the state directory is set.
    assert bool(block_of(reply.answer)) is (missing == "HOME")


# projects


def in_directory(agent: Agent, cwd: Path | str, project: Path | str, start_in: Path) -> Any:
    """Return the reply to a stop in `cwd`, with this CLAUDE_PROJECT_DIR."""
    signal = {**agent.stop_signal(), "cwd": str(cwd)}
    return call(signal, {**agent.env, "CLAUDE_PROJECT_DIR": str(project)}, cwd=start_in)


def test_hook_in_a_deleted_directory_finds_its_project(looping: Agent, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    process = begin(looping, "/bin/sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", cwd=gone)
    assert block_of(finish(process, {**looping.stop_signal(), "cwd": str(gone)}).answer)


def test_hook_finds_a_project_from_below_and_through_links(looping: Agent, tmp_path: Path) -> None:
    root = looping.here.root
    deep = root / "a b" / "ü"
    deep.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(root)
    for cwd, project, start_in in (
        (tmp_path / "never was", root, tmp_path),
        (link, link, tmp_path),
        (deep, "", tmp_path),
        (f"{root}/", "", tmp_path),
        ("/", "", deep),
    ):
        looping.do("note more")
        assert block_of(in_directory(looping, cwd, project, start_in).answer), (cwd, project)


def test_hook_looks_for_a_project_up_to_the_git_root_and_never_in_home(looping: Agent) -> None:
    inner = looping.here.root / "vendor"
    (inner / ".git").mkdir(parents=True)
    assert in_directory(looping, inner, inner, inner) == (None, "")
    home = Path(os.environ["HOME"])
    looping.here.gsd.rename(home / ".gsd")
    (home / "work").mkdir()
    for place in (home, home / "work"):
        assert in_directory(looping, place, place, place) == (None, "")


def test_hook_prefers_the_project_of_the_client_to_the_working_directory(agent: Agent) -> None:
    start(agent, *GOAL)
    outer, inner = agent.here.root, agent.here.root / "nested"
    (inner / ".git").mkdir(parents=True)
    nested = Agent(Here(inner, agent.here.patch), agent.place, "s-2")
    start(nested, "goal", "inner", "--criterion", "c")
    assert "Ship it" in block_of(in_directory(agent, inner, outer, inner).answer)
    assert "inner" in block_of(in_directory(nested, outer, inner, outer).answer)
    assert in_directory(agent, inner, "", inner) == (None, "")


@pytest.mark.parametrize("name", ["with blanks", "ünïcödé", "quote's", "-dash", "new\nline"])
def test_hook_finds_a_project_of_any_name(agent: Agent, tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    root.mkdir()
    odd = Agent(Here(root, agent.here.patch), agent.place)
    start(odd, *GOAL)
    for more in ({}, {"CLAUDE_PROJECT_DIR": ""}, {"CLAUDE_PROJECT_DIR": "", "LC_ALL": "C"}):
        odd.do("note more")
        assert block_of(call(odd.stop_signal(), {**odd.env, **more}, cwd=root).answer), more
