"""Clients: each is recognised by what it sends, and answered in its own form alone."""

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.core.hook.clients import Signal, claims_completion, is_human
from tests.support.command_line import Here
from tests.support.hook_agent import GOAL, Reply, call_here, kinds

S = "ses_1"
STOP = {"hook_event_name": "Stop", "session_id": S}
ACTIVE = {"stop_hook_active": False}
# Stops as the clients send them.
CLAUDE = {
    **STOP, **ACTIVE, "transcript_path": "/h/.claude/projects/-p/s.jsonl", "prompt_id": "p",
    "permission_mode": "default", "effort": {"level": "medium"}, "last_assistant_message": "one",
    "background_tasks": [], "session_crons": [],
}  # fmt: skip
CODEX = {
    **STOP, **ACTIVE, "turn_id": "t", "transcript_path": "/h/.codex/sessions/r.jsonl", "model": "m",
    "permission_mode": "bypassPermissions", "last_assistant_message": "Done.",
}  # fmt: skip
GEMINI = {
    **ACTIVE, "session_id": S, "transcript_path": "/h/.gemini/tmp/p/chats/s.jsonl", "timestamp": "t",
    "hook_event_name": "AfterAgent", "prompt": "say hi", "prompt_response": "Done.",
}  # fmt: skip
QWEN_OLD = {
    **STOP, **ACTIVE, "transcript_path": "/h/.qwen/projects/-p/chats/s.jsonl", "timestamp": "t",
    "last_assistant_message": "Done.",
}  # fmt: skip
QWEN = {
    **QWEN_OLD, "permission_mode": "auto", "prompt_id": "x########0", "background_tasks": [],
    "crons": [], "context_usage": 5e-05, "context_limit": 200000, "input_tokens": 10,
}  # fmt: skip
COPILOT = {
    **ACTIVE, "sessionId": S, "timestamp": 1794784415308, "transcriptPath": "/h/.copilot/e.jsonl",
    "stopReason": "end_turn",
}  # fmt: skip
COPILOT_PASCAL = {
    **STOP, **ACTIVE, "timestamp": "t", "transcript_path": "/h/.copilot/e.jsonl", "stop_reason": "end",
}  # fmt: skip
KIMI = {**STOP, **ACTIVE, "client_type": "kimi_code_cli"}
OPENCODE = {"gsd_client": "opencode", "hook_event_name": "session.idle", "session_id": S}
CURSOR = {
    "conversation_id": S, "generation_id": "g", "model": "m", "hook_event_name": "stop",
    "cursor_version": "1.7.2", "workspace_roots": ["ROOT"], "user_email": None,
    "transcript_path": None, "status": "completed", "loop_count": 0,
}  # fmt: skip
DROID = {
    **STOP, **ACTIVE, "transcript_path": "/h/s.jsonl", "permission_mode": "auto", "message_id": "m",
    "tool_execution_count": 12, "elapsed_time": 48211,
}  # fmt: skip
ROOTS = {"workspace_roots": ["ROOT"]}
AUGGIE = {"hook_event_name": "Stop", "conversation_id": S, **ROOTS, "agent_stop_cause": "end_turn"}
VSCODE = {**ACTIVE, "sessionId": S, "hookEventName": "Stop", "transcript_path": "/s"}
GOOSE = {"event": "Stop", "session_id": S, "last_assistant_message": "x"}
DEVIN = {**STOP, **ACTIVE, "prompt_id": "p"}
ANTIGRAVITY = {
    "conversationId": S, "transcriptPath": "/h/s", "workspacePaths": ["ROOT"], "executionNum": 1,
    "terminationReason": "model_stop", "fullyIdle": True,
}  # fmt: skip


def in_stop(**members: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "Stop", **members}}


PLAIN = {"decision": "block", "reason": "R"}
QUIET = in_stop(additionalContext="R")
NOTICE = {"systemMessage": "N"}
NEW = {"AI_AGENT": "claude-code_2-1-163_harness"}

# client, stop, environment, block, notice
STOPS: list[tuple[str, dict[str, Any], dict[str, str], Any, Any]] = [
    *(("claude", CLAUDE, {"AI_AGENT": agent}, PLAIN, NOTICE) for agent in (
        "claude-code_2-1-162_x", "claude-code_1-9-999_x", "claude-code_x-y-z_", "other_9-9-999_x")),
    *(("claude", CLAUDE, {"AI_AGENT": f"claude-code_{version}_harness"}, QUIET, NOTICE)
      for version in ("2-1-163", "2-2-0")),
    ("codex", CODEX, {"CODEX_MANAGED_BY_NPM": "1", **NEW}, PLAIN, NOTICE),
    ("gemini", GEMINI, {"GEMINI_SESSION_ID": S, **NEW}, PLAIN, NOTICE),
    ("qwen", QWEN, {"QWEN_PROJECT_DIR": "ROOT", "GEMINI_PROJECT_DIR": "ROOT"}, PLAIN, NOTICE),
    ("qwen", QWEN_OLD, {"QWEN_PROJECT_DIR": "ROOT"}, PLAIN, NOTICE),
    ("copilot", COPILOT, {"COPILOT_CLI": "1", **NEW}, PLAIN, NOTICE),
    ("copilot", COPILOT_PASCAL, {"COPILOT_CLI": "1"}, PLAIN, NOTICE),
    ("copilot", COPILOT_PASCAL, {}, PLAIN, NOTICE),
    ("kimi", KIMI, {}, in_stop(permissionDecision="deny", permissionDecisionReason="R"), None),
    ("opencode", OPENCODE, {}, PLAIN, None),
    ("cursor", CURSOR, NEW, {"followup_message": "R"}, None),
    ("droid", DROID, {}, PLAIN, NOTICE),
    ("auggie", AUGGIE, {}, in_stop(**PLAIN), None),
    ("vscode", VSCODE, {}, {**PLAIN, **in_stop(**PLAIN)}, None),
    ("goose", GOOSE, {}, PLAIN, None),
    ("devin", DEVIN, {"DEVIN_PROJECT_DIR": "ROOT"}, PLAIN, None),
    ("antigravity", ANTIGRAVITY, {}, {"decision": "continue", "reason": "R"}, None),
    ("", {**STOP, **ACTIVE}, {}, PLAIN, NOTICE),
]  # fmt: skip


def filled(value: Any, **texts: str) -> Any:
    """Return the value with these texts for their names: ROOT, R (reason), N (notice), C (context)."""
    if isinstance(value, dict):
        return {name: filled(item, **texts) for name, item in value.items()}
    if isinstance(value, list):
        return [filled(item, **texts) for item in value]
    return texts.get(value, value) if isinstance(value, str) else value


def send(here: Here, signal: dict[str, Any], env: dict[str, str] | None = None) -> Reply:
    root = str(here.root)
    return call_here(filled(signal, ROOT=root), filled(env or {}, ROOT=root), "one", here.root)


def numbered(cases: list[Any]) -> list[str]:
    return [f"{case[0]}-{number}" for number, case in enumerate(cases)]


@pytest.mark.parametrize("case", STOPS, ids=numbered(STOPS))
def test_client_gets_blocks_and_notices_in_its_own_form(here: Here, case: Any) -> None:
    client, stop, env, block, notice = case
    here.start(*GOAL, "--mode", "yolo", "--max-iterations", "1", env={"CLAUDE_CODE_SESSION_ID": S})
    answer = send(here, stop, env).answer
    last = here.last()
    assert (last["type"], last.get("client", "")) == ("iteration", client)
    assert answer == filled(block, R=last["data"]["reason"])
    answer = send(here, stop, env).answer
    assert kinds(here)[-1] == "pause iterations"
    assert answer == filled(notice, N=here.last()["data"]["said"])
    assert send(here, stop, env) == (None, "")


def test_aborted_or_failed_turn_is_not_a_stop(here: Here) -> None:
    here.start(*GOAL, env={"CLAUDE_CODE_SESSION_ID": S})
    before = here.journal.read_bytes()
    aborted = {"status": "aborted", "agent_stop_cause": "interrupted", "fullyIdle": False}
    for stop in (CURSOR, AUGGIE, ANTIGRAVITY):
        signal = {name: aborted.get(name, value) for name, value in stop.items()}
        assert send(here, signal) == (None, "")
    assert here.journal.read_bytes() == before


START = {"hook_event_name": "SessionStart", "session_id": S, "source": "startup"}
IN_COPILOT = {"COPILOT_CLI": "1"}
IN_CLAUDE = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "C"}}
CONTEXTS: list[tuple[str, dict[str, Any], dict[str, str], Any]] = [
    ("claude", {**START, "transcript_path": "/h/.claude/projects/s.jsonl"}, NEW, IN_CLAUDE),
    ("codex", {**START, "transcript_path": "/h/.codex/sessions/r.jsonl"}, {}, IN_CLAUDE),
    ("gemini", {**START, "timestamp": "t"}, {"GEMINI_SESSION_ID": S}, IN_CLAUDE),
    ("qwen", {**START, "transcript_path": "/h/.qwen/s.jsonl"}, {}, IN_CLAUDE),
    ("copilot", {**START, "source": "new", "initial_prompt": "hi"}, IN_COPILOT,
     {"additionalContext": "C"}),
    ("copilot", {"sessionId": S, "timestamp": 1, "source": "new", "initialPrompt": "hi"},
     IN_COPILOT, {"additionalContext": "C"}),
    ("kimi", {**START, "client_type": "kimi_code_cli"}, {}, None),
    ("cursor", {"hook_event_name": "sessionStart", "conversation_id": S, "generation_id": "g"}, {},
     {"additional_context": "C"}),
    ("vscode", {"hookEventName": "SessionStart", "sessionId": S, "source": "new"}, {}, IN_CLAUDE),
]  # fmt: skip


@pytest.mark.parametrize(("client", "signal", "env", "expected"), CONTEXTS, ids=numbered(CONTEXTS))
def test_client_gets_context_in_its_own_form(
    here: Here, client: str, signal: dict[str, Any], env: dict[str, str], expected: Any
) -> None:
    here.start(*GOAL, env={"CLAUDE_CODE_SESSION_ID": S})
    answer = send(here, signal, env).answer
    assert here.last().get("client", "") == client
    inner = (answer or {}).get("hookSpecificOutput", answer or {})
    text = inner.get("additionalContext") or inner.get("additional_context") or ""
    assert answer == filled(expected, C=text)
    assert not expected or text.startswith("[LOOP RESUME]")


def test_prompt_binds_session_in_every_form(here: Here) -> None:
    for signal in (
        {"hook_event_name": "UserPromptSubmit", "session_id": "a", "prompt": "x"},
        {"hook_event_name": "BeforeAgent", "session_id": "b", "prompt": "x"},
        {"hook_event_name": "beforeSubmitPrompt", "conversation_id": "d", "generation_id": "g"},
        {"hookEventName": "UserPromptSubmit", "sessionId": "f", "prompt": "x"},
    ):
        here.start(*GOAL, "--fresh")
        send(here, signal)
        assert here.status()["owner"] == next(v for v in signal.values() if len(v) == 1)
        here.ok("cancel")


@pytest.mark.parametrize(
    ("signal", "binds"),
    [
        *((signal, True) for signal in (GOOSE, OPENCODE, AUGGIE)),
        *((signal, False) for signal in (CODEX, CLAUDE, STOP, {**GOOSE, "session_id": ""})),
    ],
)
def test_stop_binds_session_only_in_clients_without_prompt_hook(
    here: Here, signal: dict[str, Any], binds: bool
) -> None:
    here.start(*GOAL)
    assert bool(send(here, signal).answer) is binds
    assert here.status()["owner"] == (S if binds else None)


# what a message says


@pytest.mark.parametrize(
    ("prompt", "human"),
    [("", True), ("It says: <task-notification>", True), ("\n  <task-notification>", False),
     ("<system-reminder>x</system-reminder>", False), ("before OUR BLOCK after", False)],
)  # fmt: skip
def test_is_human_recognises_prompts_of_clients_and_our_own_block(prompt: str, human: bool) -> None:
    signal = Signal({"hook_event_name": "UserPromptSubmit", "prompt": prompt}, "", "", lambda _: "")
    assert is_human(signal, "OUR BLOCK") is human


def test_block_that_comes_back_as_a_prompt_is_not_recorded(here: Here) -> None:
    here.start(*GOAL, "--mode", "yolo", env={"CLAUDE_CODE_SESSION_ID": S})
    answer = send(here, GEMINI).answer
    assert answer
    before = here.journal.read_bytes()
    again = {"session_id": S, "hook_event_name": "BeforeAgent", "prompt": answer["reason"]}
    assert send(here, again).answer is None
    assert here.journal.read_bytes() == before
    asked = send(here, {**again, "prompt": "go on"}).answer
    assert kinds(here)[-1] == "session prompt"
    assert set(asked or {}) <= {"systemMessage"}


TAG, END = "<loop-complete>", "</loop-complete>"
CLAIMS = (
    f"All is done.\n{TAG}shipped{END}", f"{TAG}{END}", f"All is done.\n{TAG}", f"Done.\n\n  {TAG}  \n\n",
    f"All is done.\r\n{TAG}\r\n", f"{TAG}\nshipped\nand told\n{END}", f"```sh\nmake\n```\n{TAG}ok{END}",
    f"~~~\n```\n~~~\n{TAG}", f"```make test``` passes.\n\n{TAG}", f"````md\n```\nmake\n```\n````\n{TAG}",
)  # fmt: skip
NO_CLAIMS = (
    "", f"{TAG}\nBut there is more to do.", f"{TAG}done{END} is what I shall write later.",
    f"I shall end with {TAG}", f"All is done. {TAG}shipped{END}", f"As agreed: {TAG}\nshipped\n{END}",
    f'"{TAG}done{END}', f"“{TAG}done{END}", f"'{TAG}", f"`{TAG}", f"`{TAG}`", f"**{TAG}done{END}",
    f"> {TAG}done{END}", f"> {TAG}", f">{TAG}\n> done\n> {END}", f"- {TAG}done{END}", f"1. {TAG}",
    f"The form:\n\n    {TAG}done{END}", f"\t{TAG}", f"{TAG}\nI end with {TAG}done{END}", f"Write `{TAG}done{END}`", f"```\n{TAG}done{END}\n```",
    f"```\n{TAG}done{END}", f"~~~xml\n{TAG}", f"````\n```\n{TAG}done{END}", f"done{END}",
    "<loop-completed>",
)  # fmt: skip


def test_claims_completion_finds_the_mark_only_at_the_end_outside_fences() -> None:
    assert [text for text in CLAIMS if not claims_completion(text)] == []
    assert [text for text in NO_CLAIMS if claims_completion(text)] == []
