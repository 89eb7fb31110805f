"""The hook file as a process of its own: what comes in, what goes out, and where it finds things."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.command_line import Project
from tests.support.hook_project import HOOK, HookProject, blocks, run_hook, signal_of, text_of

ODD_NAMES = ("with a blank", "Größe", "日本 → emoji 🙂", "it's & 100%")


def test_hook_blocks_stop_and_records_it_in_lines_with_lf(hooked: HookProject) -> None:
    reply = run_hook(hooked.signal())
    assert (reply.code, reply.err) == (0, "")
    assert blocks(reply.answer)
    last = hooked.events()[-1]
    assert (last["type"], last["data"]["reason"]) == ("iteration", text_of(reply.answer))
    assert b"\r" not in reply.out + hooked.file.read_bytes()


def test_hook_without_project_prints_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    assert run_hook(signal_of(folder)) == (0, b"", "")
    assert list(folder.iterdir()) == []


def test_hook_allows_stop_of_other_session(hooked: HookProject) -> None:
    before = hooked.file.read_bytes()
    assert run_hook(hooked.signal(session="s-2")) == (0, b"", "")
    assert hooked.file.read_bytes() == before


def test_hook_pauses_at_limit_and_notifies_user(tmp_path: Path) -> None:
    hooked = HookProject(tmp_path / "project", limits={"max_iterations": 1})
    assert blocks(run_hook(hooked.signal()).answer)
    reply = run_hook(hooked.signal())
    assert not blocks(reply.answer)
    assert "paused (iterations)" in text_of(reply.answer)
    assert hooked.events()[-1]["type"] == "pause"


@pytest.mark.parametrize("workers", [1, 2])
def test_two_hook_copies_count_one_iteration(hooked: HookProject, workers: int) -> None:
    signal = hooked.signal()
    with ThreadPoolExecutor(workers) as pool:
        one, other = pool.map(lambda copy: run_hook(signal, copy), ("a", "b"))
    assert blocks(one.answer)
    assert one == other
    assert [event["type"] for event in hooked.events()].count("iteration") == 1


@pytest.mark.parametrize("name", ODD_NAMES)
def test_hook_accepts_paths_with_spaces_and_unicode(tmp_path: Path, name: str) -> None:
    hooked = HookProject(tmp_path / name)
    hook = tmp_path / name / "hook" / HOOK.name
    hook.parent.mkdir()
    shutil.copy(HOOK, hook)
    for _ in range(2):  # first without, then with bytecode
        reply = run_hook(hooked.signal(), hook=hook)
        assert (reply.code, reply.err) == (0, "")
        assert blocks(reply.answer)
    reply = run_hook("{}", hook=hook, env={"CLAUDE_PROJECT_DIR": str(hooked.root)})
    assert reply == (0, b"", "")
    signal = json.dumps({"hook_event_name": "Stop", "session_id": "s-1"})
    assert blocks(run_hook(signal, env={"CLAUDE_PROJECT_DIR": str(hooked.root)}).answer)


def _spellings(root: Path) -> list[str]:
    """The same directory, as different programs may write it."""
    path = str(root)
    found = [path, root.as_posix(), path + os.sep, str(root / "below")]
    if sys.platform == "win32":
        found += [path[0].lower() + path[1:], path.upper(), path.lower()]
    return found


def test_project_is_found_by_every_spelling_of_its_path(tmp_path: Path) -> None:
    hooked = HookProject(tmp_path / "Project", limits={"idle_limit": 0, "stuck_limit": 0})
    (hooked.root / "below").mkdir()
    for path in _spellings(hooked.root):
        assert blocks(run_hook(hooked.signal(cwd=path)).answer), path


@pytest.mark.parametrize("change", ["BOM", "CRLF", "BOM and CRLF", "UTF-8", "blanks around it"])
def test_hook_reads_signals_of_every_shell(hooked: HookProject, change: str) -> None:
    signal = json.loads(hooked.signal(last_assistant_message="Schön → fertig 🙂"))
    text = json.dumps(signal, ensure_ascii=False, indent=1 if "CRLF" in change else None)
    text = text.replace("\n", "\r\n")
    if change == "blanks around it":
        text = f" \r\n\t{text} \r\n\r\n"
    data = text.encode("utf-8-sig" if "BOM" in change else "utf-8")
    assert blocks(run_hook(data).answer)


def test_hook_answers_before_stdin_ends(hooked: HookProject) -> None:
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(HOOK), "a"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(hooked.signal().encode())
        process.stdin.flush()
        assert blocks(json.loads(process.stdout.readline()))
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    "garbage",
    [
        *(b"", b"\n", b"{", b"no JSON", b"[]", b"null", b"{}" * 9, b'{"hook_event_name":7}'),
        *(b"\xff\xfe{", b"\xff\xfe{\x00}\x00", b"\x1a"),
    ],
)
def test_hook_with_garbage_on_stdin_allows_the_stop(hooked: HookProject, garbage: bytes) -> None:
    before = hooked.file.read_bytes()
    reply = run_hook(garbage, env={"CLAUDE_PROJECT_DIR": str(hooked.root)})
    assert (reply.code, reply.out) == (0, b"")
    assert reply.err.isascii()
    assert reply.err.count("\n") <= 1
    assert "Traceback" not in reply.err
    assert hooked.file.read_bytes() == before


def test_hook_accepts_null_device_as_any_stream(hooked: HookProject) -> None:
    command = [sys.executable, "-I", "-S", str(HOOK), "a"]
    null = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    assert subprocess.run(command, stdin=subprocess.DEVNULL, check=False, **null).returncode == 0
    signal = hooked.signal().encode()
    assert subprocess.run(command, input=signal, check=False, **null).returncode == 0
    assert hooked.events()[-1]["type"] == "iteration"


def test_hook_prints_ascii_on_every_console(tmp_path: Path) -> None:
    hooked = HookProject(tmp_path / "Größe →", goal="Ende → gut 🙂", limits={"max_iterations": 1})
    console = {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    replies = [run_hook(hooked.signal(), env=console) for _ in range(2)]
    assert all(run.out.isascii() for run in replies)
    assert "Ende → gut 🙂" in text_of(replies[0].answer)
    hooked.file.write_bytes(b"damage\n")
    broken = run_hook(hooked.signal(), env=console)
    assert (broken.code, broken.out.isascii(), broken.err.isascii()) == (0, True, True)
    assert "corrupt at line 1" in text_of(broken.answer)
    assert (hooked.gsd / "hook.log").read_bytes().isascii()


def test_command_works_on_console_without_unicode(project: Project) -> None:
    def run(*args: str, stdin: bytes = b"") -> bytes:
        done = subprocess.run(
            [sys.executable, "-m", "gsd_fsm", *args],
            cwd=project.root,
            env={**os.environ, "PYTHONIOENCODING": "cp1252", "CLAUDE_CODE_SESSION_ID": "s-1"},
            input=stdin,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done
        return done.stdout

    run("start", "goal", "Ende → gut 🙂", "--criterion", "Schön", "--mode", "yolo")
    assert b"Ende" in run("status")
    answer = run("hook", stdin=signal_of(project.root).encode())
    assert blocks(json.loads(answer))
    assert json.loads(run("replay", "--json"))["status"] == "running"
    assert json.loads(run("fsck", "--json"))["ok"] is True
