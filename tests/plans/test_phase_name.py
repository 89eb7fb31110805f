"""Names of phases."""

from __future__ import annotations

import pytest

from gsd_fsm.plans.phase_name import is_phase, phase_number, phase_of, same_phase


@pytest.mark.parametrize(
    ("value", "phase"),
    [(1, 1), ("1", 1), ("01", 1), (" 2.1 ", "2.1"), ("auth", "auth"), ("", None), (None, None),
     (True, None), (1.5, None), ([], None), ("null", None), ("~", None), ("9" * 20, "9" * 20),
     ("²", "²"), (0, 0)],
)  # fmt: skip
def test_phase_of_returns_a_number_if_it_is_one(value: object, phase: object) -> None:
    assert phase_of(value) == phase


def test_spellings_of_one_phase_are_the_same() -> None:
    for name in (1, 1.0, "1", "01", "phase-1", "Phase 1", " phase_01"):
        assert same_phase(name, 1)
        assert phase_number(name) == 1
    for name in (10, "1.1", "1a", 1.5, None, "", "phase", [1]):
        assert not same_phase(name, 1)
    assert phase_number("auth") is None
    assert same_phase("Auth", "phase-auth")


def test_is_phase_refuses_paths_and_long_names() -> None:
    for name in ("../x", "a/b", "", "..", "-x", "\n", "a..b", "x" * 101):
        assert not is_phase(name)
