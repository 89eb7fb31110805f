"""Tags and special tokens that clients and models use, and the forms in which a text may bring them."""

from __future__ import annotations

import re

# By client, or by what its models read as special.
TAGS = {
    "claude": (
        "system-reminder", "command-name", "command-message", "command-args", "command-contents",
        "local-command-stdout", "local-command-stderr", "local-command-caveat", "bash-input",
        "bash-stdout", "bash-stderr", "user-prompt-submit-hook", "user-memory-input",
        "task-notification", "task-id", "function_calls", "function_results", "functions", "invoke",
        "antml:invoke", "tool_use_error", "tool_result", "teammate-message", "persisted-output",
        "new-diagnostics", "ide_opened_file", "ide_selection", "session-start-hook",
    ),
    "codex": (
        "hook_prompt", "environment_context", "user_instructions", "user_shell_command",
        "user_action", "turn_aborted", "subagent_notification", "INSTRUCTIONS",
        "permissions instructions", "collaboration_mode", "skills_instructions", "model_switch",
    ),
    "gemini": ("hook_context", "session_context", "state_snapshot", "loaded_context"),
    "qwen": ("qwen:session-start-context", "system-reminder"),
    "copilot": ("current_datetime", "reminder", "custom_instruction", "agent_instructions"),
    "kimi": ("hook_result", "system"),
    "goose": ("info-msg",),
    "grok": ("user_query", "system_reminder"),
    "cline and kilo": (
        "environment_details", "user_message", "feedback", "explicit_instructions", "task_result",
    ),
    "openhands": ("RUNTIME_INFORMATION", "EXTRA_INFO", "environment_information"),
    "opencode and pi": ("system-reminder", "available_skills", "assistant", "developer"),
    "vibe": ("vibe_warning", "vibe_stop_event", "user_cancellation", "tool_error"),
    "other editors": (
        "additional_data", "attached_files", "ephemeral_message", "user_rules", "user_info",
        "supervisor", "steering-reminder", "SYSTEM_MESSAGE",
    ),
    "models": (
        "tool_call", "tool_response", "thinking", "start_of_turn", "end_of_turn", "|im_start|",
        "|im_end|", "|endoftext|", "|start_header_id|", "|channel|", "｜User｜",
    ),
    "gsd-fsm": ("loop-complete",),
}  # fmt: skip
NAMES = tuple(dict.fromkeys(name for names in TAGS.values() for name in names))
# Tokens that are special only in this form.
TOKENS = (
    "<s>", "</s>", "<bos>", "<eos>", "<<SYS>>", "[INST]", "[/INST]", "[ inst]", "［INST］",
    "[SYSTEM_PROMPT]", "[TOOL_RESULTS]",
)  # fmt: skip
_WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
# How a text may spell a tag: %s is its name.
FORMS = (
    "<%s>", "</%s>", "<\\/%s>", "< %s >", "< / %s>", "<\n\t/%s>", '<%s a="b">', "<%s", "<%s/>",
    "<<%s>>", "<i<%s>>", "<!%s>", "＜%s>", "〈/%s〉",
)  # fmt: skip
_BRACKET = r"[<＜‹〈⟨﹤〈]"
_FILLING = r"[\s\\/!?*_.:;-]*"
_NAME = "|".join([*map(re.escape, NAMES), r"\|", "s>", "bos>", "eos>", "sys>"])
_TOKEN = r"\[[\s/]*(?:inst|system_prompt|tool_results)\]"
_TAG = re.compile(rf"{_BRACKET}{_FILLING}(?:{_NAME})|{_TOKEN}", re.IGNORECASE)
_NARROW = {wide: narrow for narrow, wide in _WIDE.items()}


def forms_of(name: str) -> list[str]:
    """Return every form of a tag, also in capitals and in full-width letters."""
    plain = [form % name for form in FORMS]
    return [*plain, *(form.upper() for form in plain), *(form.translate(_WIDE) for form in plain)]


def portions(most: int = 900) -> list[str]:
    """Return texts of at most so many characters that together have every tag, opened and closed."""
    texts = [""]
    for mark in (*(f"</{name}><{name}>" for name in NAMES), *TOKENS):
        if len(texts[-1]) + len(mark) >= most:
            texts.append("")
        texts[-1] += f"{mark}PWNED\n"
    return texts


def assert_no_tags(text: str) -> None:
    found = _TAG.search(text) or _TAG.search(text.translate(_NARROW))
    assert not found, (found, text)


def own_lines(text: str) -> list[str]:
    """Return our own lines: those that are not between two fences with the same nonce."""
    ours = re.sub(r"^--- begin ([0-9a-f]{16})\n(.*\n)*?--- end \1$", "", text, flags=re.MULTILINE)
    assert "--- begin" not in ours, "a fence was left open"
    return ours.split("\n")
