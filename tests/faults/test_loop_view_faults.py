"""The files in `.loop/` in trouble: the event is appended all the same, nothing is half, nothing lost."""

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

from gsd_fsm.core.journal.journal import Journal, create_journal
from gsd_fsm.core.project import make_gsd
from gsd_fsm.core.syscalls import close_directory, open_directory
from gsd_fsm.core.views.loop_json import LOOP_FILES, view_files
from gsd_fsm.core.views.write import project
from tests.support.events import NOW, append, draft, new_journal, start_draft
from tests.support.faults import (
    KINDS,
    NOBODY,
    At,
    calls_of,
    cut_short,
    everything_below,
    failing,
    files_in,
    in_child,
    judge,
    killed,
    open_descriptors,
    outcome,
    put_back,
    wired,
    without_sync,
)
from tests.support.hook_project import HookProject, blocks, run_hook

VIEWS = list(LOOP_FILES)
NAMES = sorted(name for name, _ in LOOP_FILES.values())
GOAL = "A goal\nof two lines ü"
CLOCK = count(NOW, 1000)  # no two appends at the same time
ERRORS = ("EIO", "EINTR", "ENOSPC", "EROFS", "EACCES")


def begin(gsd: Path, loop: str = "lp-1", **data: Any) -> None:
    data = {"goal": GOAL, "views": VIEWS, "criteria": [{"name": "one"}], **data}
    event = {**start_draft(loop, "goal", **data), "session": loop}
    append(Journal(str(gsd), now=CLOCK.__next__), event)


def tell(gsd: Path, loop: str = "lp-1") -> str:
    """One event that the views show; its sum."""
    journal = Journal(str(gsd), now=CLOCK.__next__)
    event = draft("iteration", loop, "hook", {})
    return str(append(journal, event)[0]["sum"])


@pytest.fixture
def gsd(tmp_path: Path) -> Path:
    made = tmp_path / "p" / ".gsd"
    new_journal(made)
    begin(made)
    return made


@pytest.fixture
def place(gsd: Path) -> Path:
    return gsd.parent / ".loop"


def wanted(gsd: Path) -> dict[str, bytes]:
    """What the files must hold after the last event."""
    return {file.name: file.data for file in view_files(Journal(str(gsd)).read())}


def assert_goes_on(gsd: Path) -> None:
    """After the next event the files are whole and new, and nothing lies beside them."""
    tell(gsd)
    assert files_in(gsd.parent / ".loop") == wanted(gsd)


# what is no file of ours


def read_only(path: Path, _away: Path) -> None:
    path.chmod(0o444)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("make", [*KINDS.values(), read_only], ids=[*KINDS, "read-only"])
def test_what_is_no_plain_file_is_left_and_the_other_views_go_on(
    gsd: Path, place: Path, tmp_path: Path, name: str, make: Callable[[Path, Path], None]
) -> None:
    make(place / name, tmp_path / "away")
    marked = (f"/{name}", "/away")
    before = {p: v for p, v in everything_below(tmp_path).items() if p.endswith(marked)}
    descriptors = open_descriptors()
    last = tell(gsd)
    assert judge((gsd / "journal.jsonl").read_bytes()) == (3, last, 0, 0)
    after = everything_below(tmp_path)
    assert {path: after[path] for path in before} == before
    assert sorted(path.name for path in place.iterdir()) == NAMES
    others = {other: data for other, data in wanted(gsd).items() if other != name}
    assert {other: (place / other).read_bytes() for other in others} == others
    assert open_descriptors() == descriptors


def _linked(place: Path, away: Path) -> None:
    place.rename(away)
    place.symlink_to(away)


def _instead(make: Callable[[Path], None]) -> Callable[[Path, Path], None]:
    def replace(place: Path, away: Path) -> None:
        place.rename(away)
        make(place)

    return replace


NO_DIRECTORY: dict[str, Callable[[Path, Path], None]] = {
    "a link": _linked,
    "a dangling link": _instead(lambda place: place.symlink_to("nowhere")),
    "a file": _instead(Path.touch),
    "a pipe": _instead(os.mkfifo),
}


@pytest.mark.parametrize("what", NO_DIRECTORY)
def test_what_is_no_directory_is_not_followed(
    gsd: Path, place: Path, tmp_path: Path, what: str
) -> None:
    NO_DIRECTORY[what](place, tmp_path / "away")
    before = {p: v for p, v in everything_below(tmp_path).items() if ".gsd" not in p}
    tell(gsd)
    after = {p: v for p, v in everything_below(tmp_path).items() if ".gsd" not in p}
    assert after == before


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda path: path.symlink_to("x")])
def test_what_stands_in_the_place_of_a_temporary_file_is_no_danger(
    gsd: Path, place: Path, make: Callable[[Path], None]
) -> None:
    before = (place / "state.json").read_bytes()
    make(place / "state.json.gsd-fsm.new")
    tell(gsd)
    if make is Path.mkdir:
        assert (place / "state.json").read_bytes() == before
        (place / "state.json.gsd-fsm.new").rmdir()
    assert_goes_on(gsd)


def test_a_directory_that_may_not_be_written_is_left_as_it_is() -> None:
    """As an ordinary user, whoever we are."""

    def work() -> None:
        if os.geteuid() == 0:
            os.chown(root, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        make_gsd(str(root / ".gsd"))
        create_journal(str(root / ".gsd"), "j-test", NOW)
        begin(root / ".gsd")
        (root / ".loop").chmod(0o555)
        before = files_in(root / ".loop")
        tell(root / ".gsd")
        assert files_in(root / ".loop") == before != {}
        (root / ".loop").chmod(0o755)
        assert_goes_on(root / ".gsd")

    with tempfile.TemporaryDirectory() as made:  # pytest's own is closed to others
        root = Path(made)
        assert outcome(in_child(work)) == 0


# calls that fail, a full disk, a kill


def _calls(gsd: Path) -> range:
    """Which calls of an append keep the views, the first one being 0."""
    kept = files_in(gsd), files_in(gsd.parent / ".loop")
    calls = [name for name, _ in calls_of(lambda: tell(gsd))]
    put_back(gsd.parent / ".loop", kept[1])
    loops = Journal(str(gsd)).read()
    directory = open_directory(str(gsd))
    count = len(calls_of(lambda: project(directory, loops)))
    close_directory(directory)
    put_back(gsd, kept[0])
    put_back(gsd.parent / ".loop", kept[1])
    begin_ = calls.index("fsync") + 1
    assert calls[begin_ : begin_ + count].count("replace") == len(NAMES)
    return range(begin_, begin_ + count)


@pytest.mark.parametrize("fate", [*(failing(getattr(errno, name)) for name in ERRORS), cut_short])
def test_any_call_for_a_view_may_fail_and_the_event_is_appended(
    gsd: Path, place: Path, fate: Callable[..., Any]
) -> None:
    kept = files_in(gsd), files_in(place)
    descriptors = open_descriptors()
    for number in _calls(gsd):
        put_back(gsd, kept[0])
        put_back(place, kept[1])
        trouble = At(number, fate)
        with wired(trouble):
            last = tell(gsd)
        assert trouble.name
        assert judge((gsd / "journal.jsonl").read_bytes()) == (3, last, 0, 0)
        assert open_descriptors() == descriptors, trouble.name
        assert trouble.name == "unlink" or not list(place.glob("*.new")), trouble.name
        with wired(without_sync):
            new = wanted(gsd)
            for name in NAMES:
                assert (place / name).read_bytes() in (kept[1][name], new[name]), trouble.name
            (place / "state.json.gsd-fsm.new").unlink(missing_ok=True)
            assert_goes_on(gsd)


def test_without_space_for_the_views_the_old_ones_stay(gsd: Path, place: Path) -> None:
    """The limit lets the journal grow, but not a file that names this criterion three times."""
    begin(gsd, "lp-2", criteria=[{"name": "x" * 20_000}])
    tell(gsd, loop="lp-2")
    before = files_in(place)

    def work() -> None:
        most = (gsd / "journal.jsonl").stat().st_size + 2_000
        assert most < len(before["state.json"])
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        tell(gsd, loop="lp-2")

    assert outcome(in_child(work)) == 0
    assert (place / "state.json").read_bytes() == before["state.json"]
    assert not list(place.glob("*.new"))
    tell(gsd, loop="lp-2")
    assert files_in(place) == wanted(gsd)


def test_a_kill_at_any_step_leaves_old_files_or_new_ones(gsd: Path, place: Path) -> None:
    kept = files_in(gsd), files_in(place)

    def work(point: At) -> None:
        with wired(point):
            tell(gsd)

    for number in _calls(gsd):
        put_back(gsd, kept[0])
        put_back(place, kept[1])
        assert outcome(in_child(partial(work, At(number, killed(100))))) == -signal.SIGKILL
        new = wanted(gsd)
        for name in NAMES:
            assert (place / name).read_bytes() in (kept[1][name], new[name])
        with wired(without_sync):
            assert judge((gsd / "journal.jsonl").read_bytes())[::2] == (3, 0)
            assert_goes_on(gsd)


def test_the_views_cost_no_sync(gsd: Path) -> None:
    assert [name for name, _ in calls_of(lambda: tell(gsd))].count("fsync") == 1


def test_of_many_writers_the_last_one_is_shown(gsd: Path, place: Path) -> None:
    def work() -> None:
        with wired(without_sync):
            for _ in range(10):
                tell(gsd)

    assert [outcome(pid) for pid in [in_child(work) for _ in range(4)]] == [0] * 4
    assert Journal(str(gsd)).read().by_id["lp-1"].iteration == 40
    assert files_in(place) == wanted(gsd)


@pytest.mark.parametrize("what", NO_DIRECTORY)
def test_the_hook_blocks_whatever_is_there(tmp_path: Path, what: str) -> None:
    hooked = HookProject(tmp_path / "project", views=VIEWS)
    NO_DIRECTORY[what](hooked.root / ".loop", tmp_path / "away")
    told = run_hook(hooked.signal())
    assert (told.code, told.err) == (0, "")
    assert blocks(told.answer)
