"""Views are disposable: any fault leaves each file old or new, and the event is appended."""

from __future__ import annotations

import errno
import os
import resource
import signal
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.syscalls import close_directory, open_directory
from gsd_fsm.core.views.loop_json import LOOP_FILES, view_files
from gsd_fsm.core.views.state_md import with_loop
from gsd_fsm.core.views.write import project
from tests.support import faults
from tests.support.events import NOW, append, draft, new_journal, start_draft
from tests.support.faults import KINDS, At, calls_of, in_child, judge, outcome, wired, without_sync
from tests.support.hook_project import HookProject, blocks, run_hook

STATE = "STATE.md"
VIEWS = [STATE, *sorted(name for name, _ in LOOP_FILES.values())]
CLOCK = count(NOW, 1000)  # no two appends at the same time
ERRORS = ("EIO", "EINTR", "ENOSPC", "EROFS", "EACCES", "EMFILE")


class Shown:
    """A project whose goal loop is shown in STATE.md and in every file of `.loop/`."""

    def __init__(self, root: Path, more_state: str = "", **data: Any) -> None:
        self.gsd, self.loop = root / ".gsd", root / ".loop"
        self.state = "---\nmilestone: 1\n---\n# State\n" + "x" * 3000 + more_state + "\n"
        new_journal(self.gsd)
        self.path(STATE).write_text(self.state)
        shown = {"goal": "A goal\nof two lines ü", "views": list(LOOP_FILES), **data}
        start = start_draft("lp-1", "goal", **{"criteria": [{"name": "one"}], **shown})
        append(Journal(str(self.gsd), now=CLOCK.__next__), {**start, "session": "lp-1"})

    def iterate(self) -> str:
        """Append an event that every view shows; return its sum."""
        event = draft("iteration", "lp-1", "hook", {})
        return str(append(Journal(str(self.gsd), now=CLOCK.__next__), event)[0]["sum"])

    def path(self, view: str) -> Path:
        return (self.gsd if view == STATE else self.loop) / view

    def views(self) -> dict[str, bytes]:
        return {view: self.path(view).read_bytes() for view in VIEWS}

    def wanted(self) -> dict[str, bytes]:
        """Return the content that the last event gives to each view."""
        loops = Journal(str(self.gsd)).read()
        shown = {file.name: file.data for file in view_files(loops)}
        return {STATE: with_loop(self.state, loops.live()[-1]).encode(), **shown}

    def temporary(self) -> list[Path]:
        return [*self.gsd.glob("*.new"), *self.loop.glob("*.new")]

    def files(self) -> tuple[dict[str, bytes], dict[str, bytes]]:
        return faults.files_in(self.gsd), faults.files_in(self.loop)

    def put_back(self, files: tuple[dict[str, bytes], dict[str, bytes]]) -> None:
        faults.put_back(self.gsd, files[0])
        faults.put_back(self.loop, files[1])

    def view_calls(self) -> range:
        """Return the numbers of those system calls of an append that write the views."""
        files = self.files()
        calls = [name for name, _ in calls_of(self.iterate)]
        loops = Journal(str(self.gsd)).read()
        self.path(STATE).write_bytes(files[0][STATE])
        faults.put_back(self.loop, files[1])
        directory = open_directory(str(self.gsd))
        many = len(calls_of(lambda: project(directory, loops)))
        close_directory(directory)
        self.put_back(files)
        first = calls.index("fsync") + 1
        assert calls[first : first + many].count("replace") == len(VIEWS)
        return range(first, first + many)

    def require_whole(self, old: dict[str, bytes]) -> None:
        """Each view is old or new, and new after the next event."""
        new = self.wanted()
        for view, data in self.views().items():
            assert data in (old[view], new[view]), view
        self.require_continues()

    def require_continues(self) -> None:
        self.iterate()
        assert self.views() == self.wanted()
        assert not self.temporary()


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(tmp_path / "p")


# irregular files

Make = Callable[[Path, Path], Any]
NOT_UTF8 = b"---\na: \xff\n---\n"
IRREGULAR: list[Make] = [*KINDS.values(), lambda path, _away: path.chmod(0o444)]
NOT_A_STATE_FILE: list[Make] = [
    lambda path, _away: path.unlink(),
    *(
        lambda path, _away, data=data: path.write_bytes(data)
        for data in (b"x" * ((1 << 20) + 1), NOT_UTF8, b"---\na: 1\n", b"---\n[1]\n---\n")
    ),
]


@pytest.mark.parametrize(
    ("view", "make"),
    [(view, make) for view in VIEWS for make in IRREGULAR]
    + [(STATE, make) for make in NOT_A_STATE_FILE],
)
def test_view_that_cannot_be_replaced_stays_and_the_others_are_written(
    shown: Shown, tmp_path: Path, view: str, make: Make
) -> None:
    make(shown.path(view), tmp_path / "away")
    before = faults.everything_below(tmp_path)
    descriptors = faults.open_descriptors()
    last = shown.iterate()
    assert faults.open_descriptors() == descriptors
    assert judge((shown.gsd / "journal.jsonl").read_bytes()) == (3, last, 0, 0)
    after = faults.everything_below(tmp_path)
    assert [*after] == [*before]
    for path in (str(shown.path(view)), str(tmp_path / "away")):
        assert after.get(path) == before.get(path)
    for other, data in shown.wanted().items():
        assert other == view or shown.path(other).read_bytes() == data


def test_state_md_of_another_user_stays(shown: Shown) -> None:
    before = shown.path(STATE).read_bytes()
    number = shown.path(STATE).stat().st_ino

    def foreign(name: str, real: Any, *args: Any, **more: Any) -> Any:
        found = real(*args, **more)
        if name == "fstat" and found.st_ino == number:
            return os.stat_result([*found[:4], found.st_uid + 1, *found[5:10]])
        return found

    with wired(foreign):
        shown.iterate()
    assert shown.path(STATE).read_bytes() == before
    shown.require_continues()


@pytest.mark.parametrize("view", [STATE, "state.json"])
@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda path: path.symlink_to(STATE)])
def test_temporary_name_that_is_taken_is_freed_unless_it_is_a_directory(
    shown: Shown, view: str, make: Callable[[Path], None]
) -> None:
    before = shown.path(view).read_bytes()
    temporary = shown.path(view).with_name(view + ".gsd-fsm.new")
    make(temporary)
    shown.iterate()
    if make is Path.mkdir:
        assert shown.path(view).read_bytes() == before
        temporary.rmdir()
    else:
        assert shown.views() == shown.wanted()
    shown.require_continues()


NOT_A_DIRECTORY: dict[str, Make] = {
    "a link": lambda place, away: place.symlink_to(away),
    "a dangling link": lambda place, _away: place.symlink_to("nowhere"),
    "a file": lambda place, _away: place.touch(),
    "a pipe": lambda place, _away: os.mkfifo(place),
}


@pytest.mark.parametrize("make", NOT_A_DIRECTORY.values(), ids=NOT_A_DIRECTORY)
def test_loop_directory_that_is_a_link_or_file_stays(
    shown: Shown, tmp_path: Path, make: Make
) -> None:
    def others() -> dict[str, Any]:
        return {p: v for p, v in faults.everything_below(tmp_path).items() if ".gsd" not in p}

    shown.loop.rename(tmp_path / "away")
    make(shown.loop, tmp_path / "away")
    before = others()
    shown.iterate()
    assert others() == before
    assert shown.path(STATE).read_bytes() == shown.wanted()[STATE]


def test_read_only_loop_directory_keeps_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as an ordinary user, even if the tests run as root."""

    def work() -> None:
        if os.geteuid() == 0:
            os.chown(root, faults.NOBODY, faults.NOBODY)
            os.setresuid(faults.NOBODY, faults.NOBODY, faults.NOBODY)
        shown = Shown(root)
        shown.loop.chmod(0o555)
        before = faults.files_in(shown.loop)
        shown.iterate()
        assert faults.files_in(shown.loop) == before != {}
        shown.loop.chmod(0o755)
        shown.require_continues()

    with tempfile.TemporaryDirectory() as made:  # other users cannot enter pytest's directory
        root = Path(made)
        monkeypatch.setenv("XDG_STATE_HOME", made)
        assert outcome(in_child(work)) == 0


@pytest.mark.parametrize(
    ("name", "make"),
    [
        *((f".gsd/{STATE}", KINDS[kind]) for kind in ("a pipe", "a link", "a directory")),
        (f".gsd/{STATE}", lambda path, _away: path.write_bytes(NOT_UTF8)),
        *((".loop", make) for make in NOT_A_DIRECTORY.values()),
    ],
)
def test_hook_blocks_with_irregular_view(tmp_path: Path, name: str, make: Make) -> None:
    hooked = HookProject(tmp_path / "project", views=list(LOOP_FILES))
    (hooked.gsd / STATE).write_text("# State\n")
    if name == ".loop":
        (hooked.root / name).rename(tmp_path / "away")
    make(hooked.root / name, tmp_path / "away")
    answered = run_hook(hooked.signal())
    assert (answered.code, answered.err, blocks(answered.answer)) == (0, "", True)


# failing calls, a full disk, a kill, other writers


@pytest.mark.parametrize(
    "fate", [*(faults.failing(getattr(errno, name)) for name in ERRORS), faults.cut_short]
)
def test_append_with_any_failing_view_call_keeps_event_and_whole_views(
    shown: Shown, fate: Callable[..., Any]
) -> None:
    files, views = shown.files(), shown.views()
    calls = shown.view_calls()
    descriptors = faults.open_descriptors()
    for number in calls:
        shown.put_back(files)
        trouble = At(number, fate)
        with wired(trouble):
            last = shown.iterate()
        assert trouble.name
        assert judge((shown.gsd / "journal.jsonl").read_bytes()) == (3, last, 0, 0)
        assert faults.open_descriptors() == descriptors, trouble.name
        assert trouble.name == "unlink" or not shown.temporary(), trouble.name
        with wired(without_sync):
            shown.require_whole(views)


def test_views_without_disk_space_stay_old(tmp_path: Path) -> None:
    """The limit lets the journal grow, but not STATE.md or a file with three copies of the name."""
    shown = Shown(tmp_path / "p", "x" * 100_000, criteria=[{"name": "x" * 20_000}])
    before = shown.views()

    def work() -> None:
        most = (shown.gsd / "journal.jsonl").stat().st_size + 2_000
        assert most < len(before["state.json"])
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        shown.iterate()

    assert outcome(in_child(work)) == 0
    assert judge((shown.gsd / "journal.jsonl").read_bytes()).events == 3
    for view in (STATE, "state.json"):
        assert shown.path(view).read_bytes() == before[view]
    assert not shown.temporary()
    shown.require_continues()


def test_kill_at_any_step_leaves_each_view_old_or_new(shown: Shown) -> None:
    files, views = shown.files(), shown.views()
    left: set[tuple[bool, bool]] = set()

    def work(point: At) -> None:
        with wired(point):
            shown.iterate()

    for number in shown.view_calls():
        for written in (0, 1, 100):
            shown.put_back(files)
            child = in_child(partial(work, At(number, faults.killed(written))))
            assert outcome(child) == -signal.SIGKILL
            is_old = shown.path(STATE).read_bytes() == views[STATE]
            left.add((is_old, (shown.gsd / f"{STATE}.gsd-fsm.new").exists()))
            with wired(without_sync):
                assert judge((shown.gsd / "journal.jsonl").read_bytes())[::2] == (3, 0)
                shown.require_whole(views)
    assert left == {(True, False), (True, True), (False, False)}


def test_state_md_that_changes_during_the_write_stays(shown: Shown) -> None:
    theirs = "written by hand\n"
    names: list[str] = []

    def meanwhile(name: str, real: Any, *args: Any, **more: Any) -> Any:
        names.append(name)
        if name == "fchmod" and names.count(name) == 1:  # STATE.md is the first view
            shown.path(STATE).write_text(theirs)
        return real(*args, **more)

    with wired(meanwhile):
        shown.iterate()
    assert shown.path(STATE).read_text() == theirs
    assert not shown.temporary()
    shown.state = theirs
    shown.require_continues()


def test_views_of_many_writers_show_the_last_event(shown: Shown) -> None:
    def work() -> None:
        with wired(without_sync):
            for _ in range(20):
                shown.iterate()

    assert [outcome(pid) for pid in [in_child(work) for _ in range(4)]] == [0] * 4
    assert Journal(str(shown.gsd)).read().by_id["lp-1"].iteration == 80
    assert shown.views() == shown.wanted()
    assert not shown.temporary()


@pytest.mark.parametrize("views", [list(LOOP_FILES), []])
def test_views_need_no_sync_and_missing_ones_no_write(tmp_path: Path, views: list[str]) -> None:
    shown = Shown(tmp_path / "p", views=views)
    if not views:
        shown.path(STATE).unlink()
    calls = [name for name, _ in calls_of(shown.iterate)]
    assert calls.count("fsync") == 1
    if not views:
        after = calls[calls.index("fsync") + 1 :]
        assert after.count("open") == 1
        assert not {"write", "replace", "unlink"} & set(after)
