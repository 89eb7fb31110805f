"""Event declarations, and the JSON Schema that is derived from them."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gsd_fsm.core.errors import Newer
from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.fold import EVENTS, TRIGGERS
from gsd_fsm.core.loop.schema import Field, check_event
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
