"""The scripted model itself: what it serves, and what it remembers."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.support.e2e.fake_model import OVER, SUBTASK, FakeModel, Held, bash, refuse, say


def post(model: FakeModel, body: dict[str, Any], path: str = "/v1/messages") -> str:
    request = urllib.request.Request(model.url + path, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as response:
        return str(response.read().decode())


def prompt(text: str, *, tools: bool = True, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    offered = [{"name": "Bash"}] if tools else []
    return {"model": "m", "messages": messages, "tools": offered, **more}


def text_of(answer: str) -> str:
    return str(json.loads(answer)["content"][0]["text"])


def test_turns_come_in_order_and_then_the_script_is_over() -> None:
    with FakeModel() as model:
        model.main.then(say("one"), lambda request: say(request.heard.upper()))
        answers = [text_of(post(model, prompt("hello"))) for _ in range(3)]
        assert answers == ["one", "HELLO", OVER]
        assert len(model.asked()) == 3


def test_each_speaker_has_turns_of_its_own() -> None:
    with FakeModel() as model:
        model.main.then(say("main"))
        model.sub.then(say("sub"))
        model.lane("second", "SECOND").then(say("second"))
        openings = ("go", f"{SUBTASK} go", "SECOND go")
        assert [text_of(post(model, prompt(it))) for it in openings] == ["main", "sub", "second"]
        assert text_of(post(model, prompt("a title", tools=False))) == "ok"
        assert [len(model.asked(it)) for it in ("main", "sub", "second", "other")] == [1, 1, 1, 1]


def test_a_streamed_turn_spells_out_the_whole_reply() -> None:
    with FakeModel() as model:
        model.main.then(bash("ls"))
        lines = post(model, prompt("go", stream=True)).splitlines()
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert [event["type"] for event in (events[0], events[-1])] == ["message_start", "message_stop"]
    given = "".join(event.get("delta", {}).get("partial_json", "") for event in events)
    assert json.loads(given)["command"] == "ls"
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


def test_what_was_heard_is_what_is_new_since_the_model_spoke() -> None:
    result = {"type": "tool_result", "content": [{"type": "text", "text": "new"}]}
    said = {"role": "assistant", "content": "said"}
    messages = [{"role": "user", "content": "old"}, said, {"role": "user", "content": [result]}]
    with FakeModel() as model:
        post(model, {**prompt(""), "messages": messages})
        assert model.asked()[0].heard == "new"
        assert model.asked()[0].text == "old\nsaid\nnew"


def test_an_error_and_an_unknown_path_are_refused_as_the_api_does() -> None:
    with FakeModel() as model:
        model.main.then(refuse(529, "busy"))
        for path, status in (("/v1/messages", 529), ("/nowhere", 404)):
            with pytest.raises(urllib.error.HTTPError) as error:
                post(model, prompt("go"), path)
            with error.value:
                assert error.value.code == status
                assert json.load(error.value)["type"] == "error"


def test_tokens_are_counted_and_models_are_listed() -> None:
    with FakeModel() as model:
        counted = json.loads(post(model, prompt("go"), "/v1/messages/count_tokens?beta=true"))
        assert counted["input_tokens"] > 0
        with urllib.request.urlopen(model.url + "/v1/models", timeout=10) as response:
            assert json.load(response)["data"] == []
        assert model.requests == []


def test_a_held_turn_waits_for_the_test() -> None:
    held = Held(say("late"))
    with FakeModel() as model:
        model.main.then(held)
        assert model.unsaid() == ["main"]
        held.let_go()
        assert text_of(post(model, prompt("go"))) == "late"
        held.until_wanted()
        assert model.unsaid() == []
