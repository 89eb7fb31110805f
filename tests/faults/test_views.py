"""Views are disposable: any fault leaves each file old or new, and the event is appended."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable, Iterator
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

STATE = "STATE.md"
VIEWS = [STATE, *sorted(name for name, _ in LOOP_FILES.values())]
CLOCK = count(NOW, 1000)  # no two appends at the same time
ERRORS = ("EIO", "EINTR", "ENOSPC", "EROFS", "EACCES", "EMFILE")


class Shown:
    """A project whose goal loop is shown in STATE.md and in every file of `.loop/`."""

    def __init__(self, root: Path, **data: Any) -> None:
        self.gsd, self.loop = root / ".gsd", root / ".loop"
        self.state = "---\nmilestone: 1\n---\n# State\n" + "x" * 3000 + "\n"
        new_journal(self.gsd)
        self.path(STATE).write_text(self.state)
        shown = {"goal": "A goal\nof two lines ü", "views": list(LOOP_FILES), **data}
        start = start_draft("lp-1", "goal", criteria=[{"name": "one"}], **shown)
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

    def outdated(self) -> Iterator[int]:
        """Yield 0, 1, 2 and so on, each time with views that do not show the last event."""
        old = self.views()
        self.iterate()
        files = {**faults.files_in(self.gsd), STATE: old.pop(STATE)}
        for number in count():
            faults.put_back(self.gsd, files)
            faults.put_back(self.loop, old)
            yield number

    def write(self, intercept: Callable[..., Any]) -> None:
        """Write the views as an append does after its event."""
        directory, loops = open_directory(str(self.gsd)), Journal(str(self.gsd)).read()
        with wired(intercept):
            project(directory, loops)
        close_directory(directory)

    def require_whole(self, old: dict[str, bytes]) -> None:
        """Each view is old or new, and new after the next event."""
        new = self.wanted()
        for view, data in self.views().items():
            assert data in (old[view], new[view]), view
        with wired(without_sync):
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
IRREGULAR: list[Make] = [*KINDS.values(), lambda path, _away: path.chmod(0o444)]
NOT_A_STATE_FILE: list[Make] = [
    lambda path, _away: path.unlink(),
    lambda path, _away: path.write_bytes(b"x" * ((1 << 20) + 1)),
    lambda path, _away: path.write_bytes(b"---\na: \xff\n---\n"),
    lambda path, _away: path.write_bytes(b"---\na: 1\n"),
]


@pytest.mark.parametrize(
    ("view", "make"),
    [(view, make) for view in (STATE, "state.json") for make in IRREGULAR]
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


@pytest.mark.parametrize("make", [lambda place: place.symlink_to("../away"), Path.touch])
def test_loop_directory_that_is_a_link_or_file_stays(
    shown: Shown, tmp_path: Path, make: Any
) -> None:
    def others() -> dict[str, Any]:
        return {p: v for p, v in faults.everything_below(tmp_path).items() if ".gsd" not in p}

    shown.loop.rename(tmp_path / "away")
    make(shown.loop)
    before = others()
    shown.iterate()
    assert others() == before
    assert shown.path(STATE).read_bytes() == shown.wanted()[STATE]


# failing calls, a kill, other writers


@pytest.mark.parametrize(
    "fate", [*(faults.failing(getattr(errno, name)) for name in ERRORS), faults.cut_short]
)
def test_failing_call_leaves_each_view_old_or_new(shown: Shown, fate: Callable[..., Any]) -> None:
    views, descriptors = shown.views(), faults.open_descriptors()
    for number in shown.outdated():
        trouble = At(number, fate)
        shown.write(trouble)
        if not trouble.name:
            break
        assert faults.open_descriptors() == descriptors, trouble.name
        assert trouble.name == "unlink" or not shown.temporary(), trouble.name
        shown.require_whole(views)
    assert number > 10 * len(VIEWS)


def test_kill_at_any_step_leaves_each_view_old_or_new(shown: Shown) -> None:
    views, left = shown.views(), set()
    for number in shown.outdated():
        child = in_child(partial(shown.write, At(number, faults.killed(written=100))))
        if outcome(child) != -signal.SIGKILL:
            break
        is_old = shown.path(STATE).read_bytes() == views[STATE]
        left.add((is_old, (shown.gsd / f"{STATE}.gsd-fsm.new").exists()))
        shown.require_whole(views)
    assert number > 10 * len(VIEWS)
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


def test_views_are_written_unsynced_after_the_journal_and_missing_ones_skipped(
    shown: Shown, tmp_path: Path
) -> None:
    calls = [name for name, _ in calls_of(shown.iterate)]
    synced = calls.index("fsync")
    assert calls[synced + 1 :].count("replace") == calls.count("replace") == len(VIEWS)
    assert calls.count("fsync") == 1
    plain = Shown(tmp_path / "plain", views=[])
    plain.path(STATE).unlink()
    calls = [name for name, _ in calls_of(plain.iterate)]
    after = calls[calls.index("fsync") + 1 :]
    assert after.count("open") == 1
    assert not {"write", "replace", "unlink", "fsync"} & set(after)
