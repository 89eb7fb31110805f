"""Old name of command_line."""

# ruff: noqa: F403
from tests.support.command_line import *
