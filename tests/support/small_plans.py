"""Old name of verification."""

# ruff: noqa: F403
from tests.support.verification import *
