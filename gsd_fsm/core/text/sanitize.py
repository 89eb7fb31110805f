"""What may reach a terminal: every control, escape, bidi and zero-width character made visible."""

from __future__ import annotations

_HARMLESS = frozenset("\n\t")
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


def _visible(character: str) -> str:
    code = ord(character)
    if character.isprintable() and code not in _DECEPTIVE and code not in _TAGS:
        return character
    return "\\u{%x}" % ord(character)


def display(text: str, lines: bool = False) -> str:
    """The text with nothing in it that a terminal would obey; `lines` keeps newlines and tabs."""
    if text.isascii() and text.isprintable():
        return text
    return "".join([c if lines and c in _HARMLESS else _visible(c) for c in text])


def clean(text: str) -> str:
    """The text as Unicode can hold it: undecodable bytes and lone surrogates are replaced."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
