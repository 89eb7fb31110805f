"""Prompts in a transcript of Claude Code, with rows as the client writes them."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.hook.clients import prompt_digest
from gsd_fsm.core.loop.records import Prompt
from gsd_fsm.evidence import prompts as module
from gsd_fsm.evidence.prompts import Found, Weighed, find_prompt, weigh
from tests.support.events import build, write

SESSION = "0f870de7-dd21-45be-aacb-e8b1010f3cce"
HUMAN = {"origin": {"kind": "human"}, "promptSource": "typed", "entrypoint": "cli"}
MISSING = "the client's transcript does not have the user's message"
ELSEWHERE = "the user's message names a transcript of another session"


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


def typed(content: Any, **more: Any) -> dict[str, Any]:
    return user(content, **{**HUMAN, **more})


def tool_use(command: str) -> dict[str, Any]:
    used = {"type": "tool_use", "name": "Bash", "input": {"command": command}}
    return {"type": "assistant", "message": {"role": "assistant", "content": [used]}}


def queued(text: str, operation: str = "enqueue") -> dict[str, Any]:
    return {"type": "queue-operation", "operation": operation, "content": text}


def delivered(text: str, kind: str = "human") -> dict[str, Any]:
    told = {"type": "queued_command", "prompt": text, "origin": {"kind": kind}}
    return {"type": "attachment", "attachment": told}


class Transcript:
    """A transcript with some rows from before the prompt."""

    def __init__(self, folder: Path) -> None:
        self.path = write(folder / f"{SESSION}.jsonl", "")
        self.write(typed("yes, go", promptId="p-0"), tool_use("gsd-fsm wait 'Delete it?'"))

    def write(self, *rows: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)

    def prompt(self, text: str | None = "yes, go", **values: Any) -> Prompt:
        """Return what the hook records of a prompt that is sent now."""
        return build(
            Prompt,
            **{
                "session": SESSION, "client": "claude", "file": str(self.path), "id": "p-1",
                "offset": self.path.stat().st_size, "digest": text and prompt_digest(text), **values,
            },
        )  # fmt: skip


@pytest.fixture
def transcript(tmp_path: Path) -> Transcript:
    return Transcript(tmp_path)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSES", (0.0, 0.01))


COMMAND = (
    "<command-message>go</command-message>\n<command-name>/go</command-name>\n"
    "<command-args>fast and far</command-args>"
)
FOUND = {
    "typed": ("yes, go", [typed("yes, go")]),
    "with other blanks": ("  yes,\n go ", [typed("yes, go")]),
    "without the later members": ("yes, go", [user("yes, go")]),
    "as a list of texts": ("yes, go", [typed([{"type": "text", "text": "yes, go"}])]),
    "by its id, with an image": ("see", [typed([{"type": "image"}], promptId="p-1")]),
    "slash command": ("/go fast and far", [typed(COMMAND)]),
    "waiting while the model works": ("yes, go", [queued("yes, go")]),
    "delivered while the model works": ("yes, go", [queued("yes, go"), delivered("yes, go")]),
    "after rows of the client": ("yes, go", [user("x", isMeta=True, promptId="p-1"), typed("yes, go")]),
    "sent by a schedule as well": ("go", [user("go", isMeta=True), typed("go")]),
}  # fmt: skip
NOT_FOUND = {
    "no newer row": ("yes, go", []),
    "only the call that forged it": ("yes, go", [tool_use("gsd-fsm hook")]),
    "words of the model": ("yes, go", [{"type": "assistant", "message": {"content": "yes, go"}}]),
    "result of a tool": ("yes, go", [user([{"type": "tool_result", "content": "yes, go"}])]),
    "scheduled by the agent": (
        "yes, go",
        [queued("yes, go"), user("yes, go", isMeta=True, promptSource="system", promptId="p-1")],
    ),
    "delivered by another agent": ("yes, go", [queued("yes, go"), delivered("yes, go", "peer")]),
    "headless": ("yes, go", [user("yes, go", promptSource="sdk")]),
    "headless slash command": ("/go fast and far", [user(COMMAND, entrypoint="sdk-cli")]),
    "of a subagent": ("yes, go", [typed("yes, go", isSidechain=True)]),
    "another prompt": ("yes, go", [typed("what is this?", promptId="p-2")]),
    "a shell command": ("yes, go", [user("<bash-input>gsd-fsm answer yes</bash-input>")]),
    "damaged rows": ("yes, go", [{"type": "user"}, {"type": "user", "message": []}]),
}


@pytest.mark.parametrize("case", FOUND)
def test_prompt_is_found_however_the_user_sent_it(transcript: Transcript, case: str) -> None:
    text, rows = FOUND[case]
    prompt = transcript.prompt(text)
    transcript.write(*rows)
    assert find_prompt(prompt) is Found.YES


@pytest.mark.parametrize("case", NOT_FOUND)
def test_prompt_is_refuted_unless_a_user_sent_it(transcript: Transcript, case: str) -> None:
    text, rows = NOT_FOUND[case]
    prompt = transcript.prompt(text)
    transcript.write(*rows)
    assert find_prompt(prompt) is Found.NO
    assert weigh([prompt], {}, "claude", ()) == Weighed(verified=False, problem=MISSING)


def test_prompts_of_another_session_are_verified_by_any_message_of_its_user(
    transcript: Transcript,
) -> None:
    first = transcript.prompt(None)
    transcript.write(
        user("<bash-input>ls</bash-input>"), typed("<command-name>/usage</command-name>")
    )
    assert find_prompt(first) is Found.NO
    transcript.write(typed("something else", promptId="p-7"))
    assert find_prompt(first) is Found.YES


def test_prompt_that_is_written_late_is_found(
    transcript: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAUSES", (0.0, *[0.05] * 100))
    prompt = transcript.prompt()
    transcript.write(tool_use("gsd-fsm answer yes"))
    late = threading.Timer(0.1, transcript.write, [typed("yes, go")])
    late.start()
    began = time.monotonic()
    assert find_prompt(prompt) is Found.YES
    assert time.monotonic() - began < 3
    late.join()


@pytest.mark.parametrize("what", ["missing", "empty", "begun anew", "a directory"])
def test_prompt_without_a_transcript_counts_as_unverified(
    transcript: Transcript, what: str
) -> None:
    prompt = transcript.prompt()
    if what == "begun anew":
        transcript.path.write_text("{}\n")
    elif what == "empty":
        transcript.path.write_text("")
    else:
        transcript.path.unlink()
    if what == "a directory":
        transcript.path.mkdir()
    assert weigh([prompt], {}, "claude", ()) == Weighed(verified=False)


def test_one_genuine_prompt_among_several_is_enough(transcript: Transcript) -> None:
    genuine = transcript.prompt("the first")
    transcript.write(typed("the first"), tool_use("gsd-fsm hook"))
    forged = transcript.prompt("yes, go")
    assert weigh([forged], {}, "claude", ()).problem == MISSING
    assert weigh([forged, genuine], {}, "claude", ()) == Weighed(verified=True)


def test_prompt_with_a_transcript_of_its_own_does_not_count(
    transcript: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Transcript(tmp_path / "other")
    forged = other.prompt()
    other.write(typed("yes, go"))
    assert weigh([forged], {}, "claude", ()) == Weighed(verified=True)  # nothing is known yet
    known = {SESSION: str(transcript.path)}
    assert weigh([forged], known, "claude", ()).problem == ELSEWHERE
    strange = build(Prompt, session="s-2", file=str(other.path), digest="d")
    nameless = build(Prompt, session=SESSION, digest="d")
    for prompt in (strange, nameless):
        assert weigh([prompt], {}, "claude", ()).problem == ELSEWHERE
    # The one that Claude Code has counts, whatever was named first.
    real = Transcript(Path.home() / ".claude" / "projects" / "-proj")
    for named in ({}, {SESSION: str(other.path)}):
        assert weigh([forged], named, "claude", ()).problem == ELSEWHERE
    gone = transcript.prompt(file=str(tmp_path / "none" / f"{SESSION}.jsonl"))
    assert weigh([gone], {}, "claude", ()).problem == ELSEWHERE
    prompt = real.prompt()
    real.write(typed("yes, go"))
    assert weigh([prompt], {SESSION: str(other.path)}, "claude", ()) == Weighed(verified=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(real.path.parents[2]))
    assert weigh([forged], {}, "claude", ()).problem == ELSEWHERE


def test_prompt_to_another_client_or_process_does_not_count(transcript: Transcript) -> None:
    prompt = transcript.prompt(pid=4711)
    transcript.write(typed("yes, go"))
    assert weigh([prompt], {}, "claude", (1, 4711)).verified
    assert weigh([prompt], {}, "claude", ()).verified
    assert "another process" in weigh([prompt], {}, "claude", (1, 4712)).problem
    kimi = build(Prompt, session=SESSION, client="kimi")
    assert "another client" in weigh([kimi], {}, "claude", ()).problem
    assert "another client" in weigh([prompt], {}, "kimi", ()).problem
    for client in ("kimi", "agent", None):
        assert weigh([kimi], {}, client, ()) == Weighed(verified=False)
    kilo = build(Prompt, session=SESSION, client="opencode")
    assert weigh([kilo], {}, "kilo", ()) == Weighed(verified=False)
