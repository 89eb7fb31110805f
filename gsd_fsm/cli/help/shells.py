"""Shells that complete command lines: those of click, with two corrections."""

from __future__ import annotations

import re
from typing import Any

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
)

_SPECIAL = re.compile(r"[^\w@%+=:,./-]")


class Bash(BashComplete):
    """Bash inserts a candidate unchanged: escape it, so that it stays one word and runs nothing."""

    def format_completion(self, item: CompletionItem[Any]) -> str:
        escaped = _SPECIAL.sub(r"\\\g<0>", item.value)
        read = escaped.replace("\\", r"\\")  # the script reads it without -r
        return super().format_completion(CompletionItem(read, item.type))


class Fish(FishComplete):
    """Click's script drops the text after a second comma, also in descriptions."""

    source_template = FishComplete.source_template.replace('split ","', 'split --max 1 ","')


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": ZshComplete, "fish": Fish}
