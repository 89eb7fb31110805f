"""Fixtures of the command line tests."""

from tests.support.command_line import here, repository
from tests.support.hook_agent import agent

__all__ = ["agent", "here", "repository"]
