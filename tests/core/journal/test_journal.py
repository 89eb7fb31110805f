"""Transactions: checks of `append`, the time of writing, failures; and repeated reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.codec import MAX_LINE
from gsd_fsm.core.errors import CannotWrite, Corrupt, GsdError, Refused, UsageError
from gsd_fsm.core.journal import journal as journal_module
from gsd_fsm.core.journal.journal import Author, Journal, Transaction
from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.syscalls import LockedDir
from tests.support.events import require_legal_prefixes
from tests.support.golden import NAMES, journal_bytes
from tests.support.story import frozen

USER = Author("human")
AGENT = Author("agent", "s-1", "claude")
START = {"kind": "execute", "mode": "yolo", "limits": {}, "tasks": [{"id": "T1"}, {"id": "T2"}]}


def bytes_of(journal: Journal) -> bytes:
    return Path(journal.journal_path()).read_bytes()


def lines_of(journal: Journal) -> list[dict[str, Any]]:
    return [parse_json(line.decode("ascii")) for line in bytes_of(journal).splitlines()]


@pytest.fixture
def started(journal: Journal) -> Journal:
    """Return a journal with one execute loop, lp-1, of session s-1."""
    with journal.transaction(AGENT) as tx:
        loop = tx.start("lp-1", START)
        assert (loop.id, loop.status, loop.owner) == ("lp-1", "running", "s-1")
    return journal


def run_task(tx: Transaction) -> Loop:
    loop = tx.loops.by_id["lp-1"]
    tx.append(loop, "task", {"task": "T1", "status": "running"})
    return loop


def test_append_folds_at_once_and_writes_nothing_before_the_end(started: Journal) -> None:
    before = bytes_of(started)
    with started.transaction(USER) as tx:
        loop = run_task(tx)
        assert loop.tasks["T1"].status == "running"
        tx.append(loop, "task", {"task": "T1", "status": "complete"})
        assert (loop.tasks["T1"].status, tx.loops.seq) == ("complete", 4)
        assert bytes_of(started) == before
    assert bytes_of(started).startswith(before)
    assert [line["seq"] for line in lines_of(started)] == [1, 2, 3, 4]


def test_append_that_is_refused_changes_nothing_and_transaction_continues(started: Journal) -> None:
    with started.transaction(USER) as tx:
        loop = run_task(tx)
        before, head = frozen(tx.loops), tx.head
        with pytest.raises(Refused, match="loop lp-1 is running and not done"):
            tx.append(loop, "complete", {})
        with pytest.raises(Refused, match="no such loop: lp-9"):
            tx.append(Loop("lp-9"), "note", {"text": "x"})
        assert (frozen(tx.loops), tx.head, len(tx.events)) == (before, head, 1)
        tx.append(loop, "task", {"task": "T1", "status": "complete"})
    assert [line["type"] for line in lines_of(started)] == ["journal", "start", "task", "task"]
    assert Journal(started.path).read().by_id["lp-1"].tasks["T1"].status == "complete"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("telepathy", {}),
        ("task", {"task": "../T1", "status": "running"}),
        ("note", {"text": "x" * MAX_LINE}),
    ],
    ids=["type", "member", "length"],
)
def test_append_of_an_invalid_event_is_a_usage_error_and_changes_nothing(
    started: Journal, kind: str, data: dict[str, Any]
) -> None:
    with started.transaction(USER) as tx:
        loop = run_task(tx)
        before = frozen(tx.loops)
        with pytest.raises(UsageError, match=f"cannot append {kind}"):
            tx.append(loop, kind, data)
        assert frozen(tx.loops) == before
        tx.append(loop, "note", {"text": "valid"})
    assert [line["seq"] for line in lines_of(started)] == [1, 2, 3, 4]


def test_author_of_an_event_is_in_its_envelope_and_checked_by_the_rules(started: Journal) -> None:
    with started.transaction(AGENT) as tx:
        loop = tx.loops.by_id["lp-1"]
        tx.append(loop, "pause", {"code": "manual"})
        with pytest.raises(Refused, match="agents cannot cancel"):
            tx.append(loop, "cancel", {})
        tx.append(loop, "cancel", {}, by="cli")
    with started.transaction(USER) as tx:
        tx.start("lp-2", START)
    *_, pause, cancel, start = lines_of(started)
    for line, by in ((pause, "agent"), (cancel, "cli")):
        assert ",".join(line) == "v,seq,ts,loop,type,by,session,client,data,sum"
        assert (line["by"], line["session"], line["client"]) == (by, "s-1", "claude")
    assert ",".join(start) == "v,seq,ts,loop,type,by,data,sum"


@pytest.mark.parametrize("error", [Refused("no"), OSError("disk"), KeyboardInterrupt()])
def test_transaction_that_raises_writes_nothing_and_releases_the_lock(
    started: Journal, error: BaseException
) -> None:
    before = bytes_of(started)

    def run_and_raise() -> None:
        with started.transaction(USER) as tx:
            run_task(tx)
            raise error

    with pytest.raises(type(error)):
        run_and_raise()
    assert bytes_of(started) == before
    hold = LockedDir(started.path)
    hold.acquire(0.0)
    hold.close()
    with started.transaction(USER) as tx:
        assert tx.loops.by_id["lp-1"].tasks["T1"].status == "pending"
        run_task(tx)
    with started.transaction(USER):
        pass
    assert [line["seq"] for line in lines_of(started)] == [1, 2, 3]


def test_require_refuses_before_the_first_byte_is_changed(started: Journal) -> None:
    torn = bytes_of(started) + b'{"v":1,"seq":3'
    Path(started.journal_path()).write_bytes(torn)

    def require(loops: object) -> None:
        raise CannotWrite("not this one")

    with pytest.raises(CannotWrite, match="not this one"), started.transaction(USER, require):
        pytest.fail("the block was entered")
    assert bytes_of(started) == torn


def test_dry_run_acts_like_a_transaction_but_writes_and_locks_nothing(started: Journal) -> None:
    def files() -> dict[str, int]:
        return {path.name: path.stat().st_size for path in Path(started.path).iterdir()}

    before = files()
    found = []
    for begin in (started.dry_run, started.transaction):
        holder = LockedDir(started.path)
        if begin == started.dry_run:
            holder.acquire(1.0)
        with begin(USER) as tx:
            assert tx.loops.by_id["lp-1"].tasks["T1"].status == "pending"
            loop = run_task(tx)
            with pytest.raises(GsdError) as refusal:
                tx.append(loop, "complete", {})
            error = (type(refusal.value), str(refusal.value), refusal.value.hint)
            found.append((error, loop.tasks["T1"].status, tx.loops.seq, len(tx.events)))
        holder.close()
        assert (files() == before) == (begin == started.dry_run)
    assert found[0] == found[1]
    assert found[0][1:] == ("running", 3, 1)
    assert [line["seq"] for line in lines_of(started)] == [1, 2, 3]


@pytest.mark.parametrize("name", NAMES)
def test_every_prefix_of_a_golden_journal_is_a_legal_history(name: str, tmp_path: Path) -> None:
    data = journal_bytes(name)
    require_legal_prefixes(tmp_path / ".gsd", data, 1 if len(data) < 20_000 else 17)


def note(journal: Journal, text: str) -> Transaction:
    with journal.transaction(USER) as tx:
        tx.append(tx.loops.by_id["lp-1"], "note", {"text": text})
    return tx


def test_head_of_a_transaction_stays_its_last_event_after_another_one(started: Journal) -> None:
    first = note(started, "first")
    (*_, line) = lines_of(started)
    for _ in range(2):
        assert (first.seq, first.head) == (line["seq"], f"{line['seq']}:{line['sum']}")
        assert [event["sum"] for event in first.events] == [line["sum"]]
        assert note(started, "second").head == f"{started.loops.seq}:{started.at.sum}"


def notes(journal: Journal) -> list[str]:
    return [note.text for note in journal.read_cached().by_id["lp-1"].notes.values()]


def test_read_cached_folds_only_new_events_and_rereads_a_restored_file(
    started: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Journal(started.path)
    assert notes(reader) == []
    note(started, "first")
    taken: list[bytes] = []
    fold = journal_module.into_fold

    def counting(loops: journal_module.Loops) -> object:
        take = fold(loops)
        return lambda line: (taken.append(line), take(line))

    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "into_fold", counting)
        assert notes(reader) == ["first"]
    assert len(taken) == 1
    note(started, "second")
    note(started, "third")
    path = Path(started.journal_path())
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"third", b"thirt"))
    with pytest.raises(Corrupt):
        reader.read_cached()
    path.write_bytes(whole)
    assert notes(reader) == ["first", "second", "third"]


@pytest.mark.parametrize("replaced", [True, False])
def test_read_cached_forgets_lost_events(started: Journal, replaced: bool) -> None:
    reader = Journal(started.path)
    shorter = bytes_of(started)
    note(started, "lost")
    assert notes(reader) == ["lost"]
    path = Path(started.journal_path())
    target = path.with_name("copy") if replaced else path
    target.write_bytes(shorter)
    started.close()  # Windows cannot replace an open file
    target.replace(path)
    assert notes(reader) == []
