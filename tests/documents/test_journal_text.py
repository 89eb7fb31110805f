import pytest

from gsd_fsm.documents.journal_text import WINDOW, redact_and_truncate

BLOB = "sk-" + "ant-" + "a" * (WINDOW - 60)  # redacted to a few characters: what is beside it stays
FILLER = "nothing to see\n" * 20_000
TOKEN = "gh" + "p_" + "1a2b3c4d" * 5


@pytest.mark.parametrize("shift", range(0, 50, 3))
def test_keep_shows_no_half_of_a_secret_at_the_end_of_the_first_window(shift):
    kept = redact_and_truncate(f'{BLOB},{"." * shift}"{TOKEN}",{FILLER}')
    assert TOKEN[4:12] not in kept


@pytest.mark.parametrize("secret", ["password: 'swordfish' ", f"{TOKEN} ", "pwd='a swordfish' "])
@pytest.mark.parametrize("shift", range(0, 50, 3))
def test_keep_shows_no_half_of_a_secret_at_the_start_of_the_last_window(shift, secret):
    kept = redact_and_truncate(f"{FILLER}{secret}{' ' * shift}{BLOB}")
    assert "swordfish" not in kept
    assert TOKEN[4:12] not in kept


def test_keep_shows_both_ends_of_a_long_line():
    kept = redact_and_truncate("first word " + "a1 " * WINDOW * 2 + "last word")
    assert kept.startswith("first word")
    assert kept.endswith("last word")
