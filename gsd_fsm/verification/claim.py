"""What a check of a plan claims in its words: which file, which texts, and whether they are there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

_QUOTES = re.compile(
    r'"([^"]*)"|“([^”]*)”|`([^`]*)`'
    r"|(?<![^\s(])'([^']*)'(?![^\s.,;:!?)])"  # set off by blanks: else it is an apostrophe
)
_QUOTE = "\0"  # stands for a quotation in what is left of the text
_DENIES_CONTENT = re.compile(
    r"\b(?:(?:do(?:es)?|must|should|may|can|will) ?not|(?:do(?:es)?|must|should|wo)n['’]t|never|no longer)"
    r" (?:\w+ )?(?:contains?|includes?|mentions?|references?|uses?|imports?|has|have|holds?)\b"
    r"|\bcontains? no\b",
    re.IGNORECASE,
)
_DENIES_FILE = re.compile(
    r"\bnot exist\b|n['’]t exist\b|\bno longer exists?\b"
    r"|\b(?:is|are|was|were|been|be) (?:removed|deleted|gone|absent)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?:[\w@+.-]*/)*[\w@+.-]*\.[A-Za-z]\w{0,9}/?")
_ARTICLES = ("the", "file", "script", "module")


class Claim(NamedTuple):
    """A check's text, taken apart."""

    texts: tuple[str, ...]
    words: tuple[str, ...]  # outside of quotations, and the names of files within
    denied: bool


def read_claim(kind: str, text: str, files: tuple[str, ...]) -> Claim:
    """The claim of a `file` or `content` check of a task that has these files."""
    text = text.replace(_QUOTE, " ")
    quotes = [match[match.lastindex or 0] for match in _QUOTES.finditer(text)]
    rest = " ".join(_QUOTES.sub(_QUOTE, text).split())
    texts: list[str] = []
    words: list[str] = []
    for number, part in enumerate(rest.split(_QUOTE)):
        if number:
            quote = quotes[number - 1]
            # A file may be quoted too: `config.md` contains "loop:".
            named = len(quotes) > 1 and _is_place(words) and _file_of(quote, files)
            (words if kind == "file" or named else texts).append(quote)
        words += _words(part)
    denial = (_DENIES_FILE if kind == "file" else _DENIES_CONTENT).search(rest)
    # What is quoted before the denial is not denied.
    denied = denial is not None and (kind == "file" or _QUOTE not in rest[: denial.start()])
    return Claim(tuple(filter(None, texts)), tuple(filter(None, words)), denied)


def files_meant(
    kind: str, claim: Claim, files: tuple[str, ...], exists: Callable[[str], bool]
) -> list[str]:
    """The file that is named, else those of the task."""
    ways: tuple[Callable[[str], str | None], ...] = (
        lambda word: _file_of(word, files),
        lambda word: word if ".." in word.split("/") else None,
        lambda word: word if _is_path(word) and exists(word) else None,
    )
    for way in ways:
        named = next(filter(None, map(way, claim.words)), None)
        if named:
            return [named]
    # No file is called so; the word may mean one all the same, by where it stands.
    for number, word in enumerate(claim.words):
        if kind == "file" and _is_path(word):
            return [word]
        if (_NAME.fullmatch(word) or word.startswith("/")) and _is_place(claim.words[:number]):
            return [word]
    return list(files)


def _is_place(before: Sequence[str]) -> bool:
    """Whether a file would be named after these words: at the beginning, or after "in"."""
    return all(word.lower() in _ARTICLES for word in before) or before[-1] == "in"


def _is_path(word: str) -> bool:
    return "/" in word or _NAME.fullmatch(word) is not None


def _words(text: str) -> list[str]:
    bare = (word.lstrip("([{<*\"',;:!?").rstrip(")]}>*\"',;:!?.") for word in text.split())
    return [word.removeprefix("./") for word in bare if word]


def _file_of(word: str, files: tuple[str, ...]) -> str | None:
    """The file of the task that is called so: by its path, or by the end of it."""
    if word in files:
        return word
    is_name = "." in word or "/" in word or word[:1].isupper()
    return next((file for file in files if is_name and file.endswith("/" + word)), None)
