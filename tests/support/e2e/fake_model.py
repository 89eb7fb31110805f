"""Serve scripted replies: the part of the Messages API that the client uses, on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

Json = dict[str, Any]
SUBTASK = "SUBTASK"  # the first words of every subagent's prompt
PATIENCE = 60
SUMMARY = "Please provide your summary based on the conversation so far"
OVER = "[the script is over]"
USAGE = {"input_tokens": 100, "output_tokens": 10}


@dataclass(frozen=True)
class Turn:
    """A reply: a text, a tool call, both, or an error; `more` has further tool calls.

    `usage`: its tokens, where they matter.
    """

    text: str = ""
    tool: str = ""
    given: Json = field(default_factory=dict)
    more: tuple[Turn, ...] = ()
    usage: Json = field(default_factory=lambda: USAGE)
    status: int = 200
    error: str = ""


@dataclass(frozen=True)
class Request:
    """A request to the model."""

    lane: str
    body: Json

    @property
    def text(self) -> str:
        """Return the text of the whole conversation."""
        return _words(self.body["messages"])

    @property
    def heard(self) -> str:
        """Return the text since the last reply of the model."""
        messages = self.body["messages"]
        spoke = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
        return _words(messages[spoke[-1] + 1 if spoke else 0 :])


Script = Turn | Callable[[Request], Turn]


def say(text: str) -> Turn:
    return Turn(text=text)


def bash(command: str, *, background: bool = False) -> Turn:
    more = {"run_in_background": True} if background else {}
    return Turn(tool="Bash", given={"command": command, "description": "work", **more})


def delegate(prompt: str, *, background: bool, agent: str = "general-purpose") -> Turn:
    """Call a subagent, whose turns are those of the lane `sub`."""
    given = {"description": "sub work", "prompt": f"{SUBTASK} {prompt}", "subagent_type": agent}
    return Turn(tool="Agent", given={**given, "run_in_background": background})


def together(first: Turn, *more: Turn) -> Turn:
    """Return one reply with the tool calls of all these turns."""
    return replace(first, more=more)


class Held:
    """A turn that is given when the test lets it go."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.wanted = threading.Event()
        self._free = threading.Event()

    def __call__(self, _request: Request) -> Turn:
        self.wanted.set()
        self._free.wait(PATIENCE)
        return self.turn

    def until_wanted(self) -> None:
        assert self.wanted.wait(PATIENCE), "the model was not asked"

    def let_go(self) -> None:
        self._free.set()


@dataclass
class Lane:
    """The turns of one conversation, served in order; afterwards always `otherwise`."""

    name: str
    takes: Callable[[Json], bool]
    otherwise: Turn
    turns: list[Script] = field(default_factory=list)

    def then(self, *turns: Script) -> None:
        self.turns += turns


class FakeModel:
    """The API server; it keeps every request."""

    def __init__(self) -> None:
        self.main = Lane("main", lambda body: bool(body.get("tools")), say(OVER))
        other = Lane("other", lambda body: True, say("ok"))
        self.lanes = [self.main, other]
        self.sub = self.lane("sub", SUBTASK)
        summary = say("<summary>We talked.</summary>")
        self.lanes.insert(0, Lane("summary", lambda it: SUMMARY in Request("", it).heard, summary))
        self.requests: list[Request] = []
        self.charged: list[Json] = []  # the tokens of every reply
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def lane(self, name: str, opening: str) -> Lane:
        """Add turns for conversations whose first message contains this text."""
        lane = Lane(name, lambda body: opening in _words(body["messages"][:1]), say(OVER))
        self.lanes.insert(0, lane)
        return lane

    def asked(self, lane: str = "main") -> list[Request]:
        """Return the requests that this lane answered, in order."""
        return [request for request in self.requests if request.lane == lane]

    def unsaid(self) -> list[str]:
        """Return the lanes with turns that were not served."""
        return [lane.name for lane in self.lanes if lane.turns]

    def reply(self, body: Json) -> Turn:
        """Record a request and take the turn that answers it."""
        with self._lock:
            lane = next(lane for lane in self.lanes if lane.takes(body))
            request = Request(lane.name, body)
            self.requests.append(request)
            script = lane.turns.pop(0) if lane.turns else lane.otherwise
        return script if isinstance(script, Turn) else script(request)


def _words(content: Any) -> str:
    """Return every text in messages or blocks, joined by newlines."""
    if isinstance(content, str):
        return content
    parts = []
    for it in content or []:
        if isinstance(it, str):
            parts.append(it)
        elif "role" in it or it.get("type") == "tool_result":
            parts.append(_words(it.get("content")))
        elif it.get("type") == "text":
            parts.append(it["text"])
    return "\n".join(parts)


_serial = count(1)


def _message(turn: Turn, model: str) -> Json:
    number = next(_serial)
    content: list[Json] = [{"type": "text", "text": turn.text}] if turn.text else []
    for call in (turn, *turn.more) if turn.tool else ():
        use = {"type": "tool_use", "id": f"toolu_fake_{number:06d}_{len(content)}"}
        content.append({**use, "name": call.tool, "input": call.given})
    reason = "tool_use" if turn.tool else "end_turn"
    return {
        "id": f"msg_fake_{number:06d}", "type": "message", "role": "assistant", "model": model,
        "content": content, "stop_reason": reason, "stop_sequence": None, "usage": turn.usage,
    }  # fmt: skip


def _pieces(message: Json) -> Iterator[Json]:
    """Return the events that stream a message."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty: Json = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": message["usage"]}
    yield {"type": "message_stop"}


def _handler(model: FakeModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            turn = model.reply(body)
            try:
                if turn.error:
                    self._fail(turn.status, turn.error)
                    return
                model.charged.append(turn.usage)
                if body.get("stream"):
                    self._stream(_message(turn, body["model"]))
                else:
                    self._send(200, _message(turn, body["model"]))
            except ConnectionError:  # the client was killed, or the user pressed Esc
                self.close_connection = True

        def _stream(self, message: Json) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for piece in _pieces(message):
                self.wfile.write(f"event: {piece['type']}\ndata: {json.dumps(piece)}\n\n".encode())
            self.close_connection = True

        def _fail(self, status: int, message: str) -> None:
            kind = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
            what = {"type": kind.get(status, "invalid_request_error"), "message": message}
            self._send(status, {"type": "error", "error": what})

        def _send(self, status: int, payload: Json) -> None:
            data = json.dumps(payload).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler
