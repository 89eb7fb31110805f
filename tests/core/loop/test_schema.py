"""Event declarations: payload members, the envelope, and the JSON Schema derived from them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gsd_fsm.core.errors import Newer
from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.events.lifecycle import PAUSE_CODES
from gsd_fsm.core.loop.fold import EVENTS, TRIGGERS
from gsd_fsm.core.loop.schema import OF_THE_JOURNAL, Field, check_event, is_id
from gsd_fsm.history.event_schema import event_schema
from tests.support.chaos import ODD, run_random_story
from tests.support.golden import NAMES, journal_bytes
from tests.support.story import PAYLOADS, Story

Event = dict[str, Any]
VALIDATOR = Draft202012Validator(event_schema())
# The types and pause codes of the contract, written down a second time.
EVENT_NAMES = {
    "start", "iteration", "failure", "gap", "pause", "complete", "journal", "session", "task", "criterion",
    "verified", "exit", "review", "stage", "score", "plan", "mode", "spend", "note", "issue", "wait", "answer",
    "resume", "cancel", "stop", "checkpoint", "repair",
}  # fmt: skip
CODES = {
    "iterations", "rounds", "stuck", "idle", "repeated", "budget", "minutes", "retries", "blocking",
    "unknown", "client", "manual", "oscillation", "plan", "altered",
}  # fmt: skip
EXAMPLES: list[Event] = [
    Story().event(trigger.partition(".")[0], **data) for trigger, data in PAYLOADS.items()
]
GOLDEN = [parse_json(line) for name in NAMES for line in journal_bytes(name).decode().splitlines()]


def one_of_each_type() -> list[Event]:
    """Return for each event type the example or golden event with the most members."""
    richest: dict[str, Event] = {}
    for event in (*EXAMPLES, *GOLDEN):
        known = richest.setdefault(event["type"], event)
        if len(event["data"]) > len(known["data"]):
            richest[event["type"]] = event
    return list(richest.values())


SAMPLES = one_of_each_type()
each_type = pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event["type"])


def is_event(event: Any) -> bool:
    """Return whether the code accepts this event; any other error is a bug."""
    try:
        check_event(event, EVENTS)
    except (ValueError, Newer):
        return False
    return True


def with_data(event: Event, **data: Any) -> Event:
    return {**event, "data": {**event["data"], **data}}


def without(members: dict[str, Any], name: str) -> dict[str, Any]:
    return {member: value for member, value in members.items() if member != name}


def test_declared_types_and_pause_codes_equal_the_contract() -> None:
    assert set(EVENTS) == EVENT_NAMES == {event["type"] for event in SAMPLES}
    assert set(PAUSE_CODES) == CODES


def test_every_trigger_has_an_arrow_an_action_of_its_type_and_described_rules() -> None:
    assert {name.partition(".")[0] for name in TRIGGERS} == set(EVENTS) - set(OF_THE_JOURNAL)
    for name, declared in EVENTS.items():
        actions = [trigger.action for trigger in declared.triggers]
        if declared.has_actions:
            field = declared.fields["action"]
            assert isinstance(field, Field)
            assert set(field.words) == set(actions)
            assert all(actions)
            assert "action" in declared.required
        else:
            assert actions == ([] if name in OF_THE_JOURNAL else [""])
    for name, trigger in TRIGGERS.items():
        assert trigger.arrows, name
        for rule in trigger.rules:
            assert rule.__name__.startswith("require_"), (name, rule)
            assert (rule.__doc__ or "").startswith("Refuse "), (name, rule)


def test_event_schema_is_valid_and_accepts_examples_golden_and_random_events() -> None:
    Draft202012Validator.check_schema(event_schema())
    random = [event for seed in range(5) for event in run_random_story(Random(seed), 100)[1]]
    for event in (*EXAMPLES, *GOLDEN, *random):
        VALIDATOR.validate(event)
        assert is_event(event)


def test_event_schema_accepts_unknown_members_and_optional_types() -> None:
    event = SAMPLES[0]
    VALIDATOR.validate(with_data(event, unknown=1))
    VALIDATOR.validate({**event, "type": "telepathy", "optional": True})
    for wrong in ({"type": "telepathy"}, {"seq": 0}, {"sum": "0123456789ABCDEF"}):
        assert not VALIDATOR.is_valid({**event, **wrong})


@each_type
def test_code_and_event_schema_judge_each_payload_member_alike(event: Event) -> None:
    values = (*ODD, "a..b", ["a..b"], [1], [None], {"a": None}, [{}], {"name": 1}, "word", 1.5)
    for name in EVENTS[event["type"]].fields:
        verdicts = []
        for value in values:
            changed = with_data(event, **{name: value})
            verdicts.append(is_event(changed))
            assert VALIDATOR.is_valid(changed) == verdicts[-1], (name, value)
        assert not all(verdicts), name
        is_event(with_data(event, **{name: "\ud800"}))  # raises no other error


@each_type
def test_code_and_event_schema_refuse_an_event_without_a_required_member(event: Event) -> None:
    for name in EVENTS[event["type"]].required:
        changed = {**event, "data": without(event["data"], name)}
        assert not VALIDATOR.is_valid(changed), name
        assert not is_event(changed), name
    for name in ("v", "seq", "ts", "loop", "type", "by", "data", "sum"):
        assert not VALIDATOR.is_valid(without(event, name)), name
        assert name == "sum" or not is_event(without(event, name)), name
    assert is_event({**event, "loop": None}) == (event["type"] in OF_THE_JOURNAL)


OTHER = (True, 7.5, [], ["a"], {})
NO_NAMES = (*OTHER, None, "", " ", "a b", "a\x1b", "é", "x" * 201)
WRONG_MEMBERS: dict[str, tuple[Any, ...]] = {
    "v": (*OTHER, None, "1", 3),
    "seq": (*OTHER, None, "3"),
    "ts": (*OTHER, None, "2026-11-15"),
    "loop": (*OTHER, "", "../x", "a..b"),
    "type": (*OTHER, None, "telepathy"),
    "by": (*OTHER, None, "nobody"),
    "session": NO_NAMES,
    "client": NO_NAMES,
    "data": (*OTHER[:-1], None, "x"),
    "optional": (*OTHER[1:], "yes"),
    "surprise": (1,),
}


@pytest.mark.parametrize("name", WRONG_MEMBERS)
def test_code_and_event_schema_refuse_a_wrong_envelope_member(name: str) -> None:
    good = Story().event("iteration", _session="0b9f-1", _client="claude")
    assert is_event(good)
    VALIDATOR.validate(good)
    for event in (*OTHER, None, *({**good, name: value} for value in WRONG_MEMBERS[name])):
        assert not is_event(event), event
        assert not VALIDATOR.is_valid(event), event


def test_unknown_member_is_accepted_unless_readers_could_differ() -> None:
    event = SAMPLES[0]
    assert is_event(with_data(event, later={"a": [1, "b", None, 0.5]}))
    deep: Any = "x"
    for _ in range(20):
        deep = [deep]
    for value in (2**53 + 1, -(2**53) - 1, 2**64, float("nan"), float("inf"), "\ud800", deep):
        assert not is_event(with_data(event, later=value)), value
        assert not is_event(with_data(event, later={"in": [value]})), value


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


def test_check_event_checks_times_within_cached_minute() -> None:
    good = Story().event("iteration")
    odd = ("60.000Z", "7.0000Z", "07.12Z", "07.123z", "07,123Z", "-7.123Z", "0٣.123Z", "07.123ZZ")
    for second in ("07.123Z", *odd):
        assert is_event({**good, "ts": "2026-11-15T23:00:" + second}) == (second == "07.123Z")
    assert not is_event({**good, "ts": "2026-02-30T23:00:07.123Z"})
    assert not is_event({**good, "ts": "2026-02-30T23:00:08.123Z"})
