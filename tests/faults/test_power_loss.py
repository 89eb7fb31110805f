"""Power cuts: unsynced sectors may be lost, acknowledged events never."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.journal.journal import Journal, create_journal
from gsd_fsm.core.project import make_gsd
from tests.support import faults
from tests.support.events import NOW, append
from tests.support.faults import judge, long_journal, pad_to, sums, torture, wired, without_sync
from tests.support.journal_scenes import Scene, make_scene
from tests.support.power import Disk, Moment

TEXTS = ["y" * size for size in (10, 700, 3000, 1200, 60)]


def _recorded(scene: Scene) -> Disk:
    scene.restore()
    disk = Disk(scene.files)
    with wired(disk.watch):
        scene.work(disk.promise)
    return disk


def _lost_one_byte(data: bytes) -> bool:
    """Return whether the last line lacks only its first byte, the last of a sector."""
    begin = data.rfind(b"\n", 0, -1) + 1
    return begin % 512 == 511 and data[begin : begin + 2] == b'\0"' and data[-1:] == b"\n"


def _survive(scene: Scene, moment: Moment, image: dict[str, bytes]) -> None:
    """Restore this directory, read it and append."""
    faults.put_back(scene.gsd, image)
    promised = [*scene.known, *moment.promised]
    data = image.get("journal.jsonl", b"")
    if _lost_one_byte(data) and judge(data).damaged:
        # That byte alone may also be damage to an acknowledged event: it is reported, not dropped.
        assert judge(data).damaged == data.count(b"\n")
        assert [sum_ for sum_ in sums(data)[:-1] if sum_ in promised] == promised
    else:
        scene.assert_recovers(moment.promised)


def _explore(scene: Scene, count: int, seed: int) -> None:
    """Continue from `count` images that a power cut may leave."""
    disk, choose = _recorded(scene), random.Random(seed)
    moments = [disk.before(step) for step in range(len(disk.log) + 1)]
    unsure = [moment for moment in moments if moment.is_unsure()]
    with wired(without_sync):  # what is tested here has happened before the power cut
        for moment in [*moments, *unsure * (1 + count // len(unsure))][:count]:
            _survive(scene, moment, moment.image(choose, choose.choice([512, 512, 4096])))


@pytest.mark.parametrize("images", [250, pytest.param(10_000, marks=pytest.mark.torture)])
@pytest.mark.parametrize("name", ["appending", "appending two", "creating"])
def test_power_cut_during_append_loses_nothing_and_is_not_corrupt(
    gsd: Path, name: str, images: int
) -> None:
    images = images if images == 250 else torture(images)
    _explore(make_scene(gsd, name, *TEXTS[: 2 if name == "creating" else 5]), images, seed=images)


TAILS = {
    "short": b'{"v":1,"seq":5,"ts":"2026',
    "long": b'{"v":1,"seq":5,"text":"' + b"t" * 2500,
    "with lost sectors": b'{"v":1,"seq":5,"text":"' + b"t" * 600 + b"\0" * 1024 + b't"}\n',
    "with its first sector lost": b"\0" * 112 + b"t" * 600 + b't"}\n',
}


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
def test_power_cut_during_tail_repair_loses_nothing_and_keeps_tail(gsd: Path, tail: bytes) -> None:
    pad_to(long_journal(gsd, 4), 400)
    data = (gsd / "journal.jsonl").read_bytes()
    assert judge(data + tail).torn == len(tail)
    files = {**faults.files_in(gsd), "journal.jsonl": data + tail}
    scene = Scene(gsd, files, lambda _acknowledge: append(Journal(str(gsd))), sums(data))
    _explore(scene, 250, seed=3)
    disk, choose, kept = _recorded(scene), random.Random(7), 0
    for step in [*range(len(disk.log) + 1)] * 20:
        image = disk.before(step).image(choose, 512)
        saved = [held for name, held in image.items() if name.startswith("journal.broken-")]
        assert image["journal.jsonl"] == data + tail or saved == [tail]
        kept += saved == [tail]
    assert kept


def test_power_cut_during_repair_keeps_old_file_and_valid_lines(gsd: Path) -> None:
    scene = make_scene(gsd, "cutting", "y" * 900)
    hurt = scene.files["journal.jsonl"]
    disk, choose = _recorded(scene), random.Random(4)
    for step in [*range(len(disk.log) + 1)] * 15:
        moment = disk.before(step)
        image = moment.image(choose, 512)
        if image["journal.jsonl"] == hurt:
            assert not moment.promised
            continue
        saved = [held for name, held in image.items() if name.startswith("journal.broken-")]
        assert saved == [hurt]
        with wired(without_sync):
            _survive(scene, moment, image)


def test_parent_of_new_gsd_is_synced(tmp_path: Path) -> None:
    synced: list[str] = []

    def watch(name: str, real: Any, *args: Any, **more: Any) -> Any:
        if name == "fsync":
            synced.append(str(Path(f"/proc/self/fd/{args[0]}").readlink()))
        return real(*args, **more)

    with wired(watch):
        make_gsd(str(tmp_path / ".gsd"))
        create_journal(str(tmp_path / ".gsd"), "j-new", NOW)
    assert {str(tmp_path / ".gsd"), str(tmp_path)} <= set(synced)


def _line_campaign(gsd: Path, count: int, seed: int) -> int:
    """Judge images with a part of one unsynced line after synced ones; return their number."""
    choose, done = random.Random(seed), 0
    journal = long_journal(gsd, 3)
    while done < count:
        pad_to(journal, choose.randrange(512))
        good = (gsd / "journal.jsonl").read_bytes()
        length = choose.choice([1, 200, 380, 900, 2000, 6000])
        written = faults.say(journal, "y" * choose.randint(1, length))[0]
        line = (gsd / "journal.jsonl").read_bytes()[len(good) :]
        begin = faults.positions(good)[-1]
        moment = Moment({"journal": good}, [("write", 0, len(good), line)])
        for _ in range(min(2_000, count - done)):
            image = moment.image(choose, choose.choice([512, 512, 4096]))["journal"]
            verdict = judge(image, begin)
            if verdict.damaged:
                # One lone NUL may also be damage to an acknowledged event: it is reported, never
                # dropped. Only a line that begins on the last byte of a sector can look like that.
                assert len(good) % 512 == 511
                assert image[len(good) :] == b"\0" + line[1:]
                assert verdict.damaged == begin.line + 1
            else:
                whole = (begin.line + 1, written["sum"])
                assert verdict[:2] in ((begin.line, begin.sum), whole)
                if image[len(good) :].rstrip(b"\0").rstrip(b"\n") == line[:-1]:
                    assert verdict[:2] == whole
            done += len(image) > len(good)
    return done


@pytest.mark.parametrize("images", [10_000, pytest.param(1_000_000, marks=pytest.mark.torture)])
def test_lost_sectors_of_last_line_are_torn_and_not_corrupt(tmp_path: Path, images: int) -> None:
    goal, done = images if images == 10_000 else torture(images), 0
    while done < goal:
        share = min(100_000, goal - done)
        done += _line_campaign(tmp_path / f"p{done}" / ".gsd", share, seed=5 + done // 100_000)
    print(f"{done} images, 0 lost, 0 false alarms")
