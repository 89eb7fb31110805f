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


def test_fake_model_plays_turns_in_order_then_ends() -> None:
    with FakeModel() as model:
        model.main.then(say("one"), lambda request: say(request.heard.upper()))
        answers = [text_of(post(model, prompt("hello"))) for _ in range(3)]
        assert answers == ["one", "HELLO", OVER]
        assert len(model.asked()) == 3


def test_fake_model_keeps_turns_per_speaker() -> None:
    with FakeModel() as model:
        model.main.then(say("main"))
        model.sub.then(say("sub"))
        model.lane("second", "SECOND").then(say("second"))
        openings = ("go", f"{SUBTASK} go", "SECOND go")
        assert [text_of(post(model, prompt(it))) for it in openings] == ["main", "sub", "second"]
        assert text_of(post(model, prompt("a title", tools=False))) == "ok"
        assert [len(model.asked(it)) for it in ("main", "sub", "second", "other")] == [1, 1, 1, 1]


def test_fake_model_streams_whole_reply() -> None:
    with FakeModel() as model:
        model.main.then(bash("ls"))
        lines = post(model, prompt("go", stream=True)).splitlines()
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert [event["type"] for event in (events[0], events[-1])] == ["message_start", "message_stop"]
    given = "".join(event.get("delta", {}).get("partial_json", "") for event in events)
    assert json.loads(given)["command"] == "ls"
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


def test_fake_model_records_messages_since_its_last_turn() -> None:
    result = {"type": "tool_result", "content": [{"type": "text", "text": "new"}]}
    said = {"role": "assistant", "content": "said"}
    messages = [{"role": "user", "content": "old"}, said, {"role": "user", "content": [result]}]
    with FakeModel() as model:
        post(model, {**prompt(""), "messages": messages})
        assert model.asked()[0].heard == "new"
        assert model.asked()[0].text == "old\nsaid\nnew"


def test_fake_model_refuses_like_the_api() -> None:
    with FakeModel() as model:
        model.main.then(refuse(529, "busy"))
        for path, status in (("/v1/messages", 529), ("/nowhere", 404)):
            with pytest.raises(urllib.error.HTTPError) as error:
                post(model, prompt("go"), path)
            with error.value:
                assert error.value.code == status
                assert json.load(error.value)["type"] == "error"


def test_fake_model_counts_tokens_and_lists_models() -> None:
    with FakeModel() as model:
        counted = json.loads(post(model, prompt("go"), "/v1/messages/count_tokens?beta=true"))
        assert counted["input_tokens"] > 0
        with urllib.request.urlopen(model.url + "/v1/models", timeout=10) as response:
            assert json.load(response)["data"] == []
        assert model.requests == []


def test_fake_model_holds_turn_until_released() -> None:
    held = Held(say("late"))
    with FakeModel() as model:
        model.main.then(held)
        assert model.unsaid() == ["main"]
        held.let_go()
        assert text_of(post(model, prompt("go"))) == "late"
        held.until_wanted()
        assert model.unsaid() == []
