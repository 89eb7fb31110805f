"""The command in this very process, as for the tests of the command line."""

from __future__ import annotations

from tests.cli import conftest

here = conftest.here  # a fixture
