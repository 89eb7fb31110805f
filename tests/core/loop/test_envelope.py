"""Events: the closed set of types, and payloads that are checked to the last member."""

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.core.loop.events.lifecycle import PAUSE_CODES
from gsd_fsm.core.loop.fold import EVENTS
from gsd_fsm.core.loop.schema import check_event, is_id
from tests.support.story import PAYLOADS, Story

# The contract's list, written down a second time.
NAMES = [
    "start",
    "iteration",
    "failure",
    "gap",
    "pause",
    "complete",
    "journal",
    "session",
    "task",
    "criterion",
    "verified",
    "exit",
    "review",
    "stage",
    "score",
    "plan",
    "mode",
    "spend",
    "note",
    "issue",
    "wait",
    "answer",
    "resume",
    "cancel",
    "stop",
    "checkpoint",
    "repair",
]
CODES = [
    "iterations",
    "rounds",
    "stuck",
    "idle",
    "repeated",
    "budget",
    "minutes",
    "retries",
    "blocking",
    "unknown",
    "client",
    "manual",
    "oscillation",
    "plan",
]
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    2**53 + 1,
    "",
    "word",
    "\ud800",
    [],
    [1],
    ["a"],
    {},
    {"a": 1},
]


def event(kind: str, data: Any, **more: Any) -> dict[str, Any]:
    return {**Story().event(kind), "data": data, **more}


def accepts(kind: str, data: Any, **more: Any) -> bool:
    """Whether this is an event; anything but a ValueError would be a bug."""
    try:
        check_event(event(kind, data, **more), EVENTS)
    except ValueError:
        return False
    return True


EXAMPLES = {
    **{trigger: (trigger.split(".")[0], data) for trigger, data in PAYLOADS.items()},
    "journal": ("journal", {"id": "j", "incompat": [], "compat": ["x"]}),
    "repair": ("repair", {"bytes": 1, "aside": "f", "what": "torn tail"}),
}


def test_event_types_equal_the_contract() -> None:
    assert set(EVENTS) == set(NAMES)
    assert set(PAUSE_CODES) == set(CODES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_event_of_every_type_needs_its_required_members(name: str) -> None:
    kind, data = EXAMPLES[name]
    assert accepts(kind, data)
    for required in EVENTS[kind].required:
        assert not accepts(kind, {n: v for n, v in data.items() if n != required}), required


@pytest.mark.parametrize("name", EXAMPLES)
def test_event_with_any_value_is_accepted_or_refused_with_message(name: str) -> None:
    kind, data = EXAMPLES[name]
    for member in EVENTS[kind].fields:
        verdicts = [accepts(kind, {**data, member: value}) for value in ODD]
        assert not all(verdicts), member


@pytest.mark.parametrize("name", EXAMPLES)
def test_unknown_member_is_accepted_unless_readers_could_differ(name: str) -> None:
    kind, data = EXAMPLES[name]
    assert accepts(kind, {**data, "later": {"a": [1, "b", None, 0.5]}})
    deep: Any = "x"
    for _ in range(20):
        deep = [deep]
    for value in (2**53 + 1, -(2**53) - 1, 2**64, float("nan"), float("inf"), "\ud800", deep):
        assert not accepts(kind, {**data, "later": value}), value
        assert not accepts(kind, {**data, "later": {"in": [value]}}), value


@pytest.mark.parametrize("member", ["ts", "loop", "type", "by", "data", "v"])
def test_envelope_requires_members_of_the_right_kind(member: str) -> None:
    good = event("iteration", {})
    check_event(good, EVENTS)
    missing = {name: value for name, value in good.items() if name != member}
    with pytest.raises(Exception) as error:
        check_event(missing, EVENTS)
    assert isinstance(error.value, ValueError) or type(error.value).__name__ == "Newer"
    for value in (None, True, 7.5, "§", [], ["a"], {"a": 1}):
        if (member, value) == ("data", {"a": 1}):
            continue
        with pytest.raises(Exception) as error:
            check_event({**good, member: value}, EVENTS)
        assert isinstance(error.value, ValueError) or type(error.value).__name__ == "Newer"


@pytest.mark.parametrize("what", [None, 1, "x", [], [["a"]]])
def test_envelope_must_be_an_object(what: Any) -> None:
    with pytest.raises(ValueError):
        check_event(what, EVENTS)


@pytest.mark.parametrize("name", ["a", "T1", "lp-k3v9", "a.b", "A_b-1", "0", "x" * 64])
def test_ids_that_are_ids(name: str) -> None:
    assert is_id(name)
    assert is_id(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "a\\b", "a..b", ".a", "-a", "_a", "a b", "a\n", "é", "\0", "x" * 65, None, 1, ["a"]],
)  # fmt: skip
def test_ids_that_are_none(name: Any) -> None:
    assert not is_id(name)
    assert not is_id(name)


def test_check_event_after_many_ids_gives_same_result() -> None:
    assert all(is_id(f"i{n}") for n in range(10_000))
    assert not any(is_id(f"../{n}") for n in range(10_000))


@pytest.mark.parametrize("kind", sorted(set(EVENTS) - {"journal", "repair"}))
def test_envelope_of_loop_event_needs_loop_id(kind: str) -> None:
    _, data = next(pair for pair in EXAMPLES.values() if pair[0] == kind)
    for loop in (None, "", "../x", 7, ["lp-1"], {}):
        assert not accepts(kind, data, loop=loop)


@pytest.mark.parametrize("member", ["session", "client"])
def test_session_and_client_are_names(member: str) -> None:
    assert accepts("iteration", {}, **{member: "0b9f-1"})
    for value in ("", " ", "a b", "a\x1b", "x" * 201, None, 1, [], {}):
        assert not accepts("iteration", {}, **{member: value}), value


def test_check_event_checks_times_within_cached_minute() -> None:
    odd = ("60.000Z", "7.0000Z", "07.12Z", "07.123z", "07,123Z", "-7.123Z", "0٣.123Z", "07.123ZZ")
    for second in ("07.123Z", *odd):
        ts = "2026-11-15T23:00:" + second
        assert accepts("iteration", {}, ts=ts) == (second == "07.123Z")
    assert not accepts("iteration", {}, ts="2026-02-30T23:00:07.123Z")
    assert not accepts("iteration", {}, ts="2026-02-30T23:00:08.123Z")
