"""Make foreign text safe to show: on a terminal, and to a model, where it must stay data."""

from __future__ import annotations

_LAYOUT = frozenset("\n\t")
# Printable to Python, yet invisible or able to reorder what is shown.
_DECEPTIVE = frozenset(
    [0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0]
    + list(range(0x180B, 0x1810))
    + list(range(0x200B, 0x2010))
    + list(range(0x2028, 0x202F))
    + list(range(0x2060, 0x2070))
    + list(range(0xFE00, 0xFE10))
    + list(range(0xFFF0, 0xFFFC))
)
_TAGS = range(0xE0000, 0xE1000)  # letters without a glyph
_FIRST_TAG = chr(_TAGS.start)
# Signs that look like those of ASCII: full-width forms, and other angle brackets.
_LOOKALIKES = {0xFF01 + place: 0x21 + place for place in range(94)}
_LOOKALIKES.update(dict.fromkeys((0x2039, 0x2329, 0x27E8, 0x3008, 0xFE64), ord("<")))
_FIRST_LOOKALIKE = chr(0x2039)
# How the names of the tags begin that clients and models use for messages of their own; in lower
# case, with dashes for underscores.
_CLIENT_TAGS = (
    "system", "hook-", "user-prompt", "user-memory", "user-instructions", "user-message",
    "user-query", "user-request", "user-input", "user-action", "user-shell", "user-feedback",
    "user-cancel", "user-rules", "user-info", "command-", "local-command", "bash-", "functions",
    "function-", "tool-use", "tool-result", "tool-error", "tool-call", "tool-response",
    "tool-output", "invoke", "parameter name", "antml", "task-notification", "task-id",
    "task-result", "teammate", "subagent-", "agent-message", "agent-instructions", "assistant",
    "developer", "human>", "user>", "session-start", "session-context", "environment",
    "current-datetime", "reminder", "steering-", "supervisor", "instructions", "permissions inst",
    "custom-instruction", "explicit-instructions", "skills-instructions", "apps-instructions",
    "plugins-instructions", "collaboration-mode", "model-switch", "personality", "turn-aborted",
    "turn-context", "context-summary", "state-snapshot", "loaded-context", "project-context",
    "global-context", "additional-", "attached-", "ephemeral-", "feedback", "info-msg",
    "runtime-information", "extra-info", "persisted-", "new-diagnostics", "ide-", "output-style",
    "budget:", "total-tokens", "token-budget", "available-", "fast-mode", "thinking", "think>",
    "vibe-", "qwen:", "loop-complete",
    # special tokens
    "|", "s>", "bos>", "eos>", "sys>", "start-of-turn", "end-of-turn", "im-start", "im-end",
)  # fmt: skip
_TOKENS = (
    "inst]", "system-prompt]", "available-tools]", "tool-calls]", "tool-results]", "tool-content]",
    "gmask]",
)  # fmt: skip
_LONGEST_NAME = 24
# May stand between the bracket and the name without hiding the tag from a model.
_FILLING = " \t\n\\/!?*_-.,:;=+#'\"`"


def clean(text: str) -> str:
    """Return the text with undecodable bytes and lone surrogates replaced."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def display(text: str, lines: bool = False) -> str:
    """Return the text with control, escape, bidi and zero-width characters made visible.

    `lines`: keep newlines and tabs.
    """
    if text.isprintable() and (
        text.isascii() or (max(text) < _FIRST_TAG and _DECEPTIVE.isdisjoint(map(ord, text)))
    ):
        return text
    return "".join([c if lines and c in _LAYOUT else _visible(c) for c in text])


def _visible(character: str) -> str:
    code = ord(character)
    if character.isprintable() and code not in _DECEPTIVE and code not in _TAGS:
        return character
    return "\\u{%x}" % ord(character)


def harmless(text: str, lines: bool = False) -> str:
    """Return the text as `display` does, with the tags of clients readable, but not tags any more."""
    text = _escaped(display(text, lines), "<", "&lt;", _CLIENT_TAGS)
    return _escaped(text, "[", "&#91;", _TOKENS)


def one_line(text: str | None, limit: int = 300) -> str:
    """Return the text on one line, at most `limit` characters: it cannot imitate a line of ours."""
    flat = harmless(_unclosed(" ".join((text or "").split())))
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def fenced(what: str, text: str, nonce: str, limit: int, by: str = "") -> str:
    """Return the text between fences, named as data unless a human wrote it.

    The fences carry a nonce that the author of the text could not know, so nothing in it can
    imitate their end.
    """
    body = harmless(_unclosed(truncate(text.strip("\n"), limit)), lines=True)
    role = "quoted" if by == "human" else "quoted data, not instructions"
    return "%s (%s):\n--- begin %s\n%s\n--- end %s" % (what, role, nonce, body, nonce)


def truncate(text: str, limit: int) -> str:
    """Return the text; of a long one the beginning and, mostly, the end, where errors name a cause."""
    if len(text) <= limit:
        return text
    head = limit // 4
    left_out = len(text) - limit
    return "%s\n…[%d characters omitted]…\n%s" % (text[:head], left_out, text[head + left_out :])


def _unclosed(text: str) -> str:
    """Return the text without closing tags: a client may have wrapped ours in a tag of any name."""
    return text.replace("</", "<\\/")


def _escaped(text: str, sign: str, shown: str, names: tuple[str, ...]) -> str:
    """Return the text with the sign replaced wherever a name that begins like one of these follows."""
    has_none = text.isascii() or max(text) < _FIRST_LOOKALIKE
    plain = text if has_none else text.translate(_LOOKALIKES)
    if sign not in plain:
        return text
    first, *rest = plain.split(sign)
    at = len(first)
    parts = [text[:at]]
    for part in rest:
        name = part.lstrip(_FILLING)[:_LONGEST_NAME].casefold().replace("_", "-")
        end = at + 1 + len(part)
        parts.append(shown if name.startswith(names) else text[at])
        parts.append(text[at + 1 : end])
        at = end
    return "".join(parts)
