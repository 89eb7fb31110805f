"""A clean room has the files of the user, changes nothing else, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from gsd_fsm.core.errors import CheckFailed, Refused
from gsd_fsm.git import clean_room as module
from gsd_fsm.git.clean_room import clean_room
from gsd_fsm.git.snapshots import LARGEST
from tests.support.repositories import (
    RAW,
    commit,
    git,
    hook,
    new_repository,
    opened,
    posix_only,
    status,
    without_privileges,
)
from tests.support.verification import lay

ENTER = """
import sys, time
from pathlib import Path
from gsd_fsm.git.clean_room import clean_room
from gsd_fsm.git.repo import Repository
with clean_room(Repository.around(Path(sys.argv[1])), {}) as room:
    print(room, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Return the directory for temporary files, of this test only."""
    folder = tmp_path / "temporary files"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("GIT_OPTIONAL_LOCKS", "0")  # the git commands of the tests write no index
    return folder


def files_in(place: Path) -> dict[str, object]:
    """Return content and executable bit of each file, or where it links to, without those of git."""
    found: dict[str, object] = {}
    for at, folders, names in os.walk(place):
        folders[:] = [it for it in folders if it != ".git"]
        links = [it for it in folders if Path(at, it).is_symlink()]
        for path in (Path(at, name) for name in (*names, *links) if name != ".git"):
            is_link, mode = path.is_symlink(), path.lstat().st_mode
            what = path.readlink() if is_link else (path.read_bytes(), mode & 0o100)
            found[path.relative_to(place).as_posix()] = what
    return found


def private(repo: Path) -> list[object]:
    """Return what a clean room must not touch."""
    kept = (it for it in (repo / ".git").rglob("*") if it.is_file() and "objects" not in it.parts)
    facts = [(str(it), it.stat().st_mtime_ns, it.read_bytes()) for it in sorted(kept)]
    return [facts, status(repo), git(repo, "worktree", "list"), files_in(repo)]


@posix_only
def test_clean_room_has_files_as_on_disk_and_changes_nothing_of_the_user(repo, tmp_path, temporary):
    for name in "abcdef":
        commit(repo, name)
    lay(repo, {".loop/PROGRESS.md": "in HEAD", ".gsd/gone.md": "in HEAD"})
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "views")
    lay(repo, {".gitignore": "*.log\n", "stashed": "stashed"})
    git(repo, "add", "stashed")
    git(repo, "stash", "-q")
    odd = (
        " blank ",
        "new\nline",
        '"quoted"',
        "a\\b",
        "tab\t",
        ":(top)",
        "folder ü/-dash",
        "\udcff",
    )
    lay(repo, {"a": "changed", "e": "staged", "x.sh": "new", **dict.fromkeys(odd, "odd")})
    git(repo, "add", "e")
    lay(repo, {"e": "changed after that", "f": "hidden"})
    git(repo, "update-index", "--assume-unchanged", "f")
    (repo / "b").unlink()
    (repo / ".gsd" / "gone.md").unlink()
    (repo / "c").chmod(0o755)
    (repo / "x.sh").chmod(0o755)
    (repo / "d").unlink()
    (repo / "d").symlink_to("a")
    (repo / "out").symlink_to(tmp_path)
    shutil.rmtree(repo / "sub")
    lay(repo, {".gsd/plan.md": "new", "sub/.gsd/x.py": "new", "large": ""})
    os.truncate(repo / "large", LARGEST + 1)
    files = files_in(repo)
    lay(
        repo,
        {"ignored.log": "", "odd.log/x": "", ".gsd/journal.jsonl": "", ".loop/PROGRESS.md": ""},
    )
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        hook(repo, name, f"touch '{tmp_path}/sprung'")
    before = private(repo)
    with clean_room(opened(repo), {}) as room:
        assert files_in(room) == files
        assert room.parent.stat().st_mode & 0o077 == 0
        assert private(repo)[3] == before[3]
        git(room, "status")
    assert private(repo) == before
    assert [*temporary.iterdir()] == []
    assert not (tmp_path / "sprung").exists()


@posix_only
def test_clean_room_has_files_of_submodules_and_nested_repositories(repo, tmp_path):
    origin = new_repository(tmp_path / "origin")
    for name in ("module", "empty"):
        git(repo, "submodule", "--quiet", "add", str(origin), name)
    git(repo, "submodule", "--quiet", "deinit", "-f", "empty")
    git(repo, "commit", "-qm", "modules")
    new_repository(repo / "sub" / "nested")
    lay(repo, {"module/kept.txt": "not committed", "module/new.sh": "", "sub/nested/new": "new"})
    (repo / "module/new.sh").chmod(0o755)
    (repo / "module/link").symlink_to("kept.txt")
    (repo / "module/sub/deep.txt").unlink()
    files = files_in(repo)
    lay(repo, {"sub/nested/.gitignore": "*.log\n"})
    files["sub/nested/.gitignore"] = (b"*.log\n", 0)
    lay(repo, {"sub/nested/x.log": "ignored"})
    before = private(repo)
    with clean_room(opened(repo), {"module/kept.txt": b"given"}) as room:
        assert files_in(room) == {**files, "module/kept.txt": (b"given", 0)}
        assert (room / "empty").is_dir()
    assert private(repo) == before


def test_clean_room_before_first_commit_and_of_unchanged_files(repo, tmp_path):
    with clean_room(opened(repo), {}) as room:
        assert git(room, "rev-parse", "HEAD") == git(repo, "rev-parse", "HEAD")
        assert files_in(room) == files_in(repo)
    empty = tmp_path / "empty"
    git(tmp_path, "init", "-q", "--template=", "empty")
    lay(empty, {"new": "new", "staged": "staged"})
    git(empty, "add", "staged")
    before = private(empty)
    with clean_room(opened(empty), {"sub/given": b"given"}) as room:
        assert {*files_in(room)} == {"new", "staged", "sub/given"}
    assert private(empty) == before


@posix_only
@pytest.mark.parametrize("file_mode", ["true", "false"])
def test_given_files_replace_those_on_disk_and_keep_bits_and_never_leave_the_room(
    repo, tmp_path, file_mode
):
    git(repo, "config", "core.fileMode", file_mode)
    lay(tmp_path / "outside", {"x": "precious"})
    lay(
        repo, {"run.sh": "new", "real/other": "other", "real/file": "file", "way": "", "way2/x": ""}
    )
    (repo / "run.sh").chmod(0o755)
    for link, target in (("out", tmp_path / "outside"), ("in", "real"), ("link", "kept.txt")):
        (repo / link).symlink_to(target)
    names = ("run.sh", "out/x", "in/file", "link", "way/below", "way2", "new folder/ü")
    with clean_room(opened(repo), dict.fromkeys(names, b"given\n")) as room:
        found = files_in(room)
        assert {name: (room / name).read_bytes() for name in names} == dict.fromkeys(
            names, b"given\n"
        )
    assert (found["run.sh"], found["link"]) == ((b"given\n", 0o100), (b"given\n", 0))
    assert (found["real/file"], found["real/other"]) == ((b"given\n", 0), (b"other", 0))
    assert found["kept.txt"] == (b"kept\n", 0)
    assert (tmp_path / "outside" / "x").read_text() == "precious"


def enter(repo: Path, files: dict[str, bytes]) -> None:
    with clean_room(opened(repo), files):
        pass


def test_given_path_outside_of_work_tree_is_refused(repo, temporary):
    before = private(repo)
    for path in ("../x", "a/../../x", ".git", "sub/.GIT/config", "", ".", "/x", "a\0"):
        with pytest.raises(Refused, match="not a path in the work tree"):
            enter(repo, {path: b""})
    assert (private(repo), [*temporary.iterdir()]) == (before, [])


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_clean_room_is_removed_after_error_with_read_only_files(repo, temporary, error):
    def leave_read_only_files() -> None:
        with clean_room(opened(repo), {}) as room:
            lay(room, {"locked/deeper/x": "x"})
            for name in ("locked/deeper/x", "locked/deeper", "locked", "."):
                (room / name).chmod(0o400)
            raise error

    before = private(repo)
    with pytest.raises(error):
        leave_read_only_files()
    assert private(repo) == before
    assert [*temporary.iterdir()] == []


@posix_only
def test_read_only_directories_of_a_check_are_removed_without_privileges():
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        lay(Path(name), {"room/locked/deeper/x": "x"})
        Path(name).chmod(0o755)
        room = Path(name) / "room"
        with without_privileges(Path(name)):
            for path in (room / "locked/deeper", room / "locked", room):
                path.chmod(0)
            module._delete(room)
            assert not room.exists()


def test_room_that_its_check_destroyed_leaves_no_registration(repo, tmp_path, temporary):
    before = git(repo, "worktree", "list")
    lay(tmp_path, {"mine/x": "precious"})
    with clean_room(opened(repo), {}) as room:
        (room / ".git").unlink()
        shutil.rmtree(room)
        if sys.platform != "win32":
            room.symlink_to(tmp_path / "mine")
    assert (git(repo, "worktree", "list"), [*temporary.iterdir()]) == (before, [])
    assert (tmp_path / "mine" / "x").exists()


def test_next_room_removes_that_of_a_killed_run_and_not_one_in_use(repo, tmp_path, temporary):
    users = tmp_path / "gsd-fsm-room-users" / "clean-room"
    git(repo, "worktree", "add", "-q", "--detach", str(users))
    before = git(repo, "worktree", "list")
    command = [sys.executable, "-c", ENTER, str(repo)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        killed = Path(process.stdout.readline().strip())
        with clean_room(opened(repo), {}) as first, clean_room(opened(repo), {}) as second:
            assert {*files_in(first)} == {*files_in(second)} == {*files_in(killed)} != set()
            assert first != second
        assert (killed / "kept.txt").exists()
        process.kill()
    assert str(killed) in git(repo, "worktree", "list", **RAW)
    with clean_room(opened(repo), {}):
        assert not killed.parent.exists()
    assert (git(repo, "worktree", "list"), [*temporary.iterdir()]) == (before, [])
    assert (users / "kept.txt").exists()


def test_registration_without_directory_is_removed_after_a_day(repo):
    with clean_room(opened(repo), {}) as room:
        (record,) = (repo / ".git" / "worktrees").iterdir()
        shutil.copytree(record, repo / ".git" / "worktrees" / "copy")
        copy = repo / ".git" / "worktrees" / "copy"
        (copy / "gitdir").write_text(f"{room.parent}-gone/clean-room/.git\n")
    with clean_room(opened(repo), {}):
        assert copy.exists()
    long_ago = time.time() - 2 * module.LONGEST_RUN
    os.utime(copy, (long_ago, long_ago))
    with clean_room(opened(repo), {}):
        assert not copy.exists()


@posix_only
def test_clean_room_reports_unreadable_files(monkeypatch):
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o777)
        repo = new_repository(Path(name) / "repo")
        lay(repo, {"secret": "secret", "tracked": "tracked"})
        git(repo, "add", "tracked")
        for path in ("secret", "tracked"):
            (repo / path).chmod(0)
        monkeypatch.setattr(tempfile, "tempdir", name)
        refusal = pytest.raises(CheckFailed, match="cannot be read: secret, tracked")
        with without_privileges(repo), refusal:
            enter(repo, {})
        assert [it.name for it in Path(name).iterdir()] == ["repo"]


def test_clean_room_needs_temporary_files_outside_of_the_work_tree(repo, monkeypatch):
    before = private(repo)
    monkeypatch.setattr(tempfile, "tempdir", str(repo / "sub"))
    with pytest.raises(Refused, match="directory for temporary files is in the work tree"):
        enter(repo, {})
    assert private(repo) == before


@posix_only
def test_signal_handler_that_raises_removes_the_room(repo, temporary):
    script = ENTER.replace("time.sleep(60)", "import signal; signal.pause()")
    command = [sys.executable, "-c", script, str(repo)]
    before = private(repo)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in process.stderr.read()
    assert (private(repo), [*temporary.iterdir()]) == (before, [])
