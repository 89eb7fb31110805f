"""EndedIds loops: names alone, of a snapshot and new ones alike."""

from __future__ import annotations

from gsd_fsm.core.loop.ended_ids import EndedIds


def test_names_of_a_snapshot_and_new_ones_are_known_alike_and_keep_their_order() -> None:
    for text, news in ((b"", ["a", "b", "c"]), (b"a", ["b", "c"]), (b"a b c", [])):
        ended = EndedIds(text)
        for name in news:
            ended.add(name)
        assert bytes(ended) == b"a b c"
        assert all(name in ended for name in "abc")
        assert not any(name in ended for name in ("", "d", "a b", "a b c", None))
        assert bytes(ended) == b"a b c"
