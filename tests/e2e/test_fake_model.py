"""The scripted model itself: what it serves, and what it remembers."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.e2e.fake_model import OVER, SUBTASK, FakeModel, Held, bash, refuse, say


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as model:
        yield model


def post(model: FakeModel, text: str, path: str = "/v1/messages", **more: Any) -> str:
    messages = [{"role": "user", "content": text}]
    body = {"model": "m", "messages": messages, "tools": [{"name": "Bash"}], **more}
    request = urllib.request.Request(model.url + path, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as response:
        return str(response.read().decode())


def say_to(model: FakeModel, text: str, **more: Any) -> str:
    return str(json.loads(post(model, text, **more))["content"][0]["text"])


def test_fake_model_plays_turns_of_each_conversation_in_order_then_ends(model: FakeModel) -> None:
    held = Held(say("late"))
    model.main.then(say("one"), lambda request: say(request.heard.upper()), held)
    model.sub.then(say("sub"))
    model.lane("second", "SECOND").then(say("second"))
    assert sorted(model.unsaid()) == ["main", "second", "sub"]
    held.let_go()
    assert [say_to(model, "hello") for _ in range(4)] == ["one", "HELLO", "late", OVER]
    held.until_wanted()
    assert [say_to(model, text) for text in (f"{SUBTASK} go", "SECOND go")] == ["sub", "second"]
    assert say_to(model, "a title", tools=[]) == "ok"
    assert [len(model.asked(it)) for it in ("main", "sub", "second", "other")] == [4, 1, 1, 1]
    assert model.unsaid() == []


def test_fake_model_streams_whole_reply(model: FakeModel) -> None:
    model.main.then(bash("ls"))
    lines = post(model, "go", stream=True).splitlines()
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert [event["type"] for event in (events[0], events[-1])] == ["message_start", "message_stop"]
    given = "".join(event.get("delta", {}).get("partial_json", "") for event in events)
    assert json.loads(given)["command"] == "ls"
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


def test_fake_model_records_messages_since_its_last_turn(model: FakeModel) -> None:
    result = {"type": "tool_result", "content": [{"type": "text", "text": "new"}]}
    said = {"role": "assistant", "content": "said"}
    messages = [{"role": "user", "content": "old"}, said, {"role": "user", "content": [result]}]
    post(model, "", messages=messages)
    assert (model.asked()[0].heard, model.asked()[0].text) == ("new", "old\nsaid\nnew")


def test_fake_model_refuses_like_the_api(model: FakeModel) -> None:
    model.main.then(refuse(529, "busy"))
    for path, status in (("/v1/messages", 529), ("/nowhere", 404)):
        with pytest.raises(urllib.error.HTTPError) as error:
            post(model, "go", path)
        with error.value:
            assert error.value.code == status
            assert json.load(error.value)["type"] == "error"
