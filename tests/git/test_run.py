"""Running git: environment, hooks, timeouts and error output."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from gsd_fsm.core.errors import CannotWrite, Refused
from gsd_fsm.git.run import Done, act, error_text, find_work_tree, git_program, read
from tests.support.repositories import git, hook, new_repository, posix_only

PROGRAM = git_program(".") or ""
COMMIT = ("commit", "-q", "--allow-empty")


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@posix_only
@pytest.mark.parametrize(
    ("script", "leaves_lock"),
    [
        ("sleep 1000 & echo $! > child\nwait", False),
        ("trap '' TERM\necho $$ > child\nwhile :; do sleep 0.1; done", True),
    ],
    ids=["with child", "ignoring SIGTERM"],
)
def test_act_ends_hanging_hook_with_its_children(repo, script, leaves_lock):
    hook(repo, "pre-commit", script)
    (repo / "kept.txt").write_text("changed")
    with pytest.raises(CannotWrite, match=r"did not finish within 0\.5 seconds") as caught:
        act(PROGRAM, repo, "commit", "-qam", "never", seconds=0.5)
    assert "hook" in caught.value.hint
    deadline = time.monotonic() + 30
    while is_alive(int((repo / "child").read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert leaves_lock or not (repo / ".git" / "index.lock").exists()
    assert git(repo, "rev-list", "--count", "HEAD") == "1"


@posix_only
def test_act_does_not_wait_for_background_processes_of_hook(repo):
    hook(repo, "post-commit", "sleep 1000 & echo $! > child")
    done = act(PROGRAM, repo, *COMMIT, "-m", "made")
    assert done.returncode == 0
    pid = int((repo / "child").read_text())
    assert is_alive(pid)
    os.kill(pid, 9)


@posix_only
def test_act_gives_hook_no_input_and_no_terminal(repo):
    hook(repo, "pre-commit", "cat > input; (: < /dev/tty) 2>/dev/null && echo yes > terminal\n:")
    act(PROGRAM, repo, "commit", "-qF-", "--allow-empty", stdin=b"the message")
    assert (repo / "input").read_bytes() == b""
    assert not (repo / "terminal").exists()
    assert git(repo, "log", "-1", "--format=%B") == "the message"


@posix_only
def test_act_gives_hook_the_users_git(repo):
    names = "GIT_LITERAL_PATHSPECS GIT_ALLOW_PROTOCOL GIT_OPTIONAL_LOCKS"
    hook(repo, "pre-commit", f"for n in {names}; do eval echo \\$$n; done > values")
    act(PROGRAM, repo, *COMMIT, "-m", "made")
    assert (repo / "values").read_text().split() == []


def test_git_ignores_variables_of_surrounding_hook(repo, tmp_path, monkeypatch):
    other = new_repository(tmp_path / "other")
    for name, value in (
        *(("DIR", other / ".git"), ("WORK_TREE", other), ("INDEX_FILE", tmp_path / "no-index")),
        *(("OBJECT_DIRECTORY", tmp_path / "no-objects"), ("PREFIX", "sub/")),
        ("CONFIG_PARAMETERS", "'core.bare'='true'"),
    ):
        monkeypatch.setenv(f"GIT_{name}", str(value))
    for run in (read, act):
        done = run(PROGRAM, repo, "rev-parse", "--show-toplevel")
        assert Path(done.stdout.decode().strip()) == repo.resolve()


def test_git_keeps_identity_from_environment(repo, monkeypatch):
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody Else")
    act(PROGRAM, repo, *COMMIT, "-m", "made")
    assert git(repo, "log", "-1", "--format=%an") == "Somebody Else"


def test_git_program_is_found_in_absolute_directories_of_path_only(repo, tmp_path, monkeypatch):
    fake = repo / ("git.exe" if sys.platform == "win32" else "git")
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.chdir(repo)
    monkeypatch.setenv("PATH", "." + os.pathsep + os.environ["PATH"])
    assert git_program(tmp_path) == PROGRAM
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_program(repo) is None


def test_find_work_tree_without_git_or_work_tree_is_none(repo, tmp_path, monkeypatch):
    git(tmp_path, "init", "-q", "--template=", "--bare", "bare.git")
    bait = repo / "bait"  # a bare repository among the files, which names a work tree
    git(repo, "init", "-q", "--template=", "--bare", "bait")
    git(bait, "config", "core.bare", "false")
    git(bait, "config", "core.worktree", str(repo / "sub"))
    for where in (tmp_path, repo / ".git", tmp_path / "bare.git", bait):
        assert find_work_tree(where, Refused) is None, where
    monkeypatch.setenv("PATH", str(repo))
    assert find_work_tree(repo, Refused) is None


@pytest.mark.parametrize("home", ["", "sub"])
def test_find_work_tree_looks_above_home_and_behind_links(repo, tmp_path, monkeypatch, home):
    (repo / "sub" / "deeper").mkdir(parents=True, exist_ok=True)
    (tmp_path / "link").symlink_to(repo / "sub" / "deeper")
    monkeypatch.setenv("HOME", str(repo / home))
    for where in (repo, repo / "sub" / "deeper", tmp_path / "link"):
        found = find_work_tree(where, Refused)
        assert found is not None, where
        assert found.top == repo, where


def test_act_reports_git_that_cannot_start(repo):
    for program, paths in (("/no/such/program", []), (PROGRAM, ["x" * 100_000] * 100)):
        with pytest.raises(CannotWrite, match="cannot run git"):
            act(program, repo, "add", "--", *paths)


def test_error_words_have_no_escapes():
    for stderr, stdout, expected in (
        (b"fatal: no\n", b"ignored", "fatal: no"),
        (b"", b"lint: two\r\nlines\n", "lint: two\nlines"),
        (b"\x1b[31mred\x1b[0m \x07bell", b"", "red bell"),
        (b"\xff\xfe", b"", "��"),
        (b"", b" \n", "exit code 3"),
    ):
        assert error_text(Done([], 3, stdout, stderr)) == expected


def test_error_words_are_truncated_and_redacted():
    token = "ghp_" + "a1B2" * 9
    shown = error_text(Done([], 1, b"", f"{'noise ' * 50_000}\npush with {token} failed".encode()))
    assert len(shown) < 3_000
    assert token not in shown
    assert shown.endswith("failed")
