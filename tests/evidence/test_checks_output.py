"""Evidence from output: the tail, the digest, no secrets."""

from __future__ import annotations

import pytest

from gsd_fsm.evidence.checks import KEPT_BYTES, TAIL_CHARACTERS, run_check
from tests.support import check_commands as check_rig
from tests.support.check_commands import AGES, write

python = check_rig.python  # a fixture

TOKEN = "ghp_" + "a1B2" * 9


def test_evidence_of_long_output_keeps_end_and_digests_all(python, tmp_path):
    def outcome_of(first):
        source = f"sys.stdout.write({first!r} + 'line\\n' * 60000 + 'the end\\n')"
        return run_check(python(source), tmp_path, AGES)

    one, same, other = map(outcome_of, ("a", "a", "b"))
    assert one.tail.endswith("line\nthe end")
    assert len(one.tail) == TAIL_CHARACTERS
    assert one.digest == same.digest != other.digest


def test_evidence_tail_has_no_escapes_or_redrawn_lines(python, tmp_path):
    raw = (
        "\x1b]0;title\x07\x1b[31mred\x1b[0m\r\n10%\r50%\r\x1b[K100%\r\n"
        "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x9b\x00bell\x07\tü\n\x1b]unfinished\nlast\r"
    )
    assert run_check(python(write(raw)), tmp_path, AGES).tail == "red\n100%\nlink bell\tü\n\nlast"


def test_evidence_tail_replaces_invalid_bytes(python, tmp_path):
    source = "sys.stdout.buffer.write(b'a\\xff\\xfeb')"
    assert run_check(python(source), tmp_path, AGES).tail == "a\ufffd\ufffdb"


@pytest.mark.parametrize(
    "output",
    [
        f"token {TOKEN} done",
        f"{TOKEN[:9]}\x1b[0m{TOKEN[9:]} done",
        TOKEN + " " + "x" * (TAIL_CHARACTERS - 12),  # the cut would fall into the token
        # the limit of memory falls into the token, and what follows collapses to one line
        "." * 99 + TOKEN + "\n" + "50%\r" * ((KEPT_BYTES - 20) // 4) + "\ndone",
    ],
    ids=["plain", "behind an escape", "at the cut of the tail", "at the limit of memory"],
)
def test_evidence_tail_has_no_part_of_a_secret(python, tmp_path, output):
    outcome = run_check(python(write(output)), tmp_path, AGES)
    assert outcome.tail.endswith(("done", "x", "%"))
    assert TOKEN[-8:] not in outcome.tail


def test_evidence_tail_drops_half_a_secret_at_the_cut(python, tmp_path):
    output = "." * 99 + TOKEN + " " + "\x1b[0m" * ((KEPT_BYTES - 20) // 4) + " done"
    outcome = run_check(python(write(output)), tmp_path, AGES)
    assert TOKEN[-8:] not in outcome.tail


def test_evidence_digest_is_of_redacted_text(python, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "gsd_fsm.core.text.redact.redact", lambda text: text.replace("secret", "******")
    )
    texts = ("a secret\n", "a ******\n", "a riddle\n")
    secret, redacted, other = (run_check(python(write(it)), tmp_path, AGES) for it in texts)
    assert secret.digest == redacted.digest != other.digest


def test_evidence_of_outputs_with_other_times_has_same_likeness(python, tmp_path):
    texts = ("1 failed in 0.12s", "1 failed in 0.34s", "2 failed in 0.12s")
    one, later, other = (run_check(python(write(it)), tmp_path, AGES) for it in texts)
    assert one.likeness == later.likeness != other.likeness
    assert one.digest != later.digest
