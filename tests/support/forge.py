"""Old name of lines."""

# ruff: noqa: F403
from tests.support.lines import *
