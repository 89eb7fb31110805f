"""Shells that complete command lines, with two corrections of what click gives them."""

from __future__ import annotations

from shlex import quote
from typing import Any

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
)


class Bash(BashComplete):
    """Bash inserts a candidate as it is: quote it, so that it stays one word and runs nothing."""

    def format_completion(self, item: CompletionItem[Any]) -> str:
        return super().format_completion(CompletionItem(quote(item.value), item.type))


class Fish(FishComplete):
    """The script of click drops what follows a second comma, also in descriptions."""

    source_template = FishComplete.source_template.replace('split ","', 'split --max 1 ","')


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": ZshComplete, "fish": Fish}
