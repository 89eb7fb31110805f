"""Compose the commands that texts name: the only place that knows their form.

The verb comes first, so that a permission rule of a client can name it: `Bash(gsd-fsm resume:*)`.
"""

from __future__ import annotations

PROGRAM = "gsd-fsm"
_chosen = [PROGRAM]


def program() -> str:
    """Return the beginning of each command: how the program is called where its texts are read."""
    return _chosen[0]


def set_program(words: str) -> None:
    """Set the shell words that every command begins with; call it at the start of a process."""
    _chosen[0] = words


def command_line(verb: str, loop_id: str = "", arguments: str = "") -> str:
    """Return the command for this verb, which may be of two words, on this loop.

    `arguments` are shell words. An option cannot follow their `--`, so the loop precedes them.
    """
    words = [program(), verb]
    if loop_id:
        words += ["--loop", loop_id]
    if arguments:
        words.append(arguments)
    return " ".join(words)
