"""Running git: environment, hooks, timeouts and error output."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.git.run import Done, act, git_program, read, words
from tests.support.git_commands import hook
from tests.support.repositories import git, new_repository, posix_only


def program() -> str:
    found = git_program()
    assert found is not None
    return found


def is_alive(pid: int) -> bool:
    """Whether a process still runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 30
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(pid)


@posix_only
def test_act_ends_hanging_hook_with_children_and_leaves_no_lock(repo):
    hook(repo, "pre-commit", "sleep 1000 & echo $! > child\nwait")
    (repo / "kept.txt").write_text("changed")
    with pytest.raises(CannotWrite, match=r"did not finish within 0\.5 seconds") as caught:
        act(program(), repo, "commit", "-qam", "never", seconds=0.5)
    assert "hook" in caught.value.hint
    wait_for_end(int((repo / "child").read_text()))
    assert not (repo / ".git" / "index.lock").exists()
    assert git(repo, "rev-list", "--count", "HEAD") == "1"


@posix_only
def test_act_ends_hook_that_ignores_sigterm(repo):
    hook(repo, "pre-commit", "trap '' TERM\necho $$ > child\nwhile :; do sleep 0.1; done")
    with pytest.raises(CannotWrite):
        act(program(), repo, "commit", "-q", "--allow-empty", "-m", "never", seconds=0.3)
    wait_for_end(int((repo / "child").read_text()))


@posix_only
def test_act_does_not_wait_for_background_processes_of_hook(repo):
    hook(repo, "post-commit", "sleep 1000 & echo $! > child")
    done = act(program(), repo, "commit", "-q", "--allow-empty", "-m", "made")
    assert done.returncode == 0
    pid = int((repo / "child").read_text())
    assert is_alive(pid)
    os.kill(pid, 9)


@posix_only
def test_act_gives_hook_no_input_and_no_terminal(repo):
    hook(repo, "pre-commit", "cat > input; (: < /dev/tty) 2>/dev/null && echo yes > terminal\n:")
    act(program(), repo, "commit", "-qF-", "--allow-empty", stdin=b"the message")
    assert (repo / "input").read_bytes() == b""
    assert not (repo / "terminal").exists()
    assert git(repo, "log", "-1", "--format=%B") == "the message"


@posix_only
def test_act_gives_hook_the_users_git(repo):
    told = "GIT_LITERAL_PATHSPECS GIT_ALLOW_PROTOCOL GIT_OPTIONAL_LOCKS"
    hook(repo, "pre-commit", f"for n in {told}; do eval echo \\$$n; done > told")
    act(program(), repo, "commit", "-q", "--allow-empty", "-m", "made")
    assert (repo / "told").read_text().split() == []


def test_git_ignores_variables_of_surrounding_hook(repo, tmp_path, monkeypatch):
    other = new_repository(tmp_path / "other")
    for name, value in {
        "GIT_DIR": other / ".git",
        "GIT_WORK_TREE": other,
        "GIT_INDEX_FILE": tmp_path / "no-index",
        "GIT_OBJECT_DIRECTORY": tmp_path / "no-objects",
        "GIT_CONFIG_PARAMETERS": "'core.bare'='true'",
        "GIT_PREFIX": "sub/",
    }.items():
        monkeypatch.setenv(name, str(value))
    for run in (read, act):
        done = run(program(), repo, "rev-parse", "--show-toplevel")
        assert Path(done.stdout.decode().strip()) == repo.resolve()


def test_git_keeps_identity_from_environment(repo, monkeypatch):
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody Else")
    act(program(), repo, "commit", "-q", "--allow-empty", "-m", "made")
    assert git(repo, "log", "-1", "--format=%an") == "Somebody Else"


def test_git_program_is_found_on_path_only(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_program() is None


def test_act_reports_git_that_cannot_start(repo):
    with pytest.raises(CannotWrite, match="cannot run git"):
        act(str(repo / "no-such-program"), repo, "status")


def test_act_reports_too_many_arguments(repo):
    with pytest.raises(CannotWrite, match="cannot run git"):
        act(program(), repo, "add", "--", *["x" * 100_000] * 100)


@pytest.mark.parametrize(
    ("stderr", "stdout", "expected"),
    [
        (b"fatal: no\n", b"ignored", "fatal: no"),
        (b"", b"lint: two\r\nlines\n", "lint: two\nlines"),
        (b"\x1b[31mred\x1b[0m \x07bell", b"", "red bell"),
        (b"\xff\xfe", b"", "��"),
        (b"", b" \n", "exit code 3"),
    ],
)
def test_error_words_have_no_escapes(stderr, stdout, expected):
    assert words(Done([], 3, stdout, stderr)) == expected


def test_error_words_are_truncated_and_redacted():
    token = "ghp_" + "a1B2" * 9
    said = words(Done([], 1, b"", f"{'noise ' * 50_000}\npush with {token} failed".encode()))
    assert len(said) < 3_000
    assert token not in said
    assert said.endswith("failed")
