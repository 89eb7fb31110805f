"""Text that tries to deceive a terminal, and a check that none of it arrives there."""

from __future__ import annotations

EVIL = (
    "a\x1b[31mred\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x1b\\ b\x9b2Jc\x85 d\u202eback\u2066iso\u2069 "
    "e\u200bzero\ufeff\u00ad\u2060 f\U000e0041\U000e007f tag\x00nul\x08\x7f\r\u2028\u3164end"
)
DECEPTIVE = {
    *(0xAD, 0x61C, 0x180E, 0x3164, 0xFEFF, 0xFFA0, 0x115F, 0x1160),
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2060, 0x2070),
    *range(0xE0000, 0xE0080),
    *range(0x7F, 0xA0),
}


def assert_harmless(text: str, what: object) -> None:
    bad = {c for c in text if (ord(c) < 32 and c not in "\n\t") or ord(c) in DECEPTIVE}
    assert not bad, (what, bad)
