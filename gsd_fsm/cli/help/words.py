"""Aliases of commands, and words that people type instead of a command."""

from __future__ import annotations

from collections.abc import Iterable

# for --help and --version
OTHER_WORDS = HELP, VERSION = "help", "version"
# alias -> command
ALIASES = {
    "abort": "cancel",
    "continue": "resume",
    "install": "init",
    "list": "ps",
    "log": "replay",
    "ls": "ps",
    "new": "start",
    "quit": "pause",
    "stop": "pause",
}
# word -> the command that is suggested for it
SUGGESTED = {
    "approve": "answer", "ask": "wait", "back": "rollback", "begin": "start",
    "ci": "verify", "close": "complete", "configure": "config", "create": "start",
    "delete": "cancel", "diagnose": "doctor", "done": "complete", "end": "complete",
    "error": "fail", "events": "replay", "execute": "start", "exit": "pause", "explain": "why",
    "finish": "complete", "finished": "complete", "follow": "replay", "get": "config",
    "go": "start", "goal": "start", "halt": "pause", "health": "doctor", "import-loop": "import",
    "info": "status", "kill": "cancel", "lessons": "recall", "logs": "replay", "loop": "start",
    "loops": "ps", "message": "note", "msg": "note", "no": "answer", "past": "history",
    "pause-all": "pause", "progress": "status", "prove": "check", "reason": "why",
    "remove": "cancel", "repair": "fsck", "reply": "answer", "reset": "rollback",
    "restart": "resume", "retry": "resume", "revert": "rollback",
    "rm": "cancel", "run": "start", "say": "note", "set": "config", "settings": "config",
    "setup": "init", "show": "status", "state": "status", "stop-all": "pause", "tail": "replay",
    "tell": "note", "test": "check", "tests": "check", "timeline": "replay", "todo": "next",
    "undo": "rollback", "unpause": "resume", "update": "init", "upgrade": "init",
    "validate": "verify", "watch": "status", "yes": "answer", "yolo": "mode",
}  # fmt: skip
_SHORTEST_BEGINNING = 3
_SHORTEST_SIMILAR = 4  # shorter names resemble too many words
_CLOSE = 0.7


def aliases_of(command: str) -> list[str]:
    """Return the aliases of a command."""
    return [alias for alias, name in ALIASES.items() if name == command]


def closest(word: str, commands: Iterable[str]) -> str:
    """Return the command or word that this one means, abbreviates or resembles most, else ""."""
    from difflib import get_close_matches

    accepted = {**{name: name for name in (*commands, *OTHER_WORDS)}, **ALIASES}
    meant = {**accepted, **SUGGESTED}
    word = word.lower()
    if word in meant:
        return meant[word]
    begun = [name for name in accepted if name.startswith(word)]
    if begun and len(word) >= _SHORTEST_BEGINNING:
        return accepted[begun[0]]
    for words in (accepted, meant):
        names = [name for name in words if len(name) >= _SHORTEST_SIMILAR]
        if near := get_close_matches(word, names, 1, _CLOSE):
            return meant[near[0]]
    return ""
