"""STATE.md in trouble: the event is appended all the same, and the file is the old or the new one."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.syscalls import close_directory, open_directory
from gsd_fsm.core.views.state_md import with_loop
from gsd_fsm.core.views.write import project
from tests.support.events import append, draft
from tests.support.faults import (
    KINDS,
    At,
    calls_of,
    cut_short,
    everything_below,
    failing,
    files_in,
    in_child,
    judge,
    killed,
    long_journal,
    open_descriptors,
    outcome,
    put_back,
    wired,
    without_sync,
)
from tests.support.hook_project import HookProject, blocks, run_hook

OLD = "---\nmilestone: 1\n---\n# State\n" + "x" * 3000 + "\n"
ERRORS = ("EIO", "EINTR", "ENOSPC", "EROFS", "EACCES", "EMFILE")


@pytest.fixture
def gsd(tmp_path: Path) -> Path:
    """A journal of four events, and a file that shows nothing of them yet."""
    made = tmp_path / "p" / ".gsd"
    long_journal(made, 4)
    (made / "STATE.md").write_text(OLD)
    return made


def iterate(gsd: Path) -> str:
    """An event that is to be seen in the view; its sum."""
    event = draft("iteration", "lp-1", "hook", {})
    return str(append(Journal(str(gsd)), event)[0]["sum"])


def shown(gsd: Path, before: str = OLD) -> str:
    """What the file must hold after the last event."""
    return with_loop(before, Journal(str(gsd)).read().live()[-1])


def assert_whole(gsd: Path) -> None:
    """The old file or the new one, and after the next event the new one alone."""
    text = (gsd / "STATE.md").read_text()
    assert text in (OLD, shown(gsd))
    iterate(gsd)
    assert (gsd / "STATE.md").read_text() == shown(gsd)
    assert not (gsd / "STATE.md.gsd-fsm.new").exists()


# what is no file of ours


def _content(data: bytes) -> Callable[[Path, Path], None]:
    return lambda path, _away: path.write_bytes(data) and None


HOPELESS: dict[str, Callable[[Path, Path], None]] = {
    **KINDS,
    "more than a mebibyte": _content(b"x" * ((1 << 20) + 1)),
    "not UTF-8": _content(b"---\na: \xff\n---\n"),
    "front matter without an end": _content(b"---\na: 1\n"),
    "front matter without keys": _content(b"---\n[1]\n---\n"),
    "read-only": lambda path, _away: path.chmod(0o444),
    "gone": lambda path, _away: path.unlink(),
}


@pytest.mark.parametrize("what", HOPELESS)
def test_a_file_that_cannot_be_changed_is_left_and_the_event_is_appended(
    gsd: Path, tmp_path: Path, what: str
) -> None:
    HOPELESS[what](gsd / "STATE.md", tmp_path / "away")
    journal = str(gsd / "journal.jsonl")
    before = everything_below(tmp_path)
    descriptors = open_descriptors()
    last = iterate(gsd)
    after = everything_below(tmp_path)
    data = after.pop(journal)[2]
    assert judge(data) == (5, last, 0, 0)
    assert data.startswith(before.pop(journal)[2])
    assert after == before
    assert open_descriptors() == descriptors


def test_the_file_of_another_user_is_left(gsd: Path) -> None:
    number = (gsd / "STATE.md").stat().st_ino

    def foreign(name: str, real: Any, *args: Any, **more: Any) -> Any:
        found = real(*args, **more)
        if name == "fstat" and found.st_ino == number:
            return os.stat_result([*found[:4], found.st_uid + 1, *found[5:10]])
        return found

    with wired(foreign):
        iterate(gsd)
    assert (gsd / "STATE.md").read_text() == OLD
    assert_whole(gsd)


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda path: path.symlink_to("STATE.md")])
def test_what_stands_in_the_place_of_the_temporary_file_is_no_danger(
    gsd: Path, make: Callable[[Path], None]
) -> None:
    make(gsd / "STATE.md.gsd-fsm.new")
    iterate(gsd)
    if make is Path.mkdir:
        assert (gsd / "STATE.md").read_text() == OLD
        (gsd / "STATE.md.gsd-fsm.new").rmdir()
    else:
        assert (gsd / "STATE.md").read_text() == shown(gsd)
    assert_whole(gsd)


# calls that fail, a full disk, a kill


def _calls(gsd: Path) -> range:
    """Which calls of an append keep the view, the first one being 0."""
    files = files_in(gsd)
    calls = [name for name, _ in calls_of(lambda: iterate(gsd))]
    loops = Journal(str(gsd)).read()
    (gsd / "STATE.md").write_text(OLD)
    directory = open_directory(str(gsd))
    count = len(calls_of(lambda: project(directory, loops)))
    close_directory(directory)
    put_back(gsd, files)
    begin = calls.index("fsync") + 1
    assert "replace" in calls[begin : begin + count]
    return range(begin, begin + count)


@pytest.mark.parametrize("fate", [*(failing(getattr(errno, name)) for name in ERRORS), cut_short])
def test_any_call_for_the_view_may_fail_and_the_event_is_appended(
    gsd: Path, fate: Callable[..., Any]
) -> None:
    files = files_in(gsd)
    calls = _calls(gsd)
    descriptors = open_descriptors()
    for number in calls:
        put_back(gsd, files)
        trouble = At(number, fate)
        with wired(trouble):
            last = iterate(gsd)
        assert trouble.name
        assert judge((gsd / "journal.jsonl").read_bytes()) == (5, last, 0, 0)
        assert open_descriptors() == descriptors, trouble.name
        assert trouble.name == "unlink" or not (gsd / "STATE.md.gsd-fsm.new").exists(), trouble.name
        with wired(without_sync):
            assert_whole(gsd)


def test_without_space_for_the_view_the_old_one_stays(gsd: Path) -> None:
    """The limit lets the journal grow, but not a file of this length."""
    whole = OLD + "x" * 100_000
    (gsd / "STATE.md").write_text(whole)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        iterate(gsd)

    assert outcome(in_child(work)) == 0
    assert judge((gsd / "journal.jsonl").read_bytes()).events == 5
    assert (gsd / "STATE.md").read_text() == whole
    assert not (gsd / "STATE.md.gsd-fsm.new").exists()
    iterate(gsd)
    assert (gsd / "STATE.md").read_text() == shown(gsd, whole)


def test_a_kill_at_any_step_leaves_the_old_file_or_the_new_one(gsd: Path) -> None:
    files = files_in(gsd)
    left: set[tuple[bool, bool]] = set()

    def work(point: At) -> None:
        with wired(point):
            iterate(gsd)

    for number in _calls(gsd):
        for written in (0, 1, 100):
            put_back(gsd, files)
            child = in_child(partial(work, At(number, killed(written))))
            assert outcome(child) == -signal.SIGKILL
            left.add(
                ((gsd / "STATE.md").read_text() == OLD, (gsd / "STATE.md.gsd-fsm.new").exists())
            )
            with wired(without_sync):
                assert judge((gsd / "journal.jsonl").read_bytes())[::2] == (5, 0)
                assert_whole(gsd)
    assert left == {(True, False), (True, True), (False, False)}


# others who write


def test_what_somebody_else_has_just_written_stays(gsd: Path) -> None:
    theirs = "written by hand\n"

    def meanwhile(name: str, real: Any, *args: Any, **more: Any) -> Any:
        if name == "fchmod":
            (gsd / "STATE.md").write_text(theirs)
        return real(*args, **more)

    with wired(meanwhile):
        iterate(gsd)
    assert (gsd / "STATE.md").read_text() == theirs
    assert not (gsd / "STATE.md.gsd-fsm.new").exists()
    iterate(gsd)
    assert (gsd / "STATE.md").read_text() == shown(gsd, theirs)


def test_of_many_writers_the_last_one_is_shown(gsd: Path) -> None:
    def work() -> None:
        journal = Journal(str(gsd))
        with wired(without_sync):
            for _ in range(20):
                append(journal, draft("iteration", "lp-1", "hook", {}))

    children = [in_child(work) for _ in range(4)]
    assert [outcome(pid) for pid in children] == [0] * 4
    assert Journal(str(gsd)).read().by_id["lp-1"].iteration == 80
    assert (gsd / "STATE.md").read_text() == shown(gsd)
    assert not (gsd / "STATE.md.gsd-fsm.new").exists()


def test_the_view_costs_no_sync_and_nothing_at_all_when_it_is_not_there(gsd: Path) -> None:
    with_it = [name for name, _ in calls_of(lambda: iterate(gsd))]
    (gsd / "STATE.md").unlink()
    without = [name for name, _ in calls_of(lambda: iterate(gsd))]
    assert with_it.count("fsync") == without.count("fsync") == 1
    after = without[without.index("fsync") + 1 :]
    assert after.count("open") == 1
    assert not {"write", "replace", "unlink"} & set(after)


@pytest.mark.parametrize("what", ["a pipe", "a link", "a directory", "not UTF-8"])
def test_the_hook_blocks_whatever_the_file_is(tmp_path: Path, what: str) -> None:
    hooked = HookProject(tmp_path / "project")
    path = hooked.gsd / "STATE.md"
    path.write_text(OLD)
    HOPELESS[what](path, tmp_path / "away")
    told = run_hook(hooked.signal())
    assert (told.code, told.err) == (0, "")
    assert blocks(told.answer)
