"""Fixtures of the command line tests."""

from tests.support.command_line import here, repository

__all__ = ["here", "repository"]
