"""Other names of commands, and words that people type instead of a command."""

from __future__ import annotations

from collections.abc import Iterable

# other name -> command
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
# word -> the command that does what it means; these are only suggested
MEANINGS = {
    "accept": "answer", "approve": "answer", "back": "rollback", "begin": "start", "ci": "verify",
    "close": "complete", "configure": "config", "delete": "cancel", "diagnose": "doctor",
    "done": "complete", "end": "complete", "error": "fail", "execute": "start", "exit": "pause",
    "explain": "why", "finish": "complete", "finished": "complete", "go": "start", "goal": "start",
    "halt": "pause", "health": "doctor", "import-loop": "import", "info": "status",
    "kill": "cancel", "lessons": "recall", "logs": "replay", "loops": "ps", "message": "note",
    "msg": "note", "no": "answer", "prove": "check", "reason": "why", "remove": "cancel",
    "repair": "fsck", "reply": "answer", "restart": "resume", "restore": "rollback",
    "revert": "rollback", "rm": "cancel", "run": "start", "say": "note", "settings": "config",
    "setup": "init", "show": "status", "state": "status", "tell": "note", "test": "check",
    "tests": "check", "todo": "next", "undo": "rollback", "unpause": "resume",
    "upgrade": "init", "validate": "verify", "watch": "status", "yes": "answer", "yolo": "mode",
}  # fmt: skip
_SHORTEST_BEGINNING = 3
_CLOSE = 0.7


def other_names(command: str) -> list[str]:
    """Return the other names of a command."""
    return [alias for alias, name in ALIASES.items() if name == command]


def closest(word: str, commands: Iterable[str]) -> str:
    """Return the command that this word means, begins or resembles most; "" if there is none."""
    from difflib import get_close_matches

    accepted = {**{name: name for name in commands}, **ALIASES}
    meant = {**accepted, **MEANINGS}
    word = word.lower()
    if word in meant:
        return meant[word]
    begun = [name for name in accepted if name.startswith(word)]
    if begun and len(word) >= _SHORTEST_BEGINNING:
        return accepted[begun[0]]
    for words in (accepted, meant):
        if near := get_close_matches(word, words, 1, _CLOSE):
            return meant[near[0]]
    return ""
