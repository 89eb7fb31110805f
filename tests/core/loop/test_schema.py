"""Event declarations: payload members, the envelope, and the JSON Schema derived from them."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gsd_fsm.core.errors import Newer
from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.events.lifecycle import PAUSE_CODES
from gsd_fsm.core.loop.fold import EVENTS, TRIGGERS
from gsd_fsm.core.loop.schema import Field, check_event, is_id
from gsd_fsm.history.event_schema import event_schema
from tests.support.chaos import ODD, run_random_story
from tests.support.golden import NAMES, journal_bytes
from tests.support.story import PAYLOADS, Story

Event = dict[str, Any]


VALIDATOR = Draft202012Validator(event_schema())


def golden_events(name: str) -> list[Event]:
    return [parse_json(line.decode("ascii")) for line in journal_bytes(name).splitlines()]


def is_event(event: Event) -> bool:
    try:
        check_event(event, EVENTS)
    except (ValueError, Newer):
        return False
    return True


def one_of_each_type() -> list[Event]:
    """Return for each event type an event; if golden ones exist, that with the most members."""
    story = Story()
    richest = {
        trigger.partition(".")[0]: story.event(trigger.partition(".")[0], **data)
        for trigger, data in PAYLOADS.items()
    }
    for event in (event for name in NAMES for event in golden_events(name)):
        known = richest.get(event["type"])
        if known is None or len(event["data"]) > len(known["data"]):
            richest[event["type"]] = event
    return list(richest.values())


SAMPLES = one_of_each_type()


def spoilt(event: Event, value: Any, *path: str) -> Event:
    """Return a copy in which the member at this path has another value."""
    changed = copy.deepcopy(event)
    *parents, last = path
    holder = changed
    for name in parents:
        holder = holder[name]
    holder[last] = value
    return changed


# declarations


def test_samples_have_every_declared_type() -> None:
    assert {event["type"] for event in SAMPLES} == set(EVENTS)


def test_actions_of_a_type_are_its_triggers() -> None:
    for declared in EVENTS.values():
        if declared.has_actions:
            field = declared.fields["action"]
            assert isinstance(field, Field)
            assert set(field.words) == {trigger.action for trigger in declared.triggers}
            assert "action" in declared.required


def test_every_trigger_has_an_arrow_and_described_rules() -> None:
    for name, trigger in TRIGGERS.items():
        assert trigger.arrows, name
        for rule in trigger.rules:
            assert rule.__name__.startswith("require_"), (name, rule)
            assert (rule.__doc__ or "").startswith("Refuse "), (name, rule)


# the JSON Schema


def test_event_schema_is_valid() -> None:
    Draft202012Validator.check_schema(event_schema())


@pytest.mark.parametrize("name", NAMES)
def test_event_schema_accepts_every_line_of_a_golden_journal(name: str) -> None:
    for event in golden_events(name):
        VALIDATOR.validate(event)


@pytest.mark.parametrize("seed", range(5))
def test_event_schema_accepts_random_events_that_the_fold_accepts(seed: int) -> None:
    for event in run_random_story(Random(seed), 100)[1]:
        VALIDATOR.validate(event)


def test_event_schema_accepts_unknown_members_and_optional_types() -> None:
    event = SAMPLES[0]
    VALIDATOR.validate(spoilt(event, 1, "data", "unknown"))
    VALIDATOR.validate({**event, "type": "telepathy", "optional": True})
    assert not VALIDATOR.is_valid({**event, "type": "telepathy"})


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event["type"])
def test_event_schema_judges_each_payload_member_like_the_code(event: Event) -> None:
    assert is_event(event)
    for name in EVENTS[event["type"]].fields:
        for value in (*ODD, "a..b", ["a..b"], [1], [None], {"a": None}, [{}], {"name": 1}):
            changed = spoilt(event, value, "data", name)
            assert VALIDATOR.is_valid(changed) == is_event(changed), (name, value)


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event["type"])
def test_event_schema_rejects_an_event_without_a_required_member(event: Event) -> None:
    for name in EVENTS[event["type"]].required:
        changed = spoilt(event, 0, "data", name)
        del changed["data"][name]
        assert not VALIDATOR.is_valid(changed), name
    for name in ("v", "seq", "ts", "loop", "type", "by", "data", "sum"):
        assert not VALIDATOR.is_valid({n: v for n, v in event.items() if n != name}), name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("v", "1"),
        ("seq", 0),
        ("seq", 1.5),
        ("ts", "2026-11-15"),
        ("loop", None),
        ("loop", ""),
        ("loop", "../x"),
        ("loop", "a..b"),
        ("type", "telepathy"),
        ("type", None),
        ("by", "nobody"),
        ("session", ""),
        ("session", 1),
        ("client", None),
        ("data", []),
        ("optional", "yes"),
        ("sum", "0123456789ABCDEF"),
        ("surprise", 1),
    ],
)
def test_event_schema_rejects_a_wrong_envelope_member(name: str, value: Any) -> None:
    event = next(event for event in SAMPLES if event["type"] == "start")
    assert not VALIDATOR.is_valid({**event, name: value})


# The types and pause codes of the contract, written down a second time.
EVENT_NAMES = {
    "start", "iteration", "failure", "gap", "pause", "complete", "journal", "session", "task", "criterion",
    "verified", "exit", "review", "stage", "score", "plan", "mode", "spend", "note", "issue", "wait", "answer",
    "resume", "cancel", "stop", "checkpoint", "repair",
}  # fmt: skip


CODES = {
    "iterations", "rounds", "stuck", "idle", "repeated", "budget", "minutes", "retries", "blocking",
    "unknown", "client", "manual", "oscillation", "plan",
}  # fmt: skip


ODD_VALUES: list[Any] = [
    None, True, 0, -1, 1.5, 2**53 + 1, "", "word", "\ud800", [], [1], ["a"], {}, {"a": 1},
]  # fmt: skip


def event(kind: str, data: Any, **more: Any) -> dict[str, Any]:
    return {**Story().event(kind), "data": data, **more}


def accepts(kind: str, data: Any, **more: Any) -> bool:
    """Return whether this is an event; any error but ValueError is a bug."""
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
    assert set(EVENTS) == EVENT_NAMES
    assert set(PAUSE_CODES) == CODES


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
        verdicts = [accepts(kind, {**data, member: value}) for value in ODD_VALUES]
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
    wrong: list[Any] = [None, True, 7.5, "§", [], ["a"], *([{"a": 1}] if member != "data" else [])]
    missing = {name: value for name, value in good.items() if name != member}
    for bad in (missing, *({**good, member: value} for value in wrong)):
        with pytest.raises((ValueError, Newer)):
            check_event(bad, EVENTS)


@pytest.mark.parametrize("what", [None, 1, "x", [], [["a"]]])
def test_envelope_must_be_an_object(what: Any) -> None:
    with pytest.raises(ValueError):
        check_event(what, EVENTS)


@pytest.mark.parametrize(
    ("names", "valid"),
    [
        (["a", "T1", "lp-k3v9", "a.b", "A_b-1", "0", "x" * 64], True),
        (["", ".", "..", "../x", "a/b", "a\\b", "a..b", ".a", "-a", "_a", "a b", "a\n", "é", "\0"], False),
        (["x" * 65, None, 1, ["a"]], False),
        ([f"i{n}" for n in range(10_000)], True),
        ([f"../{n}" for n in range(10_000)], False),
    ],
)  # fmt: skip
def test_is_id_gives_the_same_result_twice(names: list[Any], valid: bool) -> None:
    assert [is_id(name) for name in names * 2] == [valid] * 2 * len(names)


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
