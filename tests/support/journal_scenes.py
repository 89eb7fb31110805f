"""Scenes of work on a journal, which fault tests interrupt: append, repair, create, cut off damage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.core.errors import Corrupt
from gsd_fsm.core.journal.journal import Journal, create_journal
from gsd_fsm.core.journal.repair import cut_damage
from gsd_fsm.core.project import make_gsd
from tests.support.events import NOW, append, start_draft
from tests.support.faults import assert_goes_on, files_in, judge, long_bytes, put_back, say, sums

SCENES = ("appending", "appending two", "appending with a snapshot", "repairing", "completing",
          "creating", "cutting")  # fmt: skip


class Scene(NamedTuple):
    """A directory, the work in it, and the sums of the events that must stay.

    The work calls its argument with the sum of each acknowledged event.
    """

    gsd: Path
    files: dict[str, bytes]
    work: Callable[[Callable[[str], Any]], None]
    known: list[str]

    def restore(self) -> None:
        put_back(self.gsd, self.files)

    def assert_recovers(self, acknowledged: list[str]) -> None:
        """Assert that nothing acknowledged is lost and that the next append works."""
        gsd, path = str(self.gsd), self.gsd / "journal.jsonl"
        if not self.known:
            create_journal(gsd, "j-again", NOW)
            made = Journal(gsd)
            append(made, *([] if "lp-1" in made.read().by_id else [start_draft()]))
        before = self.files.get("journal.jsonl", b"")
        if judge(before).damaged:
            try:
                Journal(gsd).read()
            except Corrupt:
                assert path.read_bytes() == before
                assert cut_damage(gsd, "j-again", NOW)[0] == len(self.known)
            assert before in [saved.read_bytes() for saved in self.gsd.glob("journal.broken-*")]
        assert_goes_on(self.gsd, [*self.known, *acknowledged])


def make_scene(gsd: Path, name: str, *texts: str, lock_seconds: float = 10.0) -> Scene:
    """Return one of the SCENES; its work appends these notes, each in a transaction."""

    def work(acknowledge: Callable[[str], Any]) -> None:
        journal = Journal(str(gsd), lock_seconds)
        if name == "creating":
            create_journal(str(gsd), "j-new", NOW, lock_seconds)
            acknowledge(append(journal, start_draft())[0]["sum"])
        elif name == "cutting":
            cut_damage(str(gsd), "j-new", NOW, lock_seconds)
        for text in texts:
            for event in say(journal, *[text] * (2 if name == "appending two" else 1)):
                acknowledge(event["sum"])

    if name == "creating":
        gsd.parent.mkdir(parents=True)
        make_gsd(str(gsd))
        return Scene(gsd, files_in(gsd), work, [])
    # 63 events: the next one also makes a snapshot
    data = long_bytes(gsd, 63 if name == "appending with a snapshot" else 8)
    known = sums(data)
    if name == "cutting":
        data, known = data.replace(b'"seq":6', b'"seq":7'), known[:5]
    elif name == "repairing":
        data += b'{"v":1,"seq":5,"ts":"2026'
    elif name == "completing":
        data = data[:-1]
    return Scene(gsd, {**files_in(gsd), "journal.jsonl": data}, work, known)
