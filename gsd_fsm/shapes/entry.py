"""One entry of a shape, and the words that say which part of it a heading or a key begins."""

from __future__ import annotations

import re
from typing import NamedTuple

CRITERIA = "criteria"
MUST_NOT = "must_not"
VERIFICATION = "verification"
# Constraints are anything: only those that forbid something are must-nots.
CONSTRAINTS = "constraints"


class Entry(NamedTuple):
    """An item under a heading or a key, in one line.

    `method` is what stands in the place of a command; `certain` that it can be nothing else.
    """

    section: str
    text: str
    line: int
    method: str = ""
    certain: bool = False


class Unreadable(Exception):
    """Something that is meant for us and cannot be understood; guessing would lose a criterion."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line
        self.what = what


_SECTIONS = (
    (
        MUST_NOT,
        re.compile(
            r"(?:(?:things|what|that|it|we|you) )*(?:must (?:not|never)|mustnt)s?\b.{0,60}|do not|donts?"
            r"|(?:constraint|boundarie|guardrail|rule)s?\b.{0,20}\bmust (?:not|never)s?\b.{0,20}"
            r"|non ?goals?"
        ),
    ),
    (
        VERIFICATION,
        re.compile(
            r"(?:(?:automated|manual|final|machine|how|success|acceptance|goal|criteria|and) )*"
            r"(?:to verify|verification|verify|checks?|proofs?)"
            r"(?: (?:plans?|commands?|steps?|checks?|checklists?|methods?|criteria|with|by|matrix|map"
            r"|table|types?|per criterion|of criteria))*"
        ),
    ),
    (
        CRITERIA,
        re.compile(
            r"(?:(?:success|acceptance|implementation|completion|exit|done|quality|goal|shipping"
            r"|functional|non functional|final|and|boolean|loop) )*criteri(?:a|on)"
            r"(?: (?:details?|lists?|for success|for done|of success|of done|to meet|to complete))*"
            r"|acceptance|definition of done|done when|success (?:conditions|when)"
        ),
    ),
    (CONSTRAINTS, re.compile(r"(?:\w+ ){0,2}constraints?")),
)
# What stands under such a heading explains the entries, and is none.
_ASIDE = re.compile(
    r"(?:why|notes?|rationale|reason(?:ing|s)?|background|context|examples?|references?|(?:open )?questions?"
    r"|risks?|assumptions?|out of scope|later|future|optional|nice to haves?|alternatives?|legend"
    r"|unresolved|deferred)\b.*"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NUMBER = re.compile(r"^(?:step |part |section )?\d{1,3}(?:\.\d{1,3})*[.):]?\s+")


def _words(title: str) -> str:
    """A title in bare lower-case words: `2. **mustNot[]** (hard stops)` is `must not hard stops`."""
    bare = re.sub(r"[^\w\s.]", " ", _CAMEL.sub(" ", title).replace("'", "").replace("’", ""))
    bare = " ".join(bare.replace("_", " ").lower().split())
    return _NUMBER.sub("", bare).strip(" .")


def section_of(title: str) -> str:
    """The part of a shape that a heading or a key of this name begins; "" if it begins none."""
    # A title may explain itself: `Criteria (boolean)`, `Verification — how each is proved`.
    whole, bare = _words(title[:200]), _words(re.split(r"\(|\s[–—-]\s|:", title[:200])[0])
    for words in dict.fromkeys((whole, bare)):
        for section, pattern in _SECTIONS:
            if pattern.fullmatch(words):
                return section
    return ""


def is_aside(title: str) -> bool:
    """Whether what stands under this heading only explains the part that the heading stands in."""
    return _ASIDE.fullmatch(_words(title[:200])) is not None
